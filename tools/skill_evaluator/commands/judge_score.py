"""`skill-evaluator judge score`: outputs one by one, by the criteria of a rubric, beside a source if need be."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from skill_evaluator.commands.judge_asking import (
    AskedJudging,
    Asking,
    ask_judges,
    judges_of,
    leave_to_people,
    print_dry_run,
)
from skill_evaluator.commands.judge_cascade import Cascade, cascade_judges, run_cascade
from skill_evaluator.commands.judge_options import CascadeJudges, CascadeLabelsFile, RubricAskingOptions
from skill_evaluator.display.options import ComponentsOption, FixturesOption, flag, option, options
from skill_evaluator.errors import EXIT_OK, JudgeError
from skill_evaluator.judges.asking.criteria import (
    NamedRubric,
    Voices,
    Writers,
    check_families,
    choose_criteria,
    strict_criteria,
)
from skill_evaluator.judges.asking.items import OutputItem, items_of_run, read_items
from skill_evaluator.judges.asking.judging import write_papers
from skill_evaluator.judges.asking.results import head_of
from skill_evaluator.judges.modes.scoring import ScoreQuestion, ScoreResults, score_questions
from skill_evaluator.judges.people.items import doubts_of_scores
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.rubrics import MethodName, load_rubric
from skill_evaluator.reports.judge_results import bias_page, print_judged
from skill_evaluator.runner.journal import outcomes, read_component_manifest

EXAMPLES = (
    "skill-evaluator judge score .evaluator/rubrics/complete-summary.yaml --items summaries.jsonl --judge <id>",
    "skill-evaluator judge score .evaluator/rubrics/code-correctness.yaml --run RUN --judge <id> --dry-run",
    "skill-evaluator judge score .evaluator/rubrics/code-correctness.yaml --run RUN --judge <id> --batch",
)
EXITS = {4: "incomplete (it prints the command that goes on)"}


@options
class JudgeScoreOptions(RubricAskingOptions, ComponentsOption, FixturesOption):
    """The options of `judge score` beside those of every judging by a rubric."""

    items: Path | None = option("JSON Lines: id, input, output, and reference or source.", metavar="FILE")
    run: Path | None = option("Instead of --items: the run folder of a component.", metavar="DIR")
    field: str = option("With --run: the field that is judged; default: applies_to.", "", metavar="PATH")
    reference: bool = flag("Score every criterion beside the item's source or reference.")
    cascade: CascadeJudges = None
    labels: CascadeLabelsFile = None


def judge_score(options: JudgeScoreOptions) -> int:
    """Score outputs by a rubric: evidence, justification, score, suggestion and confidence for each criterion."""
    pair = cascade_judges(options.cascade, options.judges, options.labels, options.config)
    configuration, models = judges_of(options if pair is None else replace(options, judges=pair))
    rubric = choose_criteria(
        str(options.rubric),
        load_rubric(options.rubric, follow_links=configuration.settings.limits.follow_links),
        options.criteria,
        ("direct_scoring", "reference_based"),
    )
    items, left_out, skill = _read_items(options, rubric, configuration.settings.limits)
    panel, writers = configuration.settings.policy.judge.panel, Writers(models=configuration.models)
    warnings = check_families(
        rubric,
        models,
        [item.model for item in items.values()],
        writers,
        "refuse" if pair and panel.same_family == "half" else panel.same_family,
    )
    questions, prompts = score_questions(rubric, list(items.values()), options.seed, reference=options.reference)
    asking = Asking(
        mode="score",
        rubric=rubric.rubric.digest,
        criteria=[criterion.id for criterion in rubric.criteria],
        prompts=prompts,
        items={item.id: item.digest for item in items.values()},
        questions=[asked.question for asked in questions],
        warnings=warnings,
        skill=skill,
    )
    if pair is not None:
        from skill_evaluator.judges.panel.cascade_modes import ScoresCascade  # imports scipy: not without a cascade

        methods = _methods(rubric, reference=options.reference)
        cascade = Cascade(
            asking=asking,
            kind=ScoresCascade(rubric=rubric, items=items, asked=questions, methods=methods, left_out=left_out),
            labels=options.labels,
            show=lambda asked, results: _show(asked, asking, rubric, results, options),
            again=_again(options),
        )
        return run_cascade(cascade, options, configuration, models)
    if options.dry_run:
        return print_dry_run(asking, configuration, models, options)
    asked = ask_judges(asking, configuration, models, options)
    voices = Voices(
        policy=panel,
        judges={model.id: model for model in models},
        writers=writers,
        written={item.id: (item.model,) if item.model else () for item in items.values()},
        strict=frozenset(strict_criteria(rubric)),
    )
    results = score_results(asked, rubric, questions, left_out, voices, reference=options.reference)
    _show(asked, asking, rubric, results, options)
    leave_to_people(asked, options, lambda: doubts_of_scores(results, items.values(), rubric.criteria))
    return asked.close(_again(options))


def _read_items(
    options: JudgeScoreOptions, rubric: NamedRubric, limits: SafetyLimits
) -> tuple[Mapping[str, OutputItem], Mapping[str, str], str | None]:
    """Return the items by id, why the answers of other cases cannot be judged, and the component of a run."""
    if (options.items is None) == (options.run is None):
        raise JudgeError("say what is judged: --items FILE, or --run DIR for the answers of a component's run")
    if options.items is not None:
        return read_items(options.items, OutputItem), {}, None
    folder = options.run or Path()
    manifest = read_component_manifest(folder)
    component = load_component(options.components, manifest.skill, limits, options.fixtures)
    cases = [case for case in load_cases(component, options.fixtures) if case.id in manifest.cases]
    changed = [case.id for case in cases if case.digest != manifest.cases[case.id]]
    if changed or len(cases) < len(manifest.cases):
        gone = changed or sorted(manifest.cases.keys() - {case.id for case in cases})
        raise JudgeError(f"case '{gone[0]}' is not as it was when {folder} was run; check out its commit")
    items, left_out = items_of_run(
        component, cases, outcomes(folder), manifest.model_id, options.field or rubric.field_of(component.name)
    )
    if not items:
        raise JudgeError(f"no answer of {folder} can be judged: {next(iter(left_out.values()))}")
    return items, left_out, component.name


def score_results(
    asked: AskedJudging,
    rubric: NamedRubric,
    questions: list[ScoreQuestion],
    left_out: Mapping[str, str],
    voices: Voices | None,
    *,
    reference: bool,
) -> ScoreResults:
    """Return what the judges said; `voices` is for several of them, whose panel it makes."""
    from skill_evaluator.judges.modes.reduce_scores import reduce_scores  # imports scipy: not for a dry run
    from skill_evaluator.judges.panel.panel import reduce_panel_scores

    methods = _methods(rubric, reference=reference)
    judges = [
        reduce_scores(questions, part.answers, asked.judging.replicates, asked.record_of(part), methods)
        for part in asked.runs
    ]
    return ScoreResults(
        judging=head_of(asked.judging, rubric.file),
        left_out=dict(left_out),
        judges=judges,
        panel=reduce_panel_scores(judges, rubric.criteria, voices) if voices is not None and len(judges) > 1 else None,
    )


def _methods(rubric: NamedRubric, *, reference: bool) -> dict[str, MethodName]:
    """Return by criterion how it is scored: beside a source if it says so, or all are to be."""
    return {one.id: "reference_based" if reference else one.primary_method for one in rubric.criteria}


def _show(
    asked: AskedJudging,
    asking: Asking,
    rubric: NamedRubric,
    results: ScoreResults,
    options: JudgeScoreOptions,
) -> int:
    """Write what a judging leaves beside its journals, and print it."""
    from skill_evaluator.judges.modes.reduce_scores import write_scores  # imports scipy: not for a dry run

    write_papers(asked.folder, rubric.paper, asking.prompts, asking.systems, results, bias_page(results))
    write_scores(asked.folder, results.judges)
    print_judged(results, str(asked.folder), options.format)
    return EXIT_OK


def _again(options: JudgeScoreOptions) -> list[str]:
    return [
        *options.words("score", "items", "run", "field", "cascade", "labels", "components", "fixtures"),
        *["--reference"] * options.reference,
    ]

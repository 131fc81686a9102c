"""`skill-evaluator judge pairwise`: which of two outputs is better, in both orders; or which of several is best."""

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
from skill_evaluator.display.options import option, options
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.asking.criteria import (
    NamedRubric,
    Voices,
    Writers,
    check_families,
    choose_criteria,
    strict_criteria,
)
from skill_evaluator.judges.asking.items import read_items
from skill_evaluator.judges.asking.judging import write_papers
from skill_evaluator.judges.asking.results import head_of
from skill_evaluator.judges.modes.pairwise import OVERALL, PairItem, PairMatch, PairwiseResults, make_matches
from skill_evaluator.judges.people.items import doubts_of_pairs
from skill_evaluator.library.rubrics import load_rubric
from skill_evaluator.reports.judge_results import bias_page, print_judged

EXAMPLES = (
    "skill-evaluator judge pairwise .evaluator/rubrics/readable-code.yaml --items pairs.jsonl --judge <id> --dry-run",
    "skill-evaluator judge pairwise .evaluator/rubrics/readable-code.yaml --items pairs.jsonl --judge <id>",
)
EXITS = {4: "incomplete (it prints the command that goes on)"}


@options
class JudgePairwiseOptions(RubricAskingOptions):
    """The options of `judge pairwise` beside those of every judging by a rubric."""

    items: Path = option("JSON Lines: id, input, output_1, output_2; or outputs by name.", ..., metavar="FILE")
    opponents: int | None = option("Of several outputs each meets N others (2, 4, …); default: all pairs.", metavar="N")
    cascade: CascadeJudges = None
    labels: CascadeLabelsFile = None


def judge_pairwise(options: JudgePairwiseOptions) -> int:
    """Compare outputs two by two, always in both orders; say which is better, and how much the order decides."""
    pair = cascade_judges(options.cascade, options.judges, options.labels, options.config)
    configuration, models = judges_of(options if pair is None else replace(options, judges=pair))
    rubric = choose_criteria(
        str(options.rubric),
        load_rubric(options.rubric, follow_links=configuration.settings.limits.follow_links),
        options.criteria,
        ("pairwise_comparison",),
    )
    items = list(read_items(options.items, PairItem).values())
    panel, writers = configuration.settings.policy.judge.panel, Writers(models=configuration.models)
    wrote = [writer for item in items for writer in item.writers]
    warnings = check_families(
        rubric, models, wrote, writers, "refuse" if pair and panel.same_family == "half" else panel.same_family
    )
    matches, prompt = make_matches(rubric, items, options.seed, options.opponents)
    asking = Asking(
        mode="pairwise",
        rubric=rubric.rubric.digest,
        criteria=[criterion.id for criterion in rubric.criteria],
        prompts=[prompt],
        items={item.id: item.digest for item in items},
        questions=[question for match in matches for question in match.questions],
        notes=["every pair is asked in both orders"],
        warnings=warnings,
    )
    if pair is not None:
        from skill_evaluator.judges.panel.cascade_modes import PairCascade  # imports scipy: not without a cascade

        cascade = Cascade(
            asking=asking,
            kind=PairCascade(rubric=rubric, matches=matches),
            labels=options.labels,
            show=lambda asked, results: _show(asked, asking, rubric, results, options),
            again=options.words("pairwise", "items", "opponents", "cascade", "labels"),
        )
        return run_cascade(cascade, options, configuration, models)
    if options.dry_run:
        return print_dry_run(asking, configuration, models, options)
    asked = ask_judges(asking, configuration, models, options)
    voices = Voices(
        policy=panel,
        judges={model.id: model for model in models},
        writers=writers,
        written={item.id: [writer for writer in item.writers if writer] for item in items},
        strict=frozenset([*strict, OVERALL] if (strict := strict_criteria(rubric)) else ()),
    )
    results = _results(asked, rubric, matches, voices)
    _show(asked, asking, rubric, results, options)
    leave_to_people(asked, options, lambda: doubts_of_pairs(results, matches, rubric.criteria))
    return asked.close(options.words("pairwise", "items", "opponents"))


def _show(
    asked: AskedJudging,
    asking: Asking,
    rubric: NamedRubric,
    results: PairwiseResults,
    options: JudgePairwiseOptions,
) -> int:
    """Write what a judging leaves beside its journals, and print it."""
    from skill_evaluator.judges.modes.reduce_pairs import write_verdicts  # imports numpy

    write_papers(asked.folder, rubric.paper, asking.prompts, asking.systems, results, bias_page(results))
    write_verdicts(asked.folder, results)
    print_judged(results, str(asked.folder), options.format)
    return EXIT_OK


def _results(asked: AskedJudging, rubric: NamedRubric, matches: list[PairMatch], voices: Voices) -> PairwiseResults:
    from skill_evaluator.judges.modes.reduce_pairs import reduce_matches  # imports scipy: not for a dry run
    from skill_evaluator.judges.panel.panel import reduce_panel_pairs

    judges = [
        reduce_matches(matches, rubric.criteria, part.answers, asked.judging.replicates, asked.record_of(part))
        for part in asked.runs
    ]
    return PairwiseResults(
        judging=head_of(asked.judging, rubric.file),
        judges=judges,
        panel=reduce_panel_pairs(judges, voices) if len(judges) > 1 else None,
    )

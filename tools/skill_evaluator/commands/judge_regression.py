"""`skill-evaluator judge regression`: is the new output worse than the one in use, dimension by dimension?"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skill_evaluator.ci.arrivals import gather
from skill_evaluator.ci.judging import drawn_batch, planned_judging
from skill_evaluator.ci.pending import pending_words
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.commands.judge_asking import (
    AskedJudging,
    Asking,
    ask_judges,
    judges_of,
    leave_to_people,
    plan_judging,
    print_dry_run,
)
from skill_evaluator.commands.judge_cascade import Cascade, cascade_judges, run_cascade
from skill_evaluator.commands.judge_options import ASKED_AGAIN, BatchAskingOptions, CascadeJudges, CascadeLabelsFile
from skill_evaluator.display.options import ComponentsOption, FixturesOption, option, options, words_of
from skill_evaluator.errors import EXIT_OK, EXIT_REGRESSED, JudgeError
from skill_evaluator.judges.asking.criteria import Voices, Writers, refuse_family
from skill_evaluator.judges.asking.items import read_items
from skill_evaluator.judges.asking.judging import taken_up, write_papers
from skill_evaluator.judges.modes.regression import RegressionItem, refuse_unasked_blocking
from skill_evaluator.judges.modes.regression_batch import (
    NOT_APPLICABLE,
    ComparedOutputs,
    RegressionBatch,
    batch_of,
    outputs_of_run,
    pairs_of_outputs,
)
from skill_evaluator.judges.modes.regression_results import RegressionResults
from skill_evaluator.judges.modes.ship_rules import PRESETS, blocking_sentence
from skill_evaluator.judges.people.items import doubts_of_regressions
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Model, SafetyLimits
from skill_evaluator.providers import Configuration
from skill_evaluator.records.pinned import pinned_of_model
from skill_evaluator.reports.judge_results import bias_page, print_judged
from skill_evaluator.runner.journal import find_run

EXAMPLES = (
    "skill-evaluator judge regression --items pairs.jsonl --judge <id> --dry-run",
    "skill-evaluator judge regression --candidate RUN --baseline RUN --judge <id> --preset chat",
)
EXITS = {3: "block or alert", 4: "a person must look, or incomplete"}


@options
class JudgeRegressionOptions(BatchAskingOptions, ComponentsOption, FixturesOption):
    """The options of `judge regression` beside those of every judging."""

    items: Path | None = option("JSON Lines: id, prompt, baseline_output, candidate_output.", metavar="FILE")
    candidate: str | None = option("Instead of --items: a run of a component, folder or id.", metavar="RUN")
    baseline: str | None = option("The run it is held against; default: the pinned outputs.", metavar="RUN")
    dimensions: tuple[str, ...] = option("What is asked about, with commas or repeated.", (), metavar="NAMES")
    preset: str = option(f"Without --dimensions, those of: {', '.join(PRESETS)}.", "default", metavar="NAME")
    blocking: tuple[str, ...] = option("A dimension in which any regression blocks; repeatable.", (), metavar="NAME")
    planned: str | None = option("Instead of --items and --judge: what a plan has a judge do.", metavar="JOB")
    plan: Path = option("The plan.", Path("plan.json"), metavar="FILE")
    artifacts: Path = option("Folder that holds the answers of the plan's jobs.", Path("artifacts"), metavar="DIR")
    cascade: CascadeJudges = None
    labels: CascadeLabelsFile = None


def judge_regression(options: JudgeRegressionOptions) -> int:
    """Ask a judge, in both orders, whether candidate outputs are worse than the baseline's; code decides what ships."""
    if options.planned is not None:
        return _judge_planned(options, options.planned)
    pair = cascade_judges(options.cascade, options.judges, options.labels, options.config)
    configuration, models = judges_of(options if pair is None else replace(options, judges=pair))
    compared = _read_compared(options, configuration.settings.limits)
    batch = batch_of(
        compared,
        configuration.settings.policy,
        options.seed,
        dimensions=options.dimensions,
        preset=options.preset,
        blocking=options.blocking,
    )
    refuse_unasked_blocking(batch.pairs, options.blocking)
    asking = _asking(batch)
    if pair is None:
        return _judge(batch, asking, configuration, models, options)
    from skill_evaluator.judges.panel.cascade_modes import RegressionsCascade  # imports scipy: not without a cascade

    _warn_of_weak_judges(models)
    bounded = configuration.settings.policy.judge.alert_above is not None
    remarks = ["no alert is computed of a cascade: its judges see different pairs"] * bounded
    cascade = Cascade(
        asking=asking,
        kind=RegressionsCascade(batch=batch, models=models),
        labels=options.labels,
        show=lambda asked, results: _show(asked, batch, asking, results, options, remarks),
        again=_words(options),
    )
    return run_cascade(cascade, options, configuration, models)


def _judge_planned(options: JudgeRegressionOptions, job: str) -> int:
    """Ask what a plan has a judge do; go on with what an earlier attempt left, unless answers have changed since."""
    own = words_of(options, "items", "candidate", "baseline", "preset", "replicates", "seed")
    if own or options.judges or options.dimensions or options.blocking:
        raise JudgeError("--planned says what is compared, who judges and how: leave out what says it otherwise")
    plan = read_plan(options.plan)
    judging = planned_judging(plan, job)
    configuration, models = judges_of(replace(options, judges=(judging.model_id,)))
    component = load_component(options.components, judging.skill, configuration.settings.limits, options.fixtures)
    cases = load_cases(component, options.fixtures)
    pair = (judging.skill, judging.candidate)
    gathered = next(
        run for run in gather(plan, options.artifacts) if (run.skill, run.model_id) == pair and not run.is_baseline
    )
    if gathered.manifest is None or gathered.pending:  # which the jobs that were to answer have said
        why = pending_words(gathered.pending) if gathered.pending else "; ".join(gathered.remarks)
        print(f"nothing to judge: {why}", file=sys.stderr)
        return EXIT_OK
    batch = drawn_batch(judging, gathered, component, cases, configuration.settings.policy)
    asking = _asking(batch, plan.invocation)
    options = replace(options, judges=(judging.model_id,), seed=judging.seed, replicates=1)
    folder = options.out / plan.invocation
    if not options.dry_run and folder.exists():
        try:
            taken_up(plan_judging(asking, models, options), plan.invocation, options.out)
            options = replace(options, resume=plan.invocation)
        except JudgeError as changed:
            print(f"begun anew: {changed}", file=sys.stderr)
            shutil.rmtree(folder)
    return _judge(batch, asking, configuration, models, options)


def _judge(
    batch: RegressionBatch,
    asking: Asking,
    configuration: Configuration,
    models: Sequence[Model],
    options: JudgeRegressionOptions,
) -> int:
    asking = replace(asking, warnings=_of_families(models, batch, configuration))
    _warn_of_weak_judges(models)
    if options.dry_run:
        return print_dry_run(asking, configuration, models, options)
    from skill_evaluator.judges.calibration.detection import read_calibration, with_alerts

    calibration = read_calibration(options.config, configuration.settings)
    asked = ask_judges(asking, configuration, models, options)
    judged = _results(asked, batch, configuration)
    results = with_alerts(judged, configuration.settings.policy.judge, calibration)
    _show(asked, batch, asking, results, options)
    leave_to_people(asked, options, lambda: doubts_of_regressions(results, batch.pairs))
    incomplete = asked.close(_words(options))
    if results.exit_code == EXIT_REGRESSED or incomplete == EXIT_OK:
        return results.exit_code
    return incomplete


def _read_compared(options: JudgeRegressionOptions, limits: SafetyLimits) -> ComparedOutputs:
    """Return what is compared; raise JudgeError, RunError, ComponentError or FixtureError for what cannot be."""
    if (options.items is None) == (options.candidate is None) or (options.items and options.baseline):
        raise JudgeError("say what is compared: --items FILE, or --candidate RUN with or without --baseline RUN")
    if options.items is not None:
        return ComparedOutputs(items=read_items(options.items, RegressionItem))
    candidate, unanswered = outputs_of_run(find_run(options.candidate or "", options.components))
    component = load_component(options.components, candidate.skill, limits, options.fixtures)
    cases = load_cases(component, options.fixtures)
    missing: Mapping[str, str] = {}
    if options.baseline is None:
        baseline = pinned_of_model(component.folder, component.name, candidate.model_id)
    else:
        baseline, missing = outputs_of_run(find_run(options.baseline, options.components))
    items, left_out = pairs_of_outputs(component, cases, baseline, candidate, unanswered)
    return ComparedOutputs(
        items=items,
        left_out=left_out
        | {case_id: why if why == NOT_APPLICABLE else f"baseline: {why}" for case_id, why in missing.items()},
        skill=component.name,
        baseline=baseline.run_id,
        candidate=candidate.run_id,
        notes=[
            f"{side}: {run.skill_version} by {run.model_id}, {run.run_id}"
            for side, run in (("baseline", baseline), ("candidate", candidate))
        ],
    )


def _asking(batch: RegressionBatch, judging_id: str | None = None) -> Asking:
    return Asking(
        mode="regression",
        rubric=batch.rubric,
        criteria=list(batch.paper["dimensions"]),
        prompts=[batch.prompt],
        items=batch.items,
        questions=batch.questions,
        notes=[
            "every pair is asked about in both orders",
            *dict.fromkeys(blocking_sentence(pair.dimensions) for pair in batch.pairs),
            *batch.compared.notes,
        ],
        judging_id=judging_id,
        skill=batch.compared.skill,
    )


def _of_families(models: Sequence[Model], batch: RegressionBatch, configuration: Configuration) -> list[str]:
    """Name judges of a writer's family; of a panel refuse them with JudgeError, if the settings say so."""
    written = [name for item in batch.compared.items.values() for name in item.writers]
    same_family = configuration.settings.policy.judge.panel.same_family if len(models) > 1 else "allow"
    wanted = f"policy.judge.panel has same_family: {same_family}: a panel needs judges of another family"
    return refuse_family(wanted, models, written, Writers(models=configuration.models), same_family)


def _warn_of_weak_judges(models: Sequence[Model]) -> None:
    for model in models:
        if model.judge is None:
            print(
                f"warning: nothing says that {model.id} is strong enough to judge regressions; see what `judge "
                "calibrate` says of it, then declare `judge: strong` in models.yaml",
                file=sys.stderr,
            )


def _results(asked: AskedJudging, batch: RegressionBatch, configuration: Configuration) -> RegressionResults:
    from skill_evaluator.judges.modes.reduce_regressions import reduce_regressions  # imports scipy: not for a dry run
    from skill_evaluator.judges.panel.panel import reduce_panel_regressions

    judges = [
        reduce_regressions(
            batch.pairs,
            part.answers,
            asked.judging.replicates,
            batch.rules,
            asked.record_of(part),
            declared_strong=part.run.model.judge == "strong",
        )
        for part in asked.runs
    ]
    voices = Voices(
        policy=configuration.settings.policy.judge.panel,
        judges={part.run.model.id: part.run.model for part in asked.runs},
        writers=Writers(models=configuration.models),
        written={name: item.writers for name, item in batch.compared.items.items()},
        strict=frozenset(asked.judging.criteria),
    )
    panel = reduce_panel_regressions(judges, batch.pairs, batch.rules, voices) if len(judges) > 1 else None
    return batch.results(asked.judging, judges, panel)


def _show(
    asked: AskedJudging,
    batch: RegressionBatch,
    asking: Asking,
    results: RegressionResults,
    options: JudgeRegressionOptions,
    notes: Sequence[str] = (),
) -> int:
    """Write what a judging leaves beside its journals, and print it; return the exit code of the decision."""
    write_papers(asked.folder, batch.paper, asking.prompts, asking.systems, results, bias_page(results))
    print_judged(results, str(asked.folder), options.format, notes)
    return results.exit_code


def _words(options: JudgeRegressionOptions) -> list[str]:
    words = ["skill-evaluator", "judge", "regression"]
    if options.planned is not None:
        again = [name for name in ASKED_AGAIN if name not in ("replicates", "seed")]
        return words + words_of(options, "planned", "plan", "artifacts", "components", "fixtures", *again)
    repeated = (("--judge", options.judges), ("--dimensions", options.dimensions), ("--blocking", options.blocking))
    for flag, values in repeated:
        words += [word for value in values for word in (flag, value)]
    own = ("items", "candidate", "baseline", "preset", "cascade", "labels", "components", "fixtures")
    return words + words_of(options, *own, *ASKED_AGAIN)

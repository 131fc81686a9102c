"""`skill-evaluator collect`: the artifacts of a plan's jobs → one record per component and model, and outcome.json.

It makes no call and touches no leaderboard. It scores the answers themselves, so that shards become one run.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from skill_evaluator.ci.arrivals import Arrivals, GatheredRun, find_arrivals, gather
from skill_evaluator.ci.judging import drawn_batch, outcome_without, read_judging
from skill_evaluator.ci.outcome import OUTCOME, RECORDS, Figures, JudgedOutcome, Outcome, RunOutcome, Status
from skill_evaluator.ci.pending import PENDING, part_of_plan, pending_text, pending_words, run_of
from skill_evaluator.ci.plan import Plan, PlannedJudging, read_plan
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.commands.collect_batches import CollectingPlaces, collect_batches, collect_planned
from skill_evaluator.commands.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    PlatformOption,
    argument,
    flag,
    option,
    options,
)
from skill_evaluator.display import FEWEST_CASES
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, PlanError, SkillEvaluatorError
from skill_evaluator.evaluation.drifting import drift_of, drifts_in
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Settings
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.providers import Configuration, read_configuration
from skill_evaluator.records.archive import Archive, why_refused
from skill_evaluator.records.record import PARTIAL, Record, write_record
from skill_evaluator.reports.ci import outcome_page, print_outcome
from skill_evaluator.reports.faults import fault_lines
from skill_evaluator.repository import Repository
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.runs import input_digests
from skill_evaluator.runner.schedule import schedule_calls
from skill_evaluator.scoring.parallel import open_scores
from skill_evaluator.scoring.recording import Recorder, origin_of
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.history.component import verdict_on

_NAMED = 3  # of what changed
_Verdict = Callable[[Sequence[Record], Component, Archive, Settings, Path], ComparisonResult | None]
EXAMPLES = (
    "skill-evaluator collect artifacts --plan plan.json --out collected",
    "skill-evaluator collect --batches",
)
EXITS = {
    3: "worse than the recorded version (--batches)",
    4: "a run is not complete (the others are collected all the same)",
}


@options
class CollectOptions(ComponentsOption, FixturesOption, ConfigOption, PlatformOption, FormatOption):
    """The options of `collect`."""

    artifacts: Path | None = argument("Folder that holds the run folders of a plan's jobs, at any depth.", None)
    plan: Path = option("The plan.", Path("plan.json"), metavar="FILE")
    out: Path = option("Where records and outcome.json go.", Path("collected"), metavar="DIR")
    recorded: tuple[str, ...] = option(
        "A branch that holds records beside the work tree; repeatable.", (), metavar="REF"
    )
    batches: bool = flag("Take what batches left by --submit-only have brought; needs no plan.")
    planned: str | None = option("With --batches: those of a job of plan --pending.", metavar="JOB")


def collect(options: CollectOptions) -> int:
    """Put the answers of a plan's jobs together: one record per component and model, and what became of every call."""
    if options.batches:
        places = CollectingPlaces(
            components=options.components, fixtures=options.fixtures, config=options.config, format=options.format
        )
        if options.planned is not None:
            return collect_planned(options.plan, options.planned, options.artifacts or options.components, places)
        return collect_batches(options.artifacts, places)
    plan = read_plan(options.plan)
    if options.artifacts is None or not options.artifacts.is_dir():
        raise PlanError(f"{options.artifacts} is not a folder; give the one the jobs' artifacts were brought to")
    configuration = read_configuration(options.config)
    judgings = {(judging.skill, judging.candidate): judging for judging in plan.judgings}
    arrivals = find_arrivals(options.artifacts, (judging.id for judging in plan.judgings))
    scored, judged = [], []
    for gathered in gather(plan, options.artifacts):
        scored.append(_keep_pending(plan, gathered, options) or _score_run(gathered, configuration, options))
        judging = judgings.get((gathered.skill, gathered.model_id))
        if judging is not None and not gathered.is_baseline:
            judged.append(_judged(plan, judging, gathered, arrivals, configuration, options))
    records = {record.run_id: record for _, record in scored if record is not None}
    again, site = plan.trigger == "drift", Site(configuration.settings.site.address)
    verdicts, undecided = _verdicts(records.values(), configuration, options, drift_of if again else verdict_on)
    drifts = {run_id: drift for verdict in verdicts if again for run_id, drift in drifts_in(verdict).items()}
    for run_id, drift in drifts.items():
        marked = records[run_id].model_copy(update={"drift": drift})
        write_record(options.out / RECORDS / marked.skill / f"{marked.run_id}.json", marked)
    outcome = Outcome(
        invocation=plan.invocation,
        head=plan.head,
        reason=plan.reason,
        dry_run=plan.dry_run,
        runs=[_with_reason(run, undecided.get(run.skill)) for run, _ in scored],
        verdicts=[] if again else verdicts,
        drift=verdicts if again else [],
        judged=judged,
        collecting=bool(plan.pending),
    )
    replace_text(options.out / OUTCOME, json_text(outcome.model_dump(mode="json")))
    print_outcome(outcome, options.format, site)
    if options.platform:
        PLATFORMS[options.platform].add_summary(outcome_page(outcome, site=site))
    return EXIT_OK if outcome.complete else EXIT_INCOMPLETE


def _judged(
    plan: Plan,
    judging: PlannedJudging,
    gathered: GatheredRun,
    arrivals: Arrivals,
    configuration: Configuration,
    options: CollectOptions,
) -> JudgedOutcome:
    """Read what a judge said of a run's answers; whatever is wrong with it costs no record."""
    if gathered.manifest is None or gathered.pending:
        return outcome_without(judging, "unjudged", f"there is no answer of {judging.candidate} to judge")
    try:
        component = load_component(options.components, judging.skill, configuration.settings.limits, options.fixtures)
        cases = load_cases(component, options.fixtures)
        batch = drawn_batch(judging, gathered, component, cases, configuration.settings.policy)
        return read_judging(plan, judging, batch, arrivals, configuration, options.config)
    except SkillEvaluatorError as problem:
        return outcome_without(judging, "missing", visible(str(problem)))


def _verdicts(
    records: Iterable[Record], configuration: Configuration, options: CollectOptions, verdict_of: _Verdict
) -> tuple[list[ComparisonResult], dict[str, str]]:
    """Judge complete runs against what is recorded, here or on a branch; by component, also why that was not possible.

    A leaderboard that cannot be read keeps no record from being published.
    """
    by_skill: dict[str, list[Record]] = {}
    for record in records:
        if record.complete:
            by_skill.setdefault(record.skill, []).append(record)
    repository = Repository(options.components) if options.recorded else None
    verdicts, undecided = [], {}
    for skill, complete in by_skill.items():
        try:
            component = load_component(options.components, skill, configuration.settings.limits, options.fixtures)
            archive = Archive(component, repository, options.recorded)
            verdicts.append(verdict_of(complete, component, archive, configuration.settings, options.config))
        except SkillEvaluatorError as problem:
            undecided[skill] = f"no verdict: {visible(str(problem))}"
    return [verdict for verdict in verdicts if verdict is not None], undecided


def _with_reason(run: RunOutcome, reason: str | None) -> RunOutcome:
    """Return the outcome of a run with one more remark, where it has a record that the remark is about."""
    if reason is None or run.run_id is None:
        return run
    return run.model_copy(update={"reason": "; ".join(filter(None, (run.reason, reason)))})


def _keep_pending(plan: Plan, gathered: GatheredRun, options: CollectOptions) -> tuple[RunOutcome, None] | None:
    """Write the pending file of a run that is at the vendor in batches, with that beside it; None of any other run."""
    if not gathered.pending:
        return None
    fixtures = os.environ.get("FIXTURES_COMMIT")
    left = part_of_plan(plan, gathered.skill, gathered.model_id, gathered.pending, fixtures)
    replace_text(options.out / PENDING / gathered.skill / f"{run_of(left)}.json", pending_text(left))
    gathered = replace(gathered, remarks=(pending_words(gathered.pending), *gathered.remarks))
    return _unscored_run(gathered, "pending"), None


def _score_run(
    gathered: GatheredRun, configuration: Configuration, options: CollectOptions
) -> tuple[RunOutcome, Record | None]:
    """Score what arrived of one run and write its record, unless nothing was scored or the run cannot be taken."""
    if gathered.manifest is None:
        return _unscored_run(gathered, "skipped" if gathered.skipped else "missing"), None
    try:
        record = _record(gathered, gathered.manifest, configuration, options)
    except SkillEvaluatorError as problem:  # the other runs' records land all the same
        remarks = (*gathered.remarks, f"not collected: {visible(str(problem))}")
        return _unscored_run(replace(gathered, remarks=remarks), "missing"), None
    if record.scored == 0 and not record.complete:
        remarks = (*gathered.remarks, *fault_lines(record, visible))
        return _unscored_run(replace(gathered, remarks=remarks), "missing", record.failures), None
    accuracy = record.accuracy[record.primary_metric]
    agreement = record.reproducibility.get("pairwise_exact_match")
    outcome = RunOutcome(
        skill=gathered.skill,
        model_id=gathered.model_id,
        status="complete" if record.complete else "incomplete",
        reason="; ".join([*gathered.remarks, *fault_lines(record, visible)]),
        planned=record.planned,
        scored=record.scored,
        failed={kind: count for kind, count in record.failures.items() if kind != "not_run"},
        run_id=record.run_id,
        is_baseline=gathered.is_baseline,
        primary_metric=record.primary_metric,
        figures=Figures(
            skill_version=record.skill_version,
            accuracy=accuracy.strict_mean,
            ci95=accuracy.ci95 if accuracy.n_cases >= FEWEST_CASES else None,
            reproducibility=agreement.strict_mean if agreement else None,
        ),
        cost_usd=record.cost_usd,
        hit_rate=record.tokens.hit_rate,
    )
    refusal = _why_refused(record, configuration, options)
    if refusal is not None:  # publishing it would be refused, too; its answers stay in the artifacts
        refused = {"status": "refused", "run_id": None, "figures": None, "reason": refusal}
        return outcome.model_copy(update=refused), None
    write_record(options.out / RECORDS / record.skill / f"{record.run_id}.json", record)
    return outcome, record


def _why_refused(record: Record, configuration: Configuration, options: CollectOptions) -> str | None:
    """Return why a complete run cannot be recorded, since its version was meanwhile, with another prompt."""
    if not record.complete:
        return None
    try:
        component = load_component(options.components, record.skill, configuration.settings.limits, options.fixtures)
        archive = Archive(component, Repository(options.components) if options.recorded else None, options.recorded)
    except SkillEvaluatorError:  # what cannot be read is said where verdicts are drawn
        return None
    return why_refused(archive.entries, record.skill_version, record.digests.get("prompt"))


def _unscored_run(gathered: GatheredRun, status: Status, failures: dict[str, int] | None = None) -> RunOutcome:
    return RunOutcome(
        skill=gathered.skill,
        model_id=gathered.model_id,
        status=status,
        reason="; ".join(gathered.remarks),
        is_baseline=gathered.is_baseline,
        planned=gathered.planned,
        scored=0,
        failed={kind: count for kind, count in (failures or {}).items() if kind != "not_run"},
    )


def _record(gathered: GatheredRun, manifest: Manifest, configuration: Configuration, options: CollectOptions) -> Record:
    """Score the answers of a run; raise PlanError where this checkout is not what was planned."""
    component = load_component(options.components, gathered.skill, configuration.settings.limits, options.fixtures)
    component = apply_scenario(component, options.config, manifest.scenario)
    model = next((model for model in configuration.models if model.id == gathered.model_id), None)
    if model is None:
        raise PlanError(f"model '{gathered.model_id}' is not in models.yaml any more; check out the plan's commit")
    cases = {case.id: case for case in load_cases(component, options.fixtures)}
    present = {case_id: case.digest for case_id, case in cases.items() if case_id in manifest.cases}
    digests = manifest.digests if gathered.is_baseline else input_digests(component, model)
    changed = manifest.differences(manifest.model_copy(update={"cases": present, "digests": digests}))
    if changed:
        raise PlanError(
            f"{listed(changed, _NAMED)} of '{component.name}' is not as it was planned; check out the plan's commit"
        )
    mine = [cases[case_id] for case_id in manifest.cases]
    planned = schedule_calls(tuple(manifest.cases), manifest.replicates)
    with open_scores(component, mine, len(planned)) as scores:
        scorer = Scorer(component, mine, manifest.replicates, scores)
        scorer.add_all(gathered.answers[call] for call in planned if call in gathered.answers)
        scorecard = scorer.scorecard()
    whole = all(call in gathered.answers for call in planned)
    origin = origin_of(component, options.fixtures)
    recorder = Recorder(component=component, settings=configuration.settings, kinds=configuration.kinds, origin=origin)
    stopped = None if whole else "; ".join(gathered.remarks) or "calls are missing"
    record = recorder.record(model, manifest, scorecard, stopped=stopped)
    if record.complete:
        return record
    # an id of its own: the run may yet be completed, and recorded under the first
    return record.model_copy(update={"run_id": f"{record.run_id}{PARTIAL}{record.scored}"})

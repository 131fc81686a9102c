"""`skill-evaluator collect`: the artifacts of a plan's jobs → one record per component and model, and outcome.json.

It makes no call and touches no leaderboard. It scores the answers themselves, so that shards become one run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.ci.collecting import OUTCOME, RECORDS, Figures, GatheredRun, Outcome, RunOutcome, Status, gather
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.commands.evaluate_adaptive import with_looks
from skill_evaluator.commands.options import (
    COMPONENTS,
    CONFIG,
    Components,
    Config,
    Fixtures,
    Form,
    OnPlatform,
)
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, PlanError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.providers import Configuration, read_configuration
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import PARTIAL, Record, write_record
from skill_evaluator.reports.ci import outcome_markdown, print_outcome
from skill_evaluator.repository import Repository
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.schedule import schedule_calls
from skill_evaluator.scoring.recording import Recorder, origin_of
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.verdicts.recorded import verdict_on

EXAMPLES = ("skill-evaluator collect artifacts --plan plan.json --out collected",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectOptions:
    """The options of `collect`."""

    artifacts: Annotated[Path, typer.Argument(help="Folder that holds the run folders of a plan's jobs, at any depth.")]
    plan: Annotated[Path, typer.Option("--plan", metavar="FILE", help="The plan.")] = Path("plan.json")
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where records and outcome.json go.")] = Path(
        "collected"
    )
    recorded: Annotated[
        tuple[str, ...],
        typer.Option("--recorded", metavar="REF", help="A branch that holds records beside the work tree; repeatable."),
    ] = ()
    components: Components = COMPONENTS
    fixtures: Fixtures = None
    config: Config = CONFIG
    platform: OnPlatform = None
    format: Form = "text"


def collect(options: CollectOptions) -> int:
    """Put the answers of a plan's jobs together: one record per component and model, and what became of every call.

    Exit code: 0 every run is complete, 4 one is not (the others are collected all the same).
    """
    plan = read_plan(options.plan)
    if not options.artifacts.is_dir():
        raise PlanError(f"{options.artifacts} is not a folder; give the one the jobs' artifacts were brought to")
    configuration = read_configuration(options.config)
    scored = [_score_run(gathered, configuration, options) for gathered in gather(plan, options.artifacts)]
    by_skill: dict[str, list[Record]] = {}
    for _, record in scored:
        if record is not None and record.complete:
            by_skill.setdefault(record.skill, []).append(record)
    repository = Repository(options.components) if options.recorded else None
    verdicts = []
    for skill, complete in by_skill.items():  # judged against what is recorded, here or on a branch of records
        component = load_component(options.components, skill)
        archive = Archive(component, repository, options.recorded)
        verdicts.append(verdict_on(complete, component, archive, configuration.settings, options.config))
    outcome = Outcome(
        invocation=plan.invocation,
        head=plan.head,
        reason=plan.reason,
        dry_run=plan.dry_run,
        runs=[run for run, _ in scored],
        verdicts=[verdict for verdict in verdicts if verdict is not None],
    )
    replace_text(options.out / OUTCOME, json_text(outcome.model_dump(mode="json")))
    print_outcome(outcome, options.format)
    if options.platform:
        PLATFORMS[options.platform].add_summary(outcome_markdown(outcome))
    return EXIT_OK if outcome.complete else EXIT_INCOMPLETE


def _score_run(
    gathered: GatheredRun, configuration: Configuration, options: CollectOptions
) -> tuple[RunOutcome, Record | None]:
    """Score what arrived of one run and write its record, unless nothing was scored."""
    if gathered.manifest is None:
        return _unscored_run(gathered, "skipped" if gathered.skipped else "missing"), None
    scenario = gathered.manifest.scenario
    component = apply_scenario(load_component(options.components, gathered.skill), options.config, scenario)
    model = next((model for model in configuration.models if model.id == gathered.model_id), None)
    if model is None:
        raise PlanError(f"model '{gathered.model_id}' is not in models.yaml any more; check out the plan's commit")
    record = _record(gathered, gathered.manifest, component, model, configuration, options)
    if record.scored == 0 and not record.complete:
        return _unscored_run(gathered, "missing", record.failures), None
    write_record(options.out / RECORDS / component.name / f"{record.run_id}.json", record)
    accuracy = record.accuracy[record.primary_metric]
    agreement = record.reproducibility.get("pairwise_exact_match")
    outcome = RunOutcome(
        skill=gathered.skill,
        model_id=gathered.model_id,
        status="complete" if record.complete else "incomplete",
        reason="; ".join([*gathered.remarks, *(["stopped early by --adaptive"] if record.saved_calls else [])]),
        planned=record.planned,
        scored=record.scored,
        failed={kind: count for kind, count in record.failures.items() if kind != "not_run"},
        run_id=record.run_id,
        is_baseline=gathered.entries[0].of_baseline,
        primary_metric=record.primary_metric,
        figures=Figures(
            skill_version=record.skill_version,
            accuracy=accuracy.strict_mean,
            ci95=accuracy.ci95,
            reproducibility=agreement.strict_mean if agreement else None,
        ),
        cost_usd=record.cost_usd,
    )
    return outcome, record


def _unscored_run(gathered: GatheredRun, status: Status, failures: dict[str, int] | None = None) -> RunOutcome:
    return RunOutcome(
        skill=gathered.skill,
        model_id=gathered.model_id,
        status=status,
        reason="; ".join(gathered.remarks),
        is_baseline=gathered.entries[0].of_baseline,
        planned=gathered.planned,
        scored=0,
        failed={kind: count for kind, count in (failures or {}).items() if kind != "not_run"},
    )


def _record(
    gathered: GatheredRun,
    manifest: Manifest,
    component: Component,
    model: Model,
    configuration: Configuration,
    options: CollectOptions,
) -> Record:
    cases = {case.id: case for case in load_cases(component, options.fixtures)}
    changed = [
        case_id for case_id, digest in manifest.cases.items() if case_id not in cases or cases[case_id].digest != digest
    ]
    if changed:
        raise PlanError(
            f"case '{changed[0]}' of '{component.name}' is not as it was planned; check out the plan's commit"
        )
    scorer = Scorer(component, [cases[case_id] for case_id in manifest.cases], manifest.asked)
    planned = schedule_calls(tuple(manifest.cases), manifest.asked)
    for call in planned:
        if call in gathered.answers:
            scorer.add(gathered.answers[call])
    whole = all(call in gathered.answers for call in planned)
    origin = origin_of(component, options.fixtures)
    recorder = Recorder(component=component, settings=configuration.settings, kinds=configuration.kinds, origin=origin)
    stopped = None if whole else "; ".join(gathered.remarks) or "calls are missing"
    record = recorder.record(model, manifest, scorer.scorecard(), stopped=stopped)
    record = with_looks(record, manifest, component, configuration.settings, options.config)
    if record.complete:
        return record
    # an id of its own: the run may yet be completed, and recorded under the first
    return record.model_copy(update={"run_id": f"{record.run_id}{PARTIAL}{record.scored}"})

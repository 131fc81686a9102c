"""Artifacts of a plan's jobs → the answers of every component and model, and outcome.json: what became of each call.

Only what the plan asked for is taken, and from the plan what it fixes. Always scored + failed + not run = planned.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt

from skill_evaluator.ci.arrivals import Arrivals, ArrivedRun, find_arrivals
from skill_evaluator.ci.pending import still_pending
from skill_evaluator.ci.plan import Plan, PlannedRun, planned_runs
from skill_evaluator.display.safe_text import abridged, visible
from skill_evaluator.errors import LeaderboardError, PlanError, RunError
from skill_evaluator.files import FrozenModel, read_json, validated
from skill_evaluator.identifiers import BASELINE, Commit, ComponentName, ModelId, RunId, Share, VersionText, moment
from skill_evaluator.judges.modes.regression_results import RegressionResults, most_careful
from skill_evaluator.judges.modes.ship_rules import ShipDecision
from skill_evaluator.records.record import read_record
from skill_evaluator.runner.journal import RECORD, Manifest, merged_outcomes, read_answers
from skill_evaluator.runner.pending import PendingRun
from skill_evaluator.runner.runs import run_id_of
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide.results import ComparisonResult

OUTCOME = "outcome.json"
RECORDS = "records"  # the folder beside it: records by component and run id
JudgedStatus = Literal["judged", "skipped", "missing", "unjudged"]
Status = Literal["complete", "incomplete", "pending", "refused", "skipped", "missing"]
CLOCKS_APART = datetime.timedelta(days=1)  # more than any two machines' clocks differ
_NAMED = 3  # of what differs


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredRun:
    """All that arrived of a component on a model; `manifest`, of the whole run, is None when nothing arrived.

    `parts` are the planned runs it is put together from, one a shard. A baseline that was asked beside a new version is
    a run of its own. `remarks` say why a job stopped, did not run, or brought what was not planned. `pending` are its
    batches that the vendor has not answered in full, with those of a run beside it: then nothing of it counts yet.
    """

    skill: str
    model_id: str
    parts: tuple[PlannedRun, ...]
    manifest: Manifest | None
    answers: Mapping[Call, Replicate]
    skipped: bool
    remarks: tuple[str, ...]
    pending: tuple[PendingRun, ...] = ()

    @property
    def planned(self) -> int:
        """The number of planned calls."""
        return sum(part.calls for part in self.parts)

    @property
    def is_baseline(self) -> bool:
        """Whether it was asked beside a new version."""
        return self.parts[0].is_baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRuns:
    """What was taken of a planned run: the answers and the manifest of each attempt. `nothing`: not even a folder."""

    answers: Sequence[Sequence[Replicate]]
    begun: Sequence[Manifest]
    remarks: Sequence[str]
    nothing: bool


def gather(plan: Plan, artifacts: Path) -> Iterator[GatheredRun]:
    """Yield what the folders below `artifacts` hold of every component and model of a plan, in the plan's order.

    After the run of a new version comes that of its baseline, if the two were asked beside each other.
    """
    arrivals = find_arrivals(artifacts, (job.id for job in plan.jobs))
    groups: dict[tuple[str, str, bool], list[PlannedRun]] = {}
    for run in planned_runs(plan):
        groups.setdefault((run.manifest.skill, run.manifest.model_id, run.is_baseline), []).append(run)
    before = {run.run_id: run for run in plan.pending}
    for (skill, model_id, _), parts in groups.items():
        beside = [*groups.get((skill, model_id, False), []), *groups.get((skill, model_id, True), [])]
        pending, remarks = still_pending(beside, arrivals, before)
        yield replace(_gather_run(plan, parts, arrivals, remarks), pending=pending)


def _gather_run(plan: Plan, parts: list[PlannedRun], arrivals: Arrivals, remarks: list[str]) -> GatheredRun:
    taken: list[tuple[Manifest, Iterable[Replicate]]] = []
    begun, nothing_came = list[Manifest](), True
    for part in parts:
        arrived = take_arrived(part, arrivals)
        taken += [(part.manifest, answers) for answers in arrived.answers]
        begun += arrived.begun
        remarks += arrived.remarks
        nothing_came = nothing_came and arrived.nothing
    return GatheredRun(
        skill=parts[0].manifest.skill,
        model_id=parts[0].manifest.model_id,
        parts=tuple(parts),
        manifest=_whole_manifest(plan, parts, begun) if begun else None,
        answers=merged_outcomes(taken),
        skipped=nothing_came and all(part.job in arrivals.notes for part in parts),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def take_arrived(part: PlannedRun, arrivals: Arrivals) -> TakenRuns:
    """Return what arrived of a planned run: only what is as planned, and by `remarks` why the rest is not taken."""
    claimed = [run for run in arrivals.runs if run.claims(part)]
    answers: list[list[Replicate]] = []
    begun: list[Manifest] = []
    remarks: list[str] = []
    for run in claimed:
        wrong = _refusal(run, part.manifest)
        if wrong or run.manifest is None:
            remarks.append(f"{run.place} is left out: {wrong}")
            continue
        sentences: list[str] = []
        answers.append(_read_answers(run, part.manifest, sentences))
        begun.append(run.manifest)
        remarks += map(arrivals.shown, sentences)
    if not claimed:
        remarks.append(arrivals.notes.get(part.job, f"nothing arrived of {part.job}"))
    return TakenRuns(answers=answers, begun=begun, remarks=remarks, nothing=not claimed)


def _refusal(run: ArrivedRun, planned: Manifest) -> str:
    """Say why a run is not taken: each field in which its manifest is not as planned; empty when it is."""
    if run.manifest is None:
        return run.problem
    wrong = []
    for name in Manifest.model_fields:
        here, there = getattr(run.manifest, name), getattr(planned, name)
        if name == "created":
            first, last = moment(there) - CLOCKS_APART, datetime.datetime.now(datetime.UTC) + CLOCKS_APART
            if not first <= moment(here) <= last:
                wrong.append(f"created is {here}, the plan was made at {there}")
        elif isinstance(there, dict) and here != there:
            names = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
            wrong.append(f"{name}: {listed(names, _NAMED)} not as the plan says")
        elif here != there and name != "server" and (name != "beside" or here is not None):  # asked alone, it lacks it
            wrong.append(f"{name} is {_shown(here)}, the plan says {_shown(there)}")
    return visible(listed(wrong, _NAMED))


def _shown(value: object) -> str:
    return "none" if value is None or value == () else abridged(str(value))


def _read_answers(run: ArrivedRun, planned: Manifest, sentences: list[str]) -> list[Replicate]:
    """Read the answers to what was planned as far as they can be read, and say what is wrong with the rest."""
    made: list[Replicate] = []
    strangers = 0
    try:
        for replicate in read_answers(run.folder, sentences.append):
            if planned.asks(replicate.call):
                made.append(replicate)
            else:
                strangers += 1
    except RunError as problem:
        sentences.append(str(problem))
    if strangers:
        sentences.append(f"{run.place}: {counted(strangers, 'answer')} left out, of calls that were not planned")
    if planned.judging is not None:  # a judge's run has no record
        return made
    try:
        stopped = read_record(run.folder / RECORD).stopped
    except LeaderboardError:
        stopped = "a job ended before it could say how it went"
    if stopped:
        sentences.append(abridged(stopped, 300))
    return made


def _whole_manifest(plan: Plan, parts: Iterable[PlannedRun], begun: Sequence[Manifest]) -> Manifest:
    """Return the manifest of the run that the shards are parts of, over all planned cases."""
    cases = {case_id: digest for part in parts for case_id, digest in part.manifest.cases.items()}
    first = next(iter(parts)).manifest
    new, of_baseline = (run_id_of(plan.invocation, first.skill, first.model_id, mark=mark) for mark in ("", BASELINE))
    mine, other = (of_baseline, new) if first.role == BASELINE else (new, of_baseline)
    return first.model_copy(
        update={
            "run_id": mine,
            "beside": None if first.beside is None else other,
            "created": min(run.created for run in begun),
            "server": next((run.server for run in begun if run.server), None),
            "shard": None,
            "cases": dict(sorted(cases.items())),
        }
    )


class Figures(FrozenModel):
    """The figures of a record that a page shows: the strict mean of the primary metric, `ci95` from five cases on."""

    skill_version: VersionText
    accuracy: Share | None
    ci95: tuple[float, float] | None
    reproducibility: float | None


class RunOutcome(FrozenModel):
    """What became of the calls of a component on a model, and its record if there is one.

    `status`: `complete`, `incomplete` (marked as such in its record, and never a baseline), `refused` (meanwhile its
    version was recorded with another prompt), `pending` (its calls are at the vendor, in batches), `skipped` (its job
    said why) or `missing` (nothing arrived, or nothing was scored). `is_baseline`: it was asked beside a new version.
    """

    skill: ComponentName
    model_id: ModelId
    status: Status
    reason: str
    planned: NonNegativeInt
    scored: NonNegativeInt
    failed: dict[str, NonNegativeInt]
    run_id: RunId | None = None
    is_baseline: bool = False
    primary_metric: str | None = None
    figures: Figures | None = None
    cost_usd: NonNegativeFloat | None = None
    hit_rate: Share | None = Field(default=None, exclude_if=lambda rate: rate is None)


class JudgedOutcome(FrozenModel):
    """What a judge says of a component's new answers on one model, `candidate`, beside those that are pinned.

    `status`: `judged`, `skipped` (its job said why), `missing` (nothing came of it), or `unjudged`: there was nothing
    to compare. Where a judge should have decided and did not, nothing ships by itself.
    """

    skill: ComponentName
    candidate: ModelId
    judge: ModelId
    status: JudgedStatus
    reason: str
    results: RegressionResults | None = None

    @property
    def decides(self) -> bool:
        """Whether the judge's decision is demanded."""
        return self.status != "unjudged"

    @property
    def decision(self) -> ShipDecision | None:
        """What follows; None where no answer counted, or there is none."""
        return None if self.results is None else self.results.ship_decision


class Outcome(FrozenModel):
    """The file outcome.json; `verdicts` has the components of which a lower version is recorded.

    `drift` has those whose recorded version was asked again: what their models gave earlier is the baseline.
    `judged` has every component and model that a judge was to look at. `collecting`: an earlier plan had submitted it.
    """

    invocation: RunId
    head: Commit | None
    reason: str
    dry_run: bool
    runs: list[RunOutcome]
    verdicts: list[ComparisonResult] = []
    drift: list[ComparisonResult] = []
    judged: list[JudgedOutcome] = []
    collecting: bool = Field(default=False, exclude_if=lambda collecting: not collecting)

    @property
    def judges_say(self) -> ShipDecision | None:
        """The most careful decision of all judges; None where none was to decide."""
        decisions = [judged.decision for judged in self.judged if judged.decides]
        return (most_careful(decisions) or "review_required") if decisions else None

    @property
    def alerting(self) -> bool:
        """Whether a model moved, or a judge finds more regressions than the policy allows."""
        if any(model.moved for result in self.drift for model in result.models):
            return True
        return any(judged.results is not None and judged.results.alerting for judged in self.judged)

    @property
    def complete(self) -> bool:
        """Whether every run that could be made was made, or is at the vendor."""
        return all(run.status in ("complete", "pending", "skipped") for run in self.runs)

    def verdict_on(self, run: RunOutcome) -> str | None:
        """Return the verdict on a run, if there was a run to compare it with: on its version, or on its model."""
        again = next(filter(None, (result.on_run(run.run_id) for result in self.drift)), None)
        if again is not None:
            return "moved" if again.moved else "no drift"
        judged = (result.on_run(run.run_id) for result in self.verdicts if result.skill == run.skill)
        return next((model.verdict for model in judged if model is not None), None)


def read_outcome(path: Path) -> Outcome:
    """Read what `collect` wrote; raise PlanError when it is missing or broken."""
    return validated(Outcome, read_json(path, PlanError), path, PlanError)


def lost(plan: Plan, reason: str) -> Outcome:
    """Return the outcome of a plan of which nothing could be collected."""
    planned: dict[tuple[str, str], int] = {}
    for entry in plan.entries:
        key = (entry.skill, entry.model_id)
        planned[key] = planned.get(key, 0) + entry.calls
    runs = [
        RunOutcome(skill=skill, model_id=model_id, status="missing", reason=reason, planned=calls, scored=0, failed={})
        for (skill, model_id), calls in planned.items()
    ]
    return Outcome(invocation=plan.invocation, head=plan.head, reason=plan.reason, dry_run=plan.dry_run, runs=runs)

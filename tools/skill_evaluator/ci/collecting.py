"""Artifacts of a plan's jobs → the answers of every component and model, and outcome.json: what became of each call.

Only what the plan asked for is taken. Always scored + failed + not run = planned.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Literal

from skill_evaluator.ci.plan import Entry, Plan
from skill_evaluator.errors import LeaderboardError, PlanError, RunError
from skill_evaluator.files import FrozenModel, read_json, validated
from skill_evaluator.records.record import read_record
from skill_evaluator.runner.journal import MANIFEST, RECORD, Manifest, merged_outcomes, outcomes, read_manifest
from skill_evaluator.runner.runs import BASELINE, run_id_of
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.verdicts.results import ComparisonResult

OUTCOME = "outcome.json"
RECORDS = "records"  # the folder beside it: records by component and run id
SKIPPED = ".skipped"  # a file `<entry id>.skipped` holds why a job did not run
_inputs = attrgetter("cases", "replicates", "seed", "shard", "model_id", "digests")  # of an entry and of its run
Status = Literal["complete", "incomplete", "skipped", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredRun:
    """All that arrived of a component on a model; `manifest`, of the whole run, is None when nothing arrived.

    A baseline that was asked beside a new version is a run of its own.
    `remarks` say why a job stopped, did not run, or brought results that were not planned.
    """

    skill: str
    model_id: str
    entries: tuple[Entry, ...]
    manifest: Manifest | None
    answers: Mapping[Call, Replicate]
    skipped: bool
    remarks: tuple[str, ...]

    @property
    def planned(self) -> int:
        """The number of planned calls."""
        return sum(entry.calls for entry in self.entries)


def gather(plan: Plan, artifacts: Path) -> Iterator[GatheredRun]:
    """Yield what the folders below `artifacts` hold of every component and model of a plan, in the plan's order.

    After the run of a new version comes that of its baseline, if the two were asked beside each other.
    """
    folders: dict[tuple[str, str], list[Path]] = {}  # by component and run id
    for path in sorted(artifacts.rglob(MANIFEST)):
        try:
            manifest = read_manifest(path.parent)
        except RunError:  # its calls count as not run
            continue
        folders.setdefault((manifest.skill, manifest.run_id), []).append(path.parent)
    notes = {
        path.name.removesuffix(SKIPPED): path.read_text("utf-8", "replace").partition("\n")[0].strip() or "skipped"
        for path in sorted(artifacts.rglob(f"*{SKIPPED}"))
    }
    groups: dict[tuple[str, str, bool], list[Entry]] = {}
    for entry in plan.entries:
        for run in entry.runs:
            groups.setdefault((run.skill, run.model_id, run.of_baseline), []).append(run)
    for entries in groups.values():
        yield _gather_run(plan, entries, folders, notes)


def _gather_run(
    plan: Plan,
    entries: list[Entry],
    folders: Mapping[tuple[str, str], list[Path]],
    notes: Mapping[str, str],
) -> GatheredRun:
    parts: list[tuple[Manifest, Iterable[Replicate]]] = []
    remarks: list[str] = []
    for entry in entries:
        arrived = folders.get((entry.skill, entry.run_id(plan.invocation)), [])
        for folder in arrived:
            manifest = read_manifest(folder)
            if _inputs(manifest) != _inputs(entry):
                remarks.append(f"{folder.name} was run on other inputs than were planned and is left out")
                continue
            try:
                parts.append((manifest, outcomes(folder).values()))
            except RunError as problem:
                remarks.append(str(problem))
                continue
            try:
                stopped = read_record(folder / RECORD).stopped
            except LeaderboardError:
                stopped = "a job ended before it could say how it went"
            remarks += [stopped] if stopped else []
        if not arrived:
            remarks.append(notes.get(entry.id, f"nothing arrived of {entry.id}"))
    return GatheredRun(
        skill=entries[0].skill,
        model_id=entries[0].model_id,
        entries=tuple(entries),
        manifest=_join_manifests(plan, entries, [manifest for manifest, _ in parts]) if parts else None,
        answers=merged_outcomes(parts),
        skipped=all(entry.id in notes for entry in entries),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _join_manifests(plan: Plan, entries: Iterable[Entry], manifests: list[Manifest]) -> Manifest:
    """Return the manifest of the run that the shards are parts of, over all planned cases."""
    first = manifests[0]
    new, of_baseline = (run_id_of(plan.invocation, first.model_id, mark=mark) for mark in ("", BASELINE))
    mine, other = (of_baseline, new) if first.role == BASELINE else (new, of_baseline)
    return first.model_copy(
        update={
            "run_id": mine,
            "beside": None if first.beside is None else other,
            "created": min(manifest.created for manifest in manifests),
            "shard": None,
            "cases": dict(sorted((case_id, digest) for entry in entries for case_id, digest in entry.cases.items())),
        }
    )


class Figures(FrozenModel):
    """The figures of a record that a page shows; `accuracy` is the strict mean of the primary metric."""

    skill_version: str
    accuracy: float | None
    ci95: tuple[float, float] | None
    reproducibility: float | None


class RunOutcome(FrozenModel):
    """What became of the calls of a component on a model, and its record if there is one.

    `status`: `complete`, `incomplete` (marked as such in its record, and never a baseline), `skipped` (its job said
    why) or `missing` (nothing arrived, or nothing was scored). `is_baseline`: it was asked beside a new version, and
    gets no verdict.
    """

    skill: str
    model_id: str
    status: Status
    reason: str
    planned: int
    scored: int
    failed: dict[str, int]
    run_id: str | None = None
    is_baseline: bool = False
    primary_metric: str | None = None
    figures: Figures | None = None
    cost_usd: float | None = None

    @property
    def not_run(self) -> int:
        """The number of calls that were never made, or of which nothing arrived."""
        return self.planned - self.scored - sum(self.failed.values())


class Outcome(FrozenModel):
    """The file outcome.json; `verdicts` has the components of which a lower version is recorded."""

    invocation: str
    head: str | None
    reason: str
    dry_run: bool
    runs: list[RunOutcome]
    verdicts: list[ComparisonResult] = []

    @property
    def complete(self) -> bool:
        """Whether every run that could be made was made."""
        return all(run.status in ("complete", "skipped") for run in self.runs)

    def verdict_on(self, run: RunOutcome) -> str | None:
        """Return the verdict on a run, if there was a lower version to compare it with."""
        models = (model for result in self.verdicts if result.skill == run.skill for model in result.models)
        return next((model.verdict for model in models if model.candidate.run_id == run.run_id), None)


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

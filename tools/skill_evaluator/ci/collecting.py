"""What the jobs of a plan left behind, put together: by component and model, the answers of all its shards.

Reads the run folders below a directory, as artifacts come. Nothing is believed that the plan did not ask for.

outcome.json: what became of every call of a plan, and the figures of every run, for the page and the comment.

Written once by `collect`; scored + failed + not run = planned, always.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skill_evaluator.ci.plan import Entry, Plan
from skill_evaluator.errors import LeaderboardError, PlanError, RunError
from skill_evaluator.files import FrozenModel, read_json, validated
from skill_evaluator.records.record import read_record
from skill_evaluator.runner.journal import MANIFEST, RECORD, Manifest, merged_outcomes, outcomes, read_manifest
from skill_evaluator.runner.runs import run_id_of
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.verdicts.results import ComparisonResult

SKIPPED = ".skipped"  # a file `<entry id>.skipped` holds why a job did not run


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredRun:
    """All that arrived of a component on a model. `manifest` is of the whole run; None when nothing arrived.

    `remarks`: why a job stopped, did not run, or brought what does not belong here.
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
        """How many calls were to be made."""
        return sum(entry.calls for entry in self.entries)


def gather(plan: Plan, artifacts: Path) -> Iterator[GatheredRun]:
    """Every component and model of a plan, in its order, with what the folders below `artifacts` hold of it."""
    folders = _run_folders(artifacts)
    notes = {path.name.removesuffix(SKIPPED): _first_line(path) for path in sorted(artifacts.rglob(f"*{SKIPPED}"))}
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in plan.entries:
        groups.setdefault((entry.skill, entry.model_id), []).append(entry)
    for entries in groups.values():
        yield _gathered(plan, entries, folders, notes)


def _run_folders(artifacts: Path) -> dict[tuple[str, str], list[Path]]:
    """Run folders by component and run id; one that cannot be read is passed over: its calls then count as not run."""
    found: dict[tuple[str, str], list[Path]] = {}
    for path in sorted(artifacts.rglob(MANIFEST)):
        try:
            manifest = read_manifest(path.parent)
        except RunError:
            continue
        found.setdefault((manifest.skill, manifest.run_id), []).append(path.parent)
    return found


def _gathered(
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
            if not _as_planned(manifest, entry):
                remarks.append(f"{folder.name} was run on other inputs than were planned and is left out")
                continue
            try:
                parts.append((manifest, outcomes(folder).values()))
            except RunError as problem:
                remarks.append(str(problem))
                continue
            remarks += _stopped(folder)
        if not arrived:
            remarks.append(notes.get(entry.id, f"nothing arrived of {entry.id}"))
    return GatheredRun(
        skill=entries[0].skill,
        model_id=entries[0].model_id,
        entries=tuple(entries),
        manifest=_whole(plan, entries, [manifest for manifest, _ in parts]) if parts else None,
        answers=merged_outcomes(parts),
        skipped=all(entry.id in notes for entry in entries),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _as_planned(manifest: Manifest, entry: Entry) -> bool:
    planned = (entry.cases, entry.replicates, entry.seed, entry.shard, entry.model_id, entry.digests)
    run = (manifest.cases, manifest.replicates, manifest.seed, manifest.shard, manifest.model_id, manifest.digests)
    return run == planned


def _whole(plan: Plan, entries: Iterable[Entry], manifests: list[Manifest]) -> Manifest:
    """The manifest of the run that the shards are parts of, over all planned cases."""
    first = manifests[0]
    return first.model_copy(
        update={
            "run_id": run_id_of(plan.invocation, first.model_id),
            "created": min(manifest.created for manifest in manifests),
            "shard": None,
            "cases": dict(sorted((case_id, digest) for one in entries for case_id, digest in one.cases.items())),
        }
    )


def _stopped(folder: Path) -> list[str]:
    try:
        stopped = read_record(folder / RECORD).stopped
    except LeaderboardError:
        return ["a job ended before it could say how it went"]
    return [stopped] if stopped else []


def _first_line(path: Path) -> str:
    return path.read_text("utf-8", "replace").partition("\n")[0].strip() or "skipped"


OUTCOME = "outcome.json"
RECORDS = "records"  # beside it: the records, by component and run id

Status = Literal["complete", "incomplete", "skipped", "missing"]


class Figures(FrozenModel):
    """What a reader looks for first in a record: of the accuracies, the strict mean of the primary metric."""

    skill_version: str
    accuracy: float | None
    ci95: tuple[float, float] | None
    reproducibility: float | None


class RunOutcome(FrozenModel):
    """What became of a component on a model: every call, and the record if there is one.

    `status`: `complete`, `incomplete` (marked as such in its record, and never a baseline), `skipped` (its job said
    why) or `missing` (nothing arrived, or nothing was scored).
    """

    skill: str
    model_id: str
    status: Status
    reason: str
    planned: int
    scored: int
    failed: dict[str, int]
    run_id: str | None = None
    primary_metric: str | None = None
    figures: Figures | None = None
    cost_usd: float | None = None

    @property
    def not_run(self) -> int:
        """Calls that never were made, or of which nothing arrived."""
        return self.planned - self.scored - sum(self.failed.values())


class Outcome(FrozenModel):
    """The file outcome.json. `verdicts`: of the components of which a lower version is recorded."""

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


def read_outcome(path: Path) -> Outcome:
    """Read what `collect` wrote; raises PlanError."""
    return validated(Outcome, read_json(path, PlanError), path, PlanError)


def lost(plan: Plan, reason: str) -> Outcome:
    """The outcome of a plan of which nothing could be collected."""
    planned: dict[tuple[str, str], int] = {}
    for entry in plan.entries:
        key = (entry.skill, entry.model_id)
        planned[key] = planned.get(key, 0) + entry.calls
    runs = [
        RunOutcome(skill=skill, model_id=model_id, status="missing", reason=reason, planned=calls, scored=0, failed={})
        for (skill, model_id), calls in planned.items()
    ]
    return Outcome(invocation=plan.invocation, head=plan.head, reason=plan.reason, dry_run=plan.dry_run, runs=runs)

"""`batches.jsonl` in a run folder: which calls went to a vendor in which batch, and what became of each batch.

A line is on disk before the step it announces (`intended`), or right after the one it reports. So whenever a process
ends, the next one knows what may exist at the vendor. A `PendingRun` tells other machines the same, in a committed
file without what was asked.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, RootModel

from skill_evaluator.errors import RunError
from skill_evaluator.files import FrozenModel, LinesWriter, StrictModel, read_lines, storing, validated
from skill_evaluator.identifiers import CaseId, Label, RunId, Timestamp, moment, now
from skill_evaluator.runner.journal import MANIFEST, Manifest, create_run
from skill_evaluator.runner.schedule import Call, schedule_calls
from skill_evaluator.text import digest

BATCHES = "batches.jsonl"
_LATE = "it is written by the evaluator alone; move the run folder away and start a new run"
CustomId = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$")]


class _Line(StrictModel):
    batch: PositiveInt
    at: Timestamp


class Intended(_Line):
    """A batch is about to be created, under this name and of these calls: case and replicate by custom id."""

    event: Literal["intended"] = "intended"
    name: Label
    calls: dict[CustomId, tuple[CaseId, NonNegativeInt]] = Field(min_length=1)


class Submitted(_Line):
    """The vendor has the batch, under this id."""

    event: Literal["submitted"] = "submitted"
    id: Annotated[Label, Field(min_length=1)]


class Absent(_Line):
    """The vendor has no such batch, for this reason: its calls may be sent again."""

    event: Literal["absent"] = "absent"
    reason: Label


class Collected(_Line):
    """The batch has ended with this state, and each of its calls has its outcome, or goes `again` into a new batch."""

    event: Literal["collected"] = "collected"
    state: Label
    answered: NonNegativeInt
    failed: NonNegativeInt
    again: NonNegativeInt


class Deleted(_Line):
    """The vendor was told to delete the batch, with what was asked and answered."""

    event: Literal["deleted"] = "deleted"


_Event = Intended | Submitted | Absent | Collected | Deleted


class BatchLine(RootModel[Annotated[_Event, Field(discriminator="event")]]):
    """One line of `batches.jsonl`."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch as far as its lines say; `attempts` counts for each call the batches it was in, this one included."""

    number: int
    name: str
    at: str
    calls: Mapping[str, Call]
    attempts: Mapping[Call, int]
    batch_id: str | None = None
    absent_for: str | None = None
    stage: Literal["intended", "submitted", "absent", "collected", "deleted"] = "intended"

    @property
    def is_open(self) -> bool:
        """Whether the vendor has it, or may have it, and its results were not taken yet."""
        return self.stage in ("intended", "submitted")

    @property
    def intended_at(self) -> float:
        """The time it was asked for."""
        return moment(self.at).timestamp()

    @property
    def age_s(self) -> float:
        """The seconds since it was asked for."""
        return max(0.0, time.time() - self.intended_at)


@dataclass(slots=True)
class BatchJournal:
    """The batches of one run; every change is on the disk itself before it counts."""

    folder: Path
    batches: list[Batch] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> "BatchJournal":
        """Read the batches of a run; a torn line is skipped, since what it would say is asked of the vendor.

        Raise RunError for a line that is whole and no line of this file.
        """
        journal, path = cls(folder), folder / BATCHES
        if path.exists():
            for number, value in read_lines(path, RunError, torn_lines=True):
                try:
                    journal._take(validated(BatchLine, value, path, RunError).root)
                except (RunError, IndexError) as problem:
                    raise RunError(f"{path}:{number} is no line of a batch ({problem}); {_LATE}") from None
        return journal

    @property
    def open(self) -> list[Batch]:
        """The batches whose results are still to be taken, the oldest first."""
        return [batch for batch in self.batches if batch.is_open]

    def custom_id(self, run_id: str, place: int, batch: int | None = None) -> str:
        """Return the id of a call, by its place in the run's schedule, in a batch: in that which comes next by default.

        It is short, and no other batch has it: `3f9a01bc-12-1` is the call 12 in the first batch of a run.
        """
        return f"{digest(run_id).removeprefix('sha256:')[:12]}-{place}-{batch or len(self.batches) + 1}"

    def intend(self, run_id: str, calls: Mapping[str, Call], at: str | None = None) -> Batch:
        """Note a batch that is about to be created, or was at the time `at`."""
        number = len(self.batches) + 1
        places = {custom_id: (call.case_id, call.replicate) for custom_id, call in calls.items()}
        self._note(Intended(batch=number, at=at or now(), name=f"{run_id}.{number}", calls=places))
        return self.batches[-1]

    def submitted(self, batch: Batch, batch_id: str) -> None:
        """Note that the vendor has a batch."""
        self._note(Submitted(batch=batch.number, at=now(), id=batch_id))

    def absent(self, batch: Batch, reason: str) -> None:
        """Note that the vendor has it not."""
        printable = "".join(mark for mark in reason if mark.isprintable())
        self._note(Absent(batch=batch.number, at=now(), reason=printable[:300]))

    def collected(self, batch: Batch, state: str, *, answered: int, failed: int, again: int) -> None:
        """Note that every call of a batch has its outcome, or goes into a new one."""
        word = "".join(mark for mark in state if mark.isprintable())[:100]
        self._note(Collected(batch=batch.number, at=now(), state=word, answered=answered, failed=failed, again=again))

    def deleted(self, batch: Batch) -> None:
        """Note that the vendor was told to delete it."""
        self._note(Deleted(batch=batch.number, at=now()))

    def _note(self, line: _Event) -> None:
        writer = LinesWriter(self.folder / BATCHES)
        try:
            writer.append(line.model_dump(mode="json"))
        finally:
            writer.close()
        self._take(line)

    def _take(self, line: _Event) -> None:
        if isinstance(line, Intended):
            if line.batch != len(self.batches) + 1:
                raise IndexError(f"batch {line.batch} follows {len(self.batches)}")
            calls = {custom_id: Call(*place) for custom_id, place in line.calls.items()}
            before = [batch for batch in self.batches if batch.stage != "absent"]
            self.batches.append(
                Batch(
                    number=line.batch,
                    name=line.name,
                    at=line.at,
                    calls=calls,
                    attempts={call: 1 + sum(call in batch.attempts for batch in before) for call in calls.values()},
                )
            )
            return
        batch = self.batches[line.batch - 1]
        batch.stage = line.event
        if isinstance(line, Submitted):
            batch.batch_id = line.id
        elif isinstance(line, Absent):
            batch.absent_for = line.reason


def known_ids(results_dir: Path) -> frozenset[str]:
    """Return the vendors' ids of all batches of the runs in a folder."""
    journals = (BatchJournal.read(path.parent) for path in results_dir.glob(f"*/{BATCHES}"))
    return frozenset(batch.batch_id for journal in journals for batch in journal.batches if batch.batch_id)


class PendingBatch(FrozenModel):
    """A batch that the vendor has or may have; `places` are the first and last of its calls in the run's schedule.

    Without an `id` it is only intended. `absent` is why the vendor has it not.
    """

    at: Timestamp
    places: Annotated[list[tuple[NonNegativeInt, NonNegativeInt]], Field(min_length=1)]
    id: Annotated[Label, Field(min_length=1)] | None = None
    absent: Label | None = None


class PendingRun(FrozenModel):
    """A run with all its batches. What was collected is not told: the vendor is asked for it again."""

    run_id: RunId
    created: Timestamp
    batches: list[PendingBatch]


def pending_run(manifest: Manifest, journal: BatchJournal) -> PendingRun:
    """Return what has to be known of a run's batches; raise RunError for calls that are not the run's."""
    places = {call: place for place, call in enumerate(schedule_calls(tuple(manifest.cases), manifest.replicates))}
    batches = []
    for batch in journal.batches:
        expected = {
            journal.custom_id(manifest.run_id, places.get(call, -1), batch.number): call
            for call in batch.calls.values()
        }
        if dict(batch.calls) != expected:
            raise RunError(f"{journal.folder}: batch {batch.number} holds calls that are not of {manifest.run_id}")
        held = _stretches(places[call] for call in batch.calls.values())
        batches.append(PendingBatch(at=batch.at, places=held, id=batch.batch_id, absent=batch.absent_for))
    return PendingRun(run_id=manifest.run_id, created=manifest.created, batches=batches)


def restore_run(folder: Path, manifest: Manifest, pending: PendingRun) -> None:
    """Make a run folder from which the batches can be collected, unless there is one; raise RunError, StorageError."""
    if (folder / MANIFEST).exists():
        return
    calls = schedule_calls(tuple(manifest.cases), manifest.replicates)
    journal = BatchJournal(folder)
    with storing(folder):
        (folder / BATCHES).unlink(missing_ok=True)  # of a process that was ended here
    for number, batch in enumerate(pending.batches, 1):
        held = [place for first, last in batch.places for place in range(first, min(last, len(calls)) + 1)]
        if not held or max(held) >= len(calls):
            raise RunError(f"batch {number} of {pending.run_id} holds calls that the run has not")
        journal.intend(
            manifest.run_id,
            {journal.custom_id(manifest.run_id, place, number): calls[place] for place in held},
            at=batch.at,
        )
        if batch.id is not None:
            journal.submitted(journal.batches[-1], batch.id)
        elif batch.absent is not None:
            journal.absent(journal.batches[-1], batch.absent)
    create_run(folder, manifest.model_copy(update={"created": pending.created}))  # last: now it is whole


def _stretches(places: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last place of each stretch without a gap.

    >>> _stretches([4, 0, 1, 2])
    [(0, 2), (4, 4)]
    """
    ordered = sorted(places)
    firsts = [ordered[0], *(after for before, after in pairwise(ordered) if after != before + 1)]
    lasts = [*(before for before, after in pairwise(ordered) if after != before + 1), ordered[-1]]
    return list(zip(firsts, lasts, strict=True))

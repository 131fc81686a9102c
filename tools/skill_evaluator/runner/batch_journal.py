"""`batches.jsonl` in a run folder: which calls went to a vendor in which batch, and what became of each batch.

A line is on disk before the step it announces (`intended`), or right after the one it reports. So whenever a process
ends, the next one knows what may exist at the vendor.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, RootModel

from skill_evaluator.errors import RunError
from skill_evaluator.files import LinesWriter, StrictModel, read_lines, validated
from skill_evaluator.identifiers import CaseId, Label, Timestamp, moment, now
from skill_evaluator.runner.schedule import Call
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

    def custom_id(self, run_id: str, place: int) -> str:
        """Return the id of a call, by its place in the run's schedule, in the next batch.

        It is short, and no other batch has it: `3f9a01bc-12-1` is the call 12 in the first batch of a run.
        """
        return f"{digest(run_id).removeprefix('sha256:')[:12]}-{place}-{len(self.batches) + 1}"

    def intend(self, run_id: str, calls: Mapping[str, Call]) -> Batch:
        """Note a batch that is about to be created."""
        number = len(self.batches) + 1
        places = {custom_id: (call.case_id, call.replicate) for custom_id, call in calls.items()}
        self._note(Intended(batch=number, at=now(), name=f"{run_id}.{number}", calls=places))
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


def known_ids(results_dir: Path) -> frozenset[str]:
    """Return the vendors' ids of all batches of the runs in a folder."""
    journals = (BatchJournal.read(path.parent) for path in results_dir.glob(f"*/{BATCHES}"))
    return frozenset(batch.batch_id for journal in journals for batch in journal.batches if batch.batch_id)

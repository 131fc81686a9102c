"""What another machine needs to take a run's batches: their ids and which calls they hold, without what was asked.

Its own module because a run folder stays on its machine, and this goes into a committed file.
"""

import sys
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import Field, NonNegativeInt

from skill_evaluator.errors import PendingError, RunError
from skill_evaluator.files import FrozenModel, storing
from skill_evaluator.identifiers import Label, RunId, Timestamp
from skill_evaluator.providers.base import Failure
from skill_evaluator.runner.batch import PENDING, BatchMode
from skill_evaluator.runner.batch_journal import BATCHES, BatchJournal
from skill_evaluator.runner.journal import MANIFEST, Manifest, create_run
from skill_evaluator.runner.schedule import schedule_calls


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


def mode_of(*, submit_only: bool, collecting: bool) -> BatchMode:
    """Return how long batches are waited for."""
    return "collect" if collecting else "submit" if submit_only else "wait"


def pending_in(halted: Mapping[str, Failure | None], mode: BatchMode) -> dict[str, str]:
    """Return where the runs stand that are not waited for, by run id; none where all are."""
    if mode == "wait":
        return {}
    return {run_id: why.message for run_id, why in halted.items() if why is not None and why.reason == PENDING}


def refuse_pending(pending: Mapping[str, str]) -> None:
    """Raise PendingError where a run is not waited for, for a command that shows nothing before all are there."""
    if pending:
        states = "; ".join(f"{run_id}: {state}" for run_id, state in pending.items())
        raise PendingError(f"{states}; collect --batches takes the answers once they are there")


def print_pending(pending: Mapping[str, str]) -> None:
    """Print on stderr where the runs stand that are not waited for."""
    for run_id, state in pending.items():
        print(f"{run_id}: {state}", file=sys.stderr)
    if pending:
        print("collect --batches takes the answers once they are there", file=sys.stderr)

"""What the commands that ask in batches share: how long they wait, and what is left pending."""

import sys
from collections.abc import Mapping

from skill_evaluator.errors import PendingError
from skill_evaluator.providers.base import Failure
from skill_evaluator.runner.batch import PENDING, BatchMode


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

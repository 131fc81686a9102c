"""The schedule of a run: its calls in their order, the part of them a shard makes, and what became of each.

Calls go replicate by replicate through all cases. So wherever a run is interrupted, no case is ahead of another by more
than the calls in flight.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from skill_evaluator.errors import RunError
from skill_evaluator.providers.base import Completion, Failure


@dataclass(frozen=True, slots=True)
class Call:
    """One replicate of one case: answered once, counted once."""

    case_id: str
    replicate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """A call that was made: its completion, or the error it ended with. `latency_s` is that of the last attempt."""

    call: Call
    completion: Completion | None = None
    error: Failure | None = None
    latency_s: float = 0.0
    attempts: int = 1

    @property
    def answered(self) -> bool:
        """Whether the model said anything, however useless: such a call is never made again."""
        return self.completion is not None

    @property
    def failure(self) -> Failure | None:
        """Why there is nothing to parse: the error, or an answer that was refused or cut off."""
        if self.completion is None:
            return self.error
        if self.completion.stop_reason == "length":
            return Failure(kind="truncated", reason="output_limit", message="the answer reached the output limit")
        if self.completion.stop_reason == "refusal":
            return Failure(kind="refused", reason="refusal", message=self.completion.text[:200])
        return None


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` (from 1) of `count` of the cases; a case's replicates stay together, so that pairs do."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read `2/4` as Shard(2, 4); raise RunError for anything else."""
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise RunError(f"--shard '{text}' is not I/N with 1 <= I <= N, such as 2/4")
        return cls(int(match[1]), int(match[2]))

    def of(self, case_ids: Sequence[str]) -> tuple[str, ...]:
        """Return the cases of this shard; raise RunError when it has none."""
        mine = tuple(case_ids[self.index - 1 :: self.count])
        if not mine:
            raise RunError(f"shard {self} has no case: there are only {len(case_ids)}; use fewer shards")
        return mine

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def schedule_calls(case_ids: Sequence[str], replicates: int) -> tuple[Call, ...]:
    """Return every call of a run, in the order it is made."""
    return tuple(Call(case_id, replicate) for replicate in range(replicates) for case_id in case_ids)

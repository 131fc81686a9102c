"""Which calls a run makes, and in what order: replicate by replicate through all cases.

Interrupted anywhere, the answers so far are balanced: no case is ahead of another by more than the calls in flight.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from skill_evaluator.errors import RunError
from skill_evaluator.runner.replicates import Call


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` (from 1) of `count` of the cases; a case's replicates stay together, so that pairs do."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """`2/4` → Shard(2, 4); raises RunError."""
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise RunError(f"--shard '{text}' is not I/N with 1 <= I <= N, such as 2/4")
        return cls(int(match[1]), int(match[2]))

    def of(self, case_ids: Sequence[str]) -> tuple[str, ...]:
        """The cases of this shard; raises RunError when it has none."""
        mine = tuple(case_ids[self.index - 1 :: self.count])
        if not mine:
            raise RunError(f"shard {self} has no case: there are only {len(case_ids)}; use fewer shards")
        return mine

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def plan_calls(case_ids: Sequence[str], replicates: int) -> tuple[Call, ...]:
    """Every call of a run, in the order it is made."""
    return tuple(Call(case_id, replicate) for replicate in range(replicates) for case_id in case_ids)

"""Money and calls that may be spent. The worst case of a call is set aside before it is made.

Shared by all models of an invocation.
"""

import asyncio
from typing import Literal

Refusal = Literal["max_cost", "max_calls"]


class Budget:
    """`reserve` before an attempt, `settle` after it. Either limit may be None (unlimited)."""

    def __init__(self, max_cost_usd: float | None = None, max_calls: int | None = None) -> None:
        self._max_cost = max_cost_usd
        self._calls_left = max_calls
        self._spent = 0.0
        self._reserved = 0.0
        self._settled = asyncio.Event()

    def count_earlier(self, cost_usd: float) -> None:
        """Count what earlier attempts at a run took: a cap is the run's, however often it is gone on with."""
        self._spent += cost_usd

    def take_call(self) -> Refusal | None:
        """Count one call against the limit of calls; `max_calls` when none is left."""
        if self._calls_left is None:
            return None
        if self._calls_left == 0:
            return "max_calls"
        self._calls_left -= 1
        return None

    async def reserve(self, upper_bound_usd: float) -> Refusal | None:
        """Set aside what an attempt may cost at most; waits for calls in flight to settle before it says no."""
        if self._max_cost is None:
            return None
        while self._spent + self._reserved + upper_bound_usd > self._max_cost:
            if self._reserved == 0.0:
                return "max_cost"
            self._settled.clear()
            await self._settled.wait()
        self._reserved += upper_bound_usd
        return None

    def settle(self, upper_bound_usd: float, cost_usd: float) -> None:
        """Replace what was set aside by what the attempt cost (its upper bound when nobody knows)."""
        if self._max_cost is None:
            return
        self._reserved = max(0.0, self._reserved - upper_bound_usd)
        if self._reserved < 1e-12:  # what rounding leaves of nothing would make `reserve` wait for ever
            self._reserved = 0.0
        self._spent += cost_usd
        self._settled.set()

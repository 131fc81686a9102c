"""Whose turn it is: the calls of one model, handed out in their order, so that what a vendor caches is read again.

The first call of a prompt warms the vendor's cache. The prompt's others are passed over until it is answered, and come
before a prompt not yet asked when the entry would soon expire. Without caching the order is the schedule's.
"""

import asyncio
import heapq
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence

from skill_evaluator.providers.base import Caching, Request
from skill_evaluator.runner.schedule import Call, estimate_input_tokens

Prompt = tuple[int, str]
"""Arm and case: of these all replicates are sent the same text."""


def prompt_of(call: Call) -> Prompt:
    """Return which prompt a call asks."""
    return call.arm, call.case_id


def cached_prompts(
    calls: Sequence[Call], request_for: Callable[[Call], Request], caching: Caching | None
) -> frozenset[Prompt]:
    """Return the prompts that pay to be cached: asked at least twice, and as long as the model's floor (estimated)."""
    if caching is None:
        return frozenset()
    times = Counter(map(prompt_of, calls))
    first = {prompt_of(call): call for call in reversed(calls)}
    again = (prompt for prompt, count in times.items() if count > 1)
    return frozenset(prompt for prompt in again if caching.reaches(estimate_input_tokens(request_for(first[prompt]))))


class Turns:
    """Hands out each added call once. `done` is to be told of every call that was handed out."""

    def __init__(
        self, cached: Collection[Prompt] = (), life_s: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cached = cached
        self._life_s = life_s
        self._clock = clock
        self._order: deque[Call] = deque()
        self._left: dict[Prompt, deque[Call]] = {}  # of the cached prompts, in order
        self._early: set[Call] = set()  # handed out, and still in `_order`
        self._warming: dict[Prompt, Call] = {}
        self._held: dict[Prompt, list[Call]] = {}  # passed over while their prompt is warming
        self._asked: dict[Prompt, float] = {}  # when it was asked last; an entry's life begins anew with each call
        self._oldest: list[tuple[float, Prompt]] = []  # a heap of these, also of those that were asked again
        self._changed = asyncio.Event()

    def add(self, calls: Iterable[Call]) -> None:
        """Take further calls, behind those that are left."""
        for call in calls:
            self._order.append(call)
            if prompt_of(call) in self._cached:
                self._left.setdefault(prompt_of(call), deque()).append(call)

    async def next(self) -> Call | None:
        """Return the call whose turn it is, once there is one; None when all have been handed out."""
        while (call := self._expiring() or self._in_order()) is None and self._held:
            self._changed.clear()
            await self._changed.wait()
        return call

    def done(self, call: Call, *, answered: bool) -> None:
        """Note how a call ended; where no answer came, the next call of its prompt has to warm."""
        prompt = prompt_of(call)
        if self._warming.get(prompt) != call:
            return
        del self._warming[prompt]
        if answered:  # also where the answer took longer than a life: to wait for another would bring nothing
            self._note(prompt, max(self._asked[prompt], self._clock() - self._life_s / 2))
        else:
            del self._asked[prompt]
        self._order.extendleft(reversed(self._held.pop(prompt, [])))
        self._changed.set()

    def _expiring(self) -> Call | None:
        """Return a call that renews an entry in the second half of its life."""
        now = self._clock()
        while self._oldest and now - self._oldest[0][0] > self._life_s / 2:
            asked, prompt = heapq.heappop(self._oldest)
            alive = self._asked.get(prompt) == asked and now - asked < self._life_s
            if alive and self._left[prompt] and prompt not in self._warming:
                self._early.add(self._left[prompt][0])
                return self._handed_out(prompt)
        return None

    def _in_order(self) -> Call | None:
        while self._order:
            call = self._order.popleft()
            prompt = prompt_of(call)
            if call in self._early:
                self._early.remove(call)
            elif prompt not in self._cached:
                return call
            elif prompt in self._warming:
                self._held.setdefault(prompt, []).append(call)
            else:
                if self._clock() - self._asked.get(prompt, -math.inf) >= self._life_s:
                    self._warming[prompt] = call
                return self._handed_out(prompt)
        return None

    def _handed_out(self, prompt: Prompt) -> Call:
        self._note(prompt, self._clock())
        return self._left[prompt].popleft()

    def _note(self, prompt: Prompt, asked: float) -> None:
        self._asked[prompt] = asked
        heapq.heappush(self._oldest, (asked, prompt))

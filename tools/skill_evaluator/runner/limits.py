"""What bounds the calls of a run: how hard a model's API is pressed, and what all models together may spend.

`Gate` and `Pace` hold one model back: calls in flight (fewer when the API complains), requests and tokens a minute.
`Budget` is shared by all models of an invocation; the worst case of a call is set aside before it is made.
"""

import asyncio
import math
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType

from skill_evaluator.library.config import Limits, Model, Retry, Settings
from skill_evaluator.records.summaries import InFlight
from skill_evaluator.runner.schedule import under

Sleep = Callable[[float], Awaitable[object]]  # true when the sleeper was woken because nothing is worth waiting for
_HELD = 1.6  # times as long, at most, with twice as many in flight: a quarter more answers a second
_ROUNDS = 8  # that pass before more are tried again
_CUT_INTERVAL_S = 1.0  # complaints within one round trip are one complaint


def limits_of(
    models: Sequence[Model], settings: Settings, shards: int = 1, planned: Mapping[str, Limits] = MappingProxyType({})
) -> dict[str, Limits]:
    """Return the limits of models that are called side by side, by id: each model's own under its provider's ceiling.

    A plan says which part of them each of its jobs has. Without a plan the `shards` of a run share alike.
    """
    of_provider = Counter(model.provider for model in models)
    limits = {
        model.id: under(model.limits, settings.ceilings.get(model.provider), of_provider[model.provider])
        for model in models
    }
    return {
        name: under(whole, planned[name]) if name in planned else under(whole, whole, shards)
        for name, whole in limits.items()
    }


class Gate:
    """Calls in flight: halved when the API says it is pressed too hard, raised by one per full round of successes.

    Additive increase, multiplicative decrease: Chiu and Jain 1989, doi:10.1016/0169-7552(89)90019-6.
    It may begin with `first` places: they double while answers take hardly longer than with half as many. The places
    of a `fixed` one never change; a pause that the API demands is always kept.
    """

    def __init__(
        self, most: int, sleep: Sleep = asyncio.sleep, *, first: int | None = None, fixed: bool = False
    ) -> None:
        self._sleep = sleep
        self._most = most
        self._limit = float(first or most)
        self._grows = self._limit < most
        self._fixed = fixed
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed_until = 0.0
        self._last_cut = -_CUT_INTERVAL_S
        self._taken_s: list[float] = []  # by the answers since the places changed
        self._before_s: float | None = None  # taken on average with half as many places
        self._rounds_left = 0  # before more places are tried again
        self._places = [self.limit, self.limit]
        self._seconds = 0.0  # of all calls in flight together
        self._begun = self._at = time.monotonic()

    @property
    def limit(self) -> int:
        """Calls allowed in flight at this moment."""
        return int(self._limit)

    @property
    def used(self) -> InFlight:
        """The fewest and the most places there were, and how many calls were in flight on average."""
        least, most = self._places
        return InFlight(least=least, mean=round(self._seconds / max(self._at - self._begun, 1e-9), 1), most=most)

    async def enter(self) -> None:
        """Wait for a place, and for the end of a pause that the API demanded."""
        while self._active >= int(self._limit):
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place
        self._count(1)
        while (pause := self._closed_until - time.monotonic()) > 0:
            if await self._sleep(pause):
                return

    def leave(self) -> None:
        """Give the place back."""
        self._count(-1)
        self._wake()

    def succeeded(self, latency_s: float = 0.0) -> None:
        """Allow a little more, since a call was answered; far more while that takes no longer than before."""
        if self._grows:
            self._taken_s.append(latency_s)
            if len(self._taken_s) >= 2 * self.limit:  # the first half began when there were fewer
                self._end_round(fmean(self._taken_s[self.limit :]))
        elif self._limit < self._most:
            self._change(min(float(self._most), self._limit + 1 / self._limit))

    def throttled(self, pause_s: float) -> None:
        """Halve, since the API complained, and let no call begin before the pause is over."""
        now = time.monotonic()
        self._closed_until = max(self._closed_until, now + pause_s)
        if now - self._last_cut >= _CUT_INTERVAL_S and not self._fixed:
            self._last_cut, self._grows = now, False
            self._change(max(1.0, self._limit / 2))

    def _end_round(self, taken_s: float) -> None:
        if self._rounds_left:
            self._rounds_left -= 1
            self._taken_s = []
        elif self._before_s is not None and taken_s > _HELD * self._before_s:  # they wait for each other
            self._before_s, self._rounds_left = None, _ROUNDS
            self._change(self._limit / 2)
        else:
            self._before_s = taken_s
            self._change(min(float(self._most), self._limit * 2))
            self._grows = self._limit < self._most

    def _change(self, limit: float) -> None:
        self._limit, self._taken_s = limit, []
        self._places = [min(self._places[0], self.limit), max(self._places[1], self.limit)]
        self._wake()

    def _count(self, change: int) -> None:
        now = time.monotonic()
        self._begun = self._begun if self._seconds or self._active else now
        self._seconds += self._active * (now - self._at) if self._active else 0.0
        self._at = now
        self._active += change

    def _wake(self) -> None:
        free = int(self._limit) - self._active
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1


class Bucket:
    """At most `per_minute` units a minute, evenly refilled; a unit may be a request or a token."""

    def __init__(self, per_minute: int, sleep: Sleep = asyncio.sleep) -> None:
        self._sleep = sleep
        self._rate = per_minute / 60.0
        self._capacity = max(1.0, per_minute / 60.0)
        self._level = self._capacity
        self._at = time.monotonic()

    async def take(self, units: float) -> None:
        """Wait until the units are available; one request larger than the bucket goes into debt."""
        now = time.monotonic()
        self._level = min(self._capacity, self._level + (now - self._at) * self._rate) - units
        self._at = now
        if self._level < 0:
            await self._sleep(-self._level / self._rate)


class Pace:
    """Requests and tokens a minute of one model; no limit, no waiting."""

    def __init__(self, limits: Limits, sleep: Sleep = asyncio.sleep) -> None:
        self._requests = Bucket(limits.requests_per_minute, sleep) if limits.requests_per_minute else None
        self._tokens = Bucket(limits.tokens_per_minute, sleep) if limits.tokens_per_minute else None

    async def wait(self, tokens: int) -> None:
        """Wait until a request with this number of tokens may be sent."""
        if self._requests is not None:
            await self._requests.take(1)
        if self._tokens is not None:
            await self._tokens.take(tokens)


def wait_before_retry(retry: Retry, attempt: int, retry_after_s: float | None) -> float:
    """Return the seconds before attempt `attempt + 1`: what the server demands (capped), else jittered back-off.

    Equal jitter, https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/.
    """
    if retry_after_s is not None:
        return min(retry_after_s, retry.max_retry_after_s)
    wait: float = min(retry.max_wait_s, retry.first_wait_s * 2 ** (attempt - 1))
    return wait * random.uniform(0.5, 1.0)  # noqa: S311 (spreads load; no secret)


class Budget:
    """What all calls may cost together. `reserve` before an attempt, `settle` after it. None is unlimited.

    Whatever servers say, an attempt begins only while spent + set aside ≤ the cap, its own worst case included; what is
    spent never falls. So the cap is passed only by what a server bills beyond the worst case of attempts that had begun
    by then, and no further one begins. A cost that is no amount (negative, infinite, not a number) is the worst case.
    """

    def __init__(self, max_cost_usd: float | None = None, max_calls: int | None = None) -> None:
        self._max_cost = max_cost_usd
        self._calls_left = max_calls
        self._spent = 0.0
        self._reserved = 0.0
        self.begin()

    def begin(self) -> None:
        """Serve the event loop that runs now; one budget may be for several, one after the other."""
        self._settled = asyncio.Event()

    def anew(self, spent_usd: float) -> "Budget":
        """Return a budget of the same cap and the calls that are left, of which so much is spent: runs count anew."""
        budget = Budget(self._max_cost, self._calls_left)
        budget.count_earlier(spent_usd)
        return budget

    def count_earlier(self, cost_usd: float) -> None:
        """Count what a resumed run took before: a cap is the run's, however often it is resumed."""
        self._spent += cost_usd

    def take_call(self) -> bool:
        """Count one call against the limit of calls; return whether one was left."""
        if self._calls_left == 0:
            return False
        if self._calls_left is not None:
            self._calls_left -= 1
        return True

    @property
    def left_usd(self) -> float:
        """What is neither spent nor set aside; infinite without a cap."""
        return math.inf if self._max_cost is None else max(0.0, self._max_cost - self._spent - self._reserved)

    async def reserve(self, upper_bound_usd: float) -> bool:
        """Set aside what an attempt may cost at most; refuse only when no call in flight may still turn out cheaper."""
        while not self.reserve_now(upper_bound_usd):
            if self._reserved == 0.0:
                return False
            self._settled.clear()
            await self._settled.wait()
        return True

    def reserve_now(self, upper_bound_usd: float, *, begun: bool = False) -> bool:
        """Set aside what an attempt may cost at most, if it fits, or if it has `begun` already; return whether."""
        if self._max_cost is None:
            return True
        fits = self._spent + self._reserved + upper_bound_usd <= self._max_cost
        if fits or begun:
            self._reserved += upper_bound_usd
        return fits or begun

    def settle(self, upper_bound_usd: float, cost_usd: float) -> None:
        """Replace what was set aside by what the attempt cost, or by its upper bound when the cost is unknown."""
        if self._max_cost is None:
            return
        self._reserved = max(0.0, self._reserved - upper_bound_usd)
        if self._reserved < 1e-12:  # what rounding leaves of nothing would make `reserve` wait for ever
            self._reserved = 0.0
        self._spent += cost_usd if 0 <= cost_usd < math.inf else upper_bound_usd
        self._settled.set()

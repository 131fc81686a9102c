"""The limits of calls: calls in flight and rates of one model, waits before retries, and the budget of all models."""

import asyncio
import math
import random
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from statistics import fmean

from skill_evaluator.library.config import Limits, Model, Retry, Settings
from skill_evaluator.records.summaries import InFlight
from skill_evaluator.runner.schedule import limits_under

_MAX_LATENCY_RATIO = 1.6  # twice as many calls in flight then give at least 1/4 more outputs per second
_ROUNDS_BEFORE_GROWTH = 8  # rounds without growth after the latency rose
_CUT_INTERVAL_S = 1.0  # overload errors within this time count as one


def limits_of(
    models: Sequence[Model], settings: Settings, shards: int, planned: Mapping[str, Limits]
) -> dict[str, Limits]:
    """Return the limits of models by model id. Models of one provider share the provider's ceiling equally.

    `planned` has upper bounds by model id. The limits of a model without upper bounds are divided by `shards`.
    """
    of_provider = Counter(model.provider for model in models)
    limits = {}
    for model in models:
        limit = limits_under(model.limits, settings.ceilings.get(model.provider), of_provider[model.provider])
        share, sharers = (planned[model.id], 1) if model.id in planned else (limit, shards)
        limits[model.id] = limits_under(limit, share, sharers)
    return limits


class Gate:
    """The limit of calls in flight: halved if the API is overloaded, raised by one per full round of successes.

    Additive increase, multiplicative decrease: Chiu and Jain 1989, doi:10.1016/0169-7552(89)90019-6. A limit that
    begins at `first` doubles while latency hardly grows. A `fixed` limit is never halved.
    """

    def __init__(self, max_limit: int, *, first: int | None = None, fixed: bool = False) -> None:
        self._max_limit = max_limit
        self._limit = float(first or max_limit)
        self._grows = self._limit < max_limit
        self._fixed = fixed
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed_until = 0.0
        self._last_cut = -_CUT_INTERVAL_S
        self._latencies_s: list[float] = []  # latencies since the limit changed
        self._half_limit_latency_s: float | None = None  # mean latency at half the limit
        self._rounds_left = 0  # rounds until the next attempt to grow
        self._limits_seen = [self.limit, self.limit]
        self._seconds = 0.0  # total time of all calls in flight
        self._started_at = self._counted_at = time.monotonic()

    @property
    def limit(self) -> int:
        """The number of concurrent calls allowed now."""
        return int(self._limit)

    @property
    def used(self) -> InFlight:
        """The lowest and the highest limit, and the mean number of calls in flight."""
        lowest, highest = self._limits_seen
        mean = self._seconds / max(self._counted_at - self._started_at, 1e-9)
        return InFlight(least=lowest, mean=round(mean, 1), most=highest)

    @property
    def pause_s(self) -> float:
        """The remaining seconds of the pause after an overload, in which no call may start."""
        return max(0.0, self._closed_until - time.monotonic())

    async def enter(self) -> None:
        """Wait until another call is allowed, and count it as in flight."""
        while self._active >= int(self._limit):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._count(1)

    def leave(self) -> None:
        """Count a call in flight as ended."""
        self._count(-1)
        self._wake()

    def succeeded(self, latency_s: float = 0.0) -> None:
        """Count a successful call and its latency, and adapt the limit."""
        if self._grows:
            self._latencies_s.append(latency_s)
            if len(self._latencies_s) >= 2 * self.limit:  # the first half started under the lower limit
                self._end_round(fmean(self._latencies_s[self.limit :]))
        elif self._limit < self._max_limit:
            self._change(min(float(self._max_limit), self._limit + 1 / self._limit))

    def throttled(self, pause_s: float) -> None:
        """Halve the limit unless it is fixed or was just halved, and extend the pause."""
        now = time.monotonic()
        self._closed_until = max(self._closed_until, now + pause_s)
        if now - self._last_cut >= _CUT_INTERVAL_S and not self._fixed:
            self._last_cut, self._grows = now, False
            self._change(max(1.0, self._limit / 2))

    def _end_round(self, latency_s: float) -> None:
        if self._rounds_left:
            self._rounds_left -= 1
            self._latencies_s = []
        elif latency_s > _MAX_LATENCY_RATIO * (self._half_limit_latency_s or math.inf):  # calls queue at the server
            self._half_limit_latency_s, self._rounds_left = None, _ROUNDS_BEFORE_GROWTH
            self._change(self._limit / 2)
        else:
            self._half_limit_latency_s = latency_s
            self._change(min(float(self._max_limit), self._limit * 2))
            self._grows = self._limit < self._max_limit

    def _change(self, limit: float) -> None:
        self._limit, self._latencies_s = limit, []
        lowest, highest = self._limits_seen
        self._limits_seen = [min(lowest, self.limit), max(highest, self.limit)]
        self._wake()

    def _count(self, change: int) -> None:
        now = time.monotonic()
        self._started_at = self._started_at if self._seconds or self._active else now
        self._seconds += self._active * (now - self._counted_at) if self._active else 0.0
        self._counted_at = now
        self._active += change

    def _wake(self) -> None:
        free = int(self._limit) - self._active
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


class Bucket:
    """A token bucket with an even refill of `per_minute` requests or tokens. It is unlimited if that is None."""

    def __init__(self, per_minute: int | None) -> None:
        self._is_unlimited = per_minute is None
        self._rate = (per_minute or 0) / 60.0
        self._capacity = max(1.0, self._rate)
        self._level = self._capacity
        self._at = time.monotonic()

    def take(self, units: float) -> float:
        """Take the units, even if the bucket lacks them. Return the seconds until it has them."""
        if self._is_unlimited:
            return 0.0
        now = time.monotonic()
        self._level = min(self._capacity, self._level + (now - self._at) * self._rate) - units
        self._at = now
        return max(0.0, -self._level / self._rate)


def wait_before_retry(retry: Retry, attempt: int, retry_after_s: float | None) -> float:
    """Return the seconds to wait after attempt `attempt`: the server's retry-after (capped), else jittered back-off.

    Equal jitter, https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/.
    """
    if retry_after_s is not None:
        return min(retry_after_s, retry.max_retry_after_s)
    wait: float = min(retry.max_wait_s, retry.first_wait_s * 2 ** (attempt - 1))
    return wait * random.uniform(0.5, 1.0)  # noqa: S311 (spreads load; no secret)


class Budget:
    """The budget of all calls together, in calls and USD. A limit of None is unlimited.

    An attempt starts only if its maximum cost fits beside the spent and reserved amounts.
    """

    def __init__(self, max_cost_usd: float | None = None, max_calls: int | None = None) -> None:
        self._max_cost = max_cost_usd
        self._calls_left = max_calls
        self._spent = 0.0
        self._reserved = 0.0
        self.begin()

    def begin(self) -> None:
        """Bind the budget to the running event loop. A budget may serve several loops in sequence."""
        self._settled = asyncio.Event()

    def count_earlier(self, cost_usd: float) -> None:
        """Count the cost in USD of the earlier calls of a resumed run."""
        self._spent += cost_usd

    def take_call(self) -> bool:
        """Count one call against the limit of calls. Return False if no call is left."""
        if self._calls_left is None:
            return True
        self._calls_left = max(-1, self._calls_left - 1)
        return self._calls_left >= 0

    @property
    def left_usd(self) -> float:
        """The amount in USD that is neither spent nor reserved; infinite without a cap."""
        return math.inf if self._max_cost is None else max(0.0, self._max_cost - self._spent - self._reserved)

    async def reserve(self, upper_bound_usd: float) -> bool:
        """Wait until the maximum cost of an attempt fits and reserve it. Return False if it never fits."""
        while not self.reserve_now(upper_bound_usd):
            if self._reserved == 0.0:
                return False
            self._settled.clear()
            await self._settled.wait()
        return True

    def reserve_now(self, upper_bound_usd: float, *, begun: bool = False) -> bool:
        """Reserve the maximum cost of an attempt. Return False if it does not fit and the attempt has not `begun`."""
        if self._max_cost is None:
            return True
        fits = self._spent + self._reserved + upper_bound_usd <= self._max_cost
        if fits or begun:
            self._reserved += upper_bound_usd
        return fits or begun

    def settle(self, upper_bound_usd: float, cost_usd: float) -> None:
        """Replace a reservation by the attempt's cost, or by its upper bound if the cost is invalid."""
        if self._max_cost is None:
            return
        self._reserved = max(0.0, self._reserved - upper_bound_usd)
        if self._reserved < 1e-12:  # a rounding error would make `reserve` wait for ever
            self._reserved = 0.0
        self._spent += cost_usd if 0 <= cost_usd < math.inf else upper_bound_usd
        self._settled.set()

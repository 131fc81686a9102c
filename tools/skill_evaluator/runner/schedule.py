"""The calls of a run: their order, shards, requests and outcomes, and the limits of rate and cost that hold them."""

import asyncio
import hashlib
import math
import random
import re
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from statistics import fmean

from skill_evaluator.errors import ConfigError, RunError
from skill_evaluator.identifiers import MAX_REPLICATES
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Limits, Model, Retry, Settings
from skill_evaluator.parsing import split_reasoning
from skill_evaluator.providers.base import Completion, Failure, FailureKind, ProviderKind, Request
from skill_evaluator.records.summaries import InFlight
from skill_evaluator.text import canonical_json, digest

IN_FLIGHT = 8  # default number of concurrent calls of a model
MAX_IN_FLIGHT = 256  # limit for a server on a private network; also vLLM's default batch size


@dataclass(frozen=True, slots=True)
class Call:
    """One replicate of one case."""

    case_id: str
    replicate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """A call that was made: its completion, or the error that ended it."""

    call: Call
    completion: Completion | None = None
    error: Failure | None = None
    latency_s: float | None = 0.0  # time of the last attempt; None in a batch
    attempts: int = 1

    @property
    def answered(self) -> bool:
        """Whether the model returned an output, even an unusable one. Such a call is never repeated."""
        return self.completion is not None

    @property
    def output(self) -> str:
        """The text of the completion without reasoning; empty without a completion."""
        return "" if self.completion is None else split_reasoning(self.completion.text)[1]

    @property
    def failure(self) -> Failure | None:
        """The error, or the failure of an unusable output. It is None for a usable output.

        A refused or truncated output is unusable, and an output that lacks its tool call. So is an output that has only
        reasoning or an unrequested tool call. A completely empty output is usable.
        """
        if self.completion is None:
            return self.error
        text, stop_reason = self.completion.text, self.completion.stop_reason
        if stop_reason == "length":
            return Failure(kind="truncated", reason="output_limit", message="the answer reached the output limit")
        if stop_reason == "too_large":
            return Failure(kind="truncated", reason="answer_too_large", message="the answer is over a limit of bytes")
        if stop_reason in ("refusal", "no_tool_call"):
            kind: FailureKind = "refused" if stop_reason == "refusal" else "unparseable"
            return Failure(kind=kind, reason=stop_reason, message=text[:200])
        if text.strip() or not (self.completion.tool_call or self.completion.reasoning):
            return None
        return Failure(kind="unparseable", reason="tool_call" if self.completion.tool_call else "in_reasoning")

    @property
    def digest(self) -> str:
        """The digest of the output: its stop reason and text. Without an output, that of the kind of the error."""
        if self.completion is not None:
            # UTF-16 encodes two surrogates like the character that a journal returns for them
            return digest(f"{self.completion.stop_reason}\n{self.completion.text}".encode("utf-16-le", "surrogatepass"))
        return digest("" if self.error is None else self.error.kind)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` (from 1) of `count` parts of the cases. All replicates of a case are in the same shard."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Parse a text such as `2/4`; raise RunError for other texts."""
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise RunError(f"--shard '{text}' is not I/N with 1 <= I <= N, such as 2/4")
        return cls(int(match[1]), int(match[2]))

    def of(self, case_ids: Sequence[str]) -> tuple[str, ...]:
        """Return the case ids of this shard. Raise RunError if it has none."""
        shard_ids = tuple(case_ids[self.index - 1 :: self.count])
        if not shard_ids:
            raise RunError(f"shard {self} has no case: there are only {len(case_ids)}; use fewer shards")
        return shard_ids

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def schedule_calls(case_ids: Sequence[str], replicates: int) -> tuple[Call, ...]:
    """Return all calls of a run in the order in which they are made: all cases, replicate by replicate."""
    return tuple(Call(case_id, replicate) for replicate in range(replicates) for case_id in case_ids)


def build_request(component: Component, case: Case) -> Request:
    """Build the request of a case: the prompt filled with its inputs, and the output schema."""
    return Request(
        case_id=case.id,
        messages=component.prompt.filled(case.inputs, case.turns),
        constant=component.prompt.constant_characters(turns=bool(case.turns)),
        inputs=case.inputs,
        turns=case.turns,
        schema=component.contract.schema,
        schema_name=component.name.replace(".", "-"),
        by_tool_call=component.prompt.by_tool_call,
    )


def replicate_seed(seed: int, case_id: str, replicate: int) -> int:
    """Return the seed of a replicate (31 bits). It depends only on `seed`, the case id and the replicate."""
    raw = hashlib.sha256(f"{seed}/{case_id}/{replicate}".encode()).digest()
    return int.from_bytes(raw[:4], "big") & 0x7FFF_FFFF


def digest_of_outputs(digests: Mapping[Call, str]) -> str:
    """Return the digest of a run's outcomes from the digest of each call; it does not depend on the order of calls."""
    calls = sorted(digests, key=attrgetter("replicate", "case_id"))
    return digest(canonical_json([[call.case_id, call.replicate, digests[call]] for call in calls]))


def replicates_of_baseline(replicates: int) -> int:
    """Return the replicates of an interleaved baseline: half of the candidate's, rounded up.

    >>> replicates_of_baseline(10), replicates_of_baseline(5)
    (5, 3)
    """
    return (replicates + 1) // 2


def interleaved(schedules: Sequence[Sequence[Call]]) -> list[tuple[int, Call]]:
    """Return the calls of several runs in turns, each with the index of its run.

    There is a round for each replicate of the longest run. The replicates of other runs are spread evenly over the
    rounds. In a round, each case is called for all runs before the next case. The runs take turns in being first:
    from case to case, and from round to round.

    >>> first = schedule_calls(["a", "b"], 1)
    >>> [(index, call.case_id) for index, call in interleaved([first, first])]
    [(0, 'a'), (1, 'a'), (1, 'b'), (0, 'b')]
    >>> four, two = schedule_calls(["a"], 4), schedule_calls(["a"], 2)
    >>> [index for index, _ in interleaved([four, two])]  # rounds: [0, 1], [0], [1, 0], [0]
    [0, 1, 0, 1, 0, 0]
    """
    case_ids = dict.fromkeys(call.case_id for schedule in schedules for call in schedule)
    order = {case_id: position for position, case_id in enumerate(case_ids)}
    counts = [max((call.replicate + 1 for call in schedule), default=1) for schedule in schedules]
    rounds, fewest = max(counts), min(counts)
    turns = []
    for index, schedule in enumerate(schedules):
        for call in schedule:
            position, round_index = order[call.case_id], call.replicate * rounds // counts[index]
            shared_rounds = math.ceil(round_index * fewest / rounds)
            first = (index + shared_rounds + position) % len(schedules)
            turns.append(((round_index, position, first), index, call))
    return [(index, call) for _, index, call in sorted(turns, key=itemgetter(0))]


def limits_under(limits: Limits, ceiling: Limits | None, sharers: int = 1) -> Limits:
    """Return `limits`, each reduced to at most the ceiling divided by `sharers`, but at least 1.

    >>> limits_under(Limits(max_concurrency=9), Limits(max_concurrency=10, requests_per_minute=100), 3)
    Limits(max_concurrency=3, requests_per_minute=33, tokens_per_minute=None, context_tokens=None,
           queued_tokens=None)
    """
    shared = {} if ceiling is None else ceiling.model_dump(exclude_none=True, exclude={"context_tokens"})
    shares = {name: max(1, maximum // sharers) for name, maximum in shared.items()}
    own_limits = limits.model_dump(exclude_none=True)
    return limits.model_copy(update={name: min(share, own_limits.get(name, share)) for name, share in shares.items()})


def calls_in_flight(model: Model, kind: ProviderKind, requested: int | None) -> tuple[int, int]:
    """Return the initial and the maximum number of concurrent calls of a model.

    The maximum is the lower of `requested` (by an option or the settings) and the model's `max_concurrency`. If both
    are None, it is 8 (private network: 256).
    """
    if kind.one_at_a_time:
        return 1, 1
    grows = requested is None and model.on_private_network and model.server != "llama.cpp"
    default = MAX_IN_FLIGHT if grows else IN_FLIGHT
    maximum = min(filter(None, (requested, model.limits.max_concurrency)), default=default)
    if model.server or not grows:  # the outputs of such a `server` depend on the number
        return maximum, maximum
    return min(IN_FLIGHT, maximum), maximum


def refuse_amounts(counts: Mapping[str, int | None], max_calls: int | None, max_cost: float | None) -> None:
    """Raise ConfigError for an invalid `--max-calls` or `--max-cost`, or an invalid number in `counts` (by option)."""
    for flag, count in counts.items():
        if count is not None and count < 1:
            raise ConfigError(f"{flag} must be at least 1, not {count}")
        if flag == "--replicates" and count is not None and count > MAX_REPLICATES:
            raise ConfigError(f"{flag} must be at most {MAX_REPLICATES:,}, not {count}")
    if max_calls is not None and max_calls < 0:
        raise ConfigError(f"--max-calls must not be negative: {max_calls}")
    if max_cost is not None and not max_cost >= 0:  # NaN compares false
        raise ConfigError(f"--max-cost must be 0 USD or more, not {max_cost}")


_MAX_LATENCY_RATIO = 1.6  # twice as many calls in flight then give at least 1/4 more outputs per second
_ROUNDS_BEFORE_GROWTH = 8  # rounds without growth after the latency rose
_CUT_INTERVAL_S = 1.0  # overload errors within this time count as one


def limits_of(
    models: Sequence[Model], settings: Settings, shards: int, planned: Mapping[str, Limits]
) -> dict[str, Limits]:
    """Return the limits of models by model id. Models of one provider share the provider's ceiling equally.

    `planned` has upper bounds by model id. If a model has no upper bound, its limits are divided by `shards`.
    """
    of_provider = Counter(model.provider for model in models)
    limits = {}
    for model in models:
        limit = limits_under(model.limits, settings.ceilings.get(model.provider), of_provider[model.provider])
        share, sharers = (planned[model.id], 1) if model.id in planned else (limit, shards)
        limits[model.id] = limits_under(limit, share, sharers)
    return limits


class Gate:
    """The limit of concurrent calls. An overload of the API halves it. With a limit of n, n successes raise it by 1.

    Additive increase, multiplicative decrease: Chiu and Jain 1989, doi:10.1016/0169-7552(89)90019-6. If `first` is
    set, the limit begins there and doubles while latency hardly grows. If `fixed`, it is never halved.
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
        """The lowest and the highest limit so far, and the mean number of concurrent calls."""
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
    """A token bucket with an even refill of `per_minute` requests or tokens. None means unlimited."""

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
        """Reserve the maximum cost of an attempt. Return False if it exceeds the amount left.

        If the attempt has `begun`, reserve its cost in any case.
        """
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

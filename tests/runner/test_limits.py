"""Limits of calls: calls in flight, rates, waits before retries, and the budget."""

import asyncio
import math
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.library.config import Limits, Model, Retry, Settings
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.runner import schedule
from skill_evaluator.runner.schedule import Bucket, Budget, Gate, calls_in_flight, wait_before_retry


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(schedule, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


def _complain(gate: Gate, clock: Clock, times: int, apart_s: float = 2.0) -> list[int]:
    levels = []
    for _ in range(times):
        clock.now += apart_s
        gate.throttled(0.0)
        levels.append(gate.limit)
    return levels


def test_throttling_halves_the_limit_down_to_one(clock: Clock) -> None:
    assert _complain(Gate(8), clock, 5) == [4, 2, 1, 1, 1]
    assert _complain(Gate(5), clock, 3) == [2, 1, 1]


def test_throttling_within_one_round_trip_counts_once(clock: Clock) -> None:
    assert _complain(Gate(8), clock, 6, apart_s=0.1) == [4] * 6


def test_recovery_from_one_is_by_one_a_round(clock: Clock) -> None:
    gate = Gate(16)
    _complain(gate, clock, 5)
    seen = []
    for _ in range(10):
        gate.succeeded()
        seen.append(gate.limit)
    assert seen == [2, 2, 2, 3, 3, 3, 4, 4, 4, 4]


def _answer(gate: Gate, rounds: int, latency_s: Callable[[int], float]) -> list[int]:
    """The places after each round of answers, which take so long with so many in flight."""
    places = []
    for _ in range(rounds):
        for _ in range(2 * gate.limit):
            gate.succeeded(latency_s(gate.limit))
        places.append(gate.limit)
    return places


def test_limit_doubles_while_latency_is_stable() -> None:
    assert _answer(Gate(200, first=8), 6, lambda places: 0.1) == [16, 32, 64, 128, 200, 200]


def test_limit_settles_at_the_capacity_of_the_server() -> None:
    gate = Gate(256, first=8)
    places = _answer(gate, 24, lambda limit: 0.1 * max(1.0, limit / 16))
    assert places[:3] == [16, 32, 16]
    assert places.count(16) >= 15
    assert set(places) <= {16, 32}
    assert (gate.used.least, gate.used.most) == (8, 32)


def test_doubled_limit_is_halved_by_throttling_and_grows_by_one(clock: Clock) -> None:
    gate = Gate(256, first=8)
    _answer(gate, 3, lambda places: 0.1)
    assert _complain(gate, clock, 1) == [32]
    for _ in range(33):
        gate.succeeded(0.1)
    assert gate.limit == 33


def test_fixed_limit_stays_after_throttling(clock: Clock) -> None:
    gate = Gate(64, fixed=True)
    assert _complain(gate, clock, 3) == [64, 64, 64]
    assert gate.used.least == gate.used.most == 64


def test_the_calls_in_flight_are_counted_over_time(clock: Clock) -> None:
    async def run() -> None:
        gate = Gate(4)
        clock.now += 60  # before the first call nothing counts
        await gate.enter()
        clock.now += 1
        await gate.enter()
        clock.now += 2
        gate.leave()
        clock.now += 1
        gate.leave()
        assert gate.used.model_dump() == {"least": 4, "mean": 1.5, "most": 4}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("fields", "asked", "expected"),
    [
        ({}, None, (8, 8)),
        ({"limits": {"max_concurrency": 30}}, None, (30, 30)),
        ({"limits": {"max_concurrency": 20}}, 16, (16, 16)),
        ({"base_url": "http://10.0.0.7:8000/v1"}, None, (8, 256)),
        ({"base_url": "http://gpu-7:8000/v1"}, None, (8, 256)),
        ({"base_url": "http://gpu-7/v1", "limits": {"max_concurrency": 20}}, None, (8, 20)),
        ({"base_url": "http://gpu-7/v1"}, 12, (12, 12)),
        ({"base_url": "https://openrouter.ai/api/v1"}, None, (8, 8)),
        ({"base_url": "http://gpu-7/v1", "server": "vllm"}, None, (256, 256)),
        ({"base_url": "https://gpu.example.com/v1", "server": "vllm"}, None, (8, 8)),
        ({"base_url": "http://gpu-7/v1", "server": "llama.cpp"}, None, (8, 8)),
    ],
)
def test_private_server_gets_more_concurrent_calls_than_a_vendor(
    fields: dict[str, Any], asked: int | None, expected: tuple[int, int]
) -> None:
    assert calls_in_flight(Model(id="m", provider="openai", **fields), PROVIDERS["openai"], asked) == expected


def test_shards_without_a_plan_share_the_limits_of_their_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(id="m", provider="openai", limits=Limits(requests_per_minute=90, context_tokens=8_000))
    settings = Settings(ceilings={"openai": Limits(tokens_per_minute=3_000)})
    (of_shard,) = schedule.limits_of([model], settings, 3, {}).values()
    assert of_shard == Limits(requests_per_minute=30, tokens_per_minute=1_000, context_tokens=8_000)


async def _most_inside(gate: Gate, workers: int) -> int:
    inside = most = 0

    async def work() -> None:
        nonlocal inside, most
        await gate.enter()
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.001)
        inside -= 1
        gate.leave()

    await asyncio.gather(*(work() for _ in range(workers)))
    return most


def test_gate_admits_every_call_within_its_limit() -> None:
    async def run() -> tuple[int, int]:
        gate = Gate(6)
        before = await _most_inside(gate, 20)
        gate.throttled(0.0)
        return before, await _most_inside(gate, 20)

    assert asyncio.run(run()) == (6, 3)


def test_shorter_pause_does_not_end_a_longer_one(clock: Clock) -> None:
    gate = Gate(4)
    gate.throttled(5)
    gate.throttled(1)
    assert gate.pause_s == 5
    clock.now += 6
    assert gate.pause_s == 0


@pytest.mark.parametrize(
    ("per_minute", "taken", "seconds"),
    [
        (60, [1], 0),
        (60, [1, 1, 1], 2),
        (30, [1, 1, 1], 4),
        (6000, [100], 0),  # a second's worth at once
        (6000, [100, 100, 100], 2),
        (None, [1000, 1000], 0),
        (600, [1000], 99),  # larger than the bucket: in debt, and the debt is worked off
    ],
)
def test_units_a_minute_are_kept(per_minute: int | None, taken: list[int], seconds: float, clock: Clock) -> None:
    bucket, start = Bucket(per_minute), clock.now
    for units in taken:
        clock.now += bucket.take(units)
    assert clock.now - start == pytest.approx(seconds)


RETRY = Retry(first_wait_s=0.5, max_wait_s=6.0, max_retry_after_s=20.0)


@pytest.mark.parametrize(("attempt", "longest"), [(1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (5, 6.0), (60, 6.0)])
def test_retry_waits_double_up_to_a_cap_with_jitter(attempt: int, longest: float) -> None:
    waits = [wait_before_retry(RETRY, attempt, None) for _ in range(300)]
    assert longest / 2 <= min(waits) < 0.6 * longest
    assert 0.9 * longest < max(waits) <= longest


@pytest.mark.parametrize(("asked", "wait"), [(0.0, 0.0), (3.5, 3.5), (20.0, 20.0), (3600.0, 20.0)])
def test_retry_after_is_kept_up_to_its_maximum(asked: float, wait: float) -> None:
    assert wait_before_retry(RETRY, 1, asked) == wait


async def _spend(budget: Budget, bound: float, cost: float, steps: int = 1) -> float | None:
    """One call; what it cost, or None when it was refused."""
    if not await budget.reserve(bound):
        return None
    for _ in range(steps):
        await asyncio.sleep(0)
    budget.settle(bound, cost)
    return cost


def test_calls_are_counted_down_to_none() -> None:
    for budget, taken in ((Budget(max_calls=2), [True, True, False, False]), (Budget(), [True] * 4)):
        assert [budget.take_call() for _ in range(4)] == taken


def test_budget_waits_for_calls_in_flight_before_refusing() -> None:
    async def run() -> list[float | None]:
        budget = Budget(max_cost_usd=1.0)
        return list(await asyncio.gather(*(_spend(budget, 0.6, 0.1, steps=3) for _ in range(6))))

    # one at a time fits; each costs 0.1, so 0.6 more fits beside 0.4 spent, and not beside 0.5
    assert asyncio.run(run()) == [0.1] * 5 + [None]


@pytest.mark.parametrize("bound", [0.1, 0.7, 1 / 3, 1e-7])
def test_rounding_never_blocks_the_budget(bound: float) -> None:
    async def run() -> float | None:
        budget = Budget(max_cost_usd=50 * bound)
        await asyncio.gather(*(_spend(budget, bound * (1 + number / 7), bound / 3) for number in range(30)))
        return await _spend(budget, 60 * bound, 0.0)

    assert asyncio.run(asyncio.wait_for(run(), 20)) is None


amounts = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 5)


@given(st.integers(0, 10**6), st.lists(st.tuples(st.floats(0, 3), amounts), max_size=30), st.floats(0, 20))
def test_call_starts_only_if_its_worst_case_fits(seed: int, calls: list[tuple[float, float]], cap: float) -> None:
    chance = random.Random(seed)
    set_aside: list[float] = []
    spent = 0.0

    async def call(budget: Budget, bound: float, billed: float) -> None:
        nonlocal spent
        if not await budget.reserve(bound):
            return
        set_aside.append(bound)
        assert math.fsum((spent, *set_aside)) <= cap + 1e-9
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        budget.settle(bound, billed)
        set_aside.remove(bound)
        before, spent = spent, spent + (billed if 0 <= billed < math.inf else bound)
        assert before <= spent

    async def run() -> None:
        budget = Budget(max_cost_usd=cap)
        await asyncio.wait_for(asyncio.gather(*(call(budget, *amounts) for amounts in calls)), 20)

    asyncio.run(run())
    assert set_aside == []


def test_bill_over_the_worst_case_stops_further_calls() -> None:
    async def run() -> list[float | None]:
        budget = Budget(max_cost_usd=1.0)
        return [await _spend(budget, 0.25, 7.0) for _ in range(3)]

    assert asyncio.run(run()) == [7.0, None, None]

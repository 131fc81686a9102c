"""Money and calls: never more than allowed, and not refused while a call in flight may turn out cheaper."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.runner.limits import Budget


async def _spend(budget: Budget, bound: float, cost: float, steps: int = 1) -> float | None:
    """One call; what it cost, or None when it was refused."""
    if await budget.reserve(bound) is not None:
        return None
    for _ in range(steps):
        await asyncio.sleep(0)
    budget.settle(bound, cost)
    return cost


def test_calls_are_counted_down_to_none() -> None:
    budget = Budget(max_calls=2)
    assert [budget.take_call() for _ in range(4)] == [None, None, "max_calls", "max_calls"]


def test_without_limits_nothing_is_refused() -> None:
    budget = Budget()
    assert [budget.take_call() for _ in range(100)] == [None] * 100
    assert asyncio.run(_spend(budget, 1e9, 1e9)) == 1e9


def test_it_waits_for_what_is_in_flight_before_it_refuses() -> None:
    async def run() -> list[float | None]:
        budget = Budget(max_cost_usd=1.0)
        return list(await asyncio.gather(*(_spend(budget, 0.6, 0.1, steps=3) for _ in range(6))))

    # one at a time fits; each costs 0.1, so 0.6 more fits beside 0.4 spent, and not beside 0.5
    assert asyncio.run(run()) == [0.1] * 5 + [None]


def test_what_cannot_fit_is_refused_at_once() -> None:
    assert asyncio.run(asyncio.wait_for(_spend(Budget(max_cost_usd=1.0), 1.01, 0.0), 5)) is None


def test_exactly_the_budget_fits() -> None:
    async def run() -> list[float | None]:
        budget = Budget(max_cost_usd=1.0)
        return [await _spend(budget, 0.25, 0.25) for _ in range(5)]

    assert asyncio.run(run()) == [0.25] * 4 + [None]


@pytest.mark.parametrize("bound", [0.1, 0.7, 1 / 3, 1e-7])
def test_what_rounding_leaves_does_not_make_it_wait_for_ever(bound: float) -> None:
    async def run() -> float | None:
        budget = Budget(max_cost_usd=50 * bound)
        await asyncio.gather(*(_spend(budget, bound * (1 + number / 7), bound / 3) for number in range(30)))
        return await _spend(budget, 60 * bound, 0.0)

    assert asyncio.run(asyncio.wait_for(run(), 5)) is None


@given(st.integers(0, 10**6), st.integers(1, 30), st.floats(0.01, 20))
def test_it_is_never_exceeded_and_everybody_gets_an_answer(seed: int, calls: int, limit: float) -> None:
    chance = random.Random(seed)

    async def run() -> list[float | None]:
        budget = Budget(max_cost_usd=limit)
        bounds = [chance.uniform(0, 3) for _ in range(calls)]
        jobs = [_spend(budget, bound, bound * chance.random(), chance.randrange(5)) for bound in bounds]
        return list(await asyncio.wait_for(asyncio.gather(*jobs), 10))

    spent = [cost for cost in asyncio.run(run()) if cost is not None]
    assert sum(spent) <= limit + 1e-9

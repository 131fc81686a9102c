"""Whose turn it is: a prompt is answered once before its other calls begin, and no entry of a cache is lost."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.library.messages import dialogue
from skill_evaluator.providers.base import Caching, Completion, Request
from skill_evaluator.runner.schedule import Call, schedule_calls
from skill_evaluator.runner.turns import Prompt, Turns, cached_prompts, prompt_of

from tests.support.scripted import ScriptedProvider, answer, drive


def _cases(count: int) -> list[str]:
    return [f"case-{number}" for number in range(count)]


class World:
    """Workers with a clock of their own: each call takes its seconds, and `asked` has every call with its beginning."""

    def __init__(self, calls: Sequence[Call], cached: bool, life_s: float = 300.0) -> None:
        self.now = 0.0
        self.turns = Turns({prompt_of(call) for call in calls} if cached else (), life_s, lambda: self.now)
        self.turns.add(calls)
        self.asked: list[tuple[float, Call]] = []
        self.cold: list[Call] = []
        self.warm_until: dict[Prompt, float] = defaultdict(lambda: -1.0)
        self.life_s = life_s

    async def run(self, workers: int, seconds: float, failing: frozenset[Call] = frozenset()) -> None:
        """Let so many workers make all calls, in rounds of `seconds`."""
        waiting = [asyncio.ensure_future(self.turns.next()) for _ in range(workers)]
        while waiting:
            for _ in range(workers + 2):  # everybody who can have a call has one
                await asyncio.sleep(0)
            begun = [task for task in waiting if task.done()]
            calls = [call for task in begun if (call := task.result()) is not None]
            if not calls:
                assert all(task.done() for task in waiting), "nobody is at work, and somebody waits"
                return
            for call in calls:
                self.asked.append((self.now, call))
                if self.warm_until[prompt_of(call)] < self.now:
                    self.cold.append(call)
            self.now += seconds
            for call in calls:
                if call not in failing:
                    self.warm_until[prompt_of(call)] = self.now - seconds + self.life_s
                self.turns.done(call, answered=call not in failing)
            waiting = [task for task in waiting if task not in begun]
            waiting += [asyncio.ensure_future(self.turns.next()) for _ in calls]


def _made(cases: int, replicates: int, workers: int, *, cached: bool = True, seconds: float = 1.0) -> World:
    world = World(schedule_calls(_cases(cases), replicates), cached)
    asyncio.run(world.run(workers, seconds))
    return world


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 8))
def test_without_caching_the_order_is_the_schedules(cases: int, replicates: int, workers: int) -> None:
    calls = [call for _, call in _made(cases, replicates, workers, cached=False).asked]
    assert calls == list(schedule_calls(_cases(cases), replicates))


@given(st.integers(1, 6), st.integers(2, 5), st.integers(1, 8), st.integers(0, 10**6))
@example(1, 5, 8, 0)
def test_every_call_is_made_once_and_none_of_a_prompt_before_its_first_answer(
    cases: int, replicates: int, workers: int, seed: int
) -> None:
    calls = schedule_calls(_cases(cases), replicates)
    failing = frozenset(call for call in calls if random.Random(f"{seed}{call}").random() < 0.3)
    world = World(calls, cached=True)
    asyncio.run(world.run(workers, 1.0, failing))
    assert len(world.asked) == len(calls)
    assert {call for _, call in world.asked} == set(calls)
    for case_id in _cases(cases):
        begun = [(at, call) for at, call in world.asked if call.case_id == case_id]
        first = next((at for at, call in begun if call not in failing), None)
        before = [at for at, call in begun if first is None or at <= first]
        assert len(before) == len(set(before))  # one at a time, until one is answered


@given(st.integers(1, 12), st.integers(2, 6), st.data())
def test_with_as_many_cases_as_workers_it_takes_no_more_rounds(
    cases: int, replicates: int, data: st.DataObject
) -> None:
    workers = data.draw(st.integers(1, cases))
    assert _made(cases, replicates, workers).now == _made(cases, replicates, workers, cached=False).now


@pytest.mark.parametrize("seconds", [1.0, 20.0, 60.0, 140.0])
@pytest.mark.parametrize("workers", [1, 4])
def test_replicates_follow_each_other_within_the_life_of_an_entry(seconds: float, workers: int) -> None:
    """40 cases: a round of all takes up to 93 minutes, an entry lives for five."""
    world = _made(40, 6, workers, seconds=seconds)
    assert len(world.asked) == 240
    assert len(world.cold) == 40  # each case's first, and no other
    assert len(_made(40, 6, workers, cached=False, seconds=seconds).cold) == (
        40 if 40 * seconds / workers <= 300 else 240
    )


def test_an_entry_that_was_lost_is_warmed_again_before_others_read_it() -> None:
    world = _made(1, 5, 4, seconds=400.0)
    assert [at for at, _ in world.asked] == [0.0, 400.0, 400.0, 400.0, 400.0]


LONG, SHORT = Caching(floor_tokens=10), Caching(floor_tokens=1_000)


@pytest.mark.parametrize(
    ("caching", "replicates", "paying"), [(LONG, 2, True), (LONG, 1, False), (SHORT, 2, False), (None, 2, False)]
)
def test_only_a_prompt_that_is_long_and_asked_again_is_cached(
    caching: Caching | None, replicates: int, paying: bool
) -> None:
    calls = schedule_calls(["a", "b"], replicates)
    request = Request(case_id="a", replicate=0, messages=dialogue("s" * 400, "u"), max_output_tokens=1, seed=0)
    assert cached_prompts(calls, lambda call: request, caching) == ({(0, "a"), (0, "b")} if paying else frozenset())


@pytest.mark.parametrize("caching", [LONG, None])
def test_the_engine_asks_a_case_once_then_all_its_others_at_once(caching: Caching | None) -> None:
    async def script(request: Request, times: int) -> Completion:
        for _ in range(20):
            await asyncio.sleep(0)
        return answer()

    provider = ScriptedProvider(script)
    job = {"cases": ["a"], "replicates": 5, "concurrency": 8, "provider": provider, "caching": caching}
    driven = asyncio.run(asyncio.wait_for(drive(script, **job), 20))  # type: ignore[arg-type]
    assert len(driven.outcomes) == 5
    assert provider.levels == ([1, 1, 2, 3, 4] if caching else [1, 2, 3, 4, 5])
    assert {request.cache for request in provider.requests} == {caching is not None}

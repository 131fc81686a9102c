"""The order of calls for prompt caches: the calls of a cached prompt follow each other."""

import asyncio

import pytest
from skill_evaluator.library.prompts import dialogue
from skill_evaluator.providers.base import Completion, Request
from skill_evaluator.runner.engine import cached_prompts, call_sequences
from skill_evaluator.runner.schedule import Call, schedule_calls

from tests.runner.scripted import ScriptedProvider, answer, drive

LOW, HIGH = 10, 1_000  # tokens of the shortest prompt that is cached


def test_call_sequences_group_calls_of_cached_prompts() -> None:
    calls = [*schedule_calls(["a", "b"], 2), Call("a", 0, arm=1)]
    assert call_sequences(calls, {(0, "a")}) == [
        [Call("a", 0), Call("a", 1)],
        [Call("b", 0)],
        [Call("b", 1)],
        [Call("a", 0, arm=1)],
    ]
    assert call_sequences(calls, ()) == [[call] for call in calls]


@pytest.mark.parametrize(
    ("cache_floor", "replicates", "is_cached"), [(LOW, 2, True), (LOW, 1, False), (HIGH, 2, False), (None, 2, False)]
)
def test_prompt_is_cached_if_long_and_repeated(cache_floor: int | None, replicates: int, is_cached: bool) -> None:
    calls = schedule_calls(["a", "b"], replicates)
    request = Request(case_id="a", replicate=0, messages=dialogue("s" * 400, "u"), max_output_tokens=1, seed=0)
    expected = {(0, "a"), (0, "b")} if is_cached else frozenset()
    assert cached_prompts(calls, lambda call: request, cache_floor) == expected


@pytest.mark.parametrize("cache_floor", [LOW, None])
def test_engine_makes_calls_of_cached_prompt_one_after_another(cache_floor: int | None) -> None:
    async def script(request: Request, times: int) -> Completion:
        for _ in range(20):
            await asyncio.sleep(0)
        return answer()

    provider = ScriptedProvider(script)
    job = {"cases": ["a"], "replicates": 5, "concurrency": 8, "provider": provider, "cache_floor": cache_floor}
    driven = asyncio.run(asyncio.wait_for(drive(script, **job), 20))  # type: ignore[arg-type]
    assert len(driven.outcomes) == 5
    assert provider.levels == ([1] * 5 if cache_floor else [1, 2, 3, 4, 5])
    assert {request.cache for request in provider.requests} == {cache_floor is not None}

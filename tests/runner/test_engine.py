"""One model's calls: retries, halts, cached prompts, and exactly one outcome per call."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import StorageError
from skill_evaluator.library.config import Price
from skill_evaluator.providers.base import Completion, ProviderError, Request, dropped
from skill_evaluator.providers.remote import error_from_status
from skill_evaluator.runner import journal
from skill_evaluator.runner.engine import call_sequences
from skill_evaluator.runner.schedule import Budget, Call, schedule_calls
from skill_evaluator.runner.session import Stop

from tests.runner.scripted import Driven, Script, ScriptedProvider, answer, drive

PRICE = Price(input=100_000, output=100_000, cache_write=100_000)


def _status(code: int, **headers: str) -> ProviderError:
    return error_from_status(code, headers, f"scripted {code}")


def _fails_with(errors: Iterable[ProviderError]) -> Script:
    """One error after another, whoever asks; then answers."""
    left = iter(errors)

    async def script(request: Request, times: int) -> Completion:
        for problem in left:
            raise problem
        return answer()

    return script


def _always(code: int, **headers: str) -> Script:
    async def script(request: Request, times: int) -> Completion:
        raise _status(code, **headers)

    return script


async def _at_once(request: Request, times: int) -> Completion:
    return answer()


def _run(script: Script, **job: object) -> Driven:
    return asyncio.run(asyncio.wait_for(drive(script, **job), 20))  # type: ignore[arg-type]


def test_calls_are_made_once_in_the_planned_order() -> None:
    driven = _run(_at_once)
    assert [outcome.call for outcome in driven.outcomes] == list(driven.calls)
    assert len({(request.case_id, request.seed) for request in driven.provider.requests}) == 12
    assert driven.halted is None


@pytest.mark.parametrize("code", [429, 500])
def test_transient_error_is_retried_until_success(code: int) -> None:
    driven = _run(_fails_with([_status(code), _status(code)]), cases=["a"], replicates=1)
    (outcome,) = driven.outcomes
    assert outcome.completion == answer()
    assert outcome.attempts == len(driven.provider.requests) == 3


@pytest.mark.parametrize(
    ("code", "kind", "reason"), [(500, "provider_error", "server_error"), (504, "timeout", "gateway_timeout")]
)
def test_call_fails_with_its_kind_after_the_last_attempt(code: int, kind: str, reason: str) -> None:
    driven = _run(_always(code), cases=["a"], replicates=2)
    assert len(driven.provider.requests) == 6
    assert [outcome.attempts for outcome in driven.outcomes] == [3, 3]
    assert {(failure.kind, failure.reason, failure.status) for failure in driven.failures} == {(kind, reason, code)}
    assert driven.halted is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [(401, "no_credentials"), (403, "no_credentials"), (404, "provider_error"), (410, "provider_error")],
)
@pytest.mark.parametrize("concurrency", [1, 4])
def test_fatal_error_stops_the_model_at_once(code: int, kind: str, concurrency: int) -> None:
    driven = _run(_always(code), concurrency=concurrency)
    assert len(driven.provider.requests) == len(driven.outcomes) == concurrency  # those in flight, and no more
    assert driven.halted is not None
    assert driven.halted.kind == kind
    assert driven.provider.closed == 1


def test_waiting_calls_are_skipped_after_a_fatal_error() -> None:
    driven = _run(_always(401), concurrency=4, limits={"requests_per_minute": 2})  # the second's turn is in 30 s
    assert len(driven.provider.requests) == 1


def test_no_call_is_retried_after_a_fatal_error() -> None:
    async def script(request: Request, times: int) -> Completion:
        if request.case_id == "a":
            await asyncio.sleep(0.02)
            raise _status(401)
        raise _status(500, **{"retry-after": "15"})

    driven = _run(script, concurrency=3, retry={"max_retry_after_s": 60})
    assert len(driven.provider.requests) == 3


def test_five_bad_requests_before_any_output_stop_the_model() -> None:
    driven = _run(_always(422))
    assert len(driven.provider.requests) == 5
    assert driven.halted is not None
    assert driven.halted.reason == "bad_request"


@pytest.mark.parametrize("first_good", [0, 4])
def test_bad_request_after_an_output_fails_only_its_case(first_good: int) -> None:
    errors = [_status(422) for _ in range(first_good)]
    tried = iter(range(100))

    async def script(request: Request, times: int) -> Completion:
        if next(tried) == first_good:
            return answer()
        raise errors[0] if errors else _status(422)

    driven = _run(script)
    assert len(driven.outcomes) == 12
    assert driven.halted is None


def test_concurrency_falls_and_recovers_with_throttling() -> None:
    async def script(request: Request, times: int) -> Completion:
        if (request.case_id, request.replicate, times) == ("a", 0, 1):
            raise _status(429, **{"retry-after-ms": "1"})
        await asyncio.sleep(0.002)
        return answer()

    driven = _run(script, replicates=40, concurrency=8)
    levels = driven.provider.levels  # calls in flight, as each begins
    assert levels[:8] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert max(levels[8:16]) <= 5
    assert levels[-1] == max(levels[8:]) == 8
    assert [level for level in levels[8:] if level == 8] != levels[8:]


def test_slow_call_is_a_timeout_and_retried() -> None:
    async def script(request: Request, times: int) -> Completion:
        if request.case_id == "b" or times == 1:
            await asyncio.sleep(5)
        return answer()

    driven = _run(script, cases=["a", "b"], replicates=1, timeout_s=0.1, retry={"attempts": 2})
    first, second = driven.outcomes
    assert (first.attempts, first.error) == (2, None)
    assert second.error is not None
    assert (second.attempts, second.error.kind, second.error.reason) == (2, "timeout", "read_timeout")


def test_latency_excludes_waiting() -> None:
    pace = {"tokens_per_minute": 6000}  # of 20 tokens a call: five at once, then one each 0.2 s
    driven = _run(_at_once, replicates=3, concurrency=9, limits=pace)
    assert sum(outcome.latency_s for outcome in driven.outcomes) < 1.0  # they waited 0.2 + 0.4 + 0.6 + 0.8 s


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_every_planned_call_has_exactly_one_outcome(seed: int, concurrency: int) -> None:
    chance = random.Random(seed)

    async def script(request: Request, times: int) -> Completion:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        code = chance.choice([200, 200, 422, 500, 503])
        if code != 200:
            raise _status(code, **{"retry-after-ms": "0"})
        return answer()

    driven = _run(script, concurrency=concurrency, retry={"first_wait_s": 0, "max_wait_s": 0.0001})
    if driven.halted is None:
        assert Counter(outcome.call for outcome in driven.outcomes) == Counter(driven.calls)
    else:
        assert driven.halted.reason == "bad_request"
        assert len({outcome.call for outcome in driven.outcomes}) == len(driven.outcomes)
    assert all((outcome.completion is None) != (outcome.error is None) for outcome in driven.outcomes)


def test_max_calls_are_made_in_full_and_no_more() -> None:
    driven = _run(_fails_with([_status(500)] * 2), concurrency=3, budget=Budget(max_calls=5))
    assert [outcome.error for outcome in driven.outcomes] == [None] * 5
    assert driven.halted is not None
    assert (driven.halted.kind, driven.halted.reason) == ("over_budget", "max_calls")


@pytest.mark.parametrize("concurrency", [1, 5])
def test_budget_is_never_exceeded(concurrency: int) -> None:
    async def script(request: Request, times: int) -> Completion:
        await asyncio.sleep(0.001)
        return answer(tokens=None) if request.case_id == "a" else answer(tokens=(10, 0))

    # a call costs 1 USD when it is answered in 0 tokens, 2 at most
    driven = _run(script, replicates=9, concurrency=concurrency, budget=Budget(max_cost_usd=10.0), price=PRICE)
    spent = sum(2.0 if outcome.call.case_id == "a" else 1.0 for outcome in driven.outcomes)
    assert 8.0 < spent <= 10.0
    assert driven.halted is not None
    assert driven.halted.reason == "max_cost"


async def _never(request: Request, times: int) -> Completion:
    await asyncio.sleep(5)
    return answer()


async def _dropped(request: Request, times: int) -> Completion:
    raise dropped("the connection broke off")


@pytest.mark.parametrize(
    ("script", "attempts"),
    [(_never, 3), (_dropped, 3), (_always(500), 36)],
    ids=["no answer in time", "broken off", "an error of the server"],
)
def test_failed_call_that_may_be_billed_counts_as_spent(script: Script, attempts: int) -> None:
    driven = _run(script, budget=Budget(max_cost_usd=6.0), price=PRICE, timeout_s=0.1)
    assert len(driven.provider.requests) == attempts  # of 2 USD each, if they cost anything


def test_output_that_cannot_be_saved_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "append_outcome", Mock(side_effect=StorageError("disk full")))
    with pytest.raises(StorageError, match=r"^disk full$"):
        _run(_at_once, concurrency=3)


def test_bug_in_a_provider_costs_its_call_alone() -> None:
    async def script(request: Request, times: int) -> Completion:
        if request.case_id == "b":
            raise KeyError("choices")
        return answer()

    driven = _run(script, replicates=2)
    assert [(outcome.call.case_id, outcome.answered) for outcome in driven.outcomes] == [
        ("a", True), ("b", False), ("c", True), ("a", True), ("b", False), ("c", True),
    ]  # fmt: skip
    assert {failure.reason for failure in driven.failures} == {"provider_bug"}
    assert driven.halted is None


def test_impossible_usage_counts_as_the_worst_case() -> None:
    async def script(request: Request, times: int) -> Completion:
        return answer(tokens=(-300, -300))

    driven = _run(script, budget=Budget(max_cost_usd=6.0), price=PRICE)  # a call costs 2 USD at most
    assert len(driven.outcomes) == 3


SOON, LONG = 0.02, 60.0


def _stopped(script: Script, after: int, **job: object) -> Driven:
    """Drive an engine and stop it soon after its first calls began. Fail if it does not end by itself."""

    async def run() -> Driven:
        provider, stop = ScriptedProvider(script), Stop()
        driving = asyncio.create_task(drive(script, provider=provider, stop=stop, **job))  # type: ignore[arg-type]
        while len(provider.requests) < after and not driving.done():
            await asyncio.sleep(0)
        await asyncio.sleep(SOON)
        stop.set()
        return await asyncio.wait_for(driving, 20)

    return asyncio.run(run())


def test_calls_in_flight_are_waited_for_and_no_other_begins() -> None:
    async def script(request: Request, times: int) -> Completion:
        await asyncio.sleep(40 * SOON)
        return answer()

    driven = _stopped(script, 2, concurrency=2)
    assert [outcome.completion for outcome in driven.outcomes] == [answer(), answer()]
    assert len(driven.provider.requests) == 2
    assert driven.halted is not None
    assert (driven.halted.kind, driven.halted.reason) == ("not_run", "interrupted")


@pytest.mark.parametrize(
    "script",
    [_always(500, **{"retry-after": "60"}), _always(429, **{"retry-after": "60"})],
    ids=["a pause before trying again", "a pause for all calls"],
)
def test_interrupt_ends_a_pause(script: Script) -> None:
    driven = _stopped(script, 3, concurrency=3, retry={"max_retry_after_s": LONG})
    assert len(driven.provider.requests) == 3
    assert driven.outcomes == []  # they are asked again when the run goes on


def test_calls_waiting_for_their_turn_are_not_made() -> None:
    driven = _stopped(_at_once, 1, concurrency=3, limits={"requests_per_minute": 2})
    assert len(driven.provider.requests) == len(driven.outcomes) == 1


def test_run_interrupted_in_its_last_calls_is_complete() -> None:
    async def script(request: Request, times: int) -> Completion:
        await asyncio.sleep(10 * SOON)
        return answer()

    driven = _stopped(script, 2, cases=["a", "b"], replicates=1, concurrency=2)
    assert len(driven.outcomes) == 2
    assert driven.halted is None


LOW, HIGH = 10, 1_000  # tokens of the shortest prompt that is cached


def test_call_sequences_group_calls_of_cached_prompts() -> None:
    long, short = (schedule_calls(["a", "b"], 2), schedule_calls(["a"], 1))
    cached = SimpleNamespace(schedule=long, open_calls={*long[:3]}, cached={"a"})
    other = SimpleNamespace(schedule=short, open_calls=set(short), cached=set())
    assert call_sequences([cached, other]) == [  # type: ignore[list-item]
        [(cached, Call("a", 0)), (cached, Call("a", 1))],
        [(other, Call("a", 0))],
        [(cached, Call("b", 0))],
    ]


@pytest.mark.parametrize(
    ("cache_floor", "replicates", "is_cached"), [(LOW, 5, True), (LOW, 1, False), (HIGH, 5, False), (None, 5, False)]
)
def test_calls_are_in_sequence_if_prompt_is_long_and_repeated(
    cache_floor: int | None, replicates: int, is_cached: bool
) -> None:
    async def script(request: Request, times: int) -> Completion:
        for _ in range(20):
            await asyncio.sleep(0)
        return answer()

    job = {"cases": ["a"], "replicates": replicates, "concurrency": 8, "cache_floor": cache_floor}
    driven = _run(script, **job)
    assert len(driven.outcomes) == replicates
    assert driven.provider.levels == ([1] * 5 if is_cached else list(range(1, replicates + 1)))
    assert {request.cache for request in driven.provider.requests} == {is_cached}

"""A request to stop: calls in flight are waited for, nothing else is begun or waited for."""

import asyncio

import pytest
from skill_evaluator.providers.base import Completion, Request
from skill_evaluator.providers.wire import error_from_status
from skill_evaluator.runner.engine import Stop

from tests.support.scripted import Driven, Script, answer, drive

SOON, LONG = 0.02, 60.0


def _stopped(script: Script, **job: object) -> Driven:
    """Drive an engine that is asked to stop soon after it began; it must then end by itself."""

    async def run() -> Driven:
        stop = Stop()
        asyncio.get_running_loop().call_later(SOON, stop.event.set)
        return await asyncio.wait_for(drive(script, stop=stop, **job), 5)  # type: ignore[arg-type]

    return asyncio.run(run())


def _fails(code: int, **headers: str) -> Script:
    async def script(request: Request, times: int) -> Completion:
        raise error_from_status(code, headers, "scripted")

    return script


def test_calls_in_flight_are_waited_for_and_no_other_begins() -> None:
    async def script(request: Request, times: int) -> Completion:
        await asyncio.sleep(40 * SOON)
        return answer()

    driven = _stopped(script, concurrency=2)
    assert [outcome.completion for outcome in driven.outcomes] == [answer(), answer()]
    assert len(driven.provider.requests) == 2
    assert driven.halted is not None
    assert (driven.halted.kind, driven.halted.reason) == ("not_run", "interrupted")


@pytest.mark.parametrize(
    "script",
    [_fails(500, **{"retry-after": "60"}), _fails(429, **{"retry-after": "60"})],
    ids=["a pause before trying again", "a pause for all calls"],
)
def test_a_pause_is_not_slept_through(script: Script) -> None:
    driven = _stopped(script, concurrency=3, retry={"max_retry_after_s": LONG})
    assert len(driven.provider.requests) == 3
    assert driven.outcomes == []  # they are asked again when the run goes on


def test_calls_waiting_for_their_turn_are_not_made() -> None:
    async def script(request: Request, times: int) -> Completion:
        return answer()

    driven = _stopped(script, concurrency=3, limits={"requests_per_minute": 2})
    assert len(driven.provider.requests) == len(driven.outcomes) == 1


def test_calls_waiting_for_a_place_are_not_made() -> None:
    async def script(request: Request, times: int) -> Completion:
        if (request.case_id, request.replicate, times) == ("a", 0, 1):
            raise error_from_status(429, {"retry-after-ms": "0"}, "slow down")
        await asyncio.sleep(5 * SOON)
        return answer()

    driven = _stopped(script, concurrency=4)
    assert len(driven.provider.requests) == 4
    assert len(driven.outcomes) == 3


def test_a_run_whose_last_calls_were_in_flight_is_whole() -> None:
    async def script(request: Request, times: int) -> Completion:
        await asyncio.sleep(3 * SOON)
        return answer()

    driven = _stopped(script, cases=["a", "b"], replicates=1, concurrency=2)
    assert len(driven.outcomes) == 2
    assert driven.halted is None

"""Providers of other packages and recordings: whatever they do is the output or the failure of one call."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import ConfigError, StorageError
from skill_evaluator.library.config import Model, Retry, SafetyLimits, Settings
from skill_evaluator.providers import Configuration
from skill_evaluator.providers.base import (
    Completion,
    ProviderError,
    ProviderKind,
    Request,
    Usage,
    call_once,
    usual_sampling,
)
from skill_evaluator.providers.replay import AnswerLine, ReplayProvider
from skill_evaluator.runner.schedule import wait_before_retry

from tests.support.vendor_dialects import PLAIN
from tests.support.vendors import any_json, failure_of

LIMITS = Settings(timeout_s=5, limits=SafetyLimits(answer_bytes=20))


class Foreign:
    """A provider of another package; its answer is what `answer()` returns or raises."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    async def complete(self, request: Request) -> Any:
        return self.answer()

    async def close(self) -> None:
        """Nothing is held."""


def raising(problem: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise problem

    return answer


def ask(answer: Callable[[], Any]) -> Completion:
    return asyncio.run(call_once(Foreign(answer), PLAIN, LIMITS))


def fail(answer: Callable[[], Any]) -> ProviderError:
    return failure_of(lambda: ask(answer))


PROBLEMS = [
    KeyError("choices"),
    RecursionError("too deep"),
    MemoryError(),
    OSError(28, "No space left on device"),
    ExceptionGroup("several", [ValueError("one"), TypeError("two")]),
    asyncio.CancelledError(),
    SystemExit(7),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
]


def test_provider_in_this_process_has_no_time_limit() -> None:
    class Slow(Foreign):
        in_process = True

        async def complete(self, request: Request) -> Any:
            await asyncio.sleep(0.02)
            return self.answer()

    hurried = LIMITS.model_copy(update={"timeout_s": 0.001})
    slow = Slow(lambda: Completion(text="late"))
    assert asyncio.run(call_once(slow, PLAIN, hurried)).text == "late"
    slow.in_process = False
    assert failure_of(lambda: asyncio.run(call_once(slow, PLAIN, hurried))).kind == "timeout"


def test_any_exception_of_a_provider_fails_only_its_call() -> None:
    for problem in PROBLEMS:
        error = fail(raising(problem))
        assert (error.kind, error.reason) == ("provider_error", "provider_bug"), problem
        assert type(problem).__name__ in str(error)
        assert (error.perhaps_billed, error.retryable, error.fatal) == (True, False, False), problem


def test_invalid_return_value_of_a_provider_is_a_failure() -> None:
    for value in (None, "text", {"text": "fine"}, 5):
        error = fail(lambda value=value: value)
        assert (error.reason, error.perhaps_billed) == ("provider_bug", True), value
        assert str(error).endswith(f"the provider returned {type(value).__name__}, not a Completion"), value
    for text in (None, 5, b"bytes", ["fine"], {"text": "fine"}):
        error = fail(lambda text=text: Completion(text=text))
        assert (error.reason, error.retryable, error.perhaps_billed) == ("malformed_body", True, True), text
        assert "text" in str(error), text


def test_provider_error_and_storage_error_pass_through() -> None:
    with pytest.raises(StorageError, match="disk full"):
        ask(raising(StorageError("disk full")))
    assert fail(raising(ProviderError("rate_limited"))).reason == "rate_limited"


def test_a_call_that_is_cancelled_stays_cancelled() -> None:
    async def run() -> None:
        class Waiting(Foreign):
            async def complete(self, request: Request) -> Any:
                await asyncio.sleep(60)

        call = asyncio.create_task(call_once(Waiting(str), PLAIN, LIMITS))
        await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(run())


def read_back(outcome: dict[str, Any]) -> AnswerLine:
    """Return what a journal's line of an outcome is read as."""
    line = json.dumps({"case_id": "a", "replicate": 0, **outcome}, allow_nan=False)
    return AnswerLine.model_validate(json.loads(line))


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.lists(st.integers())


@given(anything, anything, anything, anything, anything)
def test_invalid_metadata_of_a_completion_becomes_unknown(
    given_tokens: Any, written_tokens: Any, stop_reason: Any, served_model: Any, request_id: Any
) -> None:
    completion = Completion(
        text="fine",
        stop_reason=stop_reason,
        usage=Usage(input_tokens=given_tokens, output_tokens=written_tokens),
        served_model=served_model,
        request_id=request_id,
    )
    assert completion.text == "fine"
    assert completion.stop_reason in ("stop", "length", "refusal", "too_large", "other")
    for said, kept in ((given_tokens, completion.usage.input_tokens), (written_tokens, completion.usage.output_tokens)):
        assert kept == (said if type(said) is int and 0 <= said < 10**12 else None)
    for name in (completion.served_model, completion.request_id):
        assert name is None or name.isprintable()
    cut = completion.redacted(str)
    assert read_back({**asdict(cut), "latency_s": 0.1}).completion == cut
    assert Completion(text="fine", usage=given_tokens).usage == Usage()  # type: ignore[arg-type]


@given(anything, anything, anything, anything, anything)
def test_any_error_can_be_saved_and_retried(
    reason: Any, message: Any, kind: Any, status: Any, retry_after_s: Any
) -> None:
    error = ProviderError(reason, message, kind=kind, status=status, retry_after_s=retry_after_s)
    failure = error.failure()
    assert read_back({"error": asdict(failure)}).failure == failure
    assert 0 <= wait_before_retry(Retry(), 1, error.retry_after_s) <= Retry().max_retry_after_s


def test_recorded_line_has_no_need_of_usage_or_kind() -> None:
    answered = read_back({"text": "fine", "usage": None}).completion
    assert answered is not None
    assert answered.usage == Usage()
    failure = read_back({"error": {"reason": "overloaded"}}).failure
    assert failure is not None
    assert (failure.kind, failure.reason) == ("provider_error", "overloaded")


def test_keys_are_removed_before_an_identifier_is_cut() -> None:
    key = "key-0123456789"
    completion = Completion(text=key, served_model="x" * 290 + key, request_id="y" * 5_000)
    redacted = completion.redacted(lambda text: text.replace(key, "***"))
    assert (redacted.text, redacted.served_model) == ("***", "x" * 290 + "***")
    assert redacted.request_id == "y" * 300


def test_text_over_the_byte_limit_is_dropped() -> None:
    counted = {"usage": Usage(input_tokens=3, output_tokens=4), "served_model": "m"}
    for text in ("x" * 20, "é" * 10):
        assert ask(lambda text=text: Completion(text=text, **counted)) == Completion(text=text, **counted)
    for text in ("x" * 21, "é" * 11):
        cut = Completion(text="", stop_reason="too_large", **counted)
        assert ask(lambda text=text: Completion(text=text, **counted)) == cut


def _broken(model: Model, key: str | None, settings: Settings) -> Any:
    raise ImportError("no module named 'vendor'")


def test_provider_that_cannot_be_opened_is_named() -> None:
    kind = ProviderKind(open=_broken, sampling=usual_sampling)
    configuration = Configuration(settings=LIMITS, models=(), kinds={"foreign": kind}, keys={})
    with pytest.raises(ConfigError, match="provider 'foreign' of model 'm' cannot be opened: ImportError"):
        configuration.open(Model(id="m", provider="foreign"))


FIELDS = ("case_id", "replicate", "text", "stop_reason", "usage", "served_model", "request_id", "error", "latency_s")


def replayed(path: Path) -> Completion | str:
    """Return what a recording answers, or the reason for which it does not."""
    try:
        provider = ReplayProvider(path)
    except ConfigError as problem:
        return str(problem)
    try:
        return asyncio.run(provider.complete(PLAIN))
    except ProviderError as problem:
        return problem.reason


@given(st.dictionaries(st.sampled_from(FIELDS), any_json) | any_json, st.booleans())
def test_any_recorded_line_is_an_output_a_failure_or_an_error(
    tmp_path_factory: Any, value: Any, complete: bool
) -> None:
    path = tmp_path_factory.mktemp("recording") / "answers.jsonl"
    good = {"case_id": PLAIN.case_id, "replicate": PLAIN.replicate, "text": "fine"}
    line = {**good, **value} if complete and isinstance(value, dict) else value
    path.write_text(json.dumps(line) + "\n")
    match replayed(path):
        case Completion() as completion:
            assert isinstance(completion.text, str)
        case reason_or_error:
            assert isinstance(reason_or_error, str)
            assert reason_or_error
            assert "\n" not in reason_or_error


@given(st.binary(max_size=300))
def test_any_recorded_bytes_are_an_output_a_failure_or_an_error(tmp_path_factory: Any, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("recording") / "answers.jsonl"
    path.write_bytes(raw)
    assert replayed(path)

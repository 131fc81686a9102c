"""The classification of HTTP errors, and the wait before a retry."""

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.providers.base import Failure, ProviderError
from skill_evaluator.providers.remote import error_from_status, retry_after_seconds


def test_retry_after_is_read_from_the_headers() -> None:
    for headers, seconds in (
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.25 "}, 0.25),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "in a minute"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": f"Wed, 21 Oct {'9' * 20} 07:28:00 GMT"}, None),
    ):
        assert retry_after_seconds(headers) == seconds, headers


def test_retry_after_date_is_counted_from_now_in_any_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    dates = [formatdate(time.time() + 600, usegmt=is_gmt) for is_gmt in (True, False)]  # GMT and -0000
    with monkeypatch.context() as environment:
        environment.setenv("TZ", "WEST9")
        time.tzset()
        seconds = [retry_after_seconds({"retry-after": date}) for date in dates]
    time.tzset()
    assert seconds == [pytest.approx(600, abs=30)] * 2


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{1,5} \d\d:\d\d:\d\d( (GMT|-0000))?"))
def test_any_header_is_read_without_failing(value: str) -> None:
    seconds = retry_after_seconds({"retry-after": value, "retry-after-ms": value})
    assert seconds is None or seconds >= 0


def test_every_status_has_one_error() -> None:
    for status in range(300, 600):
        error = error_from_status(status, {}, "words")
        assert error.status == status
        assert error.reason, status
        assert not (error.fatal and error.retryable), status
        assert error.retryable == (status >= 500 or status in (408, 409, 429)), status
        assert error.throttled == (status in (429, 503, 529)), status
        assert error.fatal == (status in (401, 402, 403, 404, 410)), status


def test_should_retry_header_decides_whether_to_retry() -> None:
    for word, status, retryable in (
        ("true", 400, True),
        ("TRUE", 422, True),
        ("false", 429, False),
        ("false", 500, False),
        ("maybe", 500, True),
    ):
        assert error_from_status(status, {"x-should-retry": word}, "words").retryable is retryable, (word, status)


def test_vendors_message_about_a_removed_model_means_retired() -> None:
    for status, message in (
        (410, "gone"),
        (404, "The model `text-davinci-003` has been deprecated, learn more here: https://platform.openai.com/docs/x"),
        (
            404,
            "This model models/gemini-2.0-flash is no longer available. Please update your code to use a newer model",
        ),
        (400, "The model `mixtral-8x7b-32768` has been decommissioned and is no longer supported."),
    ):
        error = error_from_status(status, {"x-should-retry": "true"}, message)
        assert (error.reason, error.kind, error.fatal, error.retryable) == (
            "model_retired",
            "provider_error",
            True,
            False,
        ), message
    assert error_from_status(404, {}, "models/gemini-9 is not found for API version v1beta").reason == "unknown_model"
    assert error_from_status(400, {}, "`temperature` is deprecated for this model").reason == "bad_request"


def test_wrong_key_is_never_retried() -> None:
    error = error_from_status(401, {"x-should-retry": "true", "retry-after": "1"}, "words")
    assert (error.retryable, error.fatal, error.kind) == (False, True, "no_credentials")


def test_failure_message_is_cut() -> None:
    error = ProviderError("rate_limited", "too\nmany  " + "words " * 1000, status=429)
    failure = error.failure()
    assert failure == Failure(kind="provider_error", reason="rate_limited", message=failure.message, status=429)
    assert failure.message.startswith("too many words")
    assert len(failure.message) <= 500


def test_error_without_message_shows_its_reason() -> None:
    assert str(ProviderError("rate_limited")) == "rate_limited"

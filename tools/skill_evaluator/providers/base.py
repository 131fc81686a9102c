"""What every provider takes, gives and raises, and nothing of any one vendor.

A provider maps one `Request` to one `Completion`, or raises `ProviderError`. It never retries: the runner does,
by one policy for all. Values here are what the journal holds.
"""

import email.utils
import re
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.config import Model

StopReason = Literal["stop", "length", "refusal", "other"]
FailureKind = Literal["provider_error", "refused", "truncated", "timeout", "no_credentials", "over_budget", "not_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call, ready to send: whose it is, what the model reads, what it may write, the seed of this replicate."""

    case_id: str
    replicate: int
    system: str
    user: str
    max_output_tokens: int
    seed: int
    schema: Mapping[str, Any] | None = None
    schema_name: str = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens the vendor counted; None where it said nothing."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What came back. `text` may be empty; `stop_reason` says whether the model finished, was cut or refused."""

    text: str
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    served_model: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a planned call has no scorable answer. `reason` is a stable word, `message` is for people."""

    kind: FailureKind
    reason: str
    message: str = ""
    status: int | None = None


class ProviderError(SkillEvaluatorError):
    """A call that brought no completion: what it was, whether to try again and when, whether to stop the model.

    `rejected` is a request that the server found wrong: perhaps its settings, perhaps this one document.
    """

    def __init__(
        self,
        reason: str,
        message: str = "",
        *,
        kind: FailureKind = "provider_error",
        status: int | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        throttled: bool = False,
        fatal: bool = False,
        perhaps_billed: bool = False,
        rejected: bool = False,
    ) -> None:
        super().__init__(message or reason)
        self.reason = reason
        self.kind = kind
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.throttled = throttled
        self.fatal = fatal
        self.perhaps_billed = perhaps_billed
        self.rejected = rejected

    def failure(self, redact: Callable[[str], str] = str) -> Failure:
        """The same as a value; keys are struck out before it is cut to length, so that no part of one is left."""
        return Failure(kind=self.kind, reason=self.reason, message=redact(str(self))[:500], status=self.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The sampling settings of a model: those its provider is sent, and those it cannot be sent."""

    sent: Mapping[str, Any] = field(default_factory=dict)
    unavailable: tuple[str, ...] = ()


class Provider(Protocol):
    """An open connection to one model."""

    async def complete(self, request: Request) -> Completion:
        """Ask once, without retries; raises ProviderError."""
        ...

    async def close(self) -> None:
        """Release sockets, threads and memory."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """One line of `PROVIDERS`: how to open it, which variables may hold its key, what it can be told.

    `open` gets the model, its key (None if it needs none) and the per-call timeout in seconds; the vendor's SDK is
    imported in there and nowhere else. `check` raises ConfigError for an entry the provider cannot serve.
    """

    open: Callable[[Model, str | None, float], Provider]
    sampling: Callable[[Model], Sampling]
    key_variables: tuple[str, ...] = ()
    free: bool = False
    one_at_a_time: bool = False
    check: Callable[[Model], None] | None = None


class Attempt(Protocol):
    """What came of one attempt at a call."""

    @property
    def answered(self) -> bool:
        """Whether the model said anything."""
        ...


CallKey = TypeVar("CallKey", bound=Hashable)
SomeAttempt = TypeVar("SomeAttempt", bound=Attempt)


def first_answers(attempts: Iterable[tuple[CallKey, SomeAttempt]]) -> dict[CallKey, SomeAttempt]:
    """Return what counts of several attempts at each call: its first answer, else its last error."""
    kept: dict[CallKey, SomeAttempt] = {}
    for call, attempt in attempts:
        if call not in kept or not kept[call].answered:
            kept[call] = attempt
    return kept


_NUMBER = re.compile(r"\d+(\.\d+)?")
_FATAL = {401: "wrong_key", 403: "permission_denied", 404: "unknown_model"}
_RETRYABLE = {
    408: "request_timeout",
    409: "conflict",
    429: "rate_limited",
    500: "server_error",
    502: "bad_gateway",
    503: "unavailable",
    504: "gateway_timeout",
    529: "overloaded",
}


def error_from_status(status: int, headers: Mapping[str, str], message: str) -> ProviderError:
    """Classify an HTTP error of any vendor: kind, stable reason, whether and when to try again."""
    if status in _FATAL:
        kind: FailureKind = "provider_error" if status == 404 else "no_credentials"
        return ProviderError(_FATAL[status], message, kind=kind, status=status, fatal=True)
    reason = _RETRYABLE.get(status) or ("server_error" if status >= 500 else "bad_request")
    asked = headers.get("x-should-retry", "").lower()
    return ProviderError(
        reason,
        message,
        kind="timeout" if status in (408, 504) else "provider_error",
        status=status,
        retryable=asked == "true" or (asked != "false" and (status in _RETRYABLE or status >= 500)),
        retry_after_s=retry_after_seconds(headers),
        throttled=status in (429, 503, 529),
        rejected=reason == "bad_request",
    )


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by `retry-after-ms` or `retry-after` (a number, or an HTTP date); None if neither is usable."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if _NUMBER.fullmatch(text):
            return float(text) * unit
    try:
        moment = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())


def dropped(message: str) -> ProviderError:
    """The connection failed or broke off; the answer, if there was one, may have been billed."""
    return ProviderError("connection_lost", message, retryable=True, perhaps_billed=True)


def timed_out(message: str) -> ProviderError:
    """No answer within the time allowed; it may have been billed."""
    return ProviderError("read_timeout", message, kind="timeout", retryable=True, perhaps_billed=True)


def malformed(message: str) -> ProviderError:
    """The body is not what the API promises (cut JSON, HTML of a proxy, missing fields)."""
    return ProviderError("malformed_body", message, retryable=True, perhaps_billed=True)


def unsendable(problem: Exception) -> ProviderError:
    """The request could not be put into HTTP at all: a key no header can carry, a text with half a character."""
    return ProviderError("bad_request", f"the request cannot be sent: {problem}")

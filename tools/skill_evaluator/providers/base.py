"""What every provider takes, gives and raises, and nothing of any one vendor.

A provider maps one `Request` to one `Completion`, or raises `ProviderError`. It never retries: the runner does,
by one policy for all. Values here are what the journal holds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.config import Model

CallKey = TypeVar("CallKey")
Attempt = TypeVar("Attempt")
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

    @property
    def bare_schema(self) -> dict[str, Any]:
        """The schema without `$schema`, which vendors refuse."""
        return {key: value for key, value in (self.schema or {}).items() if key != "$schema"}


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
    """Why a call has no scorable answer. `reason` is a stable word, `message` is for people."""

    kind: FailureKind
    reason: str
    message: str = ""
    status: int | None = None


class ProviderError(SkillEvaluatorError):
    """A call that brought no completion: why, whether to try again and when, whether to stop the model.

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
        """Return the same as a value, keys struck out before it is cut to length, so that no part of one is left."""
        return Failure(kind=self.kind, reason=self.reason, message=redact(str(self))[:500], status=self.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The sampling settings of a model: those its provider is sent, and those it cannot be sent."""

    sent: Mapping[str, Any] = field(default_factory=dict)
    unavailable: tuple[str, ...] = ()

    @property
    def fixed(self) -> dict[str, Any]:
        """What every request is sent alike: all but the seed."""
        return {name: value for name, value in self.sent.items() if name != "seed"}


def usual_sampling(model: Model, *, refused: Sequence[str] = ()) -> Sampling:
    """Return a seed per replicate, and the model's own params, else temperature 0 in the deterministic profile.

    `refused` are the settings that the API does not take.
    """
    settings = {
        "seed": "per replicate",
        "temperature": 0.0 if model.profile == "deterministic" else None,
        "top_p": model.params.top_p,
    }
    if model.params.temperature is not None:
        settings["temperature"] = model.params.temperature
    sent = {name: value for name, value in settings.items() if value is not None and name not in refused}
    return Sampling(sent=sent, unavailable=tuple(refused))


class Provider(Protocol):
    """An open connection to one model."""

    async def complete(self, request: Request) -> Completion:
        """Ask once, without retries; raise ProviderError."""
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


def first_answers(
    attempts: Iterable[tuple[CallKey, Attempt]], is_answer: Callable[[Attempt], bool]
) -> dict[CallKey, Attempt]:
    """Return what counts of several attempts at each call: its first answer, else its last error."""
    kept: dict[CallKey, Attempt] = {}
    for call, attempt in attempts:
        if call not in kept or not is_answer(kept[call]):
            kept[call] = attempt
    return kept

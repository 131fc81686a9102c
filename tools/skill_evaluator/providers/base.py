"""The interface of all providers: a call takes a `Request`, and returns a `Completion` or raises `ProviderError`.

A provider never retries; the runner does.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import pydantic.dataclasses
from pydantic import BeforeValidator, Field, Strict, StrictBool, StrictInt, StrictStr, ValidationError, WrapValidator

from skill_evaluator.errors import SkillEvaluatorError, StorageError
from skill_evaluator.files import first_problem
from skill_evaluator.identifiers import Label
from skill_evaluator.library.config import FileKind, Model, Settings
from skill_evaluator.library.prompts import File, Message
from skill_evaluator.text import canonical_json

StopReason = Literal["stop", "length", "refusal", "too_large", "no_tool_call", "other"]
FailureKind = Literal[
    "provider_error", "refused", "truncated", "unparseable", "timeout", "no_credentials", "over_budget", "not_run"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The request of one call. The runner sets `replicate`, `seed`, `max_output_tokens` and `cache`."""

    case_id: str
    messages: tuple[Message, ...]  # begins with the system message, if any
    replicate: int = 0
    seed: int = 0  # differs between replicates
    max_output_tokens: int = 1
    schema: Mapping[str, Any] | None = None
    schema_name: str = "output"
    by_tool_call: bool = False  # the output is the arguments of a function call
    cache: bool = False  # whether other replicates send the same messages soon, so that caching saves money
    constant: int = 0  # number of leading characters that the requests of other cases share
    inputs: Mapping[str, Any] = field(default_factory=dict)  # only programs use inputs and turns
    turns: tuple[Message, ...] = ()

    @property
    def system(self) -> str:
        """The system prompt, or an empty text."""
        return self.messages[0].text if self.messages[0].role == "system" else ""

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """All messages except the system message."""
        return self.messages[self.messages[0].role == "system" :]

    @property
    def files(self) -> tuple[File, ...]:
        """The files of all messages."""
        return tuple(file for message in self.messages for file in message.files)

    @property
    def examples(self) -> int:
        """The number of messages at the beginning of `dialogue` that the requests of other cases share."""
        ends = zip(self.dialogue, accumulate(len(message.text) for message in self.dialogue), strict=True)
        return sum(not message.files and len(self.system) + end <= self.constant for message, end in ends)


def _or_default(default: Any) -> WrapValidator:
    def validate(value: Any, check: Callable[[Any], Any]) -> Any:
        try:
            return check(value)
        except ValidationError:
            return default  # a faulty side field must not cost the paid output

    return WrapValidator(validate)


def _printable(value: Any) -> Any:
    return "".join(filter(str.isprintable, value[:_MAX_RAW_CHARS])) if isinstance(value, str) else value


MAX_TOKENS = 10**12  # larger counts are impossible
_MAX_RAW_CHARS = 3_000  # characters read from an identifier or message before redaction, which cuts it further
_MAX_IDENTIFIER, _MAX_MESSAGE = 300, 500
LOST = "lost_by_provider"  # the reason of a call without a result in its batch; it may be billed
TokenCount = Annotated[Annotated[StrictInt, Field(ge=0, lt=MAX_TOKENS)] | None, _or_default(None)]
Reason = Annotated[Label, Strict(), Field(min_length=1)]
HttpStatus = Annotated[StrictInt, Field(ge=100, le=599)]
SideText = Annotated[StrictStr, _or_default("")]
Identifier = Annotated[StrictStr | None, _or_default(None), BeforeValidator(_printable)]


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The vendor's token counts. A missing or impossible count is None.

    The counts of cached tokens are also None if `input_tokens` is None or less than their sum.

    >>> Usage(input_tokens=100, cache_read_tokens=80).cache_read_tokens, Usage(cache_read_tokens=80).cache_read_tokens
    (80, None)
    """

    input_tokens: TokenCount = None  # the whole prompt
    output_tokens: TokenCount = None
    cache_read_tokens: TokenCount = None  # part of `input_tokens`
    cache_write_tokens: TokenCount = None  # part of `input_tokens`
    cache_write_1h_tokens: TokenCount = None  # part of `cache_write_tokens` that is cached for an hour
    batch: Annotated[StrictBool | None, _or_default(None)] = None  # billed at the batch price

    def __post_init__(self) -> None:
        parts = (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)
        if self.input_tokens is None or parts > self.input_tokens:
            object.__setattr__(self, "cache_read_tokens", None)
            object.__setattr__(self, "cache_write_tokens", None)
        if self.cache_write_tokens is None or (self.cache_write_1h_tokens or 0) > self.cache_write_tokens:
            object.__setattr__(self, "cache_write_1h_tokens", None)


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The output of one call. Raise ValidationError if `text` is not a string.

    Any other invalid field is replaced: by None, "", an empty `Usage` or the stop reason `other`.

    `latency_s` is the time from the first byte sent to the last byte received, or None if it is not measured.
    """

    text: StrictStr
    stop_reason: Annotated[StopReason, _or_default("other")] = "stop"
    usage: Annotated[Usage, _or_default(Usage())] = Usage()
    served_model: Identifier = None
    request_id: Identifier = None
    fingerprint: Identifier = None
    reasoning: SideText = ""
    tool_call: SideText = ""  # the arguments of tool calls as JSON
    latency_s: Annotated[Annotated[float, Field(ge=0)] | None, _or_default(None)] = field(default=None, compare=False)

    def redacted(self, redact: Callable[[str], str]) -> "Completion":
        """Return the completion with its texts and identifiers redacted. Identifiers are then cut to 300 characters."""
        redacted: dict[str, Any] = {name: redact(getattr(self, name)) for name in ("text", "reasoning", "tool_call")}
        for name in ("served_model", "request_id", "fingerprint"):
            if value := getattr(self, name):
                redacted[name] = redact(value)[:_MAX_IDENTIFIER]
        return replace(self, **redacted)


def fields_of(value: Any) -> Mapping[str, Any]:
    """Return a JSON object unchanged, and an empty object for other values."""
    return value if isinstance(value, dict) else {}


def joined(parts: Any, *keys: str) -> str:
    """Return the value at the path `keys` of each object in a list, one per line. Non-text values become JSON."""
    values = list(parts) if isinstance(parts, list) else []
    for key in keys:
        values = [fields_of(value).get(key) for value in values]
    return "\n".join(part if isinstance(part, str) else canonical_json(part) for part in values if part is not None)


def sum_of_counts(*counts: Any) -> int | None:
    """Add the token counts that are not None. Return None if all are None, or if a count is impossible.

    >>> sum_of_counts(5, None, 100), sum_of_counts(5, -100), sum_of_counts(5, "many"), sum_of_counts(None)
    (105, None, None, None)
    """
    known_counts = [count for count in counts if count is not None]
    checked = [Usage(input_tokens=count).input_tokens for count in known_counts]
    total = sum(count for count in checked if count is not None)
    return None if not known_counts or None in checked else total


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The reason why a call has no output: a kind, a stable code (`reason`), a text and an HTTP status, if any."""

    kind: Annotated[FailureKind, _or_default("provider_error")] = "provider_error"
    reason: Annotated[Reason, _or_default("unknown")]
    message: Annotated[StrictStr, _or_default("")] = ""
    status: Annotated[HttpStatus | None, _or_default(None)] = None

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


@dataclass(eq=False, repr=False)
class ProviderError(SkillEvaluatorError):
    """The error of a call without a completion."""

    reason: str
    message: InitVar[str] = ""
    _: KW_ONLY
    kind: FailureKind = "provider_error"
    status: int | None = None
    retryable: bool = False
    retry_after_s: float | None = None
    throttled: bool = False  # the server is overloaded or limits the rate
    fatal: bool = False  # all further calls of the model would fail
    perhaps_billed: bool = False
    rejected: bool = False  # the server rejected the request for its settings or its document

    def __post_init__(self, message: str) -> None:
        super().__init__(message if str(message).strip() else self.reason)
        usable = isinstance(self.retry_after_s, int | float) and self.retry_after_s >= 0  # rejects NaN, too
        self.retry_after_s = self.retry_after_s if usable else None

    def failure(self, redact: Callable[[str], str] = str) -> Failure:
        """Return the error as a Failure. Its message is redacted and cut to 500 characters."""
        message = redact(str(self)[:_MAX_RAW_CHARS])[:_MAX_MESSAGE]
        return Failure(kind=self.kind, reason=self.reason, message=message, status=self.status)


def unreachable(problem: object, *, fatal: bool = False) -> ProviderError:
    """Return the error of a call that did not reach the server and is not billed. It is retryable unless `fatal`."""
    return ProviderError("unreachable", f"no connection: {problem}", retryable=not fatal, fatal=fatal)


# The errors of a lost connection, a call over its time limit and a body that cannot be read. The call may be billed.
dropped = partial(ProviderError, "connection_lost", retryable=True, perhaps_billed=True)
timed_out = partial(ProviderError, "read_timeout", kind="timeout", retryable=True, perhaps_billed=True)
malformed = partial(ProviderError, "malformed_body", retryable=True, perhaps_billed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The sampling settings of a model: those `sent` to the API, and those `unavailable` with this model.

    `extra` has the further params from models.yaml.
    """

    sent: Mapping[str, Any] = field(default_factory=dict)  # seed, temperature and the like, by name
    unavailable: tuple[str, ...] = ()  # settings that the API refuses or the model ignores
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings that all requests share, by name: without the seed and the unavailable settings."""
        settings = {**self.sent, **self.extra}
        return {name: value for name, value in settings.items() if name not in ("seed", *self.unavailable)}

    def of(self, request: "Request", limit_name: str) -> dict[str, int]:
        """Return a request's output limit (key `limit_name`) and `seed`, each only if the model uses it."""
        limit = {} if "max_tokens" in self.unavailable else {limit_name: request.max_output_tokens}
        return {**limit, **({"seed": request.seed} if "seed" in self.sent else {})}


# Settings that models ignore, and settings that OpenAI's own API rejects, by prefix of the model's name; November 2026
_GEMINI = ("gemini-3.6", "gemini-3.7", "gemini-3.8", "gemini-3.9", "gemini-4")
_IGNORED = dict.fromkeys(_GEMINI, ("temperature", "top_p", "top_k"))
_REFUSED = dict.fromkeys(("gpt-5", "o1", "o3", "o4"), ("temperature", "top_p"))


def usual_sampling(model: Model, *, refused: Sequence[str] = ()) -> Sampling:
    """Return a model's sampling settings, without those that the API refuses (`refused`) or the model ignores."""
    is_openais = model.provider == "openai" and (model.is_direct or model.place == "azure")
    table = _IGNORED | _REFUSED if is_openais else _IGNORED
    by_name = next((table[prefix] for prefix in table if model.api_name.rpartition("/")[2].startswith(prefix)), ())
    refused = tuple(dict.fromkeys((*refused, *(by_name if model.ignores is None else model.ignores))))
    temperature = 0.0 if model.profile == "deterministic" else None
    if model.params.temperature is not None:
        temperature = model.params.temperature
    settings = {"seed": "per replicate", "temperature": temperature, "top_p": model.params.top_p}
    sent = {name: value for name, value in settings.items() if value is not None and name not in refused}
    return Sampling(sent=sent, unavailable=refused, extra=model.params.extra)


class Provider(Protocol):
    """An open connection to one model."""

    async def complete(self, request: Request) -> Completion:
        """Make one call without retries. Raise ProviderError if it has no completion."""

    async def close(self) -> None:
        """Release sockets, threads and memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """The exchange of a job's identity token for credentials of a vendor."""

    required: tuple[str, ...]  # variables with identifiers, which are not secret
    optional: tuple[str, ...]
    audience: str  # the audience claim of the token; may contain variables in braces
    rule: str  # the vendor's rule that accepts or rejects the token; may contain variables in braces
    exchanges_if: str = ""  # exchange tokens only if this variable is set; otherwise the SDK finds credentials


class FileTokens(NamedTuple):
    """The input tokens of a file: an estimate, and an upper bound."""

    likely: int
    upper_bound: int


def patches(file: File, side: int) -> int:
    """Return the number of squares, `side` pixels wide, that cover an image."""
    return -(-(file.width or 0) // side) * -(-(file.height or 0) // side)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """The functions and properties of a provider. `open` imports libraries that are slow to import."""

    open: Callable[[Model, str | None, Settings], Provider]  # arguments: model, key, settings
    sampling: Callable[[Model], Sampling]
    key_variables: tuple[str, ...] = ()  # variables that may hold the key
    free: bool = False
    tools: bool = False  # whether it can return an output as the arguments of a function call
    one_at_a_time: bool = False
    check: Callable[[Model], object] | None = None  # raises ConfigError for a model that cannot be served
    context_tokens: Callable[[Model], int] | None = None  # the context window, if the provider sets it
    federation: Federation | None = None  # used by `auth: oidc`, whose key requests identity tokens
    cache_floor: Callable[[Model], int | None] = lambda model: None  # tokens of the shortest prompt that is cached
    accepts: Callable[[Model], Sequence[FileKind]] | None = None  # kinds of files by default; None: text only
    file_tokens: Callable[[Model, File], FileTokens] = lambda model, file: FileTokens(0, 0)

    def cache_floor_of(self, model: Model) -> int | None:
        """Return the tokens of the shortest prompt that is cached, or None if the model's prompts are not cached."""
        return self.cache_floor(model) if model.cache else None


async def call_once(provider: Provider, request: Request, settings: Settings) -> Completion:
    """Make one call. A StorageError is raised unchanged. Every other failure is raised as a ProviderError."""
    try:
        has_own_limit = getattr(provider, "in_process", False) or getattr(provider, "limits_time", False)
        async with asyncio.timeout(None if has_own_limit else settings.timeout_s):
            if request.files:
                await asyncio.to_thread(refuse_changed, request)
            completion = await provider.complete(request)
    except (ProviderError, StorageError):
        raise
    except TimeoutError:
        raise timed_out(f"no response within {settings.timeout_s:g} s") from None
    except ValidationError as problem:
        raise malformed(f"the provider's result is not valid: {first_problem(problem)}") from None
    except asyncio.CancelledError as problem:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _bug(repr(problem)) from None
    except (Exception, SystemExit) as problem:
        raise _bug(repr(problem)) from None
    if not isinstance(completion, Completion):
        message = f"the provider returned {type(completion).__name__}, not a Completion"
        raise ProviderError("provider_bug", message, perhaps_billed=True)
    return within_limits(completion, settings)


def within_limits(completion: Completion, settings: Settings) -> Completion:
    """Return the completion. If its text is over `limits.answer_bytes`, drop it and set the stop reason `too_large`."""
    if len(completion.text.encode("utf-8", "surrogatepass")) > settings.limits.answer_bytes:
        return replace(completion, text="", stop_reason="too_large")
    return completion


def refuse_changed(request: Request) -> None:
    """Raise ProviderError if a file of the request cannot be read or has changed since its case was read."""
    for file in request.files:
        try:
            with file.path.open("rb") as handle:
                same = f"sha256:{hashlib.file_digest(handle, 'sha256').hexdigest()}" == file.digest
        except OSError:
            same = False
        if not same:
            message = f"{file.path} was changed or removed, or cannot be read, since its case was read; start a new run"
            raise ProviderError("file_changed", message, kind="not_run")


def _bug(message: str) -> ProviderError:
    return ProviderError("provider_bug", f"the provider raised an unexpected error: {message}", perhaps_billed=True)

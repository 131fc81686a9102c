"""What every provider takes, gives and raises, and nothing of any one vendor but what its models ignore.

A provider maps one `Request` to one `Completion`, or raises `ProviderError`. It never retries: the runner does,
by one policy for all. Values here are what the journal holds. `ask_once` is the way to a provider, whoever wrote it
and whatever it does: what is wrong in one costs nobody else's call.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from itertools import accumulate
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeVar

import pydantic.dataclasses
from pydantic import BeforeValidator, Field, Strict, StrictBool, StrictInt, StrictStr, ValidationError, WrapValidator

from skill_evaluator.errors import ConfigError, SkillEvaluatorError, StorageError
from skill_evaluator.files import first_problem
from skill_evaluator.identifiers import Label
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.library.messages import File, FileKind, Message
from skill_evaluator.text import canonical_json

CallKey = TypeVar("CallKey")
Attempt = TypeVar("Attempt")
StopReason = Literal["stop", "length", "refusal", "too_large", "other"]
FailureKind = Literal[
    "provider_error", "refused", "truncated", "unparseable", "timeout", "no_credentials", "over_budget", "not_run"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call, ready to send: whose it is, what the model reads, what it may write, the seed of this replicate.

    `messages` begin with the system message, if there is one. `constant` is the number of their characters, from the
    beginning, that requests of other cases have, too. `cache`: the same messages are sent again soon, so that a
    vendor's cache pays. `file_tokens` is the most that its files take of the input. `inputs` and earlier `turns` are
    what a program is asked instead.
    """

    case_id: str
    replicate: int
    messages: tuple[Message, ...]
    max_output_tokens: int
    seed: int
    schema: Mapping[str, Any] | None = None
    schema_name: str = "output"
    cache: bool = False
    constant: int = 0
    file_tokens: int = 0
    inputs: Mapping[str, Any] = field(default_factory=dict)
    turns: tuple[Message, ...] = ()

    @property
    def system(self) -> str:
        """The system prompt, empty without one."""
        return self.messages[0].text if self.messages[0].role == "system" else ""

    @property
    def talk(self) -> tuple[Message, ...]:
        """The messages of user and assistant."""
        return self.messages[self.messages[0].role == "system" :]

    @property
    def files(self) -> tuple[File, ...]:
        """The files of all messages."""
        return tuple(file for message in self.messages for file in message.files)

    @property
    def examples(self) -> int:
        """How many messages of user and assistant, from the first, requests of other cases have, too."""
        ends = zip(self.talk, accumulate(len(message.text) for message in self.talk), strict=True)
        return sum(not message.files and len(self.system) + end <= self.constant for message, end in ends)

    @property
    def bare_schema(self) -> dict[str, Any]:
        """The schema without `$schema`, which vendors refuse."""
        return {key: value for key, value in (self.schema or {}).items() if key != "$schema"}


def _or_else(default: Any) -> WrapValidator:
    """Put `default` in place of a value of the wrong type: no paid answer is lost for a fault beside it."""

    def validate(value: Any, check: Callable[[Any], Any]) -> Any:
        try:
            return check(value)
        except ValidationError:
            return default

    return WrapValidator(validate)


def _printable(value: Any) -> Any:
    if not isinstance(value, str) or (value := value[:_READ]).isprintable():
        return value
    return "".join(filter(str.isprintable, value))


MOST_TOKENS = 10**12  # no call has so many; what says so is wrong
_READ = 3_000  # characters of an identifier or a message; both are cut to fewer once keys are struck out
_LONGEST_IDENTIFIER = 300
LOST = "lost_by_provider"  # the reason of a call that its batch says nothing of; it may be billed
TokenCount = Annotated[Annotated[StrictInt, Field(ge=0, lt=MOST_TOKENS)] | None, _or_else(None)]
Reason = Annotated[Label, Strict(), Field(min_length=1)]
HttpStatus = Annotated[StrictInt, Field(ge=100, le=599)]
SideText = Annotated[StrictStr, _or_else("")]
Identifier = Annotated[StrictStr | None, _or_else(None), BeforeValidator(_printable)]


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens the vendor counted; None without a count, or if it is impossible: negative, fractional, absurd.

    `input_tokens` is the whole prompt, whichever way a vendor counts. The cache counts are parts of it: what was read
    from a cache and what was written to one, of that `cache_write_1h_tokens` to be kept for an hour. Parts that are
    more than their whole are unknown. A call in a `batch` is billed at the price of batches.

    >>> Usage(input_tokens=100, cache_read_tokens=80).cache_read_tokens, Usage(cache_read_tokens=80).cache_read_tokens
    (80, None)
    """

    input_tokens: TokenCount = None
    output_tokens: TokenCount = None
    cache_read_tokens: TokenCount = None
    cache_write_tokens: TokenCount = None
    cache_write_1h_tokens: TokenCount = None
    batch: Annotated[StrictBool | None, _or_else(None)] = None

    def __post_init__(self) -> None:
        parts = (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)
        if self.input_tokens is None or parts > self.input_tokens:
            for part in ("cache_read_tokens", "cache_write_tokens"):
                object.__setattr__(self, part, None)
        if self.cache_write_tokens is None or (self.cache_write_1h_tokens or 0) > self.cache_write_tokens:
            object.__setattr__(self, "cache_write_1h_tokens", None)


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What came back, from whatever provider: the types are checked when it is made.

    `text` may be empty; a value that is not a text raises ValidationError. Everything else is unknown if its type is
    wrong. `stop_reason` says whether the model finished, was cut, refused, or wrote more than is taken. `reasoning` and
    `tool_call` are what the server gives beside the content: the reasoning, and the arguments of tool calls as JSON.
    `latency_s` is the time from the first byte that was sent to the last that came; None where whoever asks takes the
    time.
    """

    text: StrictStr
    stop_reason: Annotated[StopReason, _or_else("other")] = "stop"
    usage: Annotated[Usage, _or_else(Usage())] = Usage()
    served_model: Identifier = None
    request_id: Identifier = None
    fingerprint: Identifier = None
    reasoning: SideText = ""
    tool_call: SideText = ""
    latency_s: Annotated[Annotated[float, Field(ge=0)] | None, _or_else(None)] = field(default=None, compare=False)

    def redacted(self, redact: Callable[[str], str]) -> "Completion":
        """Return the same without keys, identifiers cut to length after that, so that no part of one is left."""
        kept: dict[str, Any] = {
            name: redact(value)[:_LONGEST_IDENTIFIER]
            for name in ("served_model", "request_id", "fingerprint")
            if (value := getattr(self, name))
        }
        kept |= {name: redact(getattr(self, name)) for name in ("text", "reasoning", "tool_call")}
        return self if all(getattr(self, name) == value for name, value in kept.items()) else replace(self, **kept)


def stop_reason_of(word: Any, reasons: Mapping[str, StopReason]) -> StopReason:
    """Return what a vendor's word for the end of an answer means; `other` for what is no word, or a new one."""
    return reasons.get(word, "other") if isinstance(word, str) else "other"


def fields_of(value: Any) -> Mapping[str, Any]:
    """Return the fields of a JSON object; none when it is something else."""
    return value if isinstance(value, dict) else {}


def joined(parts: Any, *keys: str) -> str:
    """Join the values at a path of keys in the objects of a list; a value that is not a text is written as JSON."""
    values = list(parts) if isinstance(parts, list) else []
    for key in keys:
        values = [fields_of(value).get(key) for value in values]
    return "\n".join(
        value if isinstance(value, str) else canonical_json(value) for value in values if value is not None
    )


def sum_of_counts(*counts: Any) -> int | None:
    """Add token counts, leaving out those that are absent; None when all are, or when one cannot be.

    >>> sum_of_counts(5, None, 100), sum_of_counts(5, -100), sum_of_counts(5, "many"), sum_of_counts(None)
    (105, None, None, None)
    """
    given = [count for count in counts if count is not None]
    checked = [Usage(input_tokens=count).input_tokens for count in given]
    total = sum(count for count in checked if count is not None)
    return None if not given or None in checked else total


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a call has no scorable answer. `reason` is a stable word, `message` is for people.

    A value of a wrong type, in an error of a provider from outside, counts as left out.
    """

    kind: Annotated[FailureKind, _or_else("provider_error")]
    reason: Annotated[Reason, _or_else("unknown")]
    message: Annotated[StrictStr, _or_else("")] = ""
    status: Annotated[HttpStatus | None, _or_else(None)] = None


@dataclass(eq=False, repr=False)
class ProviderError(SkillEvaluatorError):
    """A call that brought no completion: why, whether to try again and when, whether to stop the model.

    `rejected` is a request that the server found wrong: perhaps its settings, perhaps this one document.
    """

    reason: str
    message: InitVar[str] = ""
    _: KW_ONLY
    kind: FailureKind = "provider_error"
    status: int | None = None
    retryable: bool = False
    retry_after_s: float | None = None
    throttled: bool = False
    fatal: bool = False
    perhaps_billed: bool = False
    rejected: bool = False

    def __post_init__(self, message: str) -> None:
        super().__init__(message if str(message).strip() else self.reason)
        usable = isinstance(self.retry_after_s, int | float) and self.retry_after_s >= 0  # not a number compares false
        self.retry_after_s = self.retry_after_s if usable else None

    def failure(self, redact: Callable[[str], str] = str) -> Failure:
        """Return the same as a value, keys struck out before it is cut to length, so that no part of one is left."""
        message = redact(str(self)[:_READ])[:500]
        return Failure(kind=self.kind, reason=self.reason, message=message, status=self.status)


def unreachable(problem: object, *, fatal: bool = False) -> ProviderError:
    """Return the error of a server to which no connection could be made, so that nothing was asked or billed."""
    return ProviderError("unreachable", f"no connection: {problem}", retryable=not fatal, fatal=fatal)


def dropped(message: str) -> ProviderError:
    """Return the error of a connection that failed or broke off; the answer, if there was one, may be billed."""
    return ProviderError("connection_lost", message, retryable=True, perhaps_billed=True)


def timed_out(message: str) -> ProviderError:
    """Return the error of an answer that did not come in time; it may be billed."""
    return ProviderError("read_timeout", message, kind="timeout", retryable=True, perhaps_billed=True)


def malformed(message: str) -> ProviderError:
    """Return the error of a body that is not what the API promises (cut JSON, HTML of a proxy, missing fields)."""
    return ProviderError("malformed_body", message, retryable=True, perhaps_billed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The sampling settings of a model: those its provider is sent, and those it is not. `extra`: its own params."""

    sent: Mapping[str, Any] = field(default_factory=dict)
    unavailable: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fixed(self) -> dict[str, Any]:
        """What every request is sent alike: all but the seed."""
        alike = {**self.sent, **self.extra}
        return {name: value for name, value in alike.items() if name != "seed" and name not in self.unavailable}

    def of(self, request: "Request", limit_name: str) -> dict[str, int]:
        """Return the seed and the output limit of a request, unless the model ignores them."""
        limit = {} if "max_tokens" in self.unavailable else {limit_name: request.max_output_tokens}
        return {**limit, **({"seed": request.seed} if "seed" in self.sent else {})}


# what models ignore, and what they refuse at OpenAI's own address, by the beginning of their names; November 2026
_GEMINI = ("gemini-3.6", "gemini-3.7", "gemini-3.8", "gemini-3.9", "gemini-4")
_IGNORED = dict.fromkeys(_GEMINI, ("temperature", "top_p", "top_k"))
_REFUSED = dict.fromkeys(("gpt-5", "o1", "o3", "o4"), ("temperature", "top_p"))


def usual_sampling(model: Model, *, refused: Sequence[str] = ()) -> Sampling:
    """Return a seed per replicate, and the model's own params, else temperature 0 in the deterministic profile.

    `refused` are the settings that the API does not take. What the model ignores is neither sent nor recorded.
    """
    is_openais = model.provider == "openai" and (model.is_direct or model.place == "azure")
    table = _IGNORED | _REFUSED if is_openais else _IGNORED
    by_name = next((table[prefix] for prefix in table if model.api_name.rpartition("/")[2].startswith(prefix)), ())
    refused = tuple(dict.fromkeys((*refused, *(by_name if model.ignores is None else model.ignores))))
    settings = {
        "seed": "per replicate",
        "temperature": 0.0 if model.profile == "deterministic" else None,
        "top_p": model.params.top_p,
    }
    if model.params.temperature is not None:
        settings["temperature"] = model.params.temperature
    sent = {name: value for name, value in settings.items() if value is not None and name not in refused}
    return Sampling(sent=sent, unavailable=refused, extra=model.params.extra)


class Provider(Protocol):
    """An open connection to one model."""

    async def complete(self, request: Request) -> Completion:
        """Ask once, without retries; raise ProviderError."""
        ...

    async def close(self) -> None:
        """Release sockets, threads and memory."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """How a vendor takes a job's identity token in place of a key.

    `required` and `optional` are variables with identifiers, none of them secret. `audience` of the token and `rule`,
    which decides whether it is taken, may name them in braces. Without the variable `exchanges_if`, if there is one,
    the vendor's library finds its credentials by itself.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    audience: str
    rule: str
    exchanges_if: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """How a vendor caches a model's prompts: the number of tokens of the shortest prompt that it caches."""

    floor_tokens: int

    def reaches(self, tokens: int) -> bool:
        """Check whether a prompt is long enough."""
        return tokens >= self.floor_tokens


class FileTokens(NamedTuple):
    """The input tokens of a file: a likely number, and a bound."""

    likely: int
    most: int


def patches(file: File, side: int) -> int:
    """Return how many squares with a side of some pixels cover an image."""
    return -(-(file.width or 0) // side) * -(-(file.height or 0) // side)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """One line of `PROVIDERS`: how to open it, which variables may hold its key, what it can be told.

    `open` gets the model, its key (None if it needs none) and the settings, of which `timeout_s` is the time limit of a
    call and `limits` says how much is taken; a library that is slow to import is imported in there. `check` raises
    ConfigError for an entry the provider cannot serve. `context_tokens` says how much a model reads where the provider
    itself decides. `revision` goes up when equal settings come to give other answers. With a `federation` a model may
    have `auth: oidc`; its key is then the one that requests identity tokens. `caching` says whether
    and how the vendor caches a model's prompts. `accepts` says which files a model reads by default; without it the
    provider sends texts alone. `file_tokens` is what a file takes of a model's input.
    """

    open: Callable[[Model, str | None, Settings], Provider]
    sampling: Callable[[Model], Sampling]
    key_variables: tuple[str, ...] = ()
    free: bool = False
    one_at_a_time: bool = False
    check: Callable[[Model], object] | None = None
    context_tokens: Callable[[Model], int] | None = None
    revision: int = 1
    federation: Federation | None = None
    caching: Callable[[Model], Caching | None] | None = None
    accepts: Callable[[Model], Sequence[FileKind]] | None = None
    file_tokens: Callable[[Model, File], FileTokens] = lambda model, file: FileTokens(0, 0)

    def accepted_by(self, model: Model) -> Sequence[FileKind]:
        """Return the kinds of files that a model reads: as models.yaml says, else as its provider does."""
        if self.accepts is None:
            return ()
        return self.accepts(model) if model.accepts is None else model.accepts

    def caching_of(self, model: Model) -> Caching | None:
        """Return how a model's prompts are cached; None where they are not, or models.yaml says so."""
        return self.caching(model) if self.caching and model.cache else None


def first_answers(
    attempts: Iterable[tuple[CallKey, Attempt]], is_answer: Callable[[Attempt], bool]
) -> dict[CallKey, Attempt]:
    """Return what counts of several attempts at each call: its first answer, else its last error."""
    kept: dict[CallKey, Attempt] = {}
    for call, attempt in attempts:
        if call not in kept or not is_answer(kept[call]):
            kept[call] = attempt
    return kept


def opened(kind: ProviderKind, model: Model, key: str | None, settings: Settings) -> Provider:
    """Open a provider; raise ConfigError, also for a fault in a provider from outside."""
    try:
        return kind.open(model, key, settings)
    except SkillEvaluatorError:
        raise
    except (Exception, SystemExit) as problem:
        raise ConfigError(f"provider '{model.provider}' of model '{model.id}' cannot be opened: {problem!r}") from None


def is_in_process(provider: Provider) -> bool:
    """Check whether a provider computes here: no network can lose its answer, and nothing of it is paid for."""
    return getattr(provider, "in_process", False)


async def ask_once(provider: Provider, request: Request, settings: Settings) -> Completion:
    """Return the answer to one request; raise ProviderError for everything else, StorageError as it is.

    An answer over `limits.answer_bytes` keeps no text. What computes in this process has as long as it takes, and what
    `keeps_time` ends a call by itself.
    """
    import asyncio

    try:
        has_own_limit = is_in_process(provider) or getattr(provider, "keeps_time", False)
        async with asyncio.timeout(None if has_own_limit else settings.timeout_s):
            if request.files:
                await asyncio.to_thread(refuse_changed, request)
            completion = await provider.complete(request)
    except (ProviderError, StorageError):
        raise
    except TimeoutError:
        raise timed_out(f"no answer within {settings.timeout_s:g} s") from None
    except ValidationError as problem:
        raise malformed(f"unexpected answer: {first_problem(problem)}") from None
    except asyncio.CancelledError as problem:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _bug(repr(problem)) from None
    except (Exception, SystemExit) as problem:
        raise _bug(repr(problem)) from None
    if not isinstance(completion, Completion):
        raise _bug(f"a Completion is expected, not {type(completion).__name__}")
    return within_limits(completion, settings)


def within_limits(completion: Completion, settings: Settings) -> Completion:
    """Return a completion; without its text where that is over `limits.answer_bytes`."""
    text, most = completion.text, settings.limits.answer_bytes
    if len(text) * 4 > most and len(text.encode("utf-8", "surrogatepass")) > most:  # few texts need be encoded for that
        return replace(completion, text="", stop_reason="too_large")
    return completion


def refuse_changed(request: Request) -> None:
    """Raise ProviderError for a file that is not what it was when its case was read; nothing was sent."""
    for file in request.files:
        try:
            with file.path.open("rb") as handle:
                same = f"sha256:{hashlib.file_digest(handle, 'sha256').hexdigest()}" == file.digest
        except OSError:
            same = False
        if not same:
            message = f"{file.path} was changed since its case was read; ask it in a new run"
            raise ProviderError("file_changed", message, kind="not_run")


def _bug(message: str) -> ProviderError:
    return ProviderError("provider_bug", f"the provider failed by itself: {message}", perhaps_billed=True)

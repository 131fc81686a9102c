"""A model behind HTTP: bodies with files, responses, the classification of errors, and the provider that sends."""

import base64
import email.utils
import json
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from skill_evaluator.files import first_problem
from skill_evaluator.library.config import IGNORABLE
from skill_evaluator.library.prompts import File, Message
from skill_evaluator.providers.access import Identity
from skill_evaluator.providers.base import Completion, FailureKind, ProviderError, Request, Usage, malformed

_NUMBER = re.compile(r"\d+(\.\d+)?")
# Messages of OpenAI and vLLM, Anthropic, Google and llama.cpp.
_OVER_CONTEXT = re.compile(
    r"(?i)context (length|size|window|limit)|exceeds? the context|prompt is too long|the maximum number of tokens"
)
# Messages of OpenAI (404), Google (404) and Groq (400).
_RETIRED = re.compile(r"(?i)\bmodel\b.*( has been (deprecated|decommissioned)| is no longer available)")
_EMPTY = "credit balance is too low"  # Anthropic's message (400)
# Codes of OpenAI, Azure and gateways; messages of Azure, Anthropic, Google, OpenAI and DeepSeek.
_FILTER_CODES = re.compile(
    r"(?i)content_filter|content_policy_violation|ResponsibleAIPolicyViolation|data_?inspection_?failed|invalid_prompt"
)
_FILTER_WORDS = re.compile(
    r"(?i)blocked by content filter|content management policy|responsible AI (?:practices|policy)|content exists risk"
    r"|flagged as potentially violating"
)
_REPLACED = re.compile(r"""(?is)['"`](\w+)['"`].*\buse ['"`]([a-z_]\w{0,60})['"`]""")
_REFUSED = re.compile(
    r"(?i)not support|unsupported|not permitted|extra_forbidden|unrecognized|unknown|unexpected|deprecated"
)
_PARAMETER = re.compile(rf"\b({'|'.join(IGNORABLE)})\b")
_MAX_TEXT = 600  # characters; a longer text may repeat the request
_FATAL = {401: "wrong_key", 402: "out_of_credit", 403: "permission_denied", 404: "unknown_model", 410: "model_retired"}
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
_MAX_VALUES = 1_000_000  # values in a body; each takes up to 200 bytes of memory
_CHUNK = 3 << 16  # bytes per read of a file; a multiple of 3 for base64
_SECRET = secrets.token_hex(16)  # random per process, so that no text of a case can name a file
_FILE = re.compile(rf"{_SECRET}:(\d+):([0-9a-f]+);".encode())


def file_placeholder(file: File) -> str:
    """Return the placeholder of a file in a body. `RequestBody` replaces it by the base64 of the file."""
    return f"{_SECRET}:{file.size}:{os.fsencode(file.path).hex()};"


def json_bytes(value: Any) -> bytes:
    """Encode a JSON value; raise ValueError or TypeError for other values."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


class RequestBody:
    """The body of a request. Its files are read while it is sent."""

    def __init__(self, text: bytes) -> None:
        self._parts: list[bytes | tuple[Path, int]] = []  # texts, and files with their sizes
        end = 0
        for mark in _FILE.finditer(text):
            path = Path(os.fsdecode(bytes.fromhex(mark[2].decode())))
            self._parts += [text[end : mark.start()], (path, int(mark[1]))]
            end = mark.end()
        self._parts.append(text[end:])

    @property
    def size(self) -> int:
        """The number of bytes that `read` yields."""
        return sum(len(part) if isinstance(part, bytes) else (part[1] + 2) // 3 * 4 for part in self._parts)

    def read(self) -> Iterator[bytes]:
        """Yield the bytes in parts. Raise OSError for a file that cannot be read or has become shorter."""
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
                continue
            path, size = part
            with path.open("rb") as handle:
                for start in range(0, size, _CHUNK):
                    chunk = handle.read(min(_CHUNK, size - start))
                    if len(chunk) < min(_CHUNK, size - start):
                        raise OSError(f"{path} has become shorter")
                    yield base64.b64encode(chunk)


def content_of(
    message: Message,
    file: Callable[[File], Any],
    text: Callable[[str], Any] = lambda text: {"type": "text", "text": text},
) -> str | list[Any]:
    """Return the text of a message. If it has files, return a list of its parts, each converted by `file` or `text`."""
    if not message.files:
        return message.text
    parts = (part for part in message.parts if isinstance(part, File) or part.strip())
    return [file(part) if isinstance(part, File) else text(part) for part in parts]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """The response of a server. The body of an error is `{"error": {"message": …}}` or only the inner object."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    content: bytes  # decompressed
    latency_s: float | None = None  # first byte sent to last byte received; None in a batch

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def details(self) -> Mapping[str, Any]:
        """The object at `error` in the JSON body, else the whole body. Empty if that is not an object."""
        try:
            body = json.loads(self.content.decode(errors="replace"))
        except (ValueError, RecursionError):
            return {}
        if isinstance(body, list) and len(body) == 1:
            body = body[0]
        details = body.get("error", body) if isinstance(body, dict) else None
        return details if isinstance(details, dict) else {}

    @property
    def message(self) -> str:
        """The message of the error, or the whole body as text."""
        return str(self.details.get("message") or self.content.decode(errors="replace"))


class TooLargeError(Exception):
    """The body of a response is over the limit of bytes or values."""


def parsed_body(content: bytes) -> Any:
    """Parse a JSON body. Raise ValueError or RecursionError if it is invalid. A huge integer becomes a float."""
    # Python refuses to read integers of thousands of digits
    return json.loads(content, parse_int=lambda digits: int(digits) if len(digits) < 20 else float(digits))


def parsed_response(content: bytes) -> Any:
    """Parse the JSON of one response. Raise TooLargeError if it has too many values, else as `parsed_body` does."""
    if sum(content.count(mark) for mark in (b"[", b"{", b",")) > _MAX_VALUES:
        raise TooLargeError
    return parsed_body(content)


def error_from_status(status: int, headers: Mapping[str, str], message: str) -> ProviderError:
    """Return the error of an HTTP status: its kind, its reason, and whether and when to retry."""
    fatal = "model_retired" if status in (400, 404) and _RETIRED.search(message) else _FATAL.get(status)
    fatal = "out_of_credit" if status == 400 and _EMPTY in message else fatal
    if fatal is not None:
        kind: FailureKind = "no_credentials" if status in (401, 403) else "provider_error"
        return ProviderError(fatal, message, kind=kind, status=status, fatal=True)
    reason = _RETRYABLE.get(status) or ("server_error" if status >= 500 else "bad_request")
    if reason == "bad_request" and (status == 413 or _OVER_CONTEXT.search(message)):
        reason = "request_too_large" if status == 413 else "context_exceeded"
    should_retry = headers.get("x-should-retry", "").lower()
    return ProviderError(
        reason,
        message,
        kind="timeout" if status in (408, 504) else "provider_error",
        status=status,
        retryable=should_retry == "true" or (should_retry != "false" and (status in _RETRYABLE or status >= 500)),
        retry_after_s=retry_after_seconds(headers),
        throttled=status in (429, 503, 529),
        rejected=reason == "bad_request",
    )


def is_content_filter(error: HttpResponse) -> bool:
    """Return whether a response says that a content filter refused the prompt or the output."""
    inner = error.details.get("innererror")
    codes = [error.details.get(key) for key in ("code", "type")] + [inner.get("code") if isinstance(inner, dict) else 0]
    has_code = any(_FILTER_CODES.fullmatch(str(code)) for code in codes)
    return error.status != 429 and (has_code or _FILTER_WORDS.search(error.message) is not None)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait by `retry-after-ms` or `retry-after`. Return None if both are missing or invalid."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if _NUMBER.fullmatch(text := headers.get(name, "").strip()):
            return float(text) * unit
    try:
        moment = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, OverflowError):
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
_NO_BILL = Usage(input_tokens=0, output_tokens=0)  # error statuses are not billed
Send = Callable[..., Awaitable[object]]  # arguments: method, path, query=, body=, file= (name, content, type) of a form


class Connection(Protocol):
    """An open connection to a server: a `SdkConnection` or a `PlainConnection`."""

    identity: Identity | None  # the identity of the job, if it replaces a key

    @property
    def send(self) -> Callable[..., Awaitable[HttpResponse]]:
        """The function that sends a request by method and path, and returns the response of any status."""

    async def close(self) -> None:
        """Close all connections."""


@dataclass(eq=False, repr=False)
class RemoteProvider:
    """One model whose calls are posted as JSON to a path of its `connection`."""

    connection: Connection
    path: str
    body_of: Callable[[Request], Mapping[str, Any]]
    read: Callable[[Any, Mapping[str, str]], Completion]  # arguments: the body and the headers of a success
    # the error of a response that only this vendor sends, or None
    vendor_error: Callable[[HttpResponse], ProviderError | None] = lambda response: None
    renamed: dict[str, str] = field(default_factory=dict)  # replacements of parameters that the server rejected

    @property
    def limits_time(self) -> bool:
        """Whether the connection limits the time of a call; if not, `call_once` does.

        It does not if it first exchanges an identity token, because the exchange has no time limit.
        """
        return self.connection.identity is None

    async def complete(self, request: Request) -> Completion:
        """Make one call. Raise ProviderError if it fails. If the response is too large, the completion has no text."""
        body = self.body(request)
        try:
            answer = await self._send("POST", self.path, body=body)
        except TooLargeError:
            return Completion(text="", stop_reason="too_large")
        return replace(self.completion(answer, sent=body), latency_s=answer.latency_s)

    def body(self, request: Request) -> Mapping[str, Any]:
        """Return the JSON body of a request. Raise ProviderError for invalid Unicode or an unsupported schema."""
        try:
            "".join(message.text for message in request.messages).encode()
        except UnicodeEncodeError as problem:
            raise _unsendable(problem) from None
        return {self.renamed.get(name, name): value for name, value in self.body_of(request).items()}

    async def fetch(self, method: str, path: str, **content: Any) -> bytes:
        """Send any request (see `SdkConnection.send`). Return the body of a success. Otherwise raise ProviderError."""
        try:
            answer = await self._send(method, path, **content)
        except TooLargeError as problem:
            raise ProviderError("answer_too_large", str(problem), fatal=True) from None
        if not answer.is_success:
            raise self._status_error(answer)
        return answer.content

    async def _send(self, method: str, path: str, **content: Any) -> HttpResponse:
        try:
            return await self.connection.send(method, path, **content)
        except (ValueError, TypeError) as problem:  # the key cannot be sent in a header
            raise _unsendable(problem) from None

    def completion(self, answer: HttpResponse, sent: Container[str] | None = None) -> Completion:
        """Return the completion of a response. A content filter's error is a refusal; any other raises ProviderError.

        `sent` has the names of the request's parameters. It is None if they are not known, as in a batch.
        """
        if answer.is_success:
            try:
                return self.read(parsed_response(answer.content), answer.headers)
            except TooLargeError:
                return Completion(text="", stop_reason="too_large")
            except UNREADABLE as problem:
                if not answer.details.get("message"):
                    what = first_problem(problem) if isinstance(problem, ValidationError) else repr(problem)
                    what = "it has an empty array" if isinstance(problem, IndexError) else what
                    kind, begin = answer.headers.get("content-type", "no type"), answer.content[:1_000]
                    raise malformed(f"unexpected body: {what}; it is {kind} and begins with {begin!r}") from None
        if is_content_filter(answer):
            return Completion(text=answer.message, stop_reason="refusal", usage=_NO_BILL)
        if answer.is_success:
            raise ProviderError("server_error", answer.message, retryable=True, perhaps_billed=True)
        raise self._rejection(answer, sent)

    async def close(self) -> None:
        """Close all connections."""
        await self.connection.close()

    def _rejection(self, error: HttpResponse, sent: Container[str] | None) -> ProviderError:
        problem = self._status_error(error)
        if not problem.rejected:
            return problem
        if match := _REPLACED.search(error.message[:_MAX_TEXT]):
            refused, name = str(error.details.get("param") or match[1]), match[2]
            is_sent = sent is None or (refused in sent and name not in sent)
            if is_sent and refused not in self.renamed.values():
                self.renamed[refused] = name
                problem.retryable, problem.retry_after_s = True, 0.0
                return problem
        text = f"{error.message} {error.details}"[:_MAX_TEXT]
        parameter = _PARAMETER.search(str(error.details.get("param") or text))
        if parameter and _REFUSED.search(text):
            problem.reason = f"{parameter[1]}_refused"
        return problem

    def _status_error(self, error: HttpResponse) -> ProviderError:
        if self.connection.identity is not None and error.status in (401, 403):
            return self.connection.identity.refused(error.message, error.status)
        return self.vendor_error(error) or error_from_status(error.status, error.headers, error.message)


def _unsendable(problem: Exception) -> ProviderError:
    return ProviderError("bad_request", f"the request cannot be sent: {problem}")

"""HTTP as every vendor speaks it: one way to open a connection, one to ask, one ladder of errors.

A vendor's file says how a request is worded and how the body of an answer is read. It is sent without an SDK
(`over_http`) or through the vendor's (`over_sdk`); either way a fault ends in the same `ProviderError`.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.base import (
    Completion,
    FailureKind,
    ProviderError,
    Request,
    dropped,
    malformed,
    timed_out,
    unreachable,
)
from skill_evaluator.providers.keyless import Identity
from skill_evaluator.providers.wire import (
    HttpAnswer,
    StatusError,
    TooLargeError,
    is_success,
    parsed_body,
    retry_after_seconds,
)

if TYPE_CHECKING:
    from skill_evaluator.providers.connection import BoundedClient

_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
_MOST_VALUES = 1_000_000  # in a body; each takes up to 200 bytes once it is read
# as OpenAI and vLLM, Anthropic, Google and llama.cpp word it
_OVER_CONTEXT = re.compile(
    r"(?i)context (length|size|window|limit)|exceeds? the context|prompt is too long|the maximum number of tokens"
)
# as OpenAI words a 404, Google a 404 and Groq a 400
_RETIRED = re.compile(r"(?i)\bmodel\b.*( has been (deprecated|decommissioned)| is no longer available)")
_FATAL = {401: "wrong_key", 403: "permission_denied", 404: "unknown_model", 410: "model_retired"}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAnswer:
    """A status that is no success, with what its body says; `details` is empty when that is no JSON object."""

    status: int
    headers: Mapping[str, str]
    message: str
    details: Mapping[str, Any]


Body = Callable[[Request], Mapping[str, Any]]
Read = Callable[[Any, Mapping[str, str]], Completion]
OwnError = Callable[[ErrorAnswer], ProviderError | None]


class HttpProvider:
    """One model behind HTTP.

    `send` makes one request. `read` maps the JSON body and the headers of a success. `own_error` maps an error that the
    vendor words in its own way, and returns None for all others. `faults` are what `send` raises where there is no
    answer, `timeouts` those of them that come late, `unreached` those without a connection. An SDK wraps them in the
    errors `wrapping`. With an `identity` its SDK exchanges tokens, which may fail, too. For batches, `client` is the
    client of an SDK, `body` what it is sent of a request, and `request` makes any other request to the vendor.
    """

    def __init__(
        self,
        send: Callable[[Request], Awaitable[HttpAnswer]],
        read: Read,
        close: Callable[[], Awaitable[None]],
        *,
        faults: tuple[type[Exception], ...],
        timeouts: type[Exception],
        own_error: OwnError | None = None,
        wrapping: tuple[type[Exception], ...] = (),
        unreached: tuple[type[Exception], ...] = (),
        identity: Identity | None = None,
        client: Any = None,
        body: Body | None = None,
        request: Callable[..., Awaitable[HttpAnswer]] | None = None,
    ) -> None:
        self.client = client
        self._request = request
        self._body = body
        self._send = send
        self._read = read
        self._close = close
        self._own_error = own_error
        self._wrapping = wrapping
        self._timeouts = timeouts
        self._unreached = unreached
        self._identity = identity
        of_exchange = identity.faults if identity else ()
        self._faults: tuple[type[Exception], ...] = (
            *(StatusError, TooLargeError, ProviderError),
            *(*faults, *wrapping, *of_exchange),
        )

    async def complete(self, request: Request) -> Completion:
        """Ask once; raise ProviderError. A body over the limit is an answer without text."""
        try:
            answer = await self.fetched(self._send(request))
        except TooLargeError:
            return Completion(text="", stop_reason="too_large")
        return replace(self.completion(answer), latency_s=answer.latency_s)

    def sent_body(self, request: Request) -> Mapping[str, Any]:
        """Return the body that a request is sent as."""
        if self._body is None:
            raise TypeError("this provider has no batches")
        return self._body(request)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        file: tuple[str, bytes, str] | None = None,
    ) -> Awaitable[HttpAnswer]:
        """Send any request to the vendor: JSON, or a form with a file."""
        if self._request is None:
            raise TypeError("this provider has no batches")
        return self._request(method, path, query or {}, body, file)

    async def fetched(self, sending: Awaitable[HttpAnswer]) -> HttpAnswer:
        """Wait for the answer to any request; raise ProviderError, or TooLargeError for a body over the limit."""
        try:
            return await sending
        except self._faults as problem:
            cause = (isinstance(problem, self._wrapping) and problem.__cause__) or problem
            if isinstance(cause, TooLargeError):
                raise cause from None
            raise self._error_of(cause) from None
        except (ValueError, TypeError) as problem:  # a key no header can carry, a text with half a character
            raise ProviderError("bad_request", f"the request cannot be sent: {problem}") from None

    def completion(self, answer: HttpAnswer) -> Completion:
        """Read an answer; raise ProviderError for an error that the server words, or for what is no answer."""
        if not is_success(answer.status):
            raise self._status_error(answer)
        if sum(answer.content.count(mark) for mark in (b"[", b"{", b",")) > _MOST_VALUES:
            return Completion(text="", stop_reason="too_large")
        try:
            return self._read(parsed_body(answer.content), answer.headers)
        except _UNREADABLE as problem:
            raise malformed(f"unexpected body: {problem!r}") from None

    async def close(self) -> None:
        """Close all connections."""
        await self._close()

    def _error_of(self, cause: BaseException) -> ProviderError:
        if isinstance(cause, ProviderError):
            return cause
        if isinstance(cause, StatusError):
            return self._status_error(cause.answer)
        if self._identity is not None and isinstance(cause, self._identity.faults):
            return self._identity.error_of(cause)
        if isinstance(cause, self._unreached):
            return unreachable(cause)
        return (timed_out if isinstance(cause, self._timeouts) else dropped)(repr(cause))

    def _status_error(self, answer: HttpAnswer) -> ProviderError:
        """Read an error as vendors word it: `{"error": {"message": …}}`, or the same without the outer object."""
        text = answer.content.decode(errors="replace")
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = None
        if isinstance(body, list) and len(body) == 1:
            body = body[0]
        details = body.get("error", body) if isinstance(body, dict) else None
        details = details if isinstance(details, dict) else {}
        message = str(details.get("message") or text)
        worded = ErrorAnswer(status=answer.status, headers=answer.headers, message=message, details=details)
        if self._identity is not None and answer.status in (401, 403):
            return self._identity.refused(message, answer.status)
        own_error = self._own_error(worded) if self._own_error else None
        return own_error or error_from_status(answer.status, answer.headers, message)


def over_http(
    url: str, headers: Mapping[str, str], body: Body, read: Read, settings: Settings, own_error: OwnError | None = None
) -> HttpProvider:
    """Return a provider that posts `body` as JSON to `url`, without an SDK.

    Where the environment names a proxy for this address, the calls go through it, by the client of the SDKs.
    """
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxies = getproxies()
    if (parts.scheme in proxies or "all" in proxies) and not proxy_bypass(parts.hostname or ""):
        return _over_proxy(url, headers, body, read, settings, own_error)
    from skill_evaluator.providers.direct import FAULTS, DirectClient

    client = DirectClient(url, headers, settings.timeout_s, settings.limits.response_bytes)
    return HttpProvider(
        lambda request: client.post(body(request)),
        read,
        client.close,
        faults=FAULTS,
        timeouts=TimeoutError,
        own_error=own_error,
    )


def _over_proxy(
    url: str, headers: Mapping[str, str], body: Body, read: Read, settings: Settings, own_error: OwnError | None
) -> HttpProvider:
    import httpx2

    client = open_client(settings)

    async def send(request: Request) -> HttpAnswer:
        return answer_of(await client.post(url, headers=headers, json=body(request)))

    faults, timeouts = (httpx2.HTTPError,), httpx2.TimeoutException
    return HttpProvider(
        send,
        read,
        client.aclose,
        faults=faults,
        timeouts=timeouts,
        own_error=own_error,
        unreached=(httpx2.ConnectError,),
    )


def answer_of(response: Any) -> HttpAnswer:
    """Return a response of httpx2 as what is read here."""
    latency_s = response.extensions.get("latency_s")
    return HttpAnswer(
        status=response.status_code, headers=response.headers, content=response.content, latency_s=latency_s
    )


def open_client(settings: Settings, identity: Identity | None = None) -> "BoundedClient":
    """Open a client that keeps to the settings' time limit of a call and to their limit of a response."""
    from skill_evaluator.providers.connection import BoundedClient

    client = BoundedClient(settings.timeout_s, settings.limits.response_bytes)
    if identity is not None:
        client.event_hooks = {"request": [identity.note_access]}
    return client


def open_sdk(
    client: Callable[..., Any],
    model: Model,
    access: Mapping[str, Any],
    vendor_url: str,
    settings: Settings,
    identity: Identity | None,
) -> Any:
    """Open the client of an SDK, told all that its environment variables might say otherwise, and not to retry.

    `access` is its argument for the key, or for the identity.
    """
    return client(
        **access,
        base_url=model.base_url or vendor_url,
        max_retries=0,
        timeout=settings.timeout_s,
        http_client=open_client(settings, identity),
    )


def over_sdk(
    sdk: Any, client: Any, path: str, body: Body, read: Read, own_error: OwnError, identity: Identity | None
) -> HttpProvider:
    """Return a provider that posts through a client of `openai` or `anthropic`, which are built alike.

    The answer is read as JSON: building the SDK's typed objects both ways would cost more processor time than
    everything else this project does to a call.
    """
    import httpx2

    async def send(request: Request) -> HttpAnswer:
        return answer_of(await client.post(path, body=body(request), cast_to=httpx2.Response))

    async def request(
        method: str, path: str, query: Mapping[str, Any], body: Any, file: tuple[str, bytes, str] | None
    ) -> HttpAnswer:
        options: dict[str, Any] = {"options": {"params": query}}
        if method == "post":
            options = {"body": body}
        if file is not None:
            options |= {"files": [("file", file)], "options": {"headers": {"content-type": "multipart/form-data"}}}
        return answer_of(await getattr(client, method)(path, cast_to=httpx2.Response, **options))

    return HttpProvider(
        send,
        read,
        client.close,
        faults=(httpx2.HTTPError,),
        timeouts=httpx2.TimeoutException,
        own_error=own_error,
        wrapping=(sdk.APIConnectionError,),
        unreached=(httpx2.ConnectError,),
        identity=identity,
        client=client,
        body=body,
        request=request,
    )


def error_from_status(status: int, headers: Mapping[str, str], message: str) -> ProviderError:
    """Classify an HTTP error of any vendor: kind, stable reason, whether and when to try again."""
    fatal = "model_retired" if status in (400, 404) and _RETIRED.search(message) else _FATAL.get(status)
    if fatal is not None:
        kind: FailureKind = "no_credentials" if status in (401, 403) else "provider_error"
        return ProviderError(fatal, message, kind=kind, status=status, fatal=True)
    reason = _RETRYABLE.get(status) or ("server_error" if status >= 500 else "bad_request")
    if reason == "bad_request" and _OVER_CONTEXT.search(message):
        reason = "context_exceeded"
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


def out_of_credit(answer: ErrorAnswer) -> ProviderError:
    """Return the error of an account that is empty, however the vendor says so."""
    return ProviderError("out_of_credit", answer.message, status=answer.status, fatal=True)

"""HTTP as every vendor speaks it: one way to open a connection, one to ask, one ladder of errors.

A vendor's file says how a request is worded and how the body of an answer is read. It is sent through the vendor's
SDK (`over_sdk`) or without one (`over_http`); either way a fault ends in the same `ProviderError`.
"""

import email.utils
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import Completion, FailureKind, Provider, ProviderError, Request

if TYPE_CHECKING:
    import httpx2

_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
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

    `send` makes one request; `read` maps the JSON body and the headers of a success. `own_error` maps an error that
    the vendor words in its own way, and returns None for all others. `refused` and `lost` are the errors by which an
    SDK tells of a status that is no success, and of a connection that failed.
    """

    def __init__(
        self,
        send: "Callable[[Request], Awaitable[httpx2.Response]]",
        read: Read,
        close: Callable[[], Awaitable[None]],
        *,
        own_error: OwnError | None = None,
        refused: tuple[type[Exception], ...] = (),
        lost: tuple[type[Exception], ...] = (),
    ) -> None:
        import httpx2

        self._send = send
        self._read = read
        self._close = close
        self._own_error = own_error
        self._refused = refused
        self._transport_error = httpx2.HTTPError
        self._timeout = httpx2.TimeoutException
        self._lost: tuple[type[Exception], ...] = (httpx2.HTTPError, *lost)

    async def complete(self, request: Request) -> Completion:
        """Ask once; raise ProviderError."""
        try:
            response = await self._send(request)
        except self._refused as problem:
            raise self._status_error(problem.response) from None  # type: ignore[attr-defined]
        except self._lost as problem:
            reason = problem if isinstance(problem, self._transport_error) else problem.__cause__ or problem
            raise (timed_out if isinstance(reason, self._timeout) else dropped)(repr(reason)) from None
        except UnicodeDecodeError as problem:  # an SDK's own reading of an error page; the status goes lost in it
            raise malformed(f"unexpected body: {problem}") from None
        except (ValueError, TypeError) as problem:  # a key no header can carry, a text with half a character
            raise ProviderError("bad_request", f"the request cannot be sent: {problem}") from None
        if not response.is_success:
            raise self._status_error(response)
        try:
            return self._read(response.json(), response.headers)
        except _UNREADABLE as problem:
            raise malformed(f"unexpected body: {problem!r}") from None

    async def close(self) -> None:
        """Close all connections."""
        await self._close()

    def _status_error(self, response: "httpx2.Response") -> ProviderError:
        """Read an error as vendors word it: `{"error": {"message": …}}`, or the same without the outer object."""
        try:
            body = response.json()
        except (ValueError, RecursionError):
            body = None
        if isinstance(body, list) and len(body) == 1:
            body = body[0]
        details = body.get("error", body) if isinstance(body, dict) else None
        details = details if isinstance(details, dict) else {}
        status, headers, message = response.status_code, response.headers, str(details.get("message") or response.text)
        answer = ErrorAnswer(status=status, headers=headers, message=message, details=details)
        own_error = self._own_error(answer) if self._own_error else None
        return own_error or error_from_status(status, headers, message)


def over_http(url: str, headers: Mapping[str, str], body: Body, read: Read, timeout_s: float) -> Provider:
    """Return a provider that posts `body` as JSON to `url`, without an SDK."""
    client = open_client(timeout_s)
    return HttpProvider(lambda request: client.post(url, headers=headers, json=body(request)), read, client.aclose)


def open_client(timeout_s: float) -> "httpx2.AsyncClient":
    """Open a client with room for as many connections as a run may ask for."""
    import httpx2

    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
    return httpx2.AsyncClient(timeout=timeout_s, limits=limits, follow_redirects=True)


def open_sdk(client: Callable[..., Any], model: Model, key: str | None, vendor_url: str, timeout_s: float) -> Any:
    """Open the client of an SDK, told all that its environment variables might say otherwise, and not to retry."""
    return client(api_key=key or "no-key", base_url=model.base_url or vendor_url, max_retries=0, timeout=timeout_s)


def over_sdk(sdk: Any, client: Any, path: str, body: Body, read: Read, own_error: OwnError) -> Provider:
    """Return a provider that posts through a client of `openai` or `anthropic`, which are built alike.

    The answer is read as JSON: building the SDK's typed objects both ways would cost more processor time than
    everything else this project does to a call.
    """
    import httpx2

    return HttpProvider(
        lambda request: client.post(path, body=body(request), cast_to=httpx2.Response),
        read,
        client.close,
        own_error=own_error,
        refused=(sdk.APIStatusError,),
        lost=(sdk.APIConnectionError,),
    )


def error_from_status(status: int, headers: Mapping[str, str], message: str) -> ProviderError:
    """Classify an HTTP error of any vendor: kind, stable reason, whether and when to try again."""
    if status in _FATAL:
        kind: FailureKind = "provider_error" if status == 404 else "no_credentials"
        return ProviderError(_FATAL[status], message, kind=kind, status=status, fatal=True)
    reason = _RETRYABLE.get(status) or ("server_error" if status >= 500 else "bad_request")
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


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Read `retry-after-ms` or `retry-after` (a number, or an HTTP date) as seconds; None if neither is usable."""
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
    """Return the error of a connection that failed or broke off; the answer, if there was one, may be billed."""
    return ProviderError("connection_lost", message, retryable=True, perhaps_billed=True)


def timed_out(message: str) -> ProviderError:
    """Return the error of an answer that did not come in time; it may be billed."""
    return ProviderError("read_timeout", message, kind="timeout", retryable=True, perhaps_billed=True)


def malformed(message: str) -> ProviderError:
    """Return the error of a body that is not what the API promises (cut JSON, HTML of a proxy, missing fields)."""
    return ProviderError("malformed_body", message, retryable=True, perhaps_billed=True)

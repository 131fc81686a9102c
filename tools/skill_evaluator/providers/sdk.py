"""The connection to a vendor's SDK: the SDK builds and signs a request, `Transport` sends it and stores the response.

The stored response has the raw body, even if the SDK cannot parse it. httpx2 is slow to import, so this module is
imported at the first call.
"""

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2

from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.base import ProviderError
from skill_evaluator.providers.clouds import Options, cloud_of
from skill_evaluator.providers.keyless import Identity
from skill_evaluator.providers.redaction import remember
from skill_evaluator.providers.transport import Http
from skill_evaluator.providers.wire import Content, HttpAnswer, json_bytes

Send = Callable[..., Awaitable[object]]  # method, path, query=, body=, file= (name, content, type) of a form
_SET_BY_SDKS = {"authorization", "content-type", "accept", "anthropic-version", "anthropic-beta", "user-agent"}
_SET_BY_AIOHTTP = {"host", "content-length", "transfer-encoding", "connection"}


@dataclass(slots=True)
class _SdkCall:
    """The response or the error that the transport received during one call of an SDK."""

    answer: HttpAnswer | None = None
    fault: Exception | None = None


_EXCHANGE: ContextVar[_SdkCall] = ContextVar("exchange")  # SDKs send in the calling task


class Transport(httpx2.AsyncBaseTransport):
    """The transport of an SDK's HTTP client. It adds the files to the body and stores the response."""

    def __init__(self, http: Http, note_access: Callable[[str], None] | None) -> None:
        self._http = http
        self._note_access = note_access

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request of an SDK."""
        exchange = _EXCHANGE.get()
        exchange.answer = exchange.fault = None
        headers = {name: value for name, value in request.headers.items() if name not in _SET_BY_AIOHTTP}
        authorization = headers.get("authorization", "")
        if self._note_access is not None and authorization.startswith("Bearer "):
            self._note_access(authorization.removeprefix("Bearer "))
        try:
            content = Content(await request.aread())
            url = request.url.copy_with(username="", password="")  # the headers already contain both
            answer = await self._http.send(request.method, str(url), headers, content)
        except Exception as problem:
            exchange.fault = problem
            raise
        exchange.answer = answer
        return httpx2.Response(answer.status, json={})  # an SDK that parsed the body could fail on it

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.close()


class SdkConnection:
    """A vendor's SDK client. Its responses are raw bodies, so that no paid output is lost."""

    def __init__(self, model: Model, settings: Settings, identity: Identity | None) -> None:
        self.place = cloud_of(model)
        note_access = identity.note_access if identity is not None else remember if self.place else None
        self.http_client = httpx2.AsyncClient(
            transport=Transport(Http(settings.timeout_s, settings.limits.response_bytes), note_access),
            headers={"accept-encoding": "gzip"},
            timeout=None,
            trust_env=False,
        )
        self.send_by: Send
        self.close_by: Callable[[], Awaitable[object]] = self.http_client.aclose
        self._identity = identity

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        file: tuple[str, Sequence[Any], str] | None = None,
    ) -> HttpAnswer:
        """Send a request and return the response of any status. Raise the errors of `Http.send`.

        `body` is JSON, or the fields of a form with a `file` (name, lines of JSON, type).
        """
        if self.place is not None and self.place.signs:
            body = json.loads(b"".join(Content(json_bytes(body)).read()))
        form_file = file and (file[0], "".join(json.dumps(line) + "\n" for line in file[1]).encode(), file[2])
        exchange = _SdkCall()
        token = _EXCHANGE.set(exchange)
        try:
            await self.send_by(method, path, query=query, body=body, file=form_file)
        except Exception as problem:  # ignored if an answer arrived that only the SDK cannot parse
            if exchange.answer is None:
                raise (exchange.fault or self._fault(problem)) from None
        finally:
            _EXCHANGE.reset(token)
        if exchange.answer is None:
            raise ValueError("the SDK sent nothing")
        return exchange.answer

    def open_client(self, model: Model, key: str | None, open_direct: Callable[[Options], Any], headers: Any) -> None:
        """Open the client of OpenAI's or Anthropic's SDK, directly or for the model's place."""
        options = {"http_client": self.http_client, "default_headers": headers, "max_retries": 0, "timeout": None}
        client = open_direct(options) if self.place is None else self.place.client(model, key, options)
        self.send_by, self.close_by = _requests_of(client), client.close

    async def close(self) -> None:
        """Close all connections."""
        await self.close_by()

    def _fault(self, problem: BaseException) -> Exception:
        """Return the error of a call that was not sent: no access, or a request that cannot be encoded."""
        link: BaseException | None = problem
        while link is not None:
            if isinstance(link, ProviderError):
                return link
            if self._identity is not None and isinstance(link, self._identity.faults):
                return self._identity.error_of(link)
            link = link.__cause__ or link.__context__
        if self.place is not None and not isinstance(problem, (ValueError, TypeError)):
            message = f"the login of the cloud was not found or was rejected: {problem}"
            return ProviderError("no_login", message, kind="no_credentials", fatal=True)
        return ValueError(str(problem))


def _requests_of(client: Any) -> Send:
    """Return a function that sends by the low-level methods (`get` to `delete`) of OpenAI's or Anthropic's client."""

    async def send(
        method: str, path: str, *, query: Mapping[str, Any] | None, body: Any, file: tuple[str, bytes, str] | None
    ) -> object:
        options: dict[str, Any] = {"params": query or {}}
        content: dict[str, Any] = {} if body is None else {"body": body}
        if file is not None:
            content["files"] = {"file": file}
            options["headers"] = {"content-type": "multipart/form-data"}
        return await getattr(client, method.lower())(path, cast_to=httpx2.Response, options=options, **content)

    return send


def without_environment(variable: str, omit: Any) -> dict[str, Any]:
    """Return default headers that omit the headers in an environment variable, so only models.yaml counts.

    Raise ConfigError for a header that the SDK itself sets, such as the key.
    """
    lines = [line.partition(":") for line in os.environ.get(variable, "").splitlines()]
    headers = dict.fromkeys((name.strip().lower() for name, colon, _ in lines if colon), omit)
    for name in headers.keys() & _SET_BY_SDKS:
        raise ConfigError(f"{variable} sets the header {name}, which only models.yaml may set; unset the variable")
    return headers

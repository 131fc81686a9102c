"""The connections to servers: HTTP by aiohttp with limits, and the vendors' SDKs on top of it.

A key is never sent to another origin or to a proxy that could read it. An SDK builds and signs a request, and its
`SdkConnection` sends it and stores the raw body, so an output that the SDK cannot parse is not lost.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from yarl import URL

from skill_evaluator.display import remember_token
from skill_evaluator.errors import ConfigError
from skill_evaluator.identifiers import is_address
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.access import Identity, Options, cloud_client, cloud_of
from skill_evaluator.providers.base import ProviderError, dropped, timed_out, unreachable
from skill_evaluator.providers.remote import HttpResponse, RequestBody, Send, TooLargeError, json_bytes

_HEADER_BYTES = 65_536  # limit of one header
_READ_BYTES = 65_536
_ERROR_BYTES = 100_000  # limit of the body of an error
_MIN_BYTES_PER_S = 50_000  # extends the time limit for large bodies, such as a batch of requests
_MAX_IDLE_S = 5.0  # proxies may silently drop connections that are idle for longer
_MAX_REDIRECTS = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_FINAL = re.compile("CERTIFICATE_VERIFY_FAILED|WRONG_VERSION_NUMBER")  # codes of OpenSSL
_NOT_REACHED = (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError)


@dataclass(eq=False)
class Http:
    """An aiohttp session with limits. Close it in the event loop that used it."""

    timeout_s: float  # limit of a response; each byte sent or received extends it
    max_bytes: int
    _session: aiohttp.ClientSession | None = None

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: RequestBody) -> HttpResponse:
        """Send a request and return the response of any status. Follow 307 and 308 within the origin.

        Raise TooLargeError if the body of a success is over the limit, ProviderError for a fault, and ValueError or
        TypeError for a request that cannot be sent.
        """
        length = {"content-length": str(content.size)} if content.size else {}  # aiohttp sends chunks if it is missing
        begun = time.perf_counter()

        async def body() -> AsyncIterator[bytes]:
            nonlocal begun
            begun = time.perf_counter()  # excludes the time in the event loop's queue
            for part in content.read():
                yield part

        try:
            async with asyncio.timeout(self.timeout_s + content.size / _MIN_BYTES_PER_S) as timeout:
                for _ in range(1 + _MAX_REDIRECTS):
                    data = body() if content.size else None
                    async with self._opened(url).request(
                        method, url, data=data, headers={**headers, **length}, allow_redirects=False
                    ) as response:
                        if response.status in _REDIRECTS and "location" in response.headers:
                            url = _redirect_target(response)
                            continue
                        return HttpResponse(
                            status=response.status,
                            headers={  # aiohttp keeps bytes that are not UTF-8 as surrogates
                                name.lower(): value.encode("utf-8", "surrogateescape").decode(errors="replace")
                                for name, value in response.headers.items()
                            },
                            content=await self._read(response, timeout),
                            latency_s=time.perf_counter() - begun,
                        )
        except TimeoutError:
            raise timed_out(f"no response within {self.timeout_s:g} s") from None
        except aiohttp.InvalidURL:
            raise ValueError(f"{url} cannot be read as an address") from None
        except _NOT_REACHED as problem:
            raise unreachable(_description(problem, url), fatal=_FINAL.search(repr(problem)) is not None) from None
        except (aiohttp.ClientError, OSError) as problem:
            raise dropped(_description(problem, url)) from None
        raise ProviderError("redirected", "the server redirects too often; set the final address", fatal=True)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self, url: str) -> aiohttp.ClientSession:
        if self._session is None:
            proxy = _proxy_for(url)  # used for all requests
            is_secure = "https" in (urlsplit(url).scheme, urlsplit(proxy or "").scheme)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=_MAX_IDLE_S, ssl=httpx2.create_ssl_context() if is_secure else True
                ),
                proxy=proxy,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(),
                max_line_size=_HEADER_BYTES,
                max_field_size=_HEADER_BYTES,
            )
        return self._session

    async def _read(self, response: aiohttp.ClientResponse, timeout: asyncio.Timeout) -> bytes:
        """Read the body of a response. Each part extends `timeout` in proportion to its size.

        If the body of a success is too long, raise TooLargeError. The body of any other status is shortened.
        """
        is_success = 200 <= response.status < 300
        max_bytes, body = self.max_bytes if is_success else _ERROR_BYTES, bytearray()
        while len(body) <= max_bytes and (part := await response.content.read(_READ_BYTES)):
            timeout.reschedule((timeout.when() or 0.0) + len(part) / _MIN_BYTES_PER_S)
            body += part
        if is_success and len(body) > max_bytes:
            raise TooLargeError(f"the response has more than {max_bytes:,} bytes")
        return bytes(body[:max_bytes])


class PlainConnection:
    """A connection to an address without an SDK."""

    identity: Identity | None = None

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float, max_bytes: int) -> None:
        self._url = url
        usual = {"accept": "application/json", "user-agent": "skill-evaluator"}
        self._headers = usual | {name.lower(): value for name, value in headers.items()}
        self._http = Http(timeout_s, max_bytes)

    async def send(self, method: str, path: str = "", *, body: Any = None) -> HttpResponse:
        """Send JSON, or no body, and return the response of any status. Raise the errors of `Http.send`."""
        headers, content = self._headers, RequestBody(b"")
        if body is not None:
            headers, content = {**headers, "content-type": "application/json"}, RequestBody(json_bytes(body))
        return await self._http.send(method, self._url + path, headers, content)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()


def _proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address. Return None if it names no proxy.

    Raise ProviderError if the proxy's address is invalid or not that of an HTTP proxy.
    """
    parts, proxies = urlsplit(url), getproxies()
    variable = f"{parts.scheme}_proxy" if proxies.get(parts.scheme) else "all_proxy"
    proxy = proxies.get(variable.removesuffix("_proxy"))
    if not proxy or proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    # no message names the proxy, since its address may have a password
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not is_address(proxy):
        raise ProviderError("unreachable", f"{variable} cannot be read as the address of a proxy", fatal=True)
    if (scheme := urlsplit(proxy).scheme) not in ("http", "https"):
        raise ProviderError("unreachable", f"{variable} is a {scheme} proxy; an HTTP proxy is required", fatal=True)
    return proxy


def _description(problem: Exception, url: str) -> str:
    # without the request, which has the key
    address = problem if isinstance(problem, aiohttp.ClientConnectorError) else URL(url)
    return f"{address.host} port {address.port}: {_reason(problem)}"


def _reason(problem: Exception) -> str:
    match problem:
        case aiohttp.ClientConnectorCertificateError(certificate_error=error):
            return f"its certificate is not trusted: {getattr(error, 'verify_message', '') or error}"
        case aiohttp.ClientSSLError(os_error=error):
            return f"TLS failed: {(getattr(error, 'reason', None) or str(error)).replace('_', ' ').lower()}"
        case aiohttp.ClientConnectorError(os_error=error):  # errors of name resolution have negative numbers
            return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered {problem.status} {problem.message}"
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection without a response"
        case aiohttp.ClientPayloadError():
            is_packed = "content-encoding" in repr(problem)
            return "the response cannot be decompressed" if is_packed else "the response was cut off"
        case aiohttp.ClientResponseError():
            return f"invalid HTTP: {' '.join(problem.message.split())}"
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number)
    return str(problem) or type(problem).__name__


def _redirect_target(response: aiohttp.ClientResponse) -> str:
    origin, is_same = "an address that cannot be read", False
    with suppress(ValueError):
        target = response.url.join(URL(response.headers["location"]))
        origin, is_same = str(target.origin()), target.origin() == response.url.origin()
        if is_same and response.status in (307, 308):
            return str(target)
    reason = f"a {response.status} loses the posted body" if is_same else "the key would be sent there"
    raise ProviderError(
        "redirected",
        f"the server redirects to {origin}, which is not followed, since {reason}; "
        "if that address is right, set it as base_url in models.yaml or as url of a program",
        status=response.status,
        fatal=True,
    )


_SET_BY_SDKS = {"authorization", "content-type", "accept", "anthropic-version", "anthropic-beta", "user-agent"}
_SET_BY_AIOHTTP = {"host", "content-length", "transfer-encoding", "connection"}
# The responses and errors of the requests that one call of an SDK sends; SDKs send in the calling task.
_RECEIVED: ContextVar[list[HttpResponse | Exception]] = ContextVar("received")


class SdkConnection(httpx2.AsyncBaseTransport):
    """A connection that sends the requests of a vendor's SDK. It inserts files into bodies and stores responses."""

    def __init__(self, model: Model, settings: Settings, identity: Identity | None) -> None:
        self.place, self.identity = cloud_of(model), identity
        self.http_client = httpx2.AsyncClient(
            transport=self, headers={"accept-encoding": "gzip"}, timeout=None, trust_env=False
        )
        self.send_by: Send
        self.close_by: Callable[[], Awaitable[object]] = self.http_client.aclose
        self._http = Http(settings.timeout_s, settings.limits.response_bytes)

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        file: tuple[str, Sequence[Any], str] | None = None,
    ) -> HttpResponse:
        """Send `body` as JSON. Send a `file` (name, lines of JSON, type) in a form with the fields of `body`.

        Return the response of any status. Raise the errors of `Http.send`.
        """
        if self.place is not None and self.place.signs:
            body = json.loads(b"".join(RequestBody(json_bytes(body)).read()))
        form_file = file and (file[0], "".join(json.dumps(line) + "\n" for line in file[1]).encode(), file[2])
        received: list[HttpResponse | Exception] = []
        token = _RECEIVED.set(received)
        try:
            await self.send_by(method, path, query=query, body=body, file=form_file)
        except Exception as problem:  # ignored if a response arrived that only the SDK cannot parse
            if not received:
                raise self._fault(problem) from None
        finally:
            _RECEIVED.reset(token)
        if not received:
            raise ValueError("the SDK sent nothing")
        if isinstance(received[-1], Exception):
            raise received[-1]
        return received[-1]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request of the SDK and store the response. Return only the status, with the body `{}`."""
        headers = {name: value for name, value in request.headers.items() if name not in _SET_BY_AIOHTTP}
        if (authorization := headers.get("authorization", "")).startswith("Bearer "):
            self._note_access(authorization.removeprefix("Bearer "))
        try:
            content = RequestBody(await request.aread())
            url = request.url.copy_with(username="", password="")  # the headers already contain both
            answer = await self._http.send(request.method, str(url), headers, content)
        except Exception as problem:
            _RECEIVED.get().append(problem)
            raise
        _RECEIVED.get().append(answer)
        return httpx2.Response(answer.status, json={})  # an SDK that parsed the body could fail on it

    def _note_access(self, token: str) -> None:
        if self.identity is not None:
            self.identity.note_access(token)
        elif self.place is not None:
            remember_token(token)

    def open_client(self, model: Model, key: str | None, open_direct: Callable[[Options], Any], headers: Any) -> None:
        """Open the SDK's client for the model's cloud. If the model is not in a cloud, use `open_direct`."""
        options = {"http_client": self.http_client, "default_headers": headers, "max_retries": 0, "timeout": None}
        client = open_direct(options) if self.place is None else cloud_client(model, key, options)
        self.send_by, self.close_by = _requests_of(client), client.close

    async def close(self) -> None:
        """Close the client and all connections."""
        await self.close_by()

    async def aclose(self) -> None:
        """Close all connections, when the HTTP client closes."""
        await self._http.close()

    def _fault(self, problem: BaseException) -> Exception:
        link: BaseException | None = problem
        while link is not None:
            if isinstance(link, ProviderError):
                return link
            if self.identity is not None and isinstance(link, self.identity.faults):
                return self.identity.error_of(link)
            link = link.__cause__ or link.__context__
        if self.place is not None and not isinstance(problem, (ValueError, TypeError)):
            message = f"the login of the cloud was not found or was rejected: {problem}"
            return ProviderError("no_login", message, kind="no_credentials", fatal=True)
        return ValueError(str(problem))


def _requests_of(client: Any) -> Send:
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
    """Return headers that keep an SDK from sending the headers that an environment variable sets.

    Each has the SDK's value `omit`. Raise ConfigError for a header that the SDK itself sets, such as the key.
    """
    lines = [line.partition(":") for line in os.environ.get(variable, "").splitlines()]
    headers = dict.fromkeys((name.strip().lower() for name, colon, _ in lines if colon), omit)
    for name in headers.keys() & _SET_BY_SDKS:
        raise ConfigError(f"{variable} sets the header {name}, which the SDK sets itself; unset the variable")
    return headers

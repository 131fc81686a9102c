"""The one HTTP client: every call to a vendor goes through it, directly, in a batch, or for an identity token.

aiohttp speaks HTTP/1.1, by a parser in C. A key is sent to no other origin, no body is read beyond a limit, and a fault
becomes a `ProviderError`. Its own module because aiohttp is imported only where there is a call to make.
"""

import asyncio
import base64
import os
import re
import select
import ssl
import sys
import time
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, cast
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import truststore
from aiohttp.client_proto import ResponseHandler

from skill_evaluator.identifiers import is_address
from skill_evaluator.providers.base import ProviderError, dropped, timed_out, unreachable
from skill_evaluator.providers.wire import Content, HttpAnswer, StatusError, TooLargeError

_MOST_HEADERS = 4_000
_HEADER_BYTES = 65_536  # of one header
_HEAD_BYTES = 200_000  # of all headers, and of all that a server says before them
_JSON = "application/json"
_PART = 65_536  # bytes that are read, or unpacked, at once
_SMALL_BODY = 1_000_000  # bytes, from which on one body of a model is read at a time: all at once would fill the memory
_ERROR_BYTES = 100_000  # of an error's body: enough for its message
_SLOWEST = 50_000  # bytes a second: so much time is added for what is sent and comes, such as a batch of requests
_IDLE_S = 5.0  # what is idle for longer may have been forgotten on the way
_MOST_PACKINGS = 4
_MOST_MOVES = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_OF_ADDRESSES = "%/?#:@!$&'()*+,;=~[]"
_FINAL = re.compile("CERTIFICATE_VERIFY_FAILED|WRONG_VERSION_NUMBER")  # of what TLS says
_NOT_REACHED = (aiohttp.ClientConnectorError, aiohttp.ClientConnectorDNSError, aiohttp.ClientHttpProxyError)


class _Connection(ResponseHandler):
    """A connection that knows when its last bytes came, however late they are read, and ends a head without end."""

    fed_at = 0.0
    head_bytes: int | None = None  # that came before a response began; None while none is waited for

    def data_received(self, data: bytes) -> None:
        if data:  # none: what was held back goes on
            self.fed_at = time.perf_counter()
        if self.head_bytes is not None:
            if self.head_bytes > _HEAD_BYTES and self.transport is not None:
                self.set_exception(aiohttp.ClientPayloadError("the headers do not end"))
                self.transport.abort()
                return
            self.head_bytes += len(data)
        super().data_received(data)

    def is_connected(self) -> bool:
        """Check whether the next request may be sent: the server has neither hung up nor sent anything unasked."""
        if not super().is_connected() or self.should_close or self.transport is None:
            return False
        return not _is_readable(self.transport.get_extra_info("socket"))


class _Connector(aiohttp.TCPConnector):
    """Room for as many connections as a run may ask for, each kept for the next call."""

    def __init__(self, **options: Any) -> None:
        super().__init__(limit=0, keepalive_timeout=_IDLE_S, **options)
        self._factory = cast("partial[ResponseHandler]", partial(_Connection, loop=self._loop))


class _TimedResponse(aiohttp.ClientResponse):
    """A response that knows how long it took, from when its request was sent."""

    latency_s: float | None = None  # once its last byte has come; the connection may then serve the next request

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        begun, connected = time.perf_counter(), cast("_Connection", connection.protocol)
        connected.head_bytes = 0
        try:
            await super().start(connection)
        finally:
            connected.head_bytes = None

        def end() -> None:
            self.latency_s = connected.fed_at - begun

        self.content.on_eof(end)
        return self


class _Streamed(aiohttp.AsyncIterablePayload):
    """A body that is read while it is sent, and whose length is known before."""

    def __init__(self, content: Content, content_type: str) -> None:
        super().__init__(self._parts(content), content_type=content_type)
        self._size = content.size

    async def _parts(self, content: Content) -> AsyncGenerator[bytes]:
        for part in content.read():
            yield part


def _payload(content: Content, content_type: str) -> bytes | _Streamed:
    first, *files = content.parts
    return first if isinstance(first, bytes) and not files else _Streamed(content, content_type)


class Client:
    """Sends requests to the addresses below one, each answer at most `most_bytes` long.

    An answer has to come within `timeout_s`, and a little more for every byte that is sent or comes.
    The address may name a user and a password, which are then sent in place of an authorization in `headers`. Where the
    environment names a proxy for it, the requests go through that. Must be closed in the loop that it was used in.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float, most_bytes: int) -> None:
        parts = urlsplit(url)
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        usual = {"accept": "application/json", "accept-encoding": "gzip", "user-agent": "skill-evaluator"}
        self._headers = {**usual, **{name.lower(): value for name, value in headers.items()}}
        if parts.username or parts.password:
            user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
            self._headers["authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes
        self._large_body = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self,
        method: str,
        path: str = "",
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        file: tuple[str, Content, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Send JSON, a form with a file (name, content, type), or nothing, and return the answer of a success.

        Files in the JSON or the content are read while they are sent.

        Raise StatusError for any other status, TooLargeError for a body over the limit, ProviderError for a fault, and
        ValueError or TypeError for what cannot be sent. An address that moved within its origin is followed.
        """
        url = f"{self._url}{path}?{urlencode(query)}" if query else f"{self._url}{path}"
        sent = {**self._headers, **(headers or {})}
        content = file[1] if file else Content(())
        if file is None and body is not None:
            content = Content.of(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            sent["content-type"] = _JSON
        try:
            async with asyncio.timeout(self._timeout_s + content.size / _SLOWEST) as limit:
                for _ in range(1 + _MOST_MOVES):
                    data: Any = _payload(content, _JSON) if content.parts else None
                    if file is not None:
                        data = aiohttp.FormData(body)
                        data.add_field("file", _payload(content, file[2]), filename=file[0], content_type=file[2])
                    async with self._opened().request(
                        method, url, data=data, headers=sent, allow_redirects=False
                    ) as response:
                        if response.status in _REDIRECTS and "location" in response.headers:
                            url = _moved_within(url, response.status, response.headers["location"])
                            continue
                        answer = await self._read(response, limit)
                    if not answer.is_success:
                        raise StatusError(answer)
                    return answer
        except TimeoutError:
            raise timed_out(f"no answer within {self._timeout_s:g} s") from None
        except aiohttp.InvalidURL:
            raise ValueError(f"{url} cannot be read as an address") from None
        except _NOT_REACHED as problem:
            raise unreachable(_said(problem, url), fatal=_FINAL.search(repr(problem)) is not None) from None
        except (aiohttp.ClientError, OSError, zlib.error) as problem:
            raise dropped(_said(problem, url)) from None
        raise ProviderError("redirected", "the server redirects without end; set the address it leads to", fatal=True)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            proxy = _proxy_for(self._url)
            is_secure = "https" in (urlsplit(self._url).scheme, urlsplit(proxy or "").scheme)
            self._session = aiohttp.ClientSession(
                connector=_Connector(ssl=_trust() if is_secure else True),
                proxy=proxy,
                response_class=_TimedResponse,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(),
                auto_decompress=False,
                max_line_size=_HEADER_BYTES,
                max_field_size=_HEADER_BYTES,
                max_headers=_MOST_HEADERS,
            )
        return self._session

    async def _read(self, response: Any, limit: asyncio.Timeout) -> HttpAnswer:
        """Read a body; one of a status that is no success is cut to length.

        The bytes are counted as they come and after decompression, so that a small body that unpacks to a huge one ends
        early.
        """
        headers: dict[str, str] = {}
        for name, value in response.headers.items():
            headers.setdefault(name.lower(), value.encode("utf-8", "surrogateescape").decode(errors="replace"))
        is_success = 200 <= response.status < 300
        most = self._most_bytes if is_success else _ERROR_BYTES
        unpackers, body = _unpackers(headers.get("content-encoding", "")), bytearray()
        async with AsyncExitStack() as held:
            while len(body) <= most and (read := await response.content.read(_PART)):
                limit.reschedule((limit.when() or 0.0) + len(read) / _SLOWEST)
                for part in _unpack(read, unpackers):
                    if len(body) <= _SMALL_BODY < len(body) + len(part):
                        await held.enter_async_context(self._large_body)
                    body += part
                    if len(body) > most:
                        break
        if is_success and len(body) > most:
            raise TooLargeError(f"the body is longer than {most:,} bytes")
        return HttpAnswer(
            status=response.status, headers=headers, content=bytes(body[:most]), latency_s=response.latency_s
        )


def _trust() -> ssl.SSLContext:
    """Trust whom the system trusts, or else whom SSL_CERT_FILE or SSL_CERT_DIR name."""
    is_named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    if is_named or (sys.platform == "linux" and ssl.get_default_verify_paths().cafile):
        context = ssl.create_default_context()
    else:
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address.

    Raise ProviderError for one that does not speak HTTP, which would get the key to read, or that cannot be read; its
    address, which may have a password in it, is in no message.
    """
    parts, proxies = urlsplit(url), getproxies()
    variable = f"{parts.scheme}_proxy" if proxies.get(parts.scheme) else "all_proxy"
    proxy = proxies.get(variable.removesuffix("_proxy"))
    if not proxy or proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not is_address(proxy):
        raise ProviderError("unreachable", f"{variable} cannot be read as the address of a proxy", fatal=True)
    if (scheme := urlsplit(proxy).scheme) not in ("http", "https"):
        raise ProviderError("unreachable", f"{variable} is a {scheme} proxy; one for HTTP is needed", fatal=True)
    return proxy


def _is_readable(connected: Any) -> bool:
    """Check whether a socket has what the loop has not seen yet."""
    if not hasattr(select, "poll"):
        return bool(select.select([connected], [], [], 0)[0])
    unseen = select.poll()
    unseen.register(connected, select.POLLIN)
    return bool(unseen.poll(0))


def _said(problem: Exception, url: str) -> str:
    """Say where and what went wrong, without the request, which has the key in it."""
    if isinstance(problem, aiohttp.ClientConnectorError):
        return f"{problem.host} port {problem.port}: {_why(problem)}"
    parts = urlsplit(url)
    return f"{parts.hostname} port {parts.port or (443 if parts.scheme == 'https' else 80)}: {_why(problem)}"


def _why(problem: Exception) -> str:
    match problem:
        case aiohttp.ClientConnectorCertificateError(certificate_error=error):
            return f"its certificate is not trusted: {getattr(error, 'verify_message', '') or error}"
        case aiohttp.ClientSSLError(os_error=error):
            return f"TLS failed: {(getattr(error, 'reason', None) or str(error)).replace('_', ' ').lower()}"
        case aiohttp.ClientConnectorError(os_error=error):  # a name's has its own numbers, below 0
            return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered {problem.status} {problem.message}"
        case aiohttp.ServerDisconnectedError():
            return "the server hung up without an answer"
        case aiohttp.ClientPayloadError(__cause__=None):
            return str(problem)
        case aiohttp.ClientPayloadError():
            return "the answer broke off"
        case aiohttp.ClientResponseError():
            return f"this is no HTTP: {' '.join(problem.message.split())}"
        case zlib.error():
            return f"the answer cannot be unpacked: {str(problem).rpartition(': ')[2]}"
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number)
    return str(problem) or type(problem).__name__


def _moved_within(url: str, status: int, location: str) -> str:
    """Return where a request is to be sent again; raise ProviderError unless it is the same one at the same origin."""
    try:
        moved = quote(urljoin(url, location), safe=_OF_ADDRESSES)
        target = _origin(moved)
    except ValueError:
        target = "an address that cannot be read"
    if status in (307, 308) and target == _origin(url):
        return moved
    why = f"a {status} loses what is posted" if target == _origin(url) else "the key would go with it"
    raise ProviderError(
        "redirected",
        f"the server redirects to {target}, which is not followed, since {why}; "
        "if what is asked is there, set that address: base_url in models.yaml, or url of a program",
        status=status,
        fatal=True,
    )


def _origin(url: str) -> str:
    """Return scheme, host and port of an address, without what may be a secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


def _unpackers(packings: str) -> list[Any]:
    """Return what unpacks a body, the outermost packing last; what is packed otherwise stays as it is."""
    names = [name.strip().lower() for name in packings.split(",")]
    unpackers = [zlib.decompressobj(zlib.MAX_WBITS | 32) for name in names if name in ("gzip", "x-gzip", "deflate")]
    if len(unpackers) > _MOST_PACKINGS:
        raise zlib.error("packed too often")
    return unpackers


def _unpack(part: bytes, unpackers: list[Any]) -> Iterator[bytes]:
    """Yield what is in a part of a body, a little at a time; raise zlib.error where it is packed otherwise."""
    if not unpackers:
        yield part
        return
    *inner, outer = unpackers
    while part:
        unpacked = outer.decompress(part, _PART)
        part = outer.unconsumed_tail
        if unpacked:
            yield from _unpack(unpacked, inner)

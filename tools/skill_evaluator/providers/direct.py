"""Calls over HTTP/1.1 without an SDK: connections of asyncio, kept in a pool, each spoken through h11.

It takes a tenth of the processor time of an SDK, so that answers do not wait for each other, and it knows when the
bytes came. Its own module because h11 is imported only where there is a call to make.
"""

import asyncio
import base64
import json
import select
import socket
import ssl
import time
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import h11

from skill_evaluator.providers.base import unreachable
from skill_evaluator.providers.wire import (
    MOST_MOVES,
    BodyLimit,
    HttpAnswer,
    StatusError,
    is_success,
    moved_within,
    redirected_without_end,
)

FAULTS = (OSError, h11.ProtocolError, zlib.error)  # a connection that fails, and what is no HTTP
_UNREACHED = (ConnectionRefusedError, socket.gaierror, ssl.SSLError)
_HEADER_BYTES = 100_000
_PART = 65_536  # bytes that are read, or unpacked, at once
_IDLE_S = 5.0  # what is idle for longer may have been forgotten on the way
_MOST_PACKINGS = 4
_REDIRECTS = (301, 302, 303, 307, 308)


class _Reader(asyncio.StreamReader):
    """A reader that knows when its last bytes came, however late they are taken, and how many are left."""

    fed_at = 0.0
    left = 0

    def feed_data(self, data: Any) -> None:
        self.fed_at = time.perf_counter()
        self.left += len(data)
        super().feed_data(data)

    async def take(self) -> bytes:
        data = await self.read(_PART)
        self.left -= len(data)
        return data


@dataclass(slots=True, kw_only=True)
class _Connection:
    reader: _Reader
    writer: asyncio.StreamWriter
    http: h11.Connection

    @property
    def is_usable(self) -> bool:
        """Whether another call may be sent: the server has neither hung up nor said a word since the last."""
        if self.writer.is_closing() or time.perf_counter() - self.reader.fed_at >= _IDLE_S:
            return False
        unread = self.reader.left or self.reader.at_eof() or self.http.trailing_data != (b"", False)
        return not unread and not _is_readable(self.writer.get_extra_info("socket").fileno())


class DirectClient:
    """Posts JSON to an address, or gets what is there. A connection serves a call at a time, and is kept for the next.

    The address may name a user and a password, which are then sent in place of an authorization in `headers`.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float, most_bytes: int) -> None:
        parts = urlsplit(url)
        self._url = url
        self._host = (parts.hostname or "").encode("idna").decode()
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._ssl = None
        if parts.scheme == "https":
            import httpx2

            self._ssl = httpx2.create_ssl_context()  # trusts whom the SDKs trust
        usual = {"accept": "application/json", "accept-encoding": "gzip", "user-agent": "skill-evaluator"}
        own = {name.lower(): value for name, value in headers.items()}
        if parts.username or parts.password:
            user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
            own["authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        host = parts.netloc.rpartition("@")[2].encode("idna").decode()
        self._headers = [*{"host": host, **usual, "content-type": "application/json", **own}.items()]
        self._timeout_s = timeout_s
        self._limit = BodyLimit(most_bytes)
        self._idle: list[_Connection] = []

    async def post(self, body: Mapping[str, Any] | None) -> HttpAnswer:
        """Send a body, or ask without one, and read the answer; raise what `wire` does, TimeoutError, or one of FAULTS.

        An address that moved within its origin is followed.
        """
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() if body else b""
        url = self._url
        async with asyncio.timeout(self._timeout_s):
            for _ in range(1 + MOST_MOVES):
                answer = await self._ask(url, content)
                if answer.status in _REDIRECTS and "location" in answer.headers:
                    url = moved_within(url, answer.status, answer.headers["location"])
                elif is_success(answer.status):
                    return answer
                else:
                    raise StatusError(answer)
        raise redirected_without_end()

    async def close(self) -> None:
        """Close all connections that are idle; the others close when their calls end."""
        for connection in self._idle:
            connection.writer.close()
        for connection in self._idle:
            with suppress(OSError):
                await connection.writer.wait_closed()
        self._idle.clear()

    async def _ask(self, url: str, content: bytes) -> HttpAnswer:
        connection = await self._connect()
        stays = False
        try:
            answer = await self._exchange(connection, url, content)
            stays = connection.http.our_state is connection.http.their_state is h11.DONE
            return answer
        finally:
            if stays:
                connection.http.start_next_cycle()
                self._idle.append(connection)
            else:
                connection.writer.transport.abort()

    async def _connect(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable:
                return connection
            connection.writer.transport.abort()
        loop = asyncio.get_running_loop()
        reader = _Reader(limit=_PART, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.create_connection(
                lambda: protocol, self._host, self._port, ssl=self._ssl, happy_eyeballs_delay=0.25
            )
        except OSError as problem:
            if isinstance(problem, _UNREACHED) or problem.errno is None:  # None: several addresses were tried
                raise unreachable(f"{self._host} port {self._port}: {problem}") from None
            raise
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADER_BYTES)
        return _Connection(reader=reader, writer=writer, http=http)

    async def _exchange(self, connection: _Connection, url: str, content: bytes) -> HttpAnswer:
        parts = urlsplit(url)
        target = quote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}", safe="%/?:@!$&'()*+,;=~[]")
        http, headers = connection.http, [*self._headers, ("content-length", str(len(content)))]
        messages = (
            h11.Request(method="POST" if content else "GET", target=target, headers=headers),
            h11.Data(data=content),
            h11.EndOfMessage(),
        )
        begun = time.perf_counter()
        connection.writer.write(b"".join(http.send(message) or b"" for message in messages))
        with suppress(ConnectionError):  # a server may answer, and hang up, before it has read all
            await connection.writer.drain()
        while isinstance(response := await _event(connection), h11.InformationalResponse):
            pass
        if not isinstance(response, h11.Response):
            raise h11.RemoteProtocolError("no answer")
        shown: dict[str, str] = {}
        for name, value in response.headers:
            shown.setdefault(name.decode("latin-1"), value.decode(errors="replace"))
        async with aclosing(_unpacked(connection, shown.get("content-encoding", ""))) as unpacked:
            body = await self._limit.read(response.status_code, unpacked)
        latency_s = connection.reader.fed_at - begun
        return HttpAnswer(status=response.status_code, headers=shown, content=body, latency_s=latency_s)


def _is_readable(descriptor: int) -> bool:
    """Check what the loop may not have seen yet."""
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], 0)[0])
    polled = select.poll()
    polled.register(descriptor, select.POLLIN)
    return bool(polled.poll(0))


async def _event(connection: _Connection) -> Any:
    while (event := connection.http.next_event()) is h11.NEED_DATA:
        connection.http.receive_data(await connection.reader.take())
    return event


async def _unpacked(connection: _Connection, packings: str) -> AsyncGenerator[bytes]:
    """Yield what is in a body that is packed so, a little at a time; raise zlib.error where it is packed otherwise."""
    names = [name.strip().lower() for name in packings.split(",")]
    unpackers = [zlib.decompressobj(zlib.MAX_WBITS | 32) for name in names if name in ("gzip", "x-gzip", "deflate")]
    if len(unpackers) > _MOST_PACKINGS:
        raise zlib.error("packed too often")
    while isinstance(event := await _event(connection), h11.Data):
        for unpacked in _unpack(bytes(event.data), unpackers):
            yield unpacked


def _unpack(part: bytes, unpackers: list[Any]) -> Iterator[bytes]:
    if not unpackers:
        yield part
        return
    *inner, outer = unpackers
    while part:
        unpacked = outer.decompress(part, _PART)
        part = outer.unconsumed_tail
        if unpacked:
            yield from _unpack(unpacked, inner)

"""What every way of sending a call over HTTP has in common: the answer, its limits, and which redirect is followed.

Its own module because it is needed by whoever sends, through httpx2 or without it, and by whoever reads.
"""

import email.utils
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from skill_evaluator.providers.base import ProviderError

MOST_MOVES = 3
_NUMBER = re.compile(r"\d+(\.\d+)?")
_OF_ADDRESSES = "%/?#:@!$&'()*+,;=~[]"
_SMALL_BODY = 1_000_000  # bytes, from which on one body of a model is read at a time: all at once would fill the memory
_ERROR_BYTES = 100_000  # of an error's body: enough for its message


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What a server answered, its body decompressed; the names of `headers` are in lower case.

    `latency_s` is the time from the first byte that was sent to the last that came, if the client took it.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes
    latency_s: float | None = None


class TooLargeError(Exception):
    """The body of an answer is over the limit."""


class StatusError(Exception):
    """A status that is no success; `answer` has its body, cut to length."""

    def __init__(self, answer: HttpAnswer) -> None:
        super().__init__(f"status {answer.status}")
        self.answer = answer


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


def parsed_body(content: bytes) -> Any:
    """Parse a JSON body; raise ValueError or RecursionError."""
    return json.loads(content, parse_int=_integer)


def _integer(digits: str) -> int | float:
    """Read an integer of JSON; one beyond all counts as a float, since Python refuses to read thousands of digits."""
    return int(digits) if len(digits) < 20 else float(digits)


class BodyLimit:
    """Reads the bodies of a model's answers, each `most_bytes` long at most."""

    def __init__(self, most_bytes: int) -> None:
        import asyncio

        self._most_bytes = most_bytes
        self._large_body = asyncio.Lock()

    async def read(self, status: int, parts: AsyncIterator[bytes]) -> bytes:
        """Return a body from its parts, cut to length if the status is no success; raise TooLargeError for a success.

        The bytes are counted as they come and after decompression, so that a small body that unpacks to a huge one
        ends early.
        """
        most = self._most_bytes if is_success(status) else _ERROR_BYTES
        body = bytearray()
        async with AsyncExitStack() as held:
            async for part in parts:
                if len(body) <= _SMALL_BODY < len(body) + len(part):
                    await held.enter_async_context(self._large_body)
                body += part
                if len(body) > most:
                    break
        if is_success(status) and len(body) > most:
            raise TooLargeError(f"the body is longer than {most:,} bytes")
        return bytes(body[:most])


def is_success(status: int) -> bool:
    """Check a status."""
    return 200 <= status < 300


def moved_within(url: str, status: int, location: str) -> str:
    """Return where a request is to be sent again; raise ProviderError unless it is the same one at the same origin."""
    try:
        moved = quote(urljoin(url, location), safe=_OF_ADDRESSES)
        target = origin(moved)
    except ValueError:
        target = "an address that cannot be read"
    if status in (307, 308) and target == origin(url):
        return moved
    raise ProviderError(
        "redirected",
        f"the server redirects to {target}, which is not followed, since the key would go with it; "
        "if the model is served there, set it as base_url in models.yaml",
        status=status,
        fatal=True,
    )


def origin(url: str) -> str:
    """Return scheme, host and port of an address, without what may be a secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


def redirected_without_end() -> ProviderError:
    """Return the error of a server that redirects again and again."""
    return ProviderError("redirected", "the server redirects without end; set base_url in models.yaml", fatal=True)

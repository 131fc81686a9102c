"""The HTTP client of the vendors' SDKs: it sends a key to no other origin, and reads no body beyond a limit.

A status that is no success is raised here, before an SDK reads the error page in its own way. Its own module because
httpx2, which is slow to import, is needed for the class.
"""

import time
from contextlib import aclosing
from typing import Any

import httpx2

from skill_evaluator.providers.wire import (
    MOST_MOVES,
    BodyLimit,
    HttpAnswer,
    StatusError,
    moved_within,
    redirected_without_end,
)

_OF_THE_BODY_AS_SENT = {b"content-encoding", b"content-length", b"content-type", b"transfer-encoding"}


class BoundedClient(httpx2.AsyncClient):
    """A client with room for as many connections as a run may ask for, each answer at most `most_bytes` long.

    An address that moved within its origin is followed.
    """

    def __init__(self, timeout_s: float, most_bytes: int) -> None:
        limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
        super().__init__(timeout=timeout_s, limits=limits, follow_redirects=False)
        self._limit = BodyLimit(most_bytes)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request and read its answer; raise TooLargeError, StatusError, or ProviderError for a redirect."""
        options |= {"stream": True, "follow_redirects": False}
        begun = time.perf_counter()
        for _ in range(1 + MOST_MOVES):
            response = await super().send(request, **options)
            try:
                if not response.has_redirect_location:
                    return await self._read(response, request, begun)
                status, location = response.status_code, response.headers["location"]
                target = moved_within(str(request.url), status, location)
                request.url = httpx2.URL(target)
            finally:
                await response.aclose()
        raise redirected_without_end()

    async def _read(self, response: httpx2.Response, request: httpx2.Request, begun: float) -> httpx2.Response:
        """Return the response with its body decompressed, or raise what it is instead."""
        async with aclosing(response.aiter_bytes()) as parts:
            body = await self._limit.read(response.status_code, parts)
        latency_s = time.perf_counter() - begun
        if not response.is_success:
            raise StatusError(HttpAnswer(status=response.status_code, headers=response.headers, content=body))
        sent = response.headers.raw  # bytes: what a server puts into a header need be no text
        headers = [(name, value) for name, value in sent if name.lower() not in _OF_THE_BODY_AS_SENT]
        headers.append((b"content-type", b"application/json"))  # whatever encoding the server names is not looked up
        # 200 by any status: one SDK takes the others for errors
        extensions = {"latency_s": latency_s}
        return httpx2.Response(200, headers=headers, content=body, request=request, extensions=extensions)

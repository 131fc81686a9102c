"""One model behind HTTP: a vendor's file says how a request is worded and how the body of an answer is read.

`HttpProvider` does the rest for every vendor, so that every fault ends in the same `ProviderError`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from skill_evaluator.files import first_problem
from skill_evaluator.library.config import Settings
from skill_evaluator.providers.base import Completion, ProviderError, Request, malformed
from skill_evaluator.providers.keyless import Identity
from skill_evaluator.providers.wire import (
    ErrorAnswer,
    HttpAnswer,
    StatusError,
    TooLargeError,
    error_from_status,
    parsed_answer,
    worded,
)

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
Body = Callable[[Request], Mapping[str, Any]]
Read = Callable[[Any, Mapping[str, str]], Completion]
OwnError = Callable[[ErrorAnswer], ProviderError | None]


class HttpProvider:
    """One model whose calls are posted as JSON to `url` and `path`.

    `headers` carry the key, unless an `identity` has headers that do. `body` words a request, `read` maps the JSON body
    and the headers of a success, and `own_error` an error that the vendor words in its own way; it returns None for all
    others. Other paths below `url` are for batches.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        body: Body,
        read: Read,
        settings: Settings,
        *,
        path: str = "",
        own_error: OwnError | None = None,
        identity: Identity | None = None,
    ) -> None:
        from skill_evaluator.providers.client import Client  # aiohttp takes 0.1 s

        self.body = body
        self.path = path
        self._read = read
        self._own_error = own_error
        self._identity = identity
        self._client = Client(url, headers, settings.timeout_s, settings.limits.response_bytes)
        self.keeps_time = identity is None  # the client does, which knows how much is sent and comes

    async def complete(self, request: Request) -> Completion:
        """Ask once; raise ProviderError. A body over the limit is an answer without text."""
        try:
            answer = await self.fetch("POST", self.path, body=self.body(request))
        except TooLargeError:
            return Completion(text="", stop_reason="too_large")
        return replace(self.completion(answer), latency_s=answer.latency_s)

    async def fetch(self, method: str, path: str, **what: Any) -> HttpAnswer:
        """Send what `Client.send` takes; raise ProviderError, or TooLargeError for a body over the limit."""
        try:
            headers = {} if self._identity is None else await self._identity.headers()
            return await self._client.send(method, path, headers=headers, **what)
        except StatusError as problem:
            raise self._status_error(problem.answer) from None
        except (ValueError, TypeError) as problem:  # a key no header can carry, a text with half a character
            raise ProviderError("bad_request", f"the request cannot be sent: {problem}") from None

    def completion(self, answer: HttpAnswer) -> Completion:
        """Read an answer; raise ProviderError for an error that the server words, or for what is no answer."""
        if not answer.is_success:
            raise self._status_error(answer)
        try:
            return self._read(parsed_answer(answer.content), answer.headers)
        except TooLargeError:
            return Completion(text="", stop_reason="too_large")
        except UNREADABLE as problem:
            if message := worded(answer).details.get("message"):
                raise ProviderError("server_error", str(message), retryable=True, perhaps_billed=True) from None
            what = first_problem(problem) if isinstance(problem, ValidationError) else repr(problem)
            kind = answer.headers.get("content-type", "no type")
            raise malformed(
                f"unexpected body: {what}; it is {kind} and begins with {answer.content[:1_000]!r}"
            ) from None

    async def close(self) -> None:
        """Close all connections."""
        if self._identity is not None:
            self._identity.close()
        await self._client.close()

    def _status_error(self, answer: HttpAnswer) -> ProviderError:
        error = worded(answer)
        if self._identity is not None and answer.status in (401, 403):
            return self._identity.refused(error.message, answer.status)
        own_error = self._own_error(error) if self._own_error else None
        return own_error or error_from_status(answer.status, answer.headers, error.message)

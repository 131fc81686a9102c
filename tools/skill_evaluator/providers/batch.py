"""Batches: many requests given to a vendor in one piece, each answered within a day at half the price.

A vendor's part maps ids, states and results. Requests and answers are mapped by the code of direct calls, and what goes
wrong ends in the same `ProviderError`. Its own module because runner and vendors both need these values.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.base import LOST, Completion, ProviderError, Request, fields_of
from skill_evaluator.providers.http import HttpProvider, answer_of
from skill_evaluator.providers.wire import HttpAnswer, TooLargeError, malformed, parsed_body

_RESULT_BYTES = 1_000_000_000  # of all answers of a batch, which are read in one piece
CLOCKS_APART_S = 600.0  # between this machine and a vendor


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The most that a vendor takes as one batch, and the hours after which it has ended, done or not."""

    requests: int
    request_bytes: int
    hours: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """What a vendor says of a batch.

    `state` is its own word and `done` how many requests are over, where it says so. Once it has `ended`, `unanswered`
    is what became of requests without a result, and `failed_line` the request (from 1) that the whole batch failed for.
    `body` is all that was said.
    """

    batch_id: str
    state: str
    ended: bool
    done: int | None
    unanswered: ProviderError
    failed_line: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """A batch whose creation is uncertain: its name, its custom ids, when it was asked for, and whose ids are known."""

    name: str
    custom_ids: frozenset[str]
    since: float
    others: frozenset[str]


class UndecidedError(Exception):
    """A batch that may be the one sought is not over yet, so that nobody can tell."""


Results = Mapping[str, Completion | ProviderError]


class Batches(Protocol):
    """A vendor's batch API, open for one model; every method raises ProviderError."""

    limits: BatchLimits

    def size(self, custom_id: str, request: Request) -> int:
        """Return the bytes that a request takes in a batch."""
        ...

    async def create(self, name: str, requests: Mapping[str, Request]) -> str:
        """Create a batch of requests by custom id, and return the vendor's id."""
        ...

    async def find(self, sought: Sought) -> str | None:
        """Return the id of a batch if the vendor has it; raise UndecidedError where that cannot be told yet."""
        ...

    async def status(self, batch_id: str) -> BatchStatus:
        """Ask how far a batch is."""
        ...

    async def results(self, status: BatchStatus) -> Results:
        """Return what became of each request of a batch that has ended, by custom id."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Have a batch stopped."""
        ...

    async def delete(self, status: BatchStatus) -> None:
        """Delete an ended batch with what was asked and answered, as far as the vendor lets one."""
        ...

    async def close(self) -> None:
        """Release all connections."""
        ...


OpenBatches = Callable[[Model, str | None, Settings], Batches]


def roomy(settings: Settings) -> Settings:
    """Return settings under which all answers of a batch may come in one body."""
    limits = settings.limits.model_copy(update={"response_bytes": _RESULT_BYTES})
    return settings.model_copy(update={"limits": limits})


class SdkClient:
    """The client of `openai` or `anthropic`, which are built alike, for requests beside a model's calls."""

    def __init__(self, provider: HttpProvider) -> None:
        self.provider = provider

    async def get(self, path: str, **query: str | int) -> bytes:
        """Return the body of an address."""
        return await self._sent("get", path, options={"params": query})

    async def get_json(self, path: str, **query: str | int) -> Mapping[str, Any]:
        """Return the JSON object of an address."""
        return json_object(await self.get(path, **query))

    async def post(self, path: str, body: Any = None, **options: Any) -> Mapping[str, Any]:
        """Post JSON, or a form with `files`, and return the JSON object of the answer."""
        return json_object(await self._sent("post", path, body=body, **options))

    async def delete(self, path: str) -> None:
        """Delete what an address names."""
        await self._sent("delete", path)

    async def _sent(self, method: str, path: str, **options: Any) -> bytes:
        import httpx2

        async def send() -> HttpAnswer:
            return answer_of(await getattr(self.provider.client, method)(path, cast_to=httpx2.Response, **options))

        return await content_of(self.provider, send())


async def content_of(provider: HttpProvider, sending: Awaitable[HttpAnswer]) -> bytes:
    """Return the body of an answer; raise ProviderError, also for one that is too large."""
    try:
        return (await provider.fetched(sending)).content
    except TooLargeError as problem:
        raise ProviderError("answer_too_large", str(problem), fatal=True) from None


def json_object(content: bytes) -> Mapping[str, Any]:
    """Parse a body that must be a JSON object; raise ProviderError."""
    try:
        return fields_of(parsed_body(content))
    except (ValueError, RecursionError) as problem:
        raise malformed(f"unexpected body: {problem!r}") from None


def result_lines(content: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a file of results; raise ProviderError for a line that is none: it was torn on its way."""
    return (json_object(line) for line in content.splitlines() if line.strip())


def read_results(provider: HttpProvider, answers: Sequence[tuple[Any, HttpAnswer | ProviderError]]) -> Results:
    """Read answers by custom id as those of direct calls are read; the first of an id counts."""
    results: dict[str, Completion | ProviderError] = {}
    for custom_id, answer in answers:
        if not isinstance(custom_id, str) or custom_id in results:
            continue
        try:
            results[custom_id] = answer if isinstance(answer, ProviderError) else provider.completion(answer)
        except ProviderError as problem:
            results[custom_id] = problem
    return results


def answer_from(status: int, body: Any, request_id: Any = None) -> HttpAnswer:
    """Return the answer to one request of a batch as if it had come by itself."""
    headers = {"x-request-id": request_id} if isinstance(request_id, str) else {}
    return HttpAnswer(status=status, headers=headers, content=json.dumps(body).encode("utf-8", "surrogatepass"))


def required_id(body: Mapping[str, Any], key: str = "id") -> str:
    """Return the id in an answer; raise ProviderError when there is none."""
    name = body.get(key)
    if not isinstance(name, str) or not name or not name.isprintable():
        raise malformed(f"an answer without {key}")
    return name


def count_of(*counts: Any) -> int | None:
    """Add counts of requests; None unless all are whole numbers."""
    whole = [count for count in counts if isinstance(count, int) and count >= 0]
    return sum(whole) if len(whole) == len(counts) else None


def expired() -> ProviderError:
    """Return the end of a request that the vendor did not come to in time; it is not billed."""
    return ProviderError("expired", "the batch expired before the vendor came to this request", kind="not_run")


def canceled() -> ProviderError:
    """Return the end of a request that somebody had canceled; it is not billed."""
    return ProviderError("canceled", "the batch was canceled before this request was run", kind="not_run")


def lost() -> ProviderError:
    """Return the end of a request of which an ended batch says nothing; it may be billed."""
    return ProviderError(LOST, "the batch ended without a result for this request", perhaps_billed=True)


def batch_failed(state: str, code: Any, message: Any) -> ProviderError:
    """Return the end of every request of a batch that failed as a whole: none was run, so that all may go again."""
    words = ": ".join(str(part) for part in (code, message) if part)
    return ProviderError("batch_failed", f"the batch ended as {state} and ran nothing: {words}", retryable=True)

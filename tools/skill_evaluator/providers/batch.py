"""Batches: many requests in one upload, processed within a day at half the price.

The code of direct calls builds the requests and reads the responses.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from skill_evaluator.providers.base import LOST, Completion, ProviderError, Request, fields_of, malformed
from skill_evaluator.providers.remote import UNREADABLE, HttpResponse, RemoteProvider, RequestBody, parsed_body

DELETED_STATUSES = (404, 410)  # HTTP statuses of a deleted batch or deleted results
MAX_RESULT_BYTES = 1_000_000_000  # all results of a batch come in one body
_MAX_CLOCK_SKEW_S = 600.0  # the clocks of this machine and a vendor
_SLACK_BYTES = 200  # allowance per request: line ends and enclosing text


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """The status of a batch, as its vendor reports it."""

    batch_id: str
    state: str  # the vendor's name of the state
    ended: bool
    done: int | None  # number of finished requests, failed ones included; None if unknown
    unanswered: ProviderError  # the error of requests without a result after the batch has ended
    name: object = None  # the name that was given to the batch
    requests: int | None = None  # the number of requests, if batches have no name
    created: float | None = None  # seconds since the epoch
    failed_line: int | None = None  # the request (from 1) that made the whole batch fail
    body: Mapping[str, Any] = field(default_factory=dict)


class AmbiguousBatchError(Exception):
    """A running batch may be the wanted one, but only its results can show that. The argument is its id."""


Json = Mapping[str, Any]
Part = TypeVar("Part")
Value = TypeVar("Value")
RequestResult = tuple[Any, HttpResponse | ProviderError]  # a custom id, and the response or error of its request
Results = Mapping[str, Completion | ProviderError]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchApi:
    """The properties of a vendor's batch API. Paths are relative to the address of the API."""

    max_bytes: int  # limit of the requests of one batch
    max_hours: int  # limit of the time until a batch ends
    path: str  # path of the list of batches, newest first; append a batch's id for one batch
    entry: Callable[[str, Json], Json]  # a custom id and the body of a direct call → a request
    create: Callable[["Batches", str, Sequence[Json]], Awaitable[str]]  # a name and requests → the batch's id
    next_page: Callable[[Json], Json | None]  # the query for the page after a page of the list
    status: Callable[[Json], BatchStatus]
    answer: Callable[[Json], RequestResult]  # reads a line of a file of results
    deleted: Callable[[BatchStatus], Sequence[str]]  # the paths that hold requests and results
    files: Callable[[BatchStatus], Sequence[str]] = lambda status: ()  # the paths of the results
    inline: Callable[[BatchStatus], Sequence[RequestResult]] = lambda status: ()  # the results in the batch itself
    listed: str = "data"  # the key of the batches in a page of the list


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of one model. Every method raises ProviderError if it fails."""

    api: BatchApi
    provider: RemoteProvider

    def _entry(self, custom_id: str, request: Request) -> Json:
        return self.api.entry(custom_id, self.provider.body(request))

    def size(self, custom_id: str, request: Request) -> int:
        """Return an upper bound of the bytes of a request in a batch."""
        return RequestBody(json.dumps(self._entry(custom_id, request)).encode()).size + _SLACK_BYTES

    async def create(self, name: str, requests: Mapping[str, Request]) -> str:
        """Create a batch of requests by custom id. Return the vendor's id of the batch."""
        entries = [self._entry(custom_id, request) for custom_id, request in requests.items()]
        return await self.api.create(self, name, entries)

    async def find(self, name: str, custom_ids: Collection[str], since: float, others: Collection[str]) -> str | None:
        """Find a batch created after `since` (seconds since the epoch). Return its id, or None if it is not found.

        If the vendor gives batches no names, three conditions identify the batch: its id is not in `others`, it has
        as many requests as `custom_ids`, and it has a result for one of `custom_ids`. If only a running batch can
        meet them, raise AmbiguousBatchError, because its results are not known yet.
        """
        undecided = None
        async for status in self._listed(since):
            if status.name == name:
                return status.batch_id
            if status.requests == len(custom_ids) and status.batch_id not in others:
                if not status.ended:
                    undecided = status.batch_id
                # a result of one of the requests is enough, so the number of results does not matter
                elif not set(custom_ids).isdisjoint(await self.results(replace(status, done=None))):
                    return status.batch_id
        if undecided is not None:
            raise AmbiguousBatchError(undecided)
        return None

    async def _listed(self, since: float) -> AsyncIterator[BatchStatus]:
        """Yield the status of the vendor's batches created later than 10 minutes before `since`, newest first."""
        query: Json | None = {}
        while query is not None:
            page = await self.get(self.api.path, limit=100, **query)
            for body in map(fields_of, _read(list, page.get(self.api.listed) or ())):
                status = _read(self.api.status, body)
                if status.created is not None and status.created < since - _MAX_CLOCK_SKEW_S:
                    return
                yield status
            query, before = _read(self.api.next_page, page), query
            if query == before:
                raise malformed("the list of batches returned the same page again")

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the status of a batch."""
        return _read(self.api.status, await self.get(self._place(batch_id)))

    async def results(self, status: BatchStatus) -> Results:
        """Return the completions and errors of an ended batch by custom id. The first result of an id counts.

        Raise ProviderError if all results were deleted, or if results are missing because a line cannot be read.
        """
        answers: list[RequestResult] = [*_read(self.api.inline, status)]
        deleted: ProviderError | None = None
        unreadable: ProviderError | None = None
        for path in self.api.files(status):
            try:
                lines = (await self.provider.fetch("GET", path)).splitlines()
            except ProviderError as problem:
                if problem.status not in DELETED_STATUSES:
                    raise
                deleted = problem
                continue
            for line in filter(bytes.strip, lines):
                try:
                    answers.append(_read(self.api.answer, _json_object(line)))
                except ProviderError as problem:
                    unreadable = problem
        skipped = unreadable or deleted
        if skipped is not None and not answers:
            raise skipped
        results: dict[str, Completion | ProviderError] = {}
        for custom_id, answer in answers:
            if not isinstance(custom_id, str) or custom_id in results:
                continue
            try:
                results[custom_id] = answer if isinstance(answer, ProviderError) else self.provider.completion(answer)
            except ProviderError as problem:
                results[custom_id] = problem
        if unreadable is not None and len(results) < (status.done or 0):  # another read can have the rest
            raise unreadable
        return results

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch at the vendor."""
        await self.post(f"{self._place(batch_id)}/cancel")

    async def delete(self, status: BatchStatus) -> None:
        """Delete the requests and results of an ended batch, as far as the vendor permits."""
        for path in self.api.deleted(status):
            await self.provider.fetch("DELETE", path)

    async def get(self, path: str, **query: Any) -> Json:
        """Return the JSON object at a path."""
        return _json_object(await self.provider.fetch("GET", path, query=query))

    async def post(self, path: str, body: Any = None, file: tuple[str, Sequence[Json], str] | None = None) -> Json:
        """Post JSON, or a form with a `file` (name, lines, type). Return the JSON object of the response."""
        return _json_object(await self.provider.fetch("POST", path, body=body, file=file))

    def _place(self, batch_id: str) -> str:
        return f"/{batch_id}" if "/" in batch_id else f"{self.api.path}/{batch_id}"  # Google's ids are paths


def _read(read: Callable[[Part], Value], part: Part) -> Value:
    try:
        return read(part)
    except UNREADABLE as problem:
        raise malformed(f"a part of the batch response is not in the documented form: {problem!r}") from None


def _json_object(content: bytes) -> Json:
    try:
        return fields_of(parsed_body(content))
    except (ValueError, RecursionError) as problem:
        raise malformed(f"the batch response is not a JSON object: {problem!r}") from None


def response_from(status: int, body: Any, request_id: Any = None) -> HttpResponse:
    """Convert the response to a request of a batch to the form of a response to a direct call."""
    headers = {"x-request-id": request_id} if isinstance(request_id, str) else {}
    return HttpResponse(status=status, headers=headers, content=json.dumps(body).encode("utf-8", "surrogatepass"))


def required_id(body: Json, key: str = "id") -> str:
    """Return the id at `key` in a response. Raise ProviderError if it is missing or invalid."""
    name = body.get(key)
    if not isinstance(name, str) or not name or not name.isprintable():
        raise malformed(f"the batch API sent a response without a valid '{key}'")
    return name


def count_of(*counts: Any) -> int | None:
    """Add counts of requests. Return None if a count is not a whole number or is negative."""
    whole = [count for count in counts if isinstance(count, int) and count >= 0]
    return sum(whole) if len(whole) == len(counts) else None


# The errors of requests without a result in an ended batch; the first two are not billed.
expired = partial(ProviderError, "expired", "the batch expired before the vendor ran this request", kind="not_run")
canceled = partial(ProviderError, "canceled", "the batch was canceled before this request was run", kind="not_run")
lost = partial(ProviderError, LOST, "the batch ended without a result for this request", perhaps_billed=True)


def batch_failed(state: str, error: Json) -> ProviderError:
    """Return the error of all requests of a batch that failed before it ran any. It is retryable."""
    message = ": ".join(str(error[key]) for key in ("code", "message") if error.get(key))
    return ProviderError(
        "batch_failed", f"the batch ended as {state} without running a request: {message}", retryable=True
    )

"""Batches: many requests sent to a vendor in one piece, each answered within a day at half the price.

`Batches` submits, finds, polls and fetches those of any vendor. A vendor's file has a `BatchApi`, which says what
differs. Requests and answers are mapped by the code of direct calls, and what goes wrong ends in the same
`ProviderError`.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.base import LOST, Completion, ProviderError, ProviderKind, Request, fields_of, malformed
from skill_evaluator.providers.remote import UNREADABLE, RemoteProvider
from skill_evaluator.providers.wire import Content, HttpAnswer, TooLargeError, parsed_body

_RESULT_BYTES = 1_000_000_000  # of all answers of a batch, which are read in one piece
GONE = (404, 410)  # what a vendor answers of a batch, or of results, that it has no more
_CLOCKS_APART_S = 600.0  # between this machine and a vendor
_SLACK_BYTES = 200  # of an entry, for the end of a line and what stands around all entries


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
    `body` is its whole answer.
    """

    batch_id: str
    state: str
    ended: bool
    done: int | None
    unanswered: ProviderError
    failed_line: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)


class UndecidedError(Exception):
    """A batch that may be the one sought is not over yet, so that nobody can tell."""


Json = Mapping[str, Any]
Said = TypeVar("Said")
Value = TypeVar("Value")
Answered = tuple[Any, HttpAnswer | ProviderError]  # a custom id, and what became of its request
Results = Mapping[str, Completion | ProviderError]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchApi:
    """What differs between the vendors' batch APIs; paths are below the address of the API."""

    limits: BatchLimits
    path: str  # lists the batches, newest first, and has each below it
    entry: Callable[[str, Json], Json]  # a custom id and the body of a direct call → a request
    create: Callable[["Batches", str, Sequence[Json]], Awaitable[Json]]  # a name and requests → the batch
    next_page: Callable[[Json], Json | None]  # the query for the page after a page of the list
    status: Callable[[Json], BatchStatus]
    answer: Callable[[Json], Answered]  # reads a line of a file of results
    deleted: Callable[[BatchStatus], Sequence[str]]  # the paths that hold requests and results
    files: Callable[[BatchStatus], Sequence[str]] = lambda status: ()  # the paths of the results
    inline: Callable[[BatchStatus], Sequence[Answered]] = lambda status: ()  # the results in the batch itself
    name_of: Callable[[Json], Any] | None = None
    size_of: Callable[[Json], int | None] = lambda body: None  # the number of requests, if batches have no name
    created: Callable[[Json], Any] = lambda body: None  # seconds since the epoch
    listed: str = "data"  # the key of the list
    id_key: str = "id"  # `name`: an id is a path itself
    page_size: str = "limit"
    cancel: str = "/cancel"  # follows the path of a batch


class Batches:
    """A vendor's batches, open for one model; every method raises ProviderError."""

    def __init__(self, api: BatchApi, provider: RemoteProvider) -> None:
        self.limits = api.limits
        self.provider = provider
        self._api = api

    def _entry(self, custom_id: str, request: Request) -> Json:
        return self._api.entry(custom_id, self.provider.body(request))

    def size(self, custom_id: str, request: Request) -> int:
        """Return the bytes that a request takes in a batch, or a few more."""
        return Content(json.dumps(self._entry(custom_id, request)).encode()).size + _SLACK_BYTES

    async def create(self, name: str, requests: Mapping[str, Request]) -> str:
        """Create a batch of requests by custom id, and return the vendor's id."""
        entries = [self._entry(custom_id, request) for custom_id, request in requests.items()]
        return required_id(await self._api.create(self, name, entries), self._api.id_key)

    async def find(self, name: str, custom_ids: Collection[str], since: float, others: Collection[str]) -> str | None:
        """Return the id of a batch whose creation since a time is uncertain, or None if the vendor does not have it.

        The batch has the name, or, at a vendor without names, as many requests and, once it has ended, their ids; it is
        none of the `others`. Raise UndecidedError while a batch with as many requests has not ended.
        """
        api, undecided = self._api, None
        query: Json | None = {}
        while query is not None:
            page, before = await self.get(api.path, **{api.page_size: 100, **query}), query
            query = _read(api.next_page, page)
            if query == before:
                raise malformed("the list of batches does not go on")
            for body in map(fields_of, _read(list, page.get(api.listed) or ())):
                created = api.created(body)
                if created is not None and created < since - _CLOCKS_APART_S:
                    query = None
                    break
                if api.name_of is not None:
                    if api.name_of(body) == name:
                        return required_id(body, api.id_key)
                elif body.get(api.id_key) not in others and api.size_of(body) == len(custom_ids):
                    status = _read(api.status, body)
                    if not status.ended:
                        undecided = status.batch_id
                    elif not set(custom_ids).isdisjoint(await self.results(status)):
                        return status.batch_id
        if undecided is not None:
            raise UndecidedError(f"{undecided} has as many requests and is not over")
        return None

    async def status(self, batch_id: str) -> BatchStatus:
        """Ask how far a batch is."""
        return _read(self._api.status, await self.get(self._place(batch_id)))

    async def results(self, status: BatchStatus, *, whole: bool = True) -> Results:
        """Return what became of each request of a batch that has ended, by custom id; the first result of an id counts.

        Answers are read as those of direct calls are. Of several files one may be gone; raise what the last said where
        that leaves nothing. What is no JSON, such as the page of a proxy, raises, too; unless the results have to be
        `whole`, it is left out.
        """
        answers, gone = [*_read(self._api.inline, status)], None
        for path in self._api.files(status):
            try:
                lines = (await self._content("GET", path)).splitlines()
            except ProviderError as problem:
                if problem.status not in GONE:
                    raise
                gone = problem
                continue
            for line in filter(bytes.strip, lines):
                try:
                    answers.append(_read(self._api.answer, _json_object(line)))
                except ProviderError:
                    if whole:
                        raise
        if gone is not None and not answers:
            raise gone
        results: dict[str, Completion | ProviderError] = {}
        for custom_id, answer in answers:
            if not isinstance(custom_id, str) or custom_id in results:
                continue
            if isinstance(answer, ProviderError):
                results[custom_id] = answer
                continue
            try:
                results[custom_id] = self.provider.completion(answer)
            except ProviderError as problem:
                results[custom_id] = problem
        return results

    async def cancel(self, batch_id: str) -> None:
        """Have a batch stopped."""
        await self.post(f"{self._place(batch_id)}{self._api.cancel}")

    async def delete(self, status: BatchStatus) -> None:
        """Delete an ended batch with what was asked and answered, as far as the vendor lets one."""
        for path in self._api.deleted(status):
            await self._content("DELETE", path)

    async def close(self) -> None:
        """Release all connections."""
        await self.provider.close()

    async def get(self, path: str, **query: Any) -> Json:
        """Return the JSON object of an address."""
        return _json_object(await self._content("GET", path, query=query))

    async def post(self, path: str, body: Any = None, file: tuple[str, Sequence[Json], str] | None = None) -> Json:
        """Post JSON, or a form with a file (name, lines, type), and return the JSON object of the answer."""
        return _json_object(await self._content("POST", path, body=body, file=file))

    async def _content(self, method: str, path: str, **options: Any) -> bytes:
        try:
            return (await self.provider.fetch(method, path, **options)).content
        except TooLargeError as problem:
            raise ProviderError("answer_too_large", str(problem), fatal=True) from None

    def _place(self, batch_id: str) -> str:
        return f"/{batch_id}" if self._api.id_key == "name" else f"{self._api.path}/{batch_id}"


def open_batches(api: BatchApi, kind: ProviderKind, model: Model, key: str | None, settings: Settings) -> Batches:
    """Open the batches of one model; all answers of a batch may come in one body."""
    limits = settings.limits.model_copy(update={"response_bytes": _RESULT_BYTES})
    provider = kind.open(model, key, settings.model_copy(update={"limits": limits}))
    if not isinstance(provider, RemoteProvider):
        raise TypeError("batches go over HTTP")
    return Batches(api, provider)


def _read(reading: Callable[[Said], Value], said: Said) -> Value:
    """Read a vendor's answer; raise ProviderError where it is not what the API promises."""
    try:
        return reading(said)
    except UNREADABLE as problem:
        raise malformed(f"unexpected body: {problem!r}") from None


def _json_object(content: bytes) -> Json:
    try:
        return fields_of(parsed_body(content))
    except (ValueError, RecursionError) as problem:
        raise malformed(f"unexpected body: {problem!r}") from None


def answer_from(status: int, body: Any, request_id: Any = None) -> HttpAnswer:
    """Return the answer to one request of a batch as if it had come by itself."""
    headers = {"x-request-id": request_id} if isinstance(request_id, str) else {}
    return HttpAnswer(status=status, headers=headers, content=json.dumps(body).encode("utf-8", "surrogatepass"))


def required_id(body: Json, key: str = "id") -> str:
    """Return the id in an answer; raise ProviderError without one."""
    name = body.get(key)
    if not isinstance(name, str) or not name or not name.isprintable():
        raise malformed(f"an answer without {key}")
    return name


def count_of(*counts: Any) -> int | None:
    """Add counts of requests; None unless all are whole numbers."""
    whole = [count for count in counts if isinstance(count, int) and count >= 0]
    return sum(whole) if len(whole) == len(counts) else None


def seconds_of(moment: Any) -> float:
    """Return the time that an ISO date says; raise ProviderError for anything else."""
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        raise malformed(f"created_at is {moment!r}") from None


def expired() -> ProviderError:
    """Return the end of a request that the vendor did not come to in time; it is not billed."""
    return ProviderError("expired", "the batch expired before the vendor came to this request", kind="not_run")


def canceled() -> ProviderError:
    """Return the end of a request that somebody had canceled; it is not billed."""
    return ProviderError("canceled", "the batch was canceled before this request was run", kind="not_run")


def lost() -> ProviderError:
    """Return the end of a request of which an ended batch says nothing; it may be billed."""
    return ProviderError(LOST, "the batch ended without a result for this request", perhaps_billed=True)


def batch_failed(state: str, error: Json) -> ProviderError:
    """Return the end of every request of a batch that failed as a whole: none was run, so that all may go again."""
    words = ": ".join(str(error[key]) for key in ("code", "message") if error.get(key))
    return ProviderError("batch_failed", f"the batch ended as {state} and ran nothing: {words}", retryable=True)

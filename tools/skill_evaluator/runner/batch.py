"""Send a run's calls to the vendor in batches and collect their outcomes.

`batches.jsonl` has the events of batches, `replicates.jsonl` the outcomes of calls. A batch is recorded before it is
created, and counts as collected only after its outcomes are saved. So if a process is killed at any time, no output is
lost, and the next process creates no batch twice.
"""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from skill_evaluator.errors import RunError
from skill_evaluator.files import LinesWriter, StrictModel, read_lines, validated
from skill_evaluator.identifiers import CaseId, Label, Timestamp, moment, now
from skill_evaluator.providers.base import Failure, ProviderError, Request, refuse_changed, within_limits
from skill_evaluator.providers.batch import DELETED_STATUSES, AmbiguousBatchError, BatchStatus, Results, lost
from skill_evaluator.providers.structured import output_of
from skill_evaluator.runner.schedule import Call, Replicate, wait_before_retry
from skill_evaluator.runner.session import NO_CALL_LEFT, STOPPED, RunningRun, Session, Stop
from skill_evaluator.text import counted, digest

BATCHES = "batches.jsonl"
_ADVICE = "only the evaluator writes this file; move the run folder away and start a new run"
BatchEvent = Literal["intended", "submitted", "absent", "collected", "deleted"]
CustomId = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$")]


class BatchLine(StrictModel):
    """One line of `batches.jsonl`: an event in the life of a batch."""

    batch: PositiveInt
    at: Timestamp
    event: BatchEvent
    # `intended`, before the batch is created: `calls` has cases and replicates by custom id
    name: Label = ""
    calls: dict[CustomId, tuple[CaseId, NonNegativeInt]] = {}
    id: Label | None = None  # `submitted`: the vendor's id
    reason: Label = ""  # `absent`: the vendor does not have the batch
    # `collected`: the vendor's state and counts of calls; `again` counts calls that will be sent again
    state: Label = ""
    answered: NonNegativeInt = 0
    failed: NonNegativeInt = 0
    again: NonNegativeInt = 0


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch according to its lines in `batches.jsonl`."""

    number: int
    name: str
    intended_at: float  # seconds since the epoch
    calls: Mapping[str, Call]  # keys: custom ids
    attempts: Mapping[Call, int]  # number of batches with each call up to this batch, without absent batches
    batch_id: str | None = None
    stage: BatchEvent = "intended"

    @property
    def is_open(self) -> bool:
        """Whether the vendor has, or may have, the batch, and its results are not collected yet."""
        return self.stage in ("intended", "submitted")

    @property
    def age_s(self) -> float:
        """The seconds since the batch's `intended` line was written to batches.jsonl; never negative."""
        return max(0.0, time.time() - self.intended_at)


@dataclass(slots=True)
class BatchJournal:
    """The batches of one run. Every change is first written to `batches.jsonl`."""

    folder: Path
    batches: list[Batch] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> "BatchJournal":
        """Read the batches of a run folder. Skip lines that are not JSON. Raise RunError for any other invalid line."""
        journal, path = cls(folder), folder / BATCHES
        if path.exists():
            for number, value in read_lines(path, RunError, torn_lines=True):
                try:
                    journal._apply(validated(BatchLine, value, path, RunError))
                except (RunError, IndexError) as problem:
                    raise RunError(f"{path}:{number} is not a batch line ({problem}); {_ADVICE}") from None
        return journal

    @property
    def open(self) -> list[Batch]:
        """The batches that are open (see `Batch.is_open`), oldest first."""
        return [batch for batch in self.batches if batch.is_open]

    def custom_id(self, run_id: str, position: int) -> str:
        """Return a call's id in the next batch: digest of the run id, position in the schedule, number of the batch."""
        return f"{digest(run_id).removeprefix('sha256:')[:12]}-{position}-{len(self.batches) + 1}"

    def intend(self, run_id: str, calls: Mapping[str, Call]) -> Batch:
        """Record a batch that is about to be created, and return it."""
        number = len(self.batches) + 1
        case_replicates = {custom_id: (call.case_id, call.replicate) for custom_id, call in calls.items()}
        self.note(number, "intended", name=f"{run_id}.{number}", calls=case_replicates)
        return self.batches[-1]

    def note(self, number: int, event: BatchEvent, **values: Any) -> None:
        """Record an event of a batch, with further values of its `BatchLine`."""
        line = BatchLine(batch=number, at=now(), event=event, **values)
        with closing(LinesWriter(self.folder / BATCHES)) as writer:
            writer.append(line.model_dump(mode="json", exclude_unset=True))
        self._apply(line)

    def _apply(self, line: BatchLine) -> None:
        if line.event == "intended":
            if line.batch != len(self.batches) + 1 or not (line.name and line.calls):
                raise IndexError(f"expected an `intended` line with batch {len(self.batches) + 1}, name and calls")
            calls = {custom_id: Call(*pair) for custom_id, pair in line.calls.items()}
            earlier = [batch for batch in self.batches if batch.stage != "absent"]
            self.batches.append(
                Batch(
                    number=line.batch,
                    name=line.name,
                    intended_at=moment(line.at).timestamp(),
                    calls=calls,
                    attempts={call: 1 + sum(call in batch.attempts for batch in earlier) for call in calls.values()},
                )
            )
            return
        if line.batch > len(self.batches):
            raise IndexError(f"batch {line.batch} has no `intended` line")
        batch = self.batches[line.batch - 1]
        batch.stage = line.event
        batch.batch_id = line.id or batch.batch_id


def _printable(text: str) -> str:
    return "".join(filter(str.isprintable, text))[:300]


PENDING = "batch_pending"
_SHARE_OF_BYTES = 0.95  # share of the vendor's limit, because the vendor may count bytes differently
_MAX_REQUESTS = 10_000  # limit per batch, below those of all vendors: all its results are in memory
_MAX_BATCHES_PER_CALL = 2  # after that, a temporary error is the outcome


class BatchEngine:
    """The engine that sends the calls of one run in batches and collects their outcomes."""

    costs_nothing = False

    def __init__(self, run: RunningRun, session: Session, stop: Stop) -> None:
        self._run, self._model = run, run.run.model
        self._budget, self._stop, self._settings = session.budget, stop, session.configuration.settings
        self._redact = session.configuration.redactor()
        self._batches = session.configuration.open_batches(self._model)
        self._journal = BatchJournal.read(run.run.folder)
        self._positions = {call: position for position, call in enumerate(run.schedule)}
        self._remarks: list[str] = []
        self._uncreated = 0  # consecutive failures to create a batch
        self._refusal: Failure | None = None  # stops submitting; submitted batches are still collected
        for call in chain.from_iterable(batch.calls.values() for batch in self._journal.open):
            if call in self._run.open_calls:
                self._budget.reserve_now(self._run.max_cost(call), begun=True)

    async def run(self) -> None:
        """Submit and collect batches until every call has an outcome. If this ends earlier, set the run's `halted`."""
        try:
            while True:
                self._remarks = []
                await self._find_uncertain()  # before any of their calls is sent again
                await self._collect_ended()
                await self._submit_calls()
                self._run.progress.waiting[self._run.run.manifest.run_id] = self._state()
                if self._run.halted is not None or not self._unfinished():
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), self._settings.batch.poll_s)
                if self._stop.is_set():
                    self._run.halted = STOPPED
                    break
        finally:
            if self._unfinished() and self._run.halted in (None, STOPPED):
                self._run.halted = Failure(kind="not_run", reason=PENDING, message=self._state())
            self._run.halted = self._run.halted or self._refusal
            with suppress(Exception):  # all outcomes are saved; the process frees the provider's resources
                await self._batches.provider.close()

    async def _find_uncertain(self) -> None:
        for batch in [batch for batch in self._journal.open if batch.batch_id is None]:
            journals = (BatchJournal.read(path.parent) for path in self._run.run.folder.parent.glob(f"*/{BATCHES}"))
            known_ids = {str(known.batch_id) for journal in journals for known in journal.batches}
            try:
                batch_id = await self._batches.find(batch.name, batch.calls, batch.intended_at, known_ids)
            except AmbiguousBatchError as problem:
                self._remarks.append(
                    f"{problem} may be batch {batch.number}, and this is known only after it has ended; "
                    f"until then no call of batch {batch.number} is sent again"
                )
                continue
            except ProviderError as problem:
                self._add_remark(problem)
                continue
            if batch_id is not None:
                self._journal.note(batch.number, "submitted", id=batch_id)
            elif batch.age_s > self._settings.timeout_s:  # before that, the vendor may still be creating it
                self._note_absent(batch, "the vendor has no such batch")
            else:
                self._remarks.append(f"batch {batch.number} may have been created; it will be looked up again")

    async def _collect_ended(self) -> None:
        for batch in [batch for batch in self._journal.open if batch.batch_id is not None]:
            try:
                status = await self._status(batch)
                if status is None:
                    continue
                status, results = await self._results(status)
            except ProviderError as problem:
                failure = self._add_remark(problem)
                if problem.fatal or problem.reason == "malformed_body":
                    self._run.halted = failure
                continue
            self._save_outcomes(batch, status, results)
            if self._settings.batch.delete_results:
                try:
                    await self._batches.delete(status)
                except ProviderError as problem:
                    self._remarks.append(f"{batch.batch_id} could not be deleted: {self._redact(str(problem))}")
                else:
                    self._journal.note(batch.number, "deleted")

    async def _status(self, batch: Batch) -> BatchStatus | None:
        """Return the status of a batch that has ended, was deleted or is overdue. Return None if it is running."""
        batch_id, batches = batch.batch_id or "", self._batches
        try:
            status = await batches.status(batch_id)
        except ProviderError as problem:
            if problem.reason == "malformed_body":  # example: the page of a proxy
                self._add_remark(problem)
                return None
            if problem.status not in DELETED_STATUSES:
                raise
            return BatchStatus(batch_id=batch_id, state="gone", ended=True, done=0, unanswered=lost())
        if status.ended:
            return status
        if batch.age_s < (batches.api.max_hours + 1) * 3600:
            return None
        with suppress(ProviderError):
            await batches.cancel(batch_id)
        return BatchStatus(batch_id=batch_id, state=f"overdue {status.state}", ended=True, done=0, unanswered=lost())

    async def _results(self, status: BatchStatus) -> tuple[BatchStatus, Results]:
        """Return the status and the results of an ended batch. Read the results again if some are missing.

        The results are empty if the batch failed or is lost, or if they were deleted (state `results gone`).
        """
        retry = self._settings.retry
        if not status.body or status.unanswered.reason == "batch_failed":
            return status, {}
        for attempt in range(1, retry.attempts + 1):
            try:
                results = await self._batches.results(status)
            except ProviderError as problem:
                if problem.status in DELETED_STATUSES:
                    return replace(status, state="results gone", unanswered=lost()), {}
                if not problem.retryable or attempt == retry.attempts:
                    raise
            else:
                if len(results) >= (status.done or 0) or attempt == retry.attempts:
                    return status, results
            await asyncio.sleep(wait_before_retry(retry, attempt, None))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _save_outcomes(self, batch: Batch, status: BatchStatus, results: Results) -> None:
        answered = failed = resent = 0
        for line, (custom_id, call) in enumerate(batch.calls.items(), 1):
            attempt = batch.attempts[call]
            if call not in self._run.open_calls:
                continue  # saved by a process that was killed before its `collected` line
            if call in self._run.errors and self._run.errors[call].attempts >= attempt:  # its failure is saved
                self._budget.settle(self._run.max_cost(call), 0.0)
                continue
            outcome = results.get(custom_id, status.unanswered)
            if line == status.failed_line:
                outcome = ProviderError("bad_request", f"line {line} of the batch: {status.unanswered}", rejected=True)
            max_cost = self._run.max_cost(call)
            if isinstance(outcome, ProviderError):
                self._budget.settle(max_cost, max_cost if outcome.perhaps_billed else 0.0)
                if outcome.retryable and attempt < _MAX_BATCHES_PER_CALL:
                    resent += 1
                    self._run.progress.retried += 1
                    continue
                failed += 1
                replicate = Replicate(call=call, error=outcome.failure(self._redact), attempts=attempt)
            else:
                answered += 1
                outcome = replace(outcome, usage=replace(outcome.usage, batch=True))
                self._budget.settle(max_cost, self._run.budgeted_cost(call, outcome))
                outcome = output_of(outcome, self._run.request_for(call), self._model)
                outcome = within_limits(outcome, self._settings).redacted(self._redact)
                replicate = Replicate(call=call, completion=outcome, latency_s=None, attempts=attempt)
            self._run.save_outcome(replicate)
        state = _printable(status.state)
        self._journal.note(batch.number, "collected", state=state, answered=answered, failed=failed, again=resent)

    async def _submit_calls(self) -> None:
        unsent = self._run.open_calls - self._pending_calls()
        queue = deque(call for call in self._run.schedule if call in unsent)
        while queue and not (self._run.halted or self._refusal or self._stop.is_set()):
            requests, calls = await self._next_requests(queue)
            if not calls:
                return
            batch = self._journal.intend(self._run.run.manifest.run_id, calls)
            try:
                batch_id = await self._batches.create(batch.name, requests)
            except ProviderError as problem:
                failure = self._add_remark(problem)
                self._uncreated += 1
                if problem.perhaps_billed or (problem.status or 0) >= 500 or problem.status in (408, 409):
                    self._refusal = failure if self._uncreated >= self._settings.retry.attempts else None
                    return  # it may have been created; the next poll looks it up
                self._note_absent(batch, failure.message)
                self._refusal = None if problem.retryable else failure
                return
            self._uncreated = 0
            self._journal.note(batch.number, "submitted", id=batch_id)

    async def _next_requests(self, queue: deque[Call]) -> tuple[dict[str, Request], dict[str, Call]]:
        """Take the calls of the next batch from `queue`. Return their requests and the calls, both by custom id."""
        batches, requests, calls = self._batches, dict[str, Request](), dict[str, Call]()
        size, pending = 0, self._pending_calls()
        queued = sum(self._run.max_tokens(call) for call in pending) if self._model.limits.queued_tokens else 0
        while queue and len(calls) < _MAX_REQUESTS:
            request = self._run.request_for(queue[0])
            custom_id = self._journal.custom_id(self._run.run.manifest.run_id, self._positions[queue[0]])
            request_size = await self._size(custom_id, request)
            if isinstance(request_size, Failure):
                replicate = Replicate(call=queue.popleft(), error=request_size, latency_s=None)
                self._run.save_outcome(replicate)
                continue
            size += request_size
            queued += self._run.max_tokens(queue[0])
            is_full = size > batches.api.max_bytes * _SHARE_OF_BYTES
            if (calls and is_full) or ((calls or pending) and queued > (self._model.limits.queued_tokens or queued)):
                break
            if not await self._reserve(queue[0], can_wait=not (calls or pending)):
                break
            requests[custom_id], calls[custom_id] = request, queue.popleft()
        return requests, calls

    async def _size(self, custom_id: str, request: Request) -> int | Failure:
        try:
            size = self._batches.size(custom_id, request)
            if request.files:
                await asyncio.to_thread(refuse_changed, request)
        except ProviderError as problem:
            return problem.failure(self._redact)
        max_bytes = int(self._batches.api.max_bytes * _SHARE_OF_BYTES)
        if size > max_bytes and request.files:
            message = f"the request has {size:,} bytes, more than a batch allows ({max_bytes:,}); run without --batch"
            return Failure(kind="not_run", reason="request_too_large", message=message)
        return size

    async def _reserve(self, call: Call, *, can_wait: bool) -> bool:
        max_cost = self._run.max_cost(call)
        if can_wait and not await self._budget.reserve(max_cost):
            self._refusal = self._run.cost_refusal(call, self._budget.left_usd)
            return False
        if not can_wait and not self._budget.reserve_now(max_cost):
            return False
        if not self._budget.take_call():
            self._budget.settle(max_cost, 0.0)
            self._refusal = NO_CALL_LEFT
            return False
        return True

    def _pending_calls(self) -> set[Call]:
        return {call for batch in self._journal.open for call in batch.calls.values()}

    def _note_absent(self, batch: Batch, reason: str) -> None:
        for call in batch.calls.values():
            self._budget.settle(self._run.max_cost(call), 0.0)
        self._journal.note(batch.number, "absent", reason=_printable(reason))

    def _unfinished(self) -> bool:
        return bool(self._journal.open or (self._run.open_calls and not self._refusal))

    def _add_remark(self, problem: ProviderError) -> Failure:
        failure = problem.failure(self._redact)
        self._remarks.append(str(failure))
        return failure

    def _state(self) -> str:
        parts = [*self._remarks]
        if batches := self._journal.open:
            minutes = int(max(batch.age_s for batch in batches) // 60)
            calls = counted(len(self._pending_calls() & self._run.open_calls), "call")
            age = f"the oldest for {minutes // 60} h {minutes % 60:02d}"
            parts.insert(0, f"{calls} in {len(batches)} batch{'es' * (len(batches) > 1)} at the vendor, {age}")
        elif not parts and self._unfinished():
            parts = [f"{counted(len(self._run.open_calls), 'call')} to be sent"]
        return "; ".join(parts)

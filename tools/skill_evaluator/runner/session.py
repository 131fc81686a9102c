"""The session of a command, whose calls share one budget, and its runs in progress."""

import asyncio
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from filelock import FileLock

from skill_evaluator.errors import ConfigError, RunError
from skill_evaluator.files import LinesWriter, try_lock
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Limits, Model
from skill_evaluator.providers import Configuration, missing_key
from skill_evaluator.providers.base import Completion, Failure, Request
from skill_evaluator.records.summaries import Server
from skill_evaluator.runner import journal
from skill_evaluator.runner.journal import Run
from skill_evaluator.runner.prices import InputSize, budget_cost, call_cost, max_call_cost, price_of, size_of
from skill_evaluator.runner.schedule import Budget, Call, Replicate, build_request, replicate_seed, schedule_calls

Stop = asyncio.Event  # set to start no further calls (Ctrl-C); calls in flight are awaited
# The request of each case, or the component and case of a request that is built for each call. Keys: case ids.
Requests = Mapping[str, Request | tuple[Component, Case]]
NO_CALL_LEFT = Failure(kind="over_budget", reason="max_calls", message="--max-calls is used up")
STOPPED = Failure(kind="not_run", reason="interrupted", message="stopped by the user")


@dataclass(slots=True, kw_only=True)
class Progress:
    """The calls, tokens and cost of one model so far."""

    model_id: str
    planned: int = 0
    answered_before: int = 0  # outputs of earlier attempts at the runs
    answered: int = 0
    failed: int = 0
    retried: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0  # None: unknown
    begun: float = field(default_factory=time.monotonic)
    waiting: dict[str, str] = field(default_factory=dict)  # texts about calls pending at the vendor, by run id

    def note(self, replicate: Replicate, cost_usd: float | None) -> None:
        """Count one outcome and its cost. An unknown cost (None) makes the total unknown."""
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd
        if replicate.completion is None:
            self.failed += 1
            return
        self.answered += 1
        self.input_tokens += replicate.completion.usage.input_tokens or 0
        self.output_tokens += replicate.completion.usage.output_tokens or 0

    @property
    def done(self) -> int:
        """The number of calls with an outcome, including the outputs of earlier attempts."""
        return self.answered_before + self.answered + self.failed

    @property
    def seconds_left(self) -> float | None:
        """The remaining seconds at the mean rate so far. None until a call of this attempt has an outcome."""
        if finished := self.answered + self.failed:
            return (time.monotonic() - self.begun) / finished * (self.planned - self.done)
        return None


Watch = Callable[[Sequence[Progress], Stop], Coroutine[Any, Any, None]]


async def no_progress(_: Sequence[Progress], stop: Stop) -> None:
    """Show nothing; wait until a stop is requested or the caller cancels."""
    await stop.wait()


def print_resume_command(command: Sequence[str]) -> None:
    """Print to stderr the command that makes the missing calls, unless it is empty."""
    if command:
        print(f"to continue: {shlex.join(command)}", file=sys.stderr)


def with_keys(models: Iterable[Model], configuration: Configuration) -> dict[str, Model]:
    """Return the models that lack no key, by id. Warn about other models. Raise ConfigError if no model remains."""
    usable: dict[str, Model] = {}
    for model in {model.id: model for model in models}.values():
        lack = missing_key(model, configuration.kinds[model.provider], configuration.keys)
        if lack is None:
            usable[model.id] = model
        else:
            print(f"warning: skipping {model.id}: {lack}", file=sys.stderr)
    if not usable:
        remedy = "set a key named above, or choose a model without a key with --model (a judge with --judge)"
        raise ConfigError(f"no model can run; {remedy}")
    return usable


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The configuration and the budget that all calls of a command share."""

    configuration: Configuration
    watch: Watch  # shows the progress of the calls
    budget: Budget = field(default_factory=Budget)
    concurrency: int | None = None  # calls of each model; None: the value in settings.yaml
    limits: Mapping[str, Limits] = field(default_factory=dict)  # a planned job's shares of rate limits, by model id
    recorded_models: Collection[str] = ()  # ids of models that have a record with the same settings


class RunningRun:
    """A run in progress: its journal, its remaining calls, and the outcomes of earlier attempts."""

    def __init__(self, run: Run, requests: Requests, configuration: Configuration, progress: Progress) -> None:
        self.run = run
        self.progress = progress  # shared by the runs of a model
        self.kind = configuration.kinds[run.model.provider]
        self.price = price_of(run.model, self.kind)
        self.schedule = schedule_calls(tuple(run.manifest.cases), run.manifest.replicates)
        self.fingerprints: Counter[str] = Counter()
        self.open_calls = set(self.schedule)  # calls without an output, and without an error in this attempt
        self.progress.planned += len(self.schedule)
        self.cached: frozenset[str] = frozenset()  # ids of the cases whose prompts are cached by the vendor
        self.errors: dict[Call, Replicate] = {}  # earlier errors of calls that are not repeated yet
        self.halted: Failure | None = None
        self.server: Server | None = None  # None in batches
        self._sizes: dict[str, InputSize] = {}  # keys: case ids
        self._requests = requests
        self._lock: FileLock | None = None
        self._journal: LinesWriter | None = None

    def resume(self, budget: Budget) -> None:
        """Read earlier attempts' outcomes and count their cost. Raise RunError for changed inputs or a locked run."""
        run = self.run
        if run.folder.exists():
            self._lock_run()
            journal.check_same_inputs(run.folder, run.manifest)
        for replicate in journal.made_calls(run.manifest, journal.read_outcomes(run.folder)):
            if replicate.completion is None:
                self.errors[replicate.call] = replicate
                continue
            budget.count_earlier(self.budgeted_cost(replicate.call, replicate.completion))
            self.fingerprints[replicate.completion.fingerprint or ""] += 1
            self.open_calls.discard(replicate.call)
        self.progress.answered_before += len(self.schedule) - len(self.open_calls)
        self.cached = self._cached_cases()

    def _cached_cases(self) -> frozenset[str]:
        cache_floor = self.kind.cache_floor_of(self.run.model)
        if cache_floor is None:
            return frozenset()
        repeated = Counter(call.case_id for call in self.open_calls)
        return frozenset(
            case_id for case_id, calls in repeated.items() if calls > 1 and self._size(case_id).likely >= cache_floor
        )

    @property
    def failure(self) -> Failure | None:
        """The failure that stopped the calls, or None if nothing stopped them."""
        return self.halted or (STOPPED if self.open_calls else None)

    def request_for(self, call: Call) -> Request:
        """Build the request of a call. It asks for a tool call only if the provider has tools."""
        request = self._request(call.case_id)
        return replace(
            request,
            replicate=call.replicate,
            seed=replicate_seed(self.run.manifest.seed, call.case_id, call.replicate),
            max_output_tokens=self.run.model.params.max_output_tokens,
            by_tool_call=request.by_tool_call and self.kind.tools,
            cache=call.case_id in self.cached,
        )

    def _request(self, case_id: str) -> Request:
        request = self._requests[case_id]
        return request if isinstance(request, Request) else build_request(*request)

    def _size(self, case_id: str) -> InputSize:
        if case_id not in self._sizes:
            size = size_of(self._request(case_id))
            self._sizes[case_id] = size.of_model(self.run.model, self.kind)
        return self._sizes[case_id]

    def max_tokens(self, call: Call) -> int:
        """Return the maximum tokens of one attempt at a call, input and output."""
        return self._size(call.case_id).maximum + self.run.model.params.max_output_tokens

    def max_cost(self, call: Call) -> float:
        """Return the maximum cost of one attempt in USD, which the budget reserves. It is 0 if there is no price."""
        is_batch = self.run.manifest.transport == "batch"
        return max_call_cost(self.run.model, self.price, self._size(call.case_id).maximum, batch=is_batch) or 0.0

    def budgeted_cost(self, call: Call, completion: Completion) -> float:
        """Return the cost of an output in USD that counts for the budget: the maximum cost if it is unknown."""
        cost = budget_cost(self.run.model, self.price, completion)
        return self.max_cost(call) if cost is None else cost

    def cost_refusal(self, call: Call, left_usd: float) -> Failure:
        """Return the failure of a call that can cost more than the rest of the budget, `left_usd`."""
        message = (
            f"a call of case '{call.case_id}' can cost ${self.max_cost(call):.4f} "
            f"({self._size(call.case_id).maximum:,} tokens in, {self.run.model.params.max_output_tokens:,} out by "
            f"max_output_tokens), and ${left_usd:.4f} is left; raise the cap to continue"
        )
        return Failure(kind="over_budget", reason="max_cost", message=message)

    def begin(self) -> None:
        """Create the run folder if it is new, lock it and open the journal. Call this after all providers are open.

        Raise RunError if another process executes the run, and StorageError if the folder cannot be written.
        """
        if not (self.run.folder / journal.MANIFEST).exists():
            journal.create_run(self.run.folder, self.run.manifest.model_copy(update={"server": self.server}))
        self.progress.begun = time.monotonic()  # reading the outcomes of earlier attempts takes time, too
        if self._lock is None:
            self._lock_run()
        self._journal = LinesWriter(self.run.folder / journal.ANSWERS)

    def save_outcome(self, replicate: Replicate) -> None:
        """Count an outcome and save it in the journal. Raise StorageError if saving fails."""
        if self._journal is None:
            raise RuntimeError("outcome of a run that was not started")
        self.progress.note(replicate, call_cost(self.run.model, self.price, replicate))
        journal.append_outcome(self._journal, replicate)
        self.errors.pop(replicate.call, None)
        self.open_calls.discard(replicate.call)
        if replicate.completion is not None:
            self.fingerprints[replicate.completion.fingerprint or ""] += 1

    def finish(self) -> None:
        """Close the journal and release the lock."""
        if self._journal is not None:
            self._journal.close()
        if self._lock is not None:
            self._lock.release()  # a long-lived process may resume the run

    def _lock_run(self) -> None:
        self._lock = try_lock(self.run.folder / ".lock")
        if self._lock is None:
            raise RunError(f"{self.run.folder} is being executed by another process; wait until it ends")

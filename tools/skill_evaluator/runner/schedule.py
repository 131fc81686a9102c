"""The calls of a run: their order, their shards, their requests and their outcomes."""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter

from skill_evaluator.errors import ConfigError, RunError
from skill_evaluator.identifiers import MAX_REPLICATES
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Limits, Model
from skill_evaluator.parsing import split_reasoning
from skill_evaluator.providers.base import Completion, Failure, FailureKind, ProviderKind, Request
from skill_evaluator.text import canonical_json, digest

IN_FLIGHT = 8  # default number of concurrent calls of a model
MAX_IN_FLIGHT = 256  # limit for a server on a private network; also vLLM's default batch size


@dataclass(frozen=True, slots=True)
class Call:
    """One replicate of one case."""

    case_id: str
    replicate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """A call that was made: its completion, or the error that ended it."""

    call: Call
    completion: Completion | None = None
    error: Failure | None = None
    latency_s: float | None = 0.0  # time of the last attempt; None in a batch
    attempts: int = 1

    @property
    def answered(self) -> bool:
        """Whether the model returned an output, even an unusable one. Such a call is never repeated."""
        return self.completion is not None

    @property
    def output(self) -> str:
        """The text of the completion without reasoning; empty without a completion."""
        return "" if self.completion is None else split_reasoning(self.completion.text)[1]

    @property
    def failure(self) -> Failure | None:
        """The error, or the failure of an unusable output. None for a usable output.

        An output is unusable if it was refused or cut, lacks its tool call, or has only reasoning or an unrequested
        tool call. A completely empty output is usable.
        """
        if self.completion is None:
            return self.error
        text, stop_reason = self.completion.text, self.completion.stop_reason
        if stop_reason == "length":
            return Failure(kind="truncated", reason="output_limit", message="the answer reached the output limit")
        if stop_reason == "too_large":
            return Failure(kind="truncated", reason="answer_too_large", message="the answer is over a limit of bytes")
        if stop_reason in ("refusal", "no_tool_call"):
            kind: FailureKind = "refused" if stop_reason == "refusal" else "unparseable"
            return Failure(kind=kind, reason=stop_reason, message=text[:200])
        if text.strip() or not (self.completion.tool_call or self.completion.reasoning):
            return None
        return Failure(kind="unparseable", reason="tool_call" if self.completion.tool_call else "in_reasoning")

    @property
    def digest(self) -> str:
        """The digest of the output: its stop reason and text. Without an output, that of the kind of the error."""
        if self.completion is not None:
            # UTF-16 encodes two surrogates like the character that a journal returns for them
            return digest(f"{self.completion.stop_reason}\n{self.completion.text}".encode("utf-16-le", "surrogatepass"))
        return digest("" if self.error is None else self.error.kind)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` (from 1) of `count` parts of the cases. All replicates of a case are in the same shard."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Parse a text such as `2/4`; raise RunError for other texts."""
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise RunError(f"--shard '{text}' is not I/N with 1 <= I <= N, such as 2/4")
        return cls(int(match[1]), int(match[2]))

    def of(self, case_ids: Sequence[str]) -> tuple[str, ...]:
        """Return the case ids of this shard. Raise RunError if it has none."""
        shard_ids = tuple(case_ids[self.index - 1 :: self.count])
        if not shard_ids:
            raise RunError(f"shard {self} has no case: there are only {len(case_ids)}; use fewer shards")
        return shard_ids

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def schedule_calls(case_ids: Sequence[str], replicates: int) -> tuple[Call, ...]:
    """Return all calls of a run in the order in which they are made: all cases, replicate by replicate."""
    return tuple(Call(case_id, replicate) for replicate in range(replicates) for case_id in case_ids)


def build_request(component: Component, case: Case) -> Request:
    """Build the request of a case: the prompt filled with its inputs, and the output schema."""
    return Request(
        case_id=case.id,
        messages=component.prompt.filled(case.inputs, case.turns),
        constant=component.prompt.constant_characters(turns=bool(case.turns)),
        inputs=case.inputs,
        turns=case.turns,
        schema=component.schema,
        schema_name=component.name.replace(".", "-"),
        by_tool_call=component.prompt.by_tool_call,
    )


def replicate_seed(seed: int, case_id: str, replicate: int) -> int:
    """Return the seed of a replicate (31 bits). It depends only on `seed`, the case id and the replicate."""
    raw = hashlib.sha256(f"{seed}/{case_id}/{replicate}".encode()).digest()
    return int.from_bytes(raw[:4], "big") & 0x7FFF_FFFF


def digest_of_answers(digests: Mapping[Call, str]) -> str:
    """Return the digest of a run's outcomes from the digest of each call; it does not depend on the order of calls."""
    calls = sorted(digests, key=attrgetter("replicate", "case_id"))
    return digest(canonical_json([[call.case_id, call.replicate, digests[call]] for call in calls]))


def replicates_of_baseline(replicates: int) -> int:
    """Return the replicates of an interleaved baseline: half of the candidate's, rounded up.

    >>> replicates_of_baseline(10), replicates_of_baseline(5)
    (5, 3)
    """
    return (replicates + 1) // 2


def interleaved(schedules: Sequence[Sequence[Call]]) -> list[tuple[int, Call]]:
    """Return the calls of several runs in turns, each with the index of its run.

    The run with the most replicates has one in each round; those of a shorter run are spread evenly over the rounds. In
    a round, a case is called in all runs before the next case. The run that begins alternates over the cases, and over
    the rounds in which all runs have calls.

    >>> first = schedule_calls(["a", "b"], 1)
    >>> [(index, call.case_id) for index, call in interleaved([first, first])]
    [(0, 'a'), (1, 'a'), (1, 'b'), (0, 'b')]
    >>> [index for index, _ in interleaved([schedule_calls(["a"], 4), schedule_calls(["a"], 2)])]
    [0, 1, 0, 1, 0, 0]
    """
    case_ids = dict.fromkeys(call.case_id for schedule in schedules for call in schedule)
    order = {case_id: position for position, case_id in enumerate(case_ids)}
    counts = [max((call.replicate + 1 for call in schedule), default=1) for schedule in schedules]
    rounds, fewest = max(counts), min(counts)
    turns = []
    for index, schedule in enumerate(schedules):
        for call in schedule:
            position, round_index = order[call.case_id], call.replicate * rounds // counts[index]
            shared_rounds = math.ceil(round_index * fewest / rounds)
            first = (index + shared_rounds + position) % len(schedules)
            turns.append(((round_index, position, first), index, call))
    return [(index, call) for _, index, call in sorted(turns, key=itemgetter(0))]


def limits_under(limits: Limits, ceiling: Limits | None, sharers: int = 1) -> Limits:
    """Return `limits`, each reduced to at most the ceiling divided by `sharers`, but at least 1.

    >>> limits_under(Limits(max_concurrency=9), Limits(max_concurrency=10, requests_per_minute=100), 3)
    Limits(max_concurrency=3, requests_per_minute=33, tokens_per_minute=None, context_tokens=None,
           queued_tokens=None)
    """
    shared = {} if ceiling is None else ceiling.model_dump(exclude_none=True, exclude={"context_tokens"})
    shares = {name: max(1, maximum // sharers) for name, maximum in shared.items()}
    own_limits = limits.model_dump(exclude_none=True)
    return limits.model_copy(update={name: min(share, own_limits.get(name, share)) for name, share in shares.items()})


def calls_in_flight(model: Model, kind: ProviderKind, requested: int | None) -> tuple[int, int]:
    """Return the initial and the maximum number of concurrent calls of a model.

    `requested` is the number from an option or the settings. If it is None, the maximum on a private network is 256.
    """
    if kind.one_at_a_time:
        return 1, 1
    grows = requested is None and model.on_private_network and model.server != "llama.cpp"
    default = MAX_IN_FLIGHT if grows else IN_FLIGHT
    maximum = min(filter(None, (requested, model.limits.max_concurrency)), default=default)
    if model.server or not grows:  # the outputs of such a `server` depend on the number
        return maximum, maximum
    return min(IN_FLIGHT, maximum), maximum


def refuse_amounts(counts: Mapping[str, int | None], max_calls: int | None, max_cost: float | None) -> None:
    """Raise ConfigError for an invalid `--max-calls` or `--max-cost`, or an invalid number in `counts` (by option)."""
    for flag, count in counts.items():
        if count is not None and count < 1:
            raise ConfigError(f"{flag} must be at least 1, not {count}")
        if flag == "--replicates" and count is not None and count > MAX_REPLICATES:
            raise ConfigError(f"{flag} must be at most {MAX_REPLICATES:,}, not {count}")
    if max_calls is not None and max_calls < 0:
        raise ConfigError(f"--max-calls must not be negative: {max_calls}")
    if max_cost is not None and not max_cost >= 0:  # NaN compares false
        raise ConfigError(f"--max-cost must be 0 USD or more, not {max_cost}")

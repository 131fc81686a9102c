"""The calls of a run: their order, the share of a shard, the request and the outcome of each call.

The schedule goes through all cases before the next replicate. So in an interrupted run all cases have nearly equal
numbers of replicates, except that the replicates of a prompt that a vendor caches follow each other.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from skill_evaluator.errors import ConfigError, RunError
from skill_evaluator.identifiers import MOST_REPLICATES
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Limits, Model
from skill_evaluator.parsing.answer import split_reasoning
from skill_evaluator.providers.base import Completion, Failure, ProviderKind, Request
from skill_evaluator.text import canonical_json, digest

IN_FLIGHT = 8  # concurrent calls of a model by default
MAX_IN_FLIGHT = 256  # concurrent calls of a server on a private network; also vLLM's default batch size
_BYTES_PER_TOKEN = 4
_TEMPLATE_TOKENS = 8  # per message
_MAX_TEMPLATE_TOKENS = 512  # for instructions that structured output adds to a prompt


@dataclass(frozen=True, slots=True)
class Call:
    """One replicate of one case.

    `arm` is the index of its run among interleaved runs; it is not stored.
    """

    case_id: str
    replicate: int
    arm: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """A call that was made, with its completion or its error.

    `latency_s` is the latency of the last attempt; None for a call in a batch.
    """

    call: Call
    completion: Completion | None = None
    error: Failure | None = None
    latency_s: float | None = 0.0
    attempts: int = 1

    @property
    def answered(self) -> bool:
        """Whether the model returned a completion, usable or not; such a call is never repeated."""
        return self.completion is not None

    @property
    def output(self) -> str:
        """The text of the completion without reasoning; empty without a completion."""
        return "" if self.completion is None else split_reasoning(self.completion.text)[1]

    @property
    def failure(self) -> Failure | None:
        """The failure if there is nothing to parse: the error, or a refused or truncated output. None otherwise."""
        if self.completion is None:
            return self.error
        if self.completion.stop_reason == "length":
            return Failure(kind="truncated", reason="output_limit", message="the answer reached the output limit")
        if self.completion.stop_reason == "too_large":
            return Failure(kind="truncated", reason="answer_too_large", message="the answer is over a limit of bytes")
        if self.completion.stop_reason == "refusal":
            return Failure(kind="refused", reason="refusal", message=self.completion.text[:200])
        if self.completion.text.strip() or not (self.completion.tool_call or self.completion.reasoning):
            return None
        return Failure(kind="unparseable", reason="tool_call" if self.completion.tool_call else "in_reasoning")

    @property
    def digest(self) -> str:
        """The digest of the output's text and stop reason, or of the kind of error."""
        if self.completion is not None:
            # UTF-16 gives a split surrogate pair the same bytes as the character that a journal reads
            return digest(f"{self.completion.stop_reason}\n{self.completion.text}".encode("utf-16-le", "surrogatepass"))
        return digest("" if self.error is None else self.error.kind)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` (from 1) of `count` of the cases; a case's replicates stay together."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read `2/4` as Shard(2, 4); raise RunError for anything else."""
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise RunError(f"--shard '{text}' is not I/N with 1 <= I <= N, such as 2/4")
        return cls(int(match[1]), int(match[2]))

    def of(self, case_ids: Sequence[str]) -> tuple[str, ...]:
        """Return the cases of this shard. Raise RunError if there are none."""
        case_ids_of_shard = tuple(case_ids[self.index - 1 :: self.count])
        if not case_ids_of_shard:
            raise RunError(f"shard {self} has no case: there are only {len(case_ids)}; use fewer shards")
        return case_ids_of_shard

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def schedule_calls(case_ids: Sequence[str], replicates: int) -> tuple[Call, ...]:
    """Return every call of a run, in call order."""
    return tuple(Call(case_id, replicate) for replicate in range(replicates) for case_id in case_ids)


def build_request(component: Component, case: Case, *, replicate: int, seed: int, max_output_tokens: int) -> Request:
    """Build a request: the prompt filled with the inputs of the case, and the output schema."""
    return Request(
        case_id=case.id,
        replicate=replicate,
        messages=component.prompt.filled(case.inputs, case.turns),
        constant=component.prompt.constant_characters(turns=bool(case.turns)),
        inputs=case.inputs,
        turns=case.turns,
        max_output_tokens=max_output_tokens,
        seed=replicate_seed(seed, case.id, replicate),
        schema=component.schema,
        schema_name=component.name.replace(".", "-"),
    )


def replicate_seed(seed: int, case_id: str, replicate: int) -> int:
    """Return a seed of 31 bits that depends only on `--seed`, case and replicate."""
    hashed = hashlib.sha256(f"{seed}/{case_id}/{replicate}".encode()).digest()
    return int.from_bytes(hashed[:4], "big") & 0x7FFF_FFFF


def estimate_input_tokens(request: Request) -> int:
    """Estimate the number of input tokens, at four bytes of text per token."""
    text_tokens = _input_bytes(request) // _BYTES_PER_TOKEN + _TEMPLATE_TOKENS * len(request.messages)
    return text_tokens + request.file_tokens


def max_input_tokens(request: Request) -> int:
    """Return an upper bound of the input tokens: one per byte, plus the vendor's template."""
    template_tokens = _MAX_TEMPLATE_TOKENS + 2 * _TEMPLATE_TOKENS * len(request.messages[2:])
    return _input_bytes(request) + template_tokens + request.file_tokens


def min_input_tokens(request: Request) -> int:
    """Return a lower bound of the input tokens: one per word."""
    return sum(len(message.text.split()) for message in request.messages)


def _input_bytes(request: Request) -> int:
    schema = len(json.dumps(request.schema)) if request.schema else 0
    return sum(len(message.text.encode()) for message in request.messages) + schema


def digest_of_answers(digests: Mapping[Call, str]) -> str:
    """Return the digest of all outputs of a run, from the digests of its calls.

    Calls are sorted by replicate and case id, so that the digest is the same for a run with or without shards.
    """
    hasher = hashlib.sha256(b"" if digests else b"[")  # updated call by call to save memory
    for index, call in enumerate(sorted(sorted(digests, key=attrgetter("case_id")), key=attrgetter("replicate"))):
        part = canonical_json([call.case_id, call.replicate, digests[call]])
        hasher.update(f"{',' if index else '['}{part}".encode("utf-8", "surrogatepass"))
    hasher.update(b"]")
    return f"sha256:{hasher.hexdigest()}"


def baseline_replicates(replicates: int) -> int:
    """Return the replicates of an interleaved baseline: half of the candidate's, rounded up.

    >>> baseline_replicates(10), baseline_replicates(5)
    (5, 3)
    """
    return (replicates + 1) // 2


def interleaved(schedules: Sequence[Sequence[Call]]) -> tuple[Call, ...]:
    """Interleave the calls of several runs: each replicate of a case in all runs, then the next case.

    The first run rotates from case to case and from replicate to replicate, so that no run is always earlier. A run
    with more replicates than the others continues alone.

    >>> first = schedule_calls(["a", "b"], 1)
    >>> [(call.case_id, call.arm) for call in interleaved([first, first])]
    [('a', 0), ('a', 1), ('b', 1), ('b', 0)]
    """
    case_ids = dict.fromkeys(call.case_id for schedule in schedules for call in schedule)
    order = {case_id: position for position, case_id in enumerate(case_ids)}
    turns = [
        (call.replicate, position := order[call.case_id], (arm + call.replicate + position) % len(schedules), arm, call)
        for arm, schedule in enumerate(schedules)
        for call in schedule
    ]
    turns.sort(key=lambda turn: turn[:3])
    return tuple(replace(call, arm=arm) if arm else call for *_, arm, call in turns)


def under(limits: Limits, ceiling: Limits | None, sharers: int = 1) -> Limits:
    """Return the limits capped by an equal share of a ceiling; each limit is at least 1.

    >>> under(Limits(max_concurrency=9), Limits(max_concurrency=10, requests_per_minute=100), 3)
    Limits(max_concurrency=3, requests_per_minute=33, tokens_per_minute=None, context_tokens=None,
           queued_tokens=None)
    """
    shared_limits = {} if ceiling is None else ceiling.model_dump(exclude_none=True, exclude={"context_tokens"})
    parts = {name: max(1, limit // sharers) for name, limit in shared_limits.items()}
    own_limits = limits.model_dump(exclude_none=True)
    return limits.model_copy(update={name: min(part, own_limits.get(name, part)) for name, part in parts.items()})


def calls_in_flight(model: Model, kind: ProviderKind, requested: int | None) -> tuple[int, int]:
    """Return the initial and the maximum number of concurrent calls of a model.

    `requested` is the limit from an option or the settings. A server on a private network is not shared with others, so
    the number of calls grows while the server keeps up. A server that computes calls together always gets the maximum,
    because its outputs depend on that number.
    """
    if kind.one_at_a_time:
        return 1, 1
    is_growing = requested is None and model.on_private_network and model.server != "llama.cpp"
    default = MAX_IN_FLIGHT if is_growing else IN_FLIGHT
    maximum = min(filter(None, (requested, model.limits.max_concurrency)), default=default)
    return maximum if model.server or not is_growing else min(IN_FLIGHT, maximum), maximum


def refuse_amounts(counts: Mapping[str, int | None], max_calls: int | None, max_cost: float | None) -> None:
    """Raise ConfigError for a count (by its option) that is below 1 or too large, or an invalid limit."""
    for flag, count in counts.items():
        if count is not None and count < 1:
            raise ConfigError(f"{flag} must be at least 1, not {count}")
        if flag == "--replicates" and count is not None and count > MOST_REPLICATES:
            raise ConfigError(f"{flag} must be at most {MOST_REPLICATES:,}, not {count}")
    if max_calls is not None and max_calls < 0:
        raise ConfigError(f"--max-calls must not be negative: {max_calls}")
    if max_cost is not None and not max_cost >= 0:  # also rejects NaN
        raise ConfigError(f"--max-cost must be an amount in USD, not {max_cost}")

"""The calls of a run: in which order, which part of them a shard makes, what each asks, and what became of it.

Calls go replicate by replicate through all cases. So wherever a run is interrupted, no case is ahead of any other by
more than the calls in flight; only the replicates of a prompt that a vendor caches follow each other.
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

IN_FLIGHT = 8  # calls of a model, unless somebody says otherwise
MOST_IN_FLIGHT = 256  # of a server on a private network; vLLM, too, computes so many together by default
_BYTES_PER_TOKEN = 4
_TEMPLATE_TOKENS = 8  # around a message
_MOST_TEMPLATE_TOKENS = 512  # the instructions that structured output adds to a prompt


@dataclass(frozen=True, slots=True)
class Call:
    """One replicate of one case: answered once, counted once.

    `arm` is the place of its run among those that are asked beside each other; it is kept nowhere.
    """

    case_id: str
    replicate: int
    arm: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """A call that was made: its completion, or the error it ended with.

    `latency_s` is that of the last attempt; None of a call in a batch, which waits for others.
    """

    call: Call
    completion: Completion | None = None
    error: Failure | None = None
    latency_s: float | None = 0.0
    attempts: int = 1

    @property
    def answered(self) -> bool:
        """Whether the model answered anything, however useless: such a call is never made again."""
        return self.completion is not None

    @property
    def output(self) -> str:
        """The text of the completion without reasoning; empty without a completion."""
        return "" if self.completion is None else split_reasoning(self.completion.text)[1]

    @property
    def failure(self) -> Failure | None:
        """The failure if there is nothing to parse: the error, or an output that was refused or cut off."""
        if self.completion is None:
            return self.error
        if self.completion.stop_reason == "length":
            return Failure(kind="truncated", reason="output_limit", message="the answer reached the output limit")
        if self.completion.stop_reason == "too_large":
            return Failure(kind="truncated", reason="answer_too_large", message="the answer is over a limit of bytes")
        if self.completion.stop_reason == "refusal":
            return Failure(kind="refused", reason="refusal", message=self.completion.text[:200])
        if self.completion.stop_reason == "no_tool_call":
            return Failure(kind="unparseable", reason="no_tool_call", message=self.completion.text[:200])
        if self.completion.text.strip() or not (self.completion.tool_call or self.completion.reasoning):
            return None
        return Failure(kind="unparseable", reason="tool_call" if self.completion.tool_call else "in_reasoning")

    @property
    def digest(self) -> str:
        """The digest of the answer's text and of how it ended, or of the kind of error."""
        if self.completion is not None:
            # UTF-16, so that two halves of a character are the one that they are read from a journal as
            return digest(f"{self.completion.stop_reason}\n{self.completion.text}".encode("utf-16-le", "surrogatepass"))
        return digest("" if self.error is None else self.error.kind)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` (from 1) of `count` of the cases; a case's replicates stay together, so that pairs do."""

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
        """Return the cases of this shard; raise RunError when it has none."""
        mine = tuple(case_ids[self.index - 1 :: self.count])
        if not mine:
            raise RunError(f"shard {self} has no case: there are only {len(case_ids)}; use fewer shards")
        return mine

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def schedule_calls(case_ids: Sequence[str], replicates: int) -> tuple[Call, ...]:
    """Return every call of a run, in the order it is made."""
    return tuple(Call(case_id, replicate) for replicate in range(replicates) for case_id in case_ids)


def build_request(component: Component, case: Case, *, replicate: int, seed: int, max_output_tokens: int) -> Request:
    """Build a request: the prompt with the inputs of the case in it, and the schema as contract."""
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
        by_tool_call=component.prompt.by_tool_call,
    )


def replicate_seed(seed: int, case_id: str, replicate: int) -> int:
    """Return a seed of 31 bits that differs between replicates, and is the same in every run with the same `--seed`."""
    raw = hashlib.sha256(f"{seed}/{case_id}/{replicate}".encode()).digest()
    return int.from_bytes(raw[:4], "big") & 0x7FFF_FFFF


def estimate_input_tokens(request: Request) -> int:
    """Estimate the input tokens, at four bytes of text a token."""
    of_texts = _input_bytes(request) // _BYTES_PER_TOKEN + _TEMPLATE_TOKENS * len(request.messages)
    return of_texts + request.file_tokens


def most_input_tokens(request: Request) -> int:
    """Return an upper bound of the input tokens: a token stands for a byte or more, and vendors add some."""
    of_templates = _MOST_TEMPLATE_TOKENS + 2 * _TEMPLATE_TOKENS * len(request.messages[2:])
    return _input_bytes(request) + of_templates + request.file_tokens


def least_input_tokens(request: Request) -> int:
    """Return a lower bound of the input tokens: no tokenizer puts two words into one token."""
    return sum(len(message.text.split()) for message in request.messages)


def _input_bytes(request: Request) -> int:
    schema = len(json.dumps(request.schema)) if request.schema else 0
    return sum(len(message.text.encode()) for message in request.messages) + schema


def digest_of_answers(digests: Mapping[Call, str]) -> str:
    """Return the digest of all that was answered, from that of each call; calls that were not made are not among them.

    Replicate by replicate, by the cases' ids: so it is the same for a run that was made in one piece or in shards.
    """
    whole = hashlib.sha256(b"" if digests else b"[")  # call by call, since one text would take more than a record
    for at, call in enumerate(sorted(sorted(digests, key=attrgetter("case_id")), key=attrgetter("replicate"))):
        part = canonical_json([call.case_id, call.replicate, digests[call]])
        whole.update(f"{',' if at else '['}{part}".encode("utf-8", "surrogatepass"))
    whole.update(b"]")
    return f"sha256:{whole.hexdigest()}"


def replicates_beside(replicates: int) -> int:
    """Return the replicates of an interleaved baseline: half of the candidate's, rounded up.

    >>> replicates_beside(10), replicates_beside(5)
    (5, 3)
    """
    return (replicates + 1) // 2


def interleaved(schedules: Sequence[Sequence[Call]]) -> tuple[Call, ...]:
    """Return the calls of several runs in turns: each replicate of a case in all runs, then the next case.

    The run that comes first changes from case to case and from replicate to replicate, so that none is always earlier.
    A run that has more replicates than the others goes on alone.

    >>> first = schedule_calls(["a", "b"], 1)
    >>> [(call.case_id, call.arm) for call in interleaved([first, first])]
    [('a', 0), ('a', 1), ('b', 1), ('b', 0)]
    """
    order = {case_id: place for place, case_id in enumerate(dict.fromkeys(c.case_id for s in schedules for c in s))}
    turns = [
        (call.replicate, place := order[call.case_id], (arm + call.replicate + place) % len(schedules), arm, call)
        for arm, schedule in enumerate(schedules)
        for call in schedule
    ]
    turns.sort(key=lambda turn: turn[:3])
    return tuple(replace(call, arm=arm) if arm else call for *_, arm, call in turns)


def under(limits: Limits, ceiling: Limits | None, sharers: int = 1) -> Limits:
    """Return limits of calls under a ceiling that `sharers` share; each has 1 at least.

    >>> under(Limits(max_concurrency=9), Limits(max_concurrency=10, requests_per_minute=100), 3)
    Limits(max_concurrency=3, requests_per_minute=33, tokens_per_minute=None, context_tokens=None,
           queued_tokens=None)
    """
    whole = {} if ceiling is None else ceiling.model_dump(exclude_none=True, exclude={"context_tokens"})
    parts = {name: max(1, most // sharers) for name, most in whole.items()}
    mine = limits.model_dump(exclude_none=True)
    return limits.model_copy(update={name: min(part, mine.get(name, part)) for name, part in parts.items()})


def calls_in_flight(model: Model, kind: ProviderKind, asked: int | None) -> tuple[int, int]:
    """Return the initial and the maximum number of concurrent calls of a model.

    `asked` is the limit from a flag or the settings. A server on a private network is not shared with others, so the
    number of calls grows while the server keeps up. A server that computes calls together always gets the maximum,
    because its outputs depend on that number.
    """
    if kind.one_at_a_time:
        return 1, 1
    near = asked is None and model.on_private_network and model.server != "llama.cpp"
    most = min(filter(None, (asked, model.limits.max_concurrency)), default=MOST_IN_FLIGHT if near else IN_FLIGHT)
    return most if model.server or not near else min(IN_FLIGHT, most), most


def refuse_amounts(counts: Mapping[str, int | None], max_calls: int | None, max_cost: float | None) -> None:
    """Raise ConfigError for a count (by its flag) that is below 1 or too large, or a limit that is no amount."""
    for flag, count in counts.items():
        if count is not None and count < 1:
            raise ConfigError(f"{flag} must be at least 1, not {count}")
        if flag == "--replicates" and count is not None and count > MOST_REPLICATES:
            raise ConfigError(f"{flag} must be at most {MOST_REPLICATES:,}, not {count}")
    if max_calls is not None and max_calls < 0:
        raise ConfigError(f"--max-calls must not be negative: {max_calls}")
    if max_cost is not None and not max_cost >= 0:  # not a number compares false
        raise ConfigError(f"--max-cost must be an amount in USD, not {max_cost}")

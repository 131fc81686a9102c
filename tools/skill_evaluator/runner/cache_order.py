"""The order of a model's calls if its vendor caches prompts: the replicates of a case one after another.

The first call of a prompt fills the vendor's cache and the others read it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

from skill_evaluator.providers.base import Request
from skill_evaluator.runner.schedule import Call, estimate_input_tokens

Prompt = tuple[int, str]
"""Arm and case: all replicates are sent the same text."""


def prompt_of(call: Call) -> Prompt:
    """Return the prompt of a call."""
    return call.arm, call.case_id


def cached_prompts(
    calls: Sequence[Call], request_for: Callable[[Call], Request], cache_floor: int | None
) -> frozenset[Prompt]:
    """Return the prompts with at least two calls that are, as estimated, long enough for the vendor's cache."""
    if cache_floor is None:
        return frozenset()
    times = Counter(map(prompt_of, calls))
    first = {prompt_of(call): call for call in reversed(calls)}
    again = (prompt for prompt, count in times.items() if count > 1)
    return frozenset(prompt for prompt in again if estimate_input_tokens(request_for(first[prompt])) >= cache_floor)


def call_sequences(calls: Iterable[Call], cached: Collection[Prompt]) -> list[list[Call]]:
    """Group the calls of each cached prompt, at the place of its first call. Other calls are on their own."""
    sequences: dict[Hashable, list[Call]] = {}
    for call in calls:
        prompt = prompt_of(call)
        sequences.setdefault(prompt if prompt in cached else call, []).append(call)
    return list(sequences.values())

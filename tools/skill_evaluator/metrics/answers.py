"""The answers to one case, grouped: what every reproducibility metric is given. No ground truth is involved.

An answer that could not be parsed agrees with nothing; a call that brought no answer is not here at all. Only
canonical texts are kept, not parsed values: thousands of answers stay small.
"""

import json
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from skill_evaluator.metrics.fieldplan import FieldPlan
from skill_evaluator.metrics.leaves import Lexicon, Outline


@dataclass(frozen=True, slots=True)
class Output(Outline):
    """One distinct parsed output, and how often it was given."""

    count: int


@dataclass(slots=True)
class CaseAnswers:
    """All answers to one case: `groups` counts parsed outputs by canonical JSON, `raw` counts texts by digest."""

    plan: FieldPlan
    groups: Counter[str] = field(default_factory=Counter)
    raw: Counter[Hashable] = field(default_factory=Counter)
    n: int = 0
    _outputs: list[Output] | None = field(default=None, repr=False)

    def add(self, raw: Hashable, canonical: str | None) -> None:
        """Count one answer; `canonical` is None when it could not be parsed."""
        self.n += 1
        self._outputs = None
        self.raw[raw] += 1
        if canonical is not None:
            self.groups[canonical] += 1

    @property
    def unparsed(self) -> int:
        """Answers that could not be parsed."""
        return self.n - self.groups.total()

    @property
    def pairs(self) -> int:
        """Unordered pairs of answers."""
        return self.n * (self.n - 1) // 2

    @property
    def equal_pairs(self) -> int:
        """Pairs whose parsed outputs are equal JSON values."""
        return sum(count * (count - 1) // 2 for count in self.groups.values())

    def distinct(self) -> list[tuple[Any, int]]:
        """Each distinct parsed output with how often it was given."""
        return [(json.loads(canonical), count) for canonical, count in self.groups.items()]

    def outputs(self) -> list[Output]:
        """Each distinct parsed output as leaves, forms and lengths: read once for all metrics."""
        if self._outputs is None:
            lexicon = Lexicon(self.plan)
            read = ((lexicon.outline(json.loads(text)), count) for text, count in self.groups.items())
            self._outputs = [Output(one.leaves, one.forms, one.lengths, count) for one, count in read]
        return self._outputs

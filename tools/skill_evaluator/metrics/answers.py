"""The answers to one case, grouped: what every reproducibility metric is given. No ground truth is involved.

An answer that could not be parsed agrees with nothing; a call that brought no answer is not here at all. Only
canonical texts are kept, not parsed values: thousands of answers stay small.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from skill_evaluator.metrics.fieldplan import FieldPlan
from skill_evaluator.metrics.forms import Leaves
from skill_evaluator.metrics.leaves import Forms, Lexicon


@dataclass(frozen=True, slots=True)
class Tally:
    """The distinct parsed outputs: the leaves of each and how often it was given; over all of them what was given.

    `forms` counts by path the forms that stood there, `lengths` by array path the numbers of items.
    """

    lexicon: Lexicon
    leaves: list[tuple[Leaves, int]] = field(default_factory=list)
    forms: defaultdict[str, Counter[Forms]] = field(default_factory=lambda: defaultdict(Counter))
    lengths: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, output: Any, count: int) -> None:
        """Count one output, given so many times."""
        outline = self.lexicon.outline(output)
        self.leaves.append((outline.leaves, count))
        for path, forms in outline.forms.items():
            self.forms[path][forms] += count
        for path, length in outline.lengths.items():
            self.lengths[path][length] += count


@dataclass(slots=True)
class CaseAnswers:
    """All answers to one case: `groups` counts parsed outputs by canonical JSON, `raw` counts texts by digest."""

    plan: FieldPlan
    groups: Counter[str] = field(default_factory=Counter)
    raw: Counter[Hashable] = field(default_factory=Counter)
    n: int = 0
    _tally: Tally | None = field(default=None, repr=False)

    def add(self, raw: Hashable, canonical: str | None) -> None:
        """Count one answer; `canonical` is None when it could not be parsed."""
        self.n += 1
        self._tally = None
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

    def tally(self) -> Tally:
        """What the parsed outputs hold: each distinct one is read once for all metrics."""
        if self._tally is None:
            self._tally = Tally(Lexicon(self.plan))
            for text, count in self.groups.items():
                self._tally.add(json.loads(text), count)
        return self._tally

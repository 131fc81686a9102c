"""The inputs of metrics (`Comparison` for accuracy, `CaseOutputs` for reproducibility) and their declarations."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, Literal

from skill_evaluator import plugins
from skill_evaluator.comparing.comparison import ComparedLeaf, MemoizedValue, compare_values, values_by_path
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.errors import ConfigError


class Comparison:
    """One parsed output and its ground truth; `truth` is None for the truth null and for a case without a truth."""

    def __init__(
        self,
        truth: Any,
        output: Any,
        plan: FieldPlan | None = None,
        is_valid: bool = True,
        checks: Sequence[tuple[float, float | None]] = (),
    ) -> None:
        """Prepare the comparison. Without a plan, leaves are compared by the type of their values.

        `is_valid` is whether the output validates against the schema; `checks` are pairs (weight, score).
        """
        self.plan = plan or FieldPlan()
        self.memoized_truth = MemoizedValue(truth, self.plan)
        self.memoized_output = MemoizedValue(output, self.plan)
        self.truth, self.output = self.memoized_truth.value, self.memoized_output.value
        self.is_valid, self.checks = is_valid, checks

    @cached_property
    def rows(self) -> list[ComparedLeaf]:
        """The compared leaves of truth and output."""
        return compare_values(self.memoized_truth, self.memoized_output)


# The arrays whose item order does not change the score. "all": all that are not declared `ordered`; "outer": those of
# them that are not inside an item of another array.
UnorderedArrays = Literal["all", "outer", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One accuracy metric. `score` is a pure function of a comparison; it returns 0 to 1, or None if undefined.

    `unparseable` is the score of an unparseable output (None: not measured). `symmetric`: the score stays
    the same if truth and output are swapped. `unordered_arrays`: the arrays whose item order does not matter. The last
    two are for tests (`tests/metrics/test_common.py`); a metric of another package may omit them.
    """

    score: Callable[[Comparison], float | None]
    needs_truth: bool = True
    unparseable: float | None = None
    symmetric: bool | None = None
    unordered_arrays: UnorderedArrays | None = None


def apply_metrics(metrics: Mapping[str, Metric], comparison: Comparison, *, labelled: bool) -> dict[str, float | None]:
    """Return the scores by metric. Scores are None if undefined, or if they need a truth and the case has none."""
    return {
        name: metric.score(comparison) if labelled or not metric.needs_truth else None
        for name, metric in metrics.items()
    }


def checked_score(name: str, score: Callable[[Comparison], Any], comparison: Comparison) -> float | None:
    """Return the score of a plugin's metric. Raise ConfigError if it fails or returns neither None nor 0 to 1."""
    value = plugins.call(f"metric '{name}'", score, comparison)
    if value is not None and not (isinstance(value, Real) and 0 <= float(value) <= 1):
        raise ConfigError(f"metric '{name}' returned {value!r:.80}, which is neither None nor a number from 0 to 1")
    return None if value is None else float(value)


OutputTally = tuple[defaultdict[str, Counter[Hashable]], defaultdict[str, Counter[int]]]
"""Counts over the parsed outputs of a case: of values by leaf path, and of array lengths by array path."""


@dataclass(slots=True)
class CaseOutputs:
    """All `n` outputs of one case: `groups` counts parsed outputs by canonical JSON, `raw` counts raw texts."""

    plan: FieldPlan = field(default_factory=FieldPlan)
    groups: Counter[str] = field(default_factory=Counter)
    raw: Counter[Hashable] = field(default_factory=Counter)
    n: int = 0
    _tally: OutputTally | None = field(default=None, repr=False)

    def add(self, raw: Hashable, canonical: str | None) -> None:
        """Add an output: its raw text or a digest of it, and its canonical JSON, or None if it is unparseable."""
        self.n += 1
        self._tally = None
        self.raw[raw] += 1
        if canonical is not None:
            self.groups[canonical] += 1

    @property
    def unparsed(self) -> int:
        """The number of unparseable outputs."""
        return self.n - self.groups.total()

    @property
    def pairs(self) -> int:
        """The number of unordered pairs of outputs."""
        return self.n * (self.n - 1) // 2

    @property
    def equal_pairs(self) -> int:
        """The number of pairs whose parsed outputs are equal JSON values."""
        return sum(count * (count - 1) // 2 for count in self.groups.values())

    def tally(self) -> OutputTally:
        """Return the counts of values by leaf path and of array lengths by array path, over the parsed outputs."""
        if self._tally is None:
            value_counts, length_counts = self._tally = defaultdict(Counter), defaultdict(Counter)
            for text, count in self.groups.items():
                values, lengths = values_by_path(json.loads(text), self.plan)
                for path, value in values.items():
                    value_counts[path][value] += count
                for path, length in lengths.items():
                    length_counts[path][length] += count
        return self._tally


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementMetric:
    """One reproducibility metric. `score` is a pure function of a case's outputs; it returns None if undefined.

    The score is 0 to 1 (best), or 1 (best) to the number of outputs if `is_count`. `reads_raw_text`: raw texts are
    compared, so key order matters. `unordered_arrays` is as in `Metric`.
    """

    score: Callable[[CaseOutputs], float | None]
    is_count: bool = False
    reads_raw_text: bool = False
    unordered_arrays: UnorderedArrays | None = None

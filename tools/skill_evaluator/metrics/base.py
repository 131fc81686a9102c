"""What a metric takes and what it declares.

An accuracy metric reads a `Comparison`, which all metrics of a replicate share. A reproducibility metric reads the
`CaseAnswers` of a case, without a ground truth: canonical texts, not values, so that thousands of answers stay small.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from numbers import Real
from typing import Any, Literal

from skill_evaluator import plugins
from skill_evaluator.comparing.comparison import ComparedLeaf, compare_sides
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.comparing.sides import Side, values_by_path
from skill_evaluator.errors import ConfigError


class Comparison:
    """One parsed output beside its ground truth; the aligned rows are worked out when first asked for.

    `truth` is None for an unlabelled case too; metrics that need it are then not called.
    """

    def __init__(
        self,
        truth: Any,
        output: Any,
        plan: FieldPlan | None = None,
        schema_valid: Callable[[Any], bool] = lambda output: True,
        truth_side: Side | None = None,
        checks: Sequence[tuple[float, float | None]] = (),
    ) -> None:
        """Use `truth_side`, if any, for `Side(truth, plan)`: kept for a case, its work is done once.

        Without a plan leaves are compared by the type of their values. `checks` are the weight and score of each.
        """
        self.plan = plan or FieldPlan()
        self.truth_side = truth_side or Side(truth, self.plan)
        self.output_side = Side(output, self.plan)
        self.truth, self.output = self.truth_side.value, self.output_side.value
        self.checks = checks
        self._schema_valid = partial(schema_valid, output)

    @cached_property
    def rows(self) -> list[ComparedLeaf]:
        """The aligned leaves."""
        return compare_sides(self.truth_side, self.output_side)

    @property
    def output_key(self) -> str:
        """One text for all JSON values equal to the output."""
        return self.output_side.canonical_text

    def conforms(self) -> bool:
        """Return whether the output validates against the component's schema."""
        return self._schema_valid()


# The arrays in which the order of items changes nothing: all that are not declared `ordered`; of these, the ones that
# are not inside an item of another; or none.
UnorderedArrays = Literal["all", "outer", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One accuracy metric: a pure function of a comparison to [0, 1], or None where it is undefined.

    `unparseable` is its value for an answer that could not be parsed (None: not measured). The contract suite
    `tests/metrics/test_common.py` holds it to the other two, which a metric of another package may leave out:
    `symmetric` says whether truth and output may change places, `unordered_arrays` where order never matters.
    """

    score: Callable[[Comparison], float | None]
    needs_truth: bool = True
    unparseable: float | None = None
    symmetric: bool | None = None
    unordered_arrays: UnorderedArrays | None = None


def apply_metrics(metrics: Mapping[str, Metric], comparison: Comparison, *, labelled: bool) -> dict[str, float | None]:
    """Score one parsed output; None where a metric needs a ground truth and the case has none."""
    return {
        name: metric.score(comparison) if labelled or not metric.needs_truth else None
        for name, metric in metrics.items()
    }


def checked_score(name: str, score: Callable[[Comparison], Any], comparison: Comparison) -> float | None:
    """Return the score of a plugin's metric; raise ConfigError if it fails or returns neither None nor a score."""
    value = plugins.call(f"metric '{name}'", score, comparison)
    if value is not None and not (isinstance(value, Real) and 0 <= float(value) <= 1):
        raise ConfigError(f"metric '{name}' gave {value!r:.80}, which is neither None nor a number from 0 to 1")
    return None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class AnswerTally:
    """What the parsed answers gave: by leaf path its multisets of values, by array path its numbers of items."""

    values: defaultdict[str, Counter[Hashable]] = field(default_factory=lambda: defaultdict(Counter))
    lengths: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))


@dataclass(slots=True)
class CaseAnswers:
    """All answers to one case: `groups` counts parsed outputs by canonical JSON, `raw` counts texts by digest.

    An answer that could not be parsed agrees with nothing; a call that brought no answer is not counted at all.
    """

    plan: FieldPlan = field(default_factory=FieldPlan)
    groups: Counter[str] = field(default_factory=Counter)
    raw: Counter[Hashable] = field(default_factory=Counter)
    n: int = 0
    _tally: AnswerTally | None = field(default=None, repr=False)

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

    def tally(self) -> AnswerTally:
        """Return the values and array lengths of the parsed outputs, each distinct output parsed once."""
        if self._tally is None:
            self._tally = AnswerTally()
            for text, count in self.groups.items():
                values, lengths = values_by_path(json.loads(text), self.plan)
                for path, given in values.items():
                    self._tally.values[path][given] += count
                for path, length in lengths.items():
                    self._tally.lengths[path][length] += count
        return self._tally


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementMetric:
    """One reproducibility metric: a pure function of the answers to a case, or None where it is undefined.

    Its range is 0 to 1, 1 is best; that of an `is_count` is 1 (best) to the number of answers. The contract suite
    holds it to `unordered_arrays`, as a `Metric`, and lets key order matter only where it `reads_raw_text`.
    """

    score: Callable[[CaseAnswers], float | None]
    is_count: bool = False
    reads_raw_text: bool = False
    unordered_arrays: UnorderedArrays | None = None

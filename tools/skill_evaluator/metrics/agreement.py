"""Reproducibility: metrics that compare the outputs of one case with each other, without a ground truth."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import fsum
from operator import mul
from typing import Literal

from skill_evaluator.comparing.comparison import MemoizedValue, compare_values, counted_weight, values_by_path
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.metrics.accuracy import FieldCounts, UnorderedArrays

FieldValues = Mapping[str, Counter[Hashable]]
Stability = Literal["stable_right", "stable_wrong", "stable", "flaky", "unscored"]
CountedOutput = tuple[MemoizedValue, int]  # an output and its count
_SAMPLED_PAIRS = 2_000
_MAX_OUTPUTS_FOR_ALL_PAIRS = 63  # pairs of more distinct outputs are sampled
OutputTally = tuple[defaultdict[str, Counter[Hashable]], defaultdict[str, Counter[int]]]


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

    The best score is 1. The worst score is 0 or, if `is_count`, the number of outputs. If `reads_raw_text`, raw texts
    are compared, so key order matters. `unordered_arrays` is as in `Metric`.
    """

    score: Callable[[CaseOutputs], float | None]
    is_count: bool = False
    reads_raw_text: bool = False
    unordered_arrays: UnorderedArrays | None = None


def field_values(outputs: CaseOutputs) -> dict[str, Counter[Hashable]]:
    """Count the canonical values of each leaf path over a case's parsed outputs. An absent value counts as None.

    All values at an array path count as one multiset. The paths are those in the schema and in the outputs.
    """
    paths = (path for path, rule in outputs.plan.leaves.items() if rule.compare != "ignore")
    values: dict[str, Counter[Hashable]] = {path: Counter() for path in paths}
    parsed = outputs.groups.total()
    for path, path_values in outputs.tally()[0].items():
        values.setdefault(path, Counter()).update(path_values)
    for counts in values.values():
        absent = parsed - counts.total()
        if absent:
            counts[None] = absent
    return values


def field_profile(
    outputs: CaseOutputs, values: FieldValues, fields: Mapping[str, FieldCounts] | None
) -> dict[str, Stability]:
    """Return the stability of each leaf path of one case.

    - `unscored`: there are fewer than two outputs, no output was parsed, or the field does not count in scores.
    - `stable_right`: every output was parsed, and all its leaves at the path are right.
    - `stable_wrong`: every output was parsed and has the same wrong value.
    - `stable`: every output was parsed and has the same value, and the case has no ground truth.
    - `flaky`: otherwise.

    `values` is the result of `field_values`. `fields` has the total counts over the parsed outputs, or is None if the
    case has no ground truth. A missing value counts as a value. The value at an array path is a multiset.

    >>> outputs = CaseOutputs()
    >>> for text in ('{"a":1,"b":1,"c":1}', '{"a":1,"b":1,"c":2}'): outputs.add(text, text)
    >>> field_profile(outputs, field_values(outputs), {"b": FieldCounts(flawed=2), "c": FieldCounts(flawed=1)})
    {'a': 'stable_right', 'b': 'stable_wrong', 'c': 'flaky'}
    """
    parsed = outputs.groups.total()
    standings: dict[str, Stability] = {}
    for path in dict.fromkeys((*values, *(fields or ()))):
        is_constant = len(values.get(path, ())) < 2  # a path only in the truth has no values
        if outputs.n < 2 or not parsed or not outputs.plan.leaf(path).counts:
            standings[path] = "unscored"
        elif parsed < outputs.n:
            standings[path] = "flaky"
        elif fields is None:
            standings[path] = "stable" if is_constant else "flaky"
        elif path not in fields or not fields[path].flawed:
            standings[path] = "stable_right"
        else:
            standings[path] = "stable_wrong" if is_constant and fields[path].flawed == outputs.n else "flaky"
    return standings


def pairwise_exact_match(outputs: CaseOutputs) -> float | None:
    """Return the share of the N(N−1)/2 pairs of a case's outputs that are equal JSON values.

    Range 0 to 1, 1 is best; an unparseable output equals no other; undefined for fewer than two outputs.

    >>> outputs = CaseOutputs()
    >>> for text in ("1", "1", "2"): outputs.add(text, text)
    >>> round(pairwise_exact_match(outputs), 3)
    0.333
    """
    return outputs.equal_pairs / outputs.pairs if outputs.pairs else None


def distinct_outputs(outputs: CaseOutputs) -> float | None:
    """Return the number of distinct parsed outputs of a case. Each unparseable output counts as distinct.

    Range 1 to N, 1 is best; undefined for fewer than two outputs.

    >>> outputs = CaseOutputs()
    >>> for text in ("1", "1", "2"): outputs.add(text, text)
    >>> distinct_outputs(outputs)
    2.0
    """
    return float(len(outputs.groups) + outputs.unparsed) if outputs.n > 1 else None


def tarr_at_n(outputs: CaseOutputs) -> float | None:
    """Return 1 if the raw texts of all N outputs are the same, else 0.

    Range {0, 1}, 1 is best; undefined for fewer than two outputs. Averaged over cases it is the total agreement rate of
    Atil et al. 2024, https://arxiv.org/abs/2408.04667 (TARr@N).

    >>> outputs = CaseOutputs()
    >>> for text in ("1", "1.0"): outputs.add(text, "1")
    >>> tarr_at_n(outputs), tara_at_n(outputs)
    (0.0, 1.0)
    """
    return float(len(outputs.raw) == 1) if outputs.n > 1 else None


def tara_at_n(outputs: CaseOutputs) -> float | None:
    """Return 1 if all N outputs were parsed to equal JSON values, else 0.

    Range {0, 1}, 1 is best; undefined for fewer than two outputs.

    >>> outputs = CaseOutputs()
    >>> for text in ("1", "no number"): outputs.add(text, "1" if text == "1" else None)
    >>> tara_at_n(outputs)
    0.0
    """
    return float(len(outputs.groups) == 1 and not outputs.unparsed) if outputs.n > 1 else None


def pairwise_field_f1(outputs: CaseOutputs) -> float | None:
    """Return the mean of `field_level_f1` over the N(N−1)/2 pairs of a case's outputs.

    One output of a pair serves as the ground truth of the other; the result is symmetric. Range 0 to 1, 1 is best; a
    pair with an unparseable output scores 0; undefined for fewer than two outputs, or if no field counts.
    With more than 63 distinct outputs, about 2,000 pairs are sampled: every output is in the same number of pairs, and
    the sample is always the same.

    >>> outputs = CaseOutputs()
    >>> for text in ('{"a":1,"b":0}', '{"a":2,"b":0}'): outputs.add(text, text)
    >>> pairwise_field_f1(outputs)
    0.5
    """
    values = [(MemoizedValue(json.loads(text), outputs.plan), count) for text, count in sorted(outputs.groups.items())]
    counts = outputs.plan.counts or any(counted_weight(compare_values(side, side))[1] for side, _ in values)
    if not outputs.pairs or not counts:
        return None
    agreed = float(outputs.equal_pairs)
    if len(values) > 1:
        pairs = list(combinations(values, 2) if len(values) <= _MAX_OUTPUTS_FOR_ALL_PAIRS else _sampled_pairs(values))
        times = [first_count * second_count for (_, first_count), (_, second_count) in pairs]
        weights = [counted_weight(compare_values(first, second)) for (first, _), (second, _) in pairs]
        shares = [2 * matched / (first + second) if first + second else 1.0 for matched, first, second in weights]
        different = outputs.groups.total() * (outputs.groups.total() - 1) // 2 - outputs.equal_pairs
        agreed += different * fsum(map(mul, times, shares)) / sum(times)
    return min(1.0, agreed / outputs.pairs)


def _sampled_pairs(values: list[CountedOutput]) -> Iterator[tuple[CountedOutput, CountedOutput]]:
    """Yield pairs so that every value is in the same number of pairs. The same values always give the same pairs."""
    order = random.Random(0).sample(values, len(values))  # noqa: S311 (no secret)
    for distance in range(1, max(2, _SAMPLED_PAIRS // len(order) + 1)):
        yield from zip(order, order[distance:] + order[:distance], strict=True)


def field_stability_by_path(outputs: CaseOutputs) -> dict[str, float]:
    """Return the share of outputs that have the most frequent value, by leaf path.

    Values are compared in canonical form, so tolerances do not apply. A missing value counts as a value. All values at
    an array path count as one multiset. An unparseable output has no value, but counts as an output. Range 0 to 1, 1 is
    best; empty for fewer than two outputs.

    >>> outputs = CaseOutputs()
    >>> for text in ('{"a":1}', '{"a":1}', '{"a":2}'): outputs.add(text, text)
    >>> round(field_stability_by_path(outputs)["a"], 3)
    0.667
    """
    if outputs.n < 2:
        return {}
    return {path: max(counts.values(), default=0) / outputs.n for path, counts in field_values(outputs).items()}


def field_stability(outputs: CaseOutputs) -> float | None:
    """Return the mean stability of the fields.

    The stability of a field is the share of outputs that have the most frequent value of this field. Range 0 to 1, 1 is
    best; undefined for fewer than two outputs or without fields.

    >>> outputs = CaseOutputs()
    >>> for text in ('{"a":1,"b":1}', '{"a":1,"b":2}'): outputs.add(text, text)
    >>> field_stability(outputs)
    0.75
    """
    shares = field_stability_by_path(outputs)
    return sum(shares.values()) / len(shares) if shares else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLengths:
    """The lengths of one array in a case's outputs: the share of the most frequent length, and the extremes."""

    stability: float
    shortest: int | None = field(metadata={"ge": 0})  # None: no output was parsed
    longest: int | None = field(metadata={"ge": 0})


def array_lengths(outputs: CaseOutputs) -> dict[str, ArrayLengths]:
    """Return the share of the most frequent length, the shortest and the longest length of each array, by path.

    Arrays at one path, such as the `lines` of all `orders`, count as one array. An absent array has length 0. An
    unparseable output has no length, but counts as an output. Return {} for fewer than two outputs.

    >>> outputs = CaseOutputs()
    >>> for text in ('{"a":[1,2]}', '{"a":[2,3]}', '{"a":[1]}', '{}'): outputs.add(text, text)
    >>> array_lengths(outputs)["a"]
    ArrayLengths(stability=0.5, shortest=0, longest=2)
    """
    if outputs.n < 2:
        return {}
    tallied = {path: Counter[int]() for path in outputs.plan.arrays} | outputs.tally()[1]
    parsed = outputs.groups.total()
    arrays = {}
    for path, lengths in tallied.items():
        absent = parsed - lengths.total()
        counts = lengths + Counter({0: absent}) if absent else lengths
        arrays[path] = ArrayLengths(
            stability=max(counts.values(), default=0) / outputs.n,
            shortest=min(counts, default=None),
            longest=max(counts, default=None),
        )
    return arrays


def array_length_stability(outputs: CaseOutputs) -> float | None:
    """Return the mean stability of the lengths of the arrays.

    The stability of an array's length is the share of outputs that have the most frequent length. Range 0 to 1, 1 is
    best; undefined for fewer than two outputs, or if neither schema nor outputs have an array.

    >>> outputs = CaseOutputs()
    >>> for text in ('{"a":[1],"b":[]}', '{"a":[2],"b":[3]}'): outputs.add(text, text)
    >>> array_length_stability(outputs)
    0.75
    """
    arrays = array_lengths(outputs)
    return sum(one.stability for one in arrays.values()) / len(arrays) if arrays else None


def krippendorff_alpha(units: Iterable[Mapping[Hashable, int]]) -> float | None:
    """Return Krippendorff's α for nominal values: 1 − observed disagreement ÷ expected disagreement.

    Each unit has the count of each value. The observed disagreement is the share of unequal pairs within units, each
    unit weighted by its number of values. The expected disagreement is the share of unequal pairs among the values of
    all units. Units with fewer than two values are ignored. Range −1 to 1, 1 is best, 0 is chance. Undefined if no unit
    has two values, or if all values are equal. Krippendorff 2011, https://repository.upenn.edu/asc_papers/43.

    >>> krippendorff_alpha([{"yes": 2}, {"no": 2}])
    1.0
    >>> round(krippendorff_alpha([{"yes": 2}, {"no": 1, "yes": 1}]), 3)
    0.0
    """
    totals: Counter[Hashable] = Counter()
    agreeing = 0.0
    for unit in units:
        count_of_unit = sum(unit.values())
        if count_of_unit > 1:
            agreeing += sum(count * (count - 1) for count in unit.values()) / (count_of_unit - 1)
            totals.update(unit)
    n = totals.total()
    chance_pairs = sum(count * (count - 1) for count in totals.values())
    possible = n * (n - 1) - chance_pairs
    return ((n - 1) * agreeing - chance_pairs) / possible if possible else None

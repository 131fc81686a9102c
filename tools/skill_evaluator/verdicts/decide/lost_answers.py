"""Answers that were lost and metrics that are undefined → how far they could move a difference, and where they are.

A bound assumes nothing of what is missing: the worst case gives every lost answer of the candidate 0 and every one of
the baseline 1, the best case the reverse (Horowitz and Manski 2000, J. Am. Stat. Assoc. 95:77).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest

from skill_evaluator.files import FrozenModel
from skill_evaluator.records.record import ANSWERED, SCORED, CaseRecord, strict_score
from skill_evaluator.verdicts.decide.comparability import CasePairs, Kind, field_scores

_UNDEFINED = "undefined"  # what became of a value, beside the outcomes of calls
_NO_TRUTH = "no ground truth"
_NO_VALUE = "the ground truth has no value of it"
_ALL_ANSWERED = frozenset(ANSWERED)
_SLACK = 1e-9  # two sums of the same shares in another order differ by less
_DIGIT = 1e-6  # a bound is rounded outward to it
_MOST_NAMED = 5


class Missing(FrozenModel):
    """The values that a measure lacks: the difference if all of them were worst for the candidate, and if best.

    `lost`: by id of a case, what each side lost there; what weighs most comes first. `baseline_lost` and
    `candidate_lost` count the answers in all. `undefined`: the cases of which the metric says nothing, and why.
    `rests_on` is the share of cases with a ground truth of which it says something.
    """

    worst: float
    best: float
    n_cases: int
    lost: dict[str, str] = {}
    baseline_lost: int = 0
    candidate_lost: int = 0
    undefined: dict[str, str] = {}
    rests_on: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """One side of a case: its mean score at least and at most, and the number of planned answers that were lost."""

    low: float
    high: float
    planned: int
    lost: Counter[str]

    def words(self, name: str) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.lost.items()))
        return f"{name} {self.lost.total()} of {self.planned} ({kinds})"


@dataclass(frozen=True, slots=True, kw_only=True)
class _BoundedCase:
    """One case that enters a bound, with its two sides."""

    case_id: str
    before: _Range
    after: _Range

    @property
    def width(self) -> float:
        return self.before.high - self.before.low + self.after.high - self.after.low

    @property
    def words(self) -> str:
        sides = (("baseline", self.before), ("candidate", self.after))
        return "; ".join(side.words(name) for name, side in sides if side.lost)


def bounds_of(cases: CasePairs, name: str, kind: Kind = "accuracy") -> Missing | None:
    """Return the bounds of a measure over all cases that two records have in common; None if nothing is missing.

    A metric without a value in any answer of a case is undefined there if the truth has none either; the bounds leave
    such a case out. Where the truth has one (or the record does not tell), its values are lost like any other.
    """
    if kind != "accuracy" and all(map(_came, chain.from_iterable(cases))):
        return None
    undefined = _undefined_cases(cases, name) if kind == "accuracy" else {}
    if kind == "accuracy" and not undefined and all(_is_scored(case, name) for case in chain.from_iterable(cases)):
        return None
    read = _READERS[kind]
    defined = [pair for pair in cases if pair[0].case_id not in undefined]
    sides = [(before.case_id, read(before, name), read(after, name)) for before, after in defined]
    bounded = [
        _BoundedCase(case_id=case_id, before=before, after=after)
        for case_id, before, after in sides
        if before is not None and after is not None
    ]
    incomplete = [case for case in bounded if case.width > 0.0]
    if not bounded or not (incomplete or undefined):
        return None
    worst, best = _outward(
        sum(case.after.low - case.before.high for case in bounded) / len(bounded),
        sum(case.after.high - case.before.low for case in bounded) / len(bounded),
    )
    labelled = sum(why != _NO_TRUTH for why in undefined.values())
    return Missing(
        worst=worst,
        best=best,
        n_cases=len(bounded),
        lost={case.case_id: case.words for case in sorted(incomplete, key=lambda one: (-one.width, one.case_id))},
        baseline_lost=sum(case.before.lost.total() for case in incomplete),
        candidate_lost=sum(case.after.lost.total() for case in incomplete),
        undefined=undefined,
        rests_on=round(len(bounded) / (len(bounded) + labelled), 6),
    )


def _is_scored(case: CaseRecord, metric: str) -> bool:
    """Return whether every planned answer has a value."""
    values = case.replicates.get(metric, ())
    return len(values) == len(case.outcomes) == case.outcomes.count(SCORED) and None not in values


def _undefined_cases(cases: CasePairs, metric: str) -> dict[str, str]:
    """Return the cases of which a metric says nothing, whatever is answered, and why.

    A record names in each case the metrics that the truth has a value of. A record without any does not tell.
    """
    if not any(metric in case.accuracy for pair in cases for case in pair):
        return {}
    return {
        before.case_id: _NO_TRUTH if before.exact is None and after.exact is None else _NO_VALUE
        for before, after in cases
        if metric not in before.accuracy and metric not in after.accuracy
    }


def _accuracy_side(case: CaseRecord, metric: str) -> _Range | None:
    strict = [strict_score(outcome, value) for outcome, value in _answers(case, metric)]
    total = sum(score for score in strict if score is not None)
    return _side(case, total, len(strict), _lost_values(case, metric))


def _field_side(case: CaseRecord, path: str) -> _Range | None:
    """Return a side of a field; None where answers were scored and neither they nor the truth have the field.

    The items of an array in a lost answer count as one answer, as those of every other do.
    """
    scores, lost = field_scores(case, path), _lost_values(case)
    if not scores and SCORED in case.outcomes:
        return None
    return _side(case, sum(scores), len(scores) + lost.total(), lost)


def _agreement_side(case: CaseRecord, metric: str) -> _Range | None:
    """Return a side of agreement, whose values are the pairs of planned answers."""
    lost = _lost_values(case)
    planned = len(case.outcomes)
    pairs, answered = math.comb(planned, 2), math.comb(planned - lost.total(), 2)
    value = case.reproducibility.get(metric)
    if not pairs or (value is None and answered):
        return None
    low = (value or 0.0) * answered / pairs
    return _Range(low=low, high=low + 1 - answered / pairs, planned=planned, lost=lost)


def _side(case: CaseRecord, total: float, n: int, lost: Counter[str]) -> _Range | None:
    """Return a side whose n values, those that were lost among them, have a mean; the others add up to `total`."""
    if not n:
        return None
    return _Range(low=total / n, high=(total + lost.total()) / n, planned=len(case.outcomes), lost=lost)


def _lost_values(case: CaseRecord, metric: str | None = None) -> Counter[str]:
    """Count the answers of a case that were lost, by kind; with a metric also those that it is undefined for."""
    if metric is None:
        return Counter() if _came(case) else Counter(one for one in case.outcomes if one not in ANSWERED)
    return Counter(
        _UNDEFINED if outcome == SCORED else outcome
        for outcome, value in _answers(case, metric)
        if strict_score(outcome, value) is None
    )


def _came(case: CaseRecord) -> bool:
    """Return whether every planned answer of a case came."""
    return _ALL_ANSWERED.issuperset(case.outcomes)


def _answers(case: CaseRecord, metric: str) -> Iterator[tuple[str, float | None]]:
    """Yield the outcome and the score of each planned answer."""
    return zip_longest(case.outcomes, case.replicates.get(metric, [])[: len(case.outcomes)])


_READERS: dict[Kind, Callable[[CaseRecord, str], _Range | None]] = {
    "accuracy": _accuracy_side,
    "reproducibility": _agreement_side,
    "field": _field_side,
}


def _outward(worst: float, best: float) -> tuple[float, float]:
    """Round bounds to six digits, each away from the middle: a mean summed in any order is still within."""
    low = math.floor((worst - _SLACK) / _DIGIT) * _DIGIT
    high = math.ceil((best + _SLACK) / _DIGIT) * _DIGIT
    return max(-1.0, round(low, 6)), min(1.0, round(high, 6))


def missing_reasons(metric: str, missing: Missing, tolerance: float, required_coverage: float) -> Iterator[str]:
    """Yield what a measure lacks, where, and how far that could move it."""
    if missing.lost:
        crossing = f": a drop beyond {tolerance:g} is not ruled out" if crosses(missing, tolerance) else ""
        yield (
            f"{metric}: answers to {len(missing.lost)} of {missing.n_cases} documents are missing, "
            f"{missing.baseline_lost} of the baseline and {missing.candidate_lost} of the candidate; "
            f"whatever they were, the difference is {missing.worst:+.3f} to {missing.best:+.3f}{crossing} "
            f"({_named(missing.lost)})"
        )
    if missing.undefined:
        everything = missing.n_cases + len(missing.undefined)
        too_few = ""
        if missing.rests_on < required_coverage:
            too_few = f", fewer than the required {required_coverage:.2f} of those with a ground truth"
        yield (
            f"{metric} says something about {missing.n_cases} of {everything} documents{too_few} "
            f"({_named(missing.undefined)})"
        )


def crosses(missing: Missing, tolerance: float) -> bool:
    """Return whether the worst case of what was lost is a drop beyond the tolerance."""
    return bool(missing.lost) and missing.worst < -tolerance - 2 * _DIGIT


def _named(cases: Mapping[str, str]) -> str:
    named = [f"{case_id}: {words}" for case_id, words in list(cases.items())[:_MOST_NAMED]]
    more = len(cases) - _MOST_NAMED
    return " · ".join(named) + (f" · and {more} more" if more > 0 else "")

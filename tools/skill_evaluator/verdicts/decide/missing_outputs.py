"""Missing outputs and undefined metrics → how far they could move a difference, and in which cases they are.

A bound assumes nothing about missing outputs: in the worst case each of the candidate scores 0 and each of the baseline
1, in the best case the reverse (Horowitz and Manski 2000, J. Am. Stat. Assoc. 95:77).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest

from skill_evaluator.files import FrozenModel
from skill_evaluator.records.record import ANSWERED, SCORED, CaseRecord, strict_score
from skill_evaluator.verdicts.decide.comparability import CasePairs, Kind, field_scores

_SLACK = 1e-9  # two sums of the same shares in another order differ by less
_DIGIT = 1e-6  # a bound is rounded outward to it
_MAX_NAMED = 5
_NO_TRUTH = "no ground truth"


class Missing(FrozenModel):
    """The values that a measure lacks: the difference if all were worst for the candidate, and if all were best.

    `lost` says by case what each side lost there, the widest bound first; `baseline_lost` and `candidate_lost` count
    the outputs in all. `undefined`: the cases in which the metric has no value, and why. `rests_on` is the share of
    cases with a ground truth in which it has one.
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
    """One side of a case: the sum of its scores, the number of its outputs, and the lost ones by kind."""

    total: float
    count: int
    planned: int
    lost: Counter[str]

    @property
    def low(self) -> float:
        return self.total / self.count

    @property
    def high(self) -> float:
        return (self.total + self.lost.total()) / self.count

    def words(self, name: str) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.lost.items()))
        return f"{name} {self.lost.total()} of {self.planned} ({kinds})"


def bounds_of(cases: CasePairs, name: str, kind: Kind = "accuracy") -> Missing | None:
    """Return the bounds of a measure over all cases that two records share. Return None if nothing is missing.

    A metric that has no value in a case, nor has its ground truth, is undefined there, and the bounds leave the case
    out. If the ground truth has a value, or the record does not tell, the values are lost.
    """
    if kind == "reproducibility" or all(_is_complete(case, name, kind) for case in chain.from_iterable(cases)):
        return None
    undefined = _undefined_cases(cases, name) if kind == "accuracy" else {}
    read = ((old.case_id, _range_of(old, name, kind), _range_of(new, name, kind)) for old, new in cases)
    sides = {case_id: (old, new) for case_id, old, new in read if case_id not in undefined and old and new}
    lost = {case_id: old.high - old.low + new.high - new.low for case_id, (old, new) in sides.items()}
    lossy = sorted((case_id for case_id in lost if lost[case_id] > 0.0), key=lambda case_id: (-lost[case_id], case_id))
    if not sides or not (lossy or undefined):
        return None
    worst = sum(new.low - old.high for old, new in sides.values()) / len(sides)
    best = sum(new.high - old.low for old, new in sides.values()) / len(sides)
    labelled = sum(reason != _NO_TRUTH for reason in undefined.values())
    return Missing(  # each bound is rounded away from the middle: a mean summed in any order is still within
        worst=max(-1.0, round(math.floor((worst - _SLACK) / _DIGIT) * _DIGIT, 6)),
        best=min(1.0, round(math.ceil((best + _SLACK) / _DIGIT) * _DIGIT, 6)),
        n_cases=len(sides),
        lost={case_id: _lost_words(*sides[case_id]) for case_id in lossy},
        baseline_lost=sum(old.lost.total() for old, _ in sides.values()),
        candidate_lost=sum(new.lost.total() for _, new in sides.values()),
        undefined=undefined,
        rests_on=round(len(sides) / (len(sides) + labelled), 6),
    )


def _is_complete(case: CaseRecord, name: str, kind: Kind) -> bool:
    """Return whether every planned output of a case has a value."""
    if kind == "field":
        return all(outcome in ANSWERED for outcome in case.outcomes)
    values = case.replicates.get(name, ())
    return len(values) == len(case.outcomes) == case.outcomes.count(SCORED) and None not in values


def _undefined_cases(cases: CasePairs, metric: str) -> dict[str, str]:
    """Return the cases in which a metric has no value, whatever the output is, and why.

    A record names in each case the metrics that the ground truth has a value of. A record without any does not tell.
    """
    if not any(metric in case.accuracy for pair in cases for case in pair):
        return {}
    return {
        old.case_id: _NO_TRUTH if old.exact is None and new.exact is None else "the ground truth has no value of it"
        for old, new in cases
        if metric not in old.accuracy and metric not in new.accuracy
    }


def _range_of(case: CaseRecord, name: str, kind: Kind) -> _Range | None:
    """Return one side of a case. Return None for a field that neither outputs nor truth have."""
    if kind == "field":
        scores = field_scores(case, name)
        lost = Counter(outcome for outcome in case.outcomes if outcome not in ANSWERED)
        if not scores and SCORED in case.outcomes:
            return None
        total, count = sum(scores), len(scores) + lost.total()
    else:
        planned = list(zip_longest(case.outcomes, case.replicates.get(name, [])[: len(case.outcomes)]))
        strict = [(outcome, strict_score(outcome, value)) for outcome, value in planned]
        lost = Counter("undefined" if outcome == SCORED else outcome for outcome, score in strict if score is None)
        total, count = sum(score for _, score in strict if score is not None), len(strict)
    return _Range(total=total, count=count, planned=len(case.outcomes), lost=lost) if count else None


def _lost_words(before: _Range, after: _Range) -> str:
    return "; ".join(side.words(name) for name, side in (("baseline", before), ("candidate", after)) if side.lost)


def missing_reasons(metric: str, missing: Missing, tolerance: float, required_coverage: float) -> Iterator[str]:
    """Yield which values of a measure are missing, in which cases, and how far they could move it."""
    if missing.lost:
        crossing = f": a drop beyond {tolerance:g} is not ruled out" if crosses(missing, tolerance) else ""
        yield (
            f"{metric}: outputs of {len(missing.lost)} of {missing.n_cases} cases are missing, "
            f"{missing.baseline_lost} of the baseline and {missing.candidate_lost} of the candidate; "
            f"whatever they were, the difference is {missing.worst:+.3f} to {missing.best:+.3f}{crossing} "
            f"({_named(missing.lost)})"
        )
    if missing.undefined:
        every = missing.n_cases + len(missing.undefined)
        too_few = ""
        if missing.rests_on < required_coverage:
            too_few = f", fewer than the required {required_coverage:.2f} of those with a ground truth"
        yield f"{metric} has a value in {missing.n_cases} of {every} cases{too_few} ({_named(missing.undefined)})"


def crosses(missing: Missing, tolerance: float) -> bool:
    """Return whether the missing outputs could be a drop beyond the tolerance."""
    return bool(missing.lost) and missing.worst < -tolerance - 2 * _DIGIT


def _named(cases: Mapping[str, str]) -> str:
    named = [f"{case_id}: {words}" for case_id, words in list(cases.items())[:_MAX_NAMED]]
    more = len(cases) - _MAX_NAMED
    return " · ".join(named) + (f" · and {more} more" if more > 0 else "")

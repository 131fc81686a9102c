"""Every figure two records can be compared by, as numbers per case: metrics, agreement between replicates, fields."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from skill_evaluator.records.record import CaseRecord
from skill_evaluator.records.strict_score import SCORED, strict_score

Kind = Literal["accuracy", "reproducibility", "field"]
Cases = Sequence[tuple[CaseRecord, CaseRecord]]
Scores = tuple[float, ...]
AGREEMENT = ("pairwise_exact_match", "pairwise_field_f1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure of baseline and candidate. `case_ids`: the cases that have it on both sides.

    `before` and `after` hold, per case, the scores of its replicates; of agreement, which has one value a case, that.
    """

    name: str
    kind: Kind
    case_ids: tuple[str, ...]
    before: tuple[tuple[float, ...], ...]
    after: tuple[tuple[float, ...], ...]

    @property
    def differences(self) -> list[float]:
        """Per case, the mean after minus the mean before."""
        pairs = zip(self.before, self.after, strict=True)
        return [sum(new) / len(new) - sum(old) / len(old) for old, new in pairs]


def measures(cases: Cases, metrics: Iterable[str]) -> Iterator[Measure]:
    """Every figure that at least one case has on both sides, accuracies first."""
    for name in metrics:
        yield from _measure(name, "accuracy", cases, partial(strict_scores, metric=name))
    for name in AGREEMENT:
        yield from _measure(name, "reproducibility", cases, partial(_agreement, metric=name))
    for path in dict.fromkeys(path for pair in cases for case in pair for path in case.fields):
        yield from _measure(path, "field", cases, partial(_field, path=path))


def strict_scores(case: CaseRecord, metric: str) -> tuple[float, ...]:
    """Return the strict scores of a case's answered replicates by a metric.

    Empty where the metric says nothing about the case (all of its scored replicates lack it).
    """
    replicates = list(zip(case.outcomes, case.replicates.get(metric, []), strict=False))
    scored = [value for outcome, value in replicates if outcome == SCORED]
    if scored and all(value is None for value in scored):
        return ()
    strict = (strict_score(outcome, value) for outcome, value in replicates)
    return tuple(value for value in strict if value is not None)


def _agreement(case: CaseRecord, metric: str) -> tuple[float, ...]:
    value = case.reproducibility.get(metric)
    return () if value is None else (value,)


def _field(case: CaseRecord, path: str) -> tuple[float, ...]:
    """One score for each answer, 1 for right and 0 for wrong, missing or extra, with the mean right ÷ n.

    The items of an array in one answer are right or wrong together: they count as one answer, not as many.
    """
    count = case.fields.get(path)
    if count is None or not count.n:
        return ()
    answers = min(count.n, case.outcomes.count(SCORED))
    right = answers * count.right / count.n
    whole = int(right)
    part = (right - whole,) if right > whole else ()
    return (1.0,) * whole + part + (0.0,) * (answers - whole - len(part))


def _measure(name: str, kind: Kind, cases: Cases, scores: Callable[[CaseRecord], Scores]) -> Iterator[Measure]:
    pairs = [(before.case_id, scores(before), scores(after)) for before, after in cases]
    known = [(case_id, before, after) for case_id, before, after in pairs if before and after]
    if known:
        case_ids, old, new = zip(*known, strict=True)
        yield Measure(name=name, kind=kind, case_ids=case_ids, before=old, after=new)

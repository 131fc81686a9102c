"""The records of an undamaged prompt and of a mutant → did the cases notice?

The undamaged prompt is asked as it is, and with three edits that mean nothing, each with a seed of its own (the
controls). What such an edit does to a case is the noise that a mutant must exceed. That none of them moved a case does
not make it certain that the next would not.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.evaluation.mutation_results import LEAST_REPLICATES, MutantResult, Reaction
from skill_evaluator.library.mutants import Mutant, Operator
from skill_evaluator.records.record import CaseRecord, Record
from skill_evaluator.stats import ROUNDING
from skill_evaluator.verdicts.decide.cases import changed_fields
from skill_evaluator.verdicts.decide.comparability import Measure, Pair, case_means, field_scores, strict_scores
from skill_evaluator.verdicts.decide.effects import Floats
from skill_evaluator.verdicts.decide.measuring import Compared, Measured, measure_all
from skill_evaluator.verdicts.decide.rules import VerdictRules, is_lost

_ADVICE: dict[Operator, str] = {
    "rule-dropped": "a document in which this rule decides: read without it, another answer is right",
    "negation-flipped": "a document that offers what this line forbids, so that following its opposite is wrong",
    "format-loosened": "a document that prints the value in another form than the one asked for",
    "example-removed": "a document as hard as the example, whose answer one gets wrong without having seen it",
    "descriptions-removed": "a document in which the name of a field alone misleads, and its description does not",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Undamaged:
    """The undamaged prompt's record, and those of the same prompt with edits that mean nothing."""

    record: Record
    controls: tuple[Record, ...]

    def moved_by_controls(self) -> list[str]:
        """Return the cases whose primary metric a meaningless edit moved at all."""
        metric, moved = self.record.primary_metric, set()
        for control in self.controls:
            pair = Pair(baseline=self.record, candidate=_beside(control, self.record))
            (compared,) = measure_all([pair], metric, lambda measure: False)
            moved |= set(_moved(compared.primary(metric)))
        return [case.case_id for case in self.record.per_case if case.case_id in moved]


def looks_of_mutants(replicates: int) -> tuple[int, ...]:
    """Return after how many replicates a mutant is looked at: 2, then twice as many each time, and at the end.

    >>> looks_of_mutants(2), looks_of_mutants(4), looks_of_mutants(10)
    ((2,), (2, 4), (2, 4, 8, 10))
    """
    looks, at = [], LEAST_REPLICATES
    while at < replicates:
        looks.append(at)
        at *= 2
    return (*looks, replicates)


def judged_mutant(
    mutant: Mutant, undamaged: Undamaged, record: Record, rules: VerdictRules, *, looks: int, last: bool
) -> MutantResult | None:
    """Return what became of a mutant by the answers so far, or None where more are needed to say.

    Metrics and fields are one family; a mutant is killed when one of them moved beyond the tolerance with q at or below
    the look's part of α, or when a field is lost in every case that has it. So of mutants that change nothing no more
    than α are called killed, however often they are looked at (Bonferroni).
    """
    pair = Pair(
        baseline=undamaged.record, candidate=_beside(record, undamaged.record), baseline_again=undamaged.controls
    )
    (compared,) = measure_all([pair], rules.primary_metric)
    share = 1.0 if looks == 1 else 0.5 if last else 0.5 / (looks - 1)  # most is the last one's: answers often repeat
    noticed = _noticed(compared, rules, rules.alpha * share)
    if not noticed and not last:
        return None
    reactions = [*_cases(compared, noticed, rules), *noticed]
    return MutantResult.view(
        mutant,
        status="killed" if noticed else "survived",
        reactions=reactions,
        better=bool(noticed) and all(one.after > one.before for one in noticed),
        moved=len(_moved(compared.primary(rules.primary_metric))),
        replicates=record.replicates,
        advice=None if noticed else _ADVICE[mutant.operator],
    )


def unasked(mutant: Mutant, reason: str | None = None, replicates: int = 0) -> MutantResult:
    """Return a mutant of which nothing is known, and why."""
    return MutantResult.view(mutant, status="undecided", replicates=replicates, reason=reason)


def silent_cases(case_ids: Sequence[str], mutants: Sequence[MutantResult]) -> list[str]:
    """Return the cases that reacted to no mutant; none while no mutant is decided."""
    reacted = {case_id for mutant in mutants for case_id in mutant.cases}
    decided = any(mutant.status != "undecided" for mutant in mutants)
    return [case_id for case_id in case_ids if case_id not in reacted] if decided else []


def _beside(record: Record, other: Record) -> Record:
    """Return a record marked as asked in turns with a second run, as mutants are."""
    return record.model_copy(update={"beside": other.run_id})


def _noticed(compared: Compared, rules: VerdictRules, level: float) -> list[Reaction]:
    """Return what moved beyond chance and beyond the tolerance: fields first, then metrics."""
    figures = [own for own in compared.measured if own.measure.kind != "reproducibility"]
    if not figures:
        return []
    versions = _versions(compared.pair)
    case_ids = sorted({case_id for own in figures for case_id in own.measure.case_ids})
    scores = np.array([[_means(own.measure, case_id, versions) for case_id in case_ids] for own in figures])
    noticed = []
    for own, q in zip(figures, chances_of_last(scores), strict=True):
        before, after = (sum(means) / len(means) for means in map(case_means, (own.measure.before, own.measure.after)))
        beyond = abs(after - before) > rules.tolerance(own.measure) + ROUNDING
        if beyond and (q <= level or is_lost(own, models=1)):
            noticed.append(
                Reaction(
                    name=own.measure.name,
                    kind="field" if own.measure.kind == "field" else "metric",
                    before=round(before, 6),
                    after=round(after, 6),
                    q=round(q, 6),
                )
            )
    return sorted(noticed, key=lambda reaction: reaction.kind)


def _cases(compared: Compared, noticed: Sequence[Reaction], rules: VerdictRules) -> Iterator[Reaction]:
    """Yield the cases that moved the way of what was noticed, and further than any meaningless edit moved them.

    Their scores are those of the primary metric; their q is that of what was noticed.
    """
    own = compared.primary(rules.primary_metric)
    if own is None or compared.common is None or not noticed:
        return
    measure, pairs = own.measure, {before.case_id: (before, after) for before, after in compared.common.cases}
    q, fell = min(one.q for one in noticed), {one.after < one.before for one in noticed}
    means = zip(measure.case_ids, case_means(measure.before), case_means(measure.after), strict=True)
    for case_id, before, after in means:
        *others, score = _means(measure, case_id, _versions(compared.pair))
        if (score < before) in fell and not min(others) - ROUNDING <= score <= max(others) + ROUNDING:
            fields = changed_fields(*pairs[case_id])
            yield Reaction(
                name=case_id, kind="case", before=round(before, 6), after=round(after, 6), q=q, fields=fields
            )


def _versions(pair: Pair) -> list[dict[str, CaseRecord]]:
    """Return the cases of the undamaged prompt, of each control and of the mutant."""
    records = (*filter(None, (pair.baseline,)), *pair.baseline_again, pair.candidate)
    return [{case.case_id: case for case in record.per_case} for record in records]


def _means(measure: Measure, case_id: str, versions: Sequence[dict[str, CaseRecord]]) -> list[float]:
    """Return the mean score of a case in each version; NaN where it has none."""
    read = field_scores if measure.kind == "field" else strict_scores
    scores = [read(cases[case_id], measure.name) if case_id in cases else () for cases in versions]
    return [sum(own) / len(own) if own else math.nan for own in scores]


def _moved(own: Measured | None) -> list[str]:
    """Return the cases whose mean moved at all."""
    if own is None:
        return []
    moves = zip(own.measure.case_ids, own.measure.differences, strict=True)
    return [case_id for case_id, difference in moves if abs(difference) > ROUNDING]


_DRAWS = 4_000


def chances_of_last(scores: Floats) -> list[float]:
    """Return p of each figure from scores of shape (figures, cases, versions); NaN where a version has none.

    Under the null the versions of a case are exchangeable, whatever the cases have to do with their fields. p is the
    share of exchanges within cases by which any of the figures is set apart as far as this (the largest of all
    standardised sums, Westfall and Young 1993): so the figures are one family, however they hang together.
    """
    versions = scores.shape[2]
    apart = (scores - scores.mean(axis=2, keepdims=True)) * (versions / (versions - 1))  # from the mean of the others
    apart = np.where(np.isnan(apart) | (np.abs(apart) < ROUNDING), 0.0, apart)
    apart = apart[:, apart.any(axis=(0, 2))]  # the cases in which anything moved
    scale = np.sqrt((apart**2).mean(axis=2).sum(axis=1))
    scale[scale == 0.0] = np.inf
    chosen = _exchanges(apart.shape[1], versions)
    sums = np.zeros((len(scores), len(chosen)))
    for case in range(apart.shape[1]):
        sums += apart[:, case, chosen[:, case]]
    largest = np.abs(sums / scale[:, None]).max(axis=0, initial=0.0)
    actual = np.abs(apart[:, :, -1].sum(axis=1)) / scale
    return [float((largest >= value - ROUNDING).mean()) if value else 1.0 for value in actual]


def _exchanges(cases: int, versions: int) -> NDArray[np.int_]:
    """Return which version is taken for the last in each case: what was measured, and all other ways, or many."""
    if versions**cases <= _DRAWS:
        return np.array(list(product(range(versions), repeat=cases)), int).reshape(versions**cases, cases)
    drawn = np.random.default_rng(0).integers(versions, size=(_DRAWS, cases))
    return np.vstack([np.full(cases, versions - 1), drawn])

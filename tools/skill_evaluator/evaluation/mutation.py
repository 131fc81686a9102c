"""The decision of mutation testing: whether the cases notice that a part of the prompt is missing.

The mutant is compared with four runs of the whole prompt: as it is, and with three edits that mean nothing (controls).
What such an edit does to a case is the noise that a mutant must exceed.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.evaluation.mutation_results import MutantResult, Reaction
from skill_evaluator.library.mutants import Mutant
from skill_evaluator.records.record import CaseRecord, Record
from skill_evaluator.stats import ROUNDING
from skill_evaluator.verdicts.decide.comparability import Measure, Pair, field_scores, strict_scores
from skill_evaluator.verdicts.decide.effects import Floats
from skill_evaluator.verdicts.decide.measuring import Compared, measure_all
from skill_evaluator.verdicts.decide.rules import VerdictRules, is_lost


def decide_mutant(mutant: Mutant, whole: Sequence[Record], record: Record, rules: VerdictRules) -> MutantResult:
    """Return whether a mutant is killed; `whole` are the records of the prompt as it is and of its controls.

    Metrics and fields are one family. A mutant is killed if one of them moved beyond the tolerance with q ≤ α, or if a
    field is lost in every case that has it. So at most α of the mutants that change nothing are killed.
    """
    beside = record.model_copy(update={"beside": whole[0].run_id})
    pair = Pair(baseline=whole[0], candidate=beside, baseline_again=tuple(whole[1:]))
    (compared,) = measure_all([pair])
    noticed = _changed_measures(compared, rules)
    return MutantResult.view(
        mutant,
        status="killed" if noticed else "survived",
        reactions=[*noticed, *_changed_cases(compared, noticed, rules)],
    )


def _changed_measures(compared: Compared, rules: VerdictRules) -> list[Reaction]:
    """Return the fields and metrics that moved significantly and beyond the tolerance, fields first."""
    measured = [own for own in compared.measured if own.measure.kind != "reproducibility"]
    if not measured:
        return []
    case_ids = sorted({case_id for own in measured for case_id in own.measure.case_ids})
    versions = _cases_by_version(compared.pair)
    scores = np.array([[_means(own.measure, case_id, versions) for case_id in case_ids] for own in measured])
    noticed = []
    for own, q in zip(measured, adjusted_p_values(scores), strict=True):
        before, after = own.before.mean, own.after.mean
        is_beyond = abs(after - before) > rules.tolerance(own.measure) + ROUNDING
        if is_beyond and (q <= rules.alpha or is_lost(own, models=1)):
            kind: Literal["field", "metric"] = "field" if own.measure.kind == "field" else "metric"
            noticed.append(_reaction(own.measure.name, kind, before, after, q))
    return sorted(noticed, key=lambda reaction: reaction.kind)


def _changed_cases(compared: Compared, noticed: Sequence[Reaction], rules: VerdictRules) -> Iterator[Reaction]:
    """Yield the cases whose primary metric moved as what was noticed, and further than with any control."""
    own = compared.primary(rules.primary_metric)
    if own is None or not noticed:
        return
    q, fell = min(one.q for one in noticed), {one.after < one.before for one in noticed}
    versions = _cases_by_version(compared.pair)
    means = zip(own.measure.case_ids, own.before.means.tolist(), strict=True)
    for case_id, before in means:
        *others, after = _means(own.measure, case_id, versions)
        if (after < before) in fell and not min(others) - ROUNDING <= after <= max(others) + ROUNDING:
            yield _reaction(case_id, "case", before, after, q)


def _reaction(name: str, kind: Literal["metric", "field", "case"], before: float, after: float, q: float) -> Reaction:
    return Reaction(name=name, kind=kind, before=round(before, 6), after=round(after, 6), q=round(q, 6))


def _cases_by_version(pair: Pair) -> list[dict[str, CaseRecord]]:
    """Return the cases of the whole prompt, of each control and of the mutant, by id."""
    records = (*filter(None, (pair.baseline,)), *pair.baseline_again, pair.candidate)
    return [{case.case_id: case for case in record.per_case} for record in records]


def _means(measure: Measure, case_id: str, versions: Sequence[dict[str, CaseRecord]]) -> list[float]:
    """Return the mean score of a case in each version; NaN if a version has none."""
    read = field_scores if measure.kind == "field" else strict_scores
    scores = [read(cases[case_id], measure.name) if case_id in cases else () for cases in versions]
    return [sum(values) / len(values) if values else math.nan for values in scores]


_DRAWS = 4_000


def adjusted_p_values(scores: Floats) -> list[float]:
    """Return the adjusted p-value of each measure's last version from scores of shape (measures, cases, versions).

    Under the null hypothesis the versions of a case are exchangeable. The p-value is the share of exchanges within
    cases that set any of the measures apart as far as this one: the largest of all standardised sums (Westfall and
    Young 1993), which allows for dependent measures. NaN: a version has no score.
    """
    versions = scores.shape[2]
    apart = (scores - scores.mean(axis=2, keepdims=True)) * (versions / (versions - 1))  # from the others' mean
    apart = np.where(np.isnan(apart) | (np.abs(apart) < ROUNDING), 0.0, apart)
    apart = apart[:, apart.any(axis=(0, 2))]  # cases in which something moved
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
    """Return exchanges, one a row: the version that takes the last one's place in each case. First as measured."""
    if versions**cases <= _DRAWS:
        return np.array(list(product(range(versions), repeat=cases)), int).reshape(versions**cases, cases)
    drawn = np.random.default_rng(0).integers(versions, size=(_DRAWS, cases))
    return np.vstack([np.full(cases, versions - 1), drawn])

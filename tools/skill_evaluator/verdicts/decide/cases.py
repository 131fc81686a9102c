"""Which cases broke and which were fixed beyond chance, at a false discovery rate of 10 %, and in which fields.

A list of cases has errors of its own: among forty cases some always move.
"""

from collections import Counter
from statistics import fmean

import numpy as np
from scipy.special import stdtr

from skill_evaluator.records.record import CaseRecord, Record
from skill_evaluator.verdicts.decide.comparability import Common, case_means, field_scores
from skill_evaluator.verdicts.decide.effects import Floats, Within, adjusted
from skill_evaluator.verdicts.decide.measuring import Measured
from skill_evaluator.verdicts.decide.results import CaseChange, Cases, CaseTurn
from skill_evaluator.verdicts.decide.rules import MOSTLY, VerdictRules

FALSE_NAMES = 0.1  # the share of named cases that may have moved by chance
_PRIOR_DEGREES = 8.0  # the mean variance of all cases counts as much as so many degrees of freedom of a case's own
_HEAVY_TAILS = 5.0  # degrees of freedom where the noise is read off the other cases
_KEPT_TO_VARIANCE = 2.71  # the variance of a normal variable, in the mean square of its smaller three quarters
_LEAST_MOVED = 3

_UNSCORED = "unscored"
_SEVERAL = 3  # fields: with fewer, a document that is lost may be a coin that fell otherwise


def named_cases(common: Common, primary: Measured | None, rules: VerdictRules) -> Cases:
    """Return the cases whose primary metric fell, and those where it rose, beyond the tolerance and beyond chance.

    The largest change comes first.
    """
    turned, unreliable = _turns(common, rules.primary_metric)
    if primary is None:
        return Cases(broke=[], fixed=[], left_out=common.left_out, turned=turned, unreliable=unreliable)
    measure, tolerance = primary.measure, rules.tolerance(primary.measure)
    pairs = {before.case_id: (before, after) for before, after in common.cases}
    surely = dict(zip(measure.case_ids, moved_beyond_chance(primary), strict=True))
    means = zip(measure.case_ids, case_means(measure.before), case_means(measure.after), strict=True)
    moved = [
        CaseChange(
            case_id=case_id, before=round(before, 6), after=round(after, 6), fields=changed_fields(*pairs[case_id])
        )
        for case_id, before, after in means
        if abs(after - before) > tolerance
    ]
    moved.sort(key=lambda change: (-abs(change.after - change.before), change.case_id))
    named = [change for change in moved if surely[change.case_id] or _is_lost_document(*pairs[change.case_id])]
    worse = {
        case_id
        for case_id, before, after in zip(measure.case_ids, measure.before, measure.after, strict=True)
        if max(after) < min(before)
    }
    return Cases(
        broke=[change for change in named if change.after < change.before],
        fixed=[change for change in named if change.after > change.before],
        left_out=common.left_out,
        within_noise=len(moved) - len(named),
        every_answer_worse=[
            change.case_id for change in moved if change.case_id in worse and not surely[change.case_id]
        ],
        turned=turned,
        unreliable=unreliable,
    )


def _turns(common: Common, primary_metric: str) -> tuple[list[CaseTurn], list[CaseTurn]]:
    """Return the cases that pass in other words than before, and those flaky before; none where no case has a check.

    The first fell the most.
    """
    turns = []
    for before, after in common.cases if any(case.checks for _, case in common.cases) else ():
        if (was := before.words(primary_metric)) and (now := after.words(primary_metric)):
            rise = fmean(after.passed(primary_metric)) - fmean(before.passed(primary_metric))
            turns.append((rise, CaseTurn(case_id=after.case_id, before=was, after=now)))
    turns.sort(key=lambda turn: turn[0])
    turned = [turn for _, turn in turns if turn.before.split()[0] != turn.after.split()[0]]
    return turned, [turn for _, turn in turns if turn.before.startswith("flaky")]


def _is_lost_document(before: CaseRecord, after: CaseRecord) -> bool:
    """Return whether nearly all of a document's several fields were right and hardly any is: no coin falls so."""
    shares = [
        fmean([score for path in before.fields for score in field_scores(case, path)] or [0.0])
        for case in (before, after)
    ]
    return len(before.fields) >= _SEVERAL and shares[0] >= MOSTLY and shares[1] <= 1 - MOSTLY


def changed_fields(before: CaseRecord, after: CaseRecord) -> dict[str, str]:
    """Return `right/n → right/n` of each field that is right more or less often, the largest change first."""
    changes = []
    for path in sorted(before.fields.keys() | after.fields.keys()):
        counts = (before.fields.get(path), after.fields.get(path))
        old, new = (count.right / count.n if count and count.n else None for count in counts)
        if old != new:
            words = " → ".join(f"{count.right}/{count.n}" if count else "–" for count in counts)
            changes.append((round(abs((new or 0.0) - (old or 0.0)), 6), path, words))
    changes.sort(key=lambda change: -change[0])
    return {path: words for _, path, words in changes}


def profile_of(record: Record, path: str) -> dict[str, int]:
    """Return the number of cases in which a field is stable-right, stable-wrong, flaky, …"""
    standings = Counter(case.profile.get(path, _UNSCORED) for case in record.per_case if path in case.fields)
    return dict(sorted(standings.items()))


def moved_beyond_chance(measured: Measured) -> list[bool]:
    """Return whether each case of a measure moved beyond chance.

    A document in which all was right and nothing is, or the reverse, needs no other to be held against, as long as its
    score is a mean of several things: a score of 0 or 1 may be a coin that fell otherwise.
    """
    surely = [q <= FALSE_NAMES for q in adjusted(chances_of_cases(measured))]
    scores = {score for arm in (measured.measure.before, measured.measure.after) for case in arm for score in case}
    if scores <= {0.0, 1.0}:
        return surely
    means = np.array([measured.before.means, measured.after.means])
    turned = (means.max(axis=0) >= MOSTLY) & (means.min(axis=0) <= 1.0 - MOSTLY)
    return [sure or bool(turn) for sure, turn in zip(surely, turned, strict=True)]


def chances_of_cases(measured: Measured) -> list[float]:
    """Return the two-sided p of each case of a measure: how often chance alone would move it as far."""
    before, after = measured.before, measured.after
    if measured.independent and ((before.counts > 1) & (after.counts > 1)).all():
        p_values = _ps_by_replicates(before, after, measured.of_runs)
    else:
        p_values = _ps_among_cases(after.means - before.means)
    return [float(p) for p in p_values]


def _ps_by_replicates(before: Within, after: Within, of_runs: float) -> Floats:
    """Return p of each case, where the replicates of a case are draws: t with a moderated variance (empirical Bayes).

    A case's own variance is shrunk towards the mean of the baseline's, Smyth 2004 (doi:10.2202/1544-6115.1027), with a
    fixed weight and without the degrees of freedom that shrinking adds, since scores are not normal. What the new
    version does to one case thus makes no other case less sure.
    """
    degrees = before.counts + after.counts - 2
    squares = before.variances * (before.counts - 1) + after.variances * (after.counts - 1)
    usual = float(before.variances.mean())
    moderated = (_PRIOR_DEGREES * usual + squares) / (_PRIOR_DEGREES + degrees)
    error = np.sqrt(moderated * (1 / before.counts + 1 / after.counts) + of_runs)
    return _two_sided(after.means - before.means, error, degrees)


def _ps_among_cases(differences: Floats) -> Floats:
    """Return p of each case, where its answers count as one draw: how far it moved among all that moved.

    The variance is read off the smaller three quarters of the differences that are not 0, with heavy tails. Fewer than
    three cases that moved tell nothing, and nor do differences of equal size, as those of right and wrong.
    """
    sizes = np.sort(np.abs(differences[differences != 0.0]))
    if len(sizes) < _LEAST_MOVED:
        return np.ones(len(differences))
    kept = sizes[: -max(1, len(sizes) // 4)]
    error = np.sqrt(_KEPT_TO_VARIANCE * float((kept**2).mean()))
    return _two_sided(differences, np.full(len(differences), error), np.full(len(differences), _HEAVY_TAILS))


def _two_sided(differences: Floats, error: Floats, degrees: Floats) -> Floats:
    scale = np.where(error > 0.0, error, 1.0)
    p_values = 2.0 * stdtr(degrees, -np.abs(differences) / scale)
    return np.where(error > 0.0, p_values, np.where(differences == 0.0, 1.0, 0.0))

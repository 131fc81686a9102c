"""The cases that broke and those that were fixed significantly, at a false discovery rate of 10 %."""

from collections import Counter
from statistics import fmean

import numpy as np

from skill_evaluator.records.record import CaseRecord, Record
from skill_evaluator.stats import ROUNDING, benjamini_hochberg, t_cdf
from skill_evaluator.verdicts.decide.comparability import Common, field_scores
from skill_evaluator.verdicts.decide.effects import Floats
from skill_evaluator.verdicts.decide.measuring import Measured
from skill_evaluator.verdicts.decide.results import CaseChange, Cases, CaseTurn
from skill_evaluator.verdicts.decide.rules import MOSTLY, VerdictRules

FALSE_NAMES = 0.1  # the share of named cases that may have moved by chance
_HEAVY_TAILS = 5.0  # degrees of freedom of how far cases move
_KEPT_TO_VARIANCE = 2.71  # the variance of a normal variable, in the mean square of its smaller three quarters
_MIN_MOVED = 3
_MIN_FIELDS = 3


def named_cases(common: Common, primary: Measured | None, rules: VerdictRules) -> Cases:
    """Return the cases whose primary metric fell, and those where it rose, beyond the tolerance and beyond chance.

    The largest change comes first.
    """
    turned, unreliable = _turns(common, rules.primary_metric)
    if primary is None:
        return Cases(broke=[], fixed=[], left_out=common.left_out, turned=turned, unreliable=unreliable)
    measure, tolerance = primary.measure, rules.tolerance(primary.measure)
    pairs = {before.case_id: (before, after) for before, after in common.cases}
    scores = (score for arm in (measure.before, measure.after) for case in arm for score in case)
    is_graded = any(score not in (0.0, 1.0) for score in scores)
    q_values = benjamini_hochberg(p_values_of_cases(primary.after.means - primary.before.means))
    named, others, worse = list[CaseChange](), list[CaseChange](), set[str]()
    for case_id, old, new, q in zip(measure.case_ids, measure.before, measure.after, q_values, strict=True):
        before, after = sum(old) / len(old), sum(new) / len(new)
        if abs(after - before) > tolerance:
            before, after = round(before, 6), round(after, 6)
            fields = changed_fields(*pairs[case_id])
            is_turned = _is_turned(*pairs[case_id], (before, after), is_graded=is_graded)
            moved = named if q <= FALSE_NAMES or is_turned else others
            moved.append(CaseChange(case_id=case_id, before=before, after=after, fields=fields))
            worse |= {case_id} if max(new) < min(old) else set()
    for moved in (named, others):
        moved.sort(key=lambda change: (-abs(change.after - change.before), change.case_id))
    return Cases(
        broke=[change for change in named if change.after < change.before],
        fixed=[change for change in named if change.after > change.before],
        left_out=common.left_out,
        within_noise=len(others),
        every_answer_worse=[change.case_id for change in others if change.case_id in worse],
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


def _is_turned(before: CaseRecord, after: CaseRecord, means: tuple[float, float], *, is_graded: bool) -> bool:
    """Return whether nearly all of a case was right and hardly anything is, or the reverse.

    What counts are its fields, if there are several, else its scores, if they are not only 0 and 1: a single value that
    is right or wrong turns by chance.
    """
    if len(before.fields) >= _MIN_FIELDS:
        sides = [[score for path in before.fields for score in field_scores(case, path)] for case in (before, after)]
        means = (fmean(sides[0] or [0.0]), fmean(sides[1] or [0.0]))
    elif not is_graded:
        return False
    return max(means) >= MOSTLY and min(means) <= 1 - MOSTLY + ROUNDING


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
    standings = Counter(case.profile.get(path, "unscored") for case in record.per_case if path in case.fields)
    return dict(sorted(standings.items()))


def p_values_of_cases(differences: Floats) -> list[float]:
    """Return the two-sided p of each case, whose outputs count as one draw: how far it moved among all that moved.

    The variance is read off the smaller three quarters of the differences that are not 0, with heavy tails. Fewer than
    three cases that moved tell nothing, and nor do differences of equal size, as those of right and wrong.
    """
    sizes = np.sort(np.abs(differences[np.abs(differences) > ROUNDING]))
    if len(sizes) < _MIN_MOVED:
        return [1.0] * len(differences)
    kept = sizes[: -max(1, len(sizes) // 4)]
    error = float(np.sqrt(_KEPT_TO_VARIANCE * (kept**2).mean()))
    return [float(p) for p in 2.0 * t_cdf(_HEAVY_TAILS, -np.abs(differences) / error)]

"""The scores of two versions, case by case → which cases moved beyond chance, at a false discovery rate of 10 %.

Its own module because a list of cases has errors of its own: among forty cases some always move.
"""

import numpy as np
from scipy.special import stdtr

from skill_evaluator.verdicts.comparability import Measure
from skill_evaluator.verdicts.effects import Within, adjusted
from skill_evaluator.verdicts.noise import RunNoise
from skill_evaluator.verdicts.randomisation import Floats

FALSE_NAMES = 0.1  # the share of named cases that may have moved by chance
_PRIOR_DEGREES = 8.0  # the mean variance of all cases counts as much as so many degrees of freedom of a case's own
_HEAVY_TAILS = 5.0  # degrees of freedom where the noise is read off the other cases
_KEPT_TO_VARIANCE = 2.71  # the variance of a normal variable, in the mean square of its smaller three quarters
_LEAST_MOVED = 3


def moved_beyond_chance(measure: Measure, noise: RunNoise) -> list[bool]:
    """Return whether each case of a measure moved beyond chance."""
    return [q <= FALSE_NAMES for q in adjusted(chances_of_cases(measure, noise))]


def chances_of_cases(measure: Measure, noise: RunNoise) -> list[float]:
    """Return p of each case of a measure: how often chance alone would move it as far."""
    before, after = Within.of(measure.before), Within.of(measure.after)
    differences = after.means - before.means
    if noise.case_run is None or not ((before.counts > 1) & (after.counts > 1)).all():
        p_values = _ps_among_cases(differences)
    else:
        p_values = _ps_by_replicates(before, after, differences, noise)
        if noise.case_run.variance > 0.0:  # it is a mean over cases, and they are not alike
            p_values = np.maximum(p_values, _ps_among_cases(differences))
    return [float(p) for p in p_values]


def _ps_by_replicates(before: Within, after: Within, differences: Floats, noise: RunNoise) -> Floats:
    """Return p of each case, where the replicates of a case are draws: t with a moderated variance (empirical Bayes).

    A case's own variance is shrunk towards the mean of all, Smyth 2004 (doi:10.2202/1544-6115.1027), with a fixed
    weight and without the degrees of freedom that shrinking adds, since scores are not normal.
    """
    degrees = before.counts + after.counts - 2
    squares = before.variances * (before.counts - 1) + after.variances * (after.counts - 1)
    usual = float((squares / degrees).mean())
    moderated = (_PRIOR_DEGREES * usual + squares) / (_PRIOR_DEGREES + degrees)
    shared = noise.run.variance + (noise.case_run.variance * len(differences) if noise.case_run else 0.0)
    error = np.sqrt(moderated * (1 / before.counts + 1 / after.counts) + shared)
    return _two_sided(differences, error, degrees)


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

"""What a number of cases can and cannot show, in a sentence, before anything is measured.

Its own module because `lint`, `plan`, `doctor` and a first `evaluate` say it, and none of them compares.
"""

import math
from statistics import NormalDist

from skill_evaluator.text import counted

FEW_CASES = 8  # fewer are announced
_SPREAD = 0.15  # standard deviation of one case's difference between two versions, typical of flaky fields
_FALL, _POWER = 0.96, 0.8  # one-sided at four fifths of alpha, as a verdict is; seen in four of five comparisons
_LEAST = 4  # cases: the paired t of fewer cannot reach that level, whatever they do
_ENOUGH, _MOST = 12, 1000  # cases


def can_show(cases: int, tolerance: float = 0.05) -> str:
    """Return what so many cases can and cannot show, if their differences spread as is typical.

    >>> can_show(3)
    '3 cases: a lost field is seen, a drop of 0.05 is not; 12 would see 0.12'
    """
    tolerance = tolerance or 0.05
    if cases < 2:
        return "1 case: nothing can turn red unless its answers are known to be independent (`profile: sampled`)"
    size, seen = counted(cases, "case"), typical_drop(cases)
    if seen is not None and seen <= tolerance:
        return f"{size}: a drop of {seen:.2g} is seen"
    more = f"{_ENOUGH} would see {typical_drop(_ENOUGH):.2g}"
    if cases >= _ENOUGH:
        enough = next((more for more in range(cases, _MOST) if (typical_drop(more) or 1.0) <= tolerance), _MOST)
        more = f"about {enough} would see it"
    lost = "a lost field" if seen is None else f"a drop of {seen:.2g}"
    return f"{size}: {lost} is seen, a drop of {tolerance:g} is not; {more}"


def typical_drop(cases: int) -> float | None:
    """Return the drop of the mean that a paired t over so many cases sees; None where it sees none."""
    if cases < _LEAST:
        return None
    return (_quantile(_FALL, cases - 1) + _quantile(_POWER, cases - 1)) * _SPREAD / math.sqrt(cases)


def _quantile(p: float, degrees: int) -> float:
    """Return Student's t to about one per cent, without scipy: `lint` shall not wait for it (Fisher's expansion)."""
    z = NormalDist().inv_cdf(p)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)

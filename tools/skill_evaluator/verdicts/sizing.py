"""The smallest drop that a number of cases can detect, as a sentence. `lint` prints it, so scipy is not imported."""

import math
from itertools import count
from statistics import NormalDist

from skill_evaluator.records.record import Record
from skill_evaluator.stats import ALPHA, POWER, smallest_drop
from skill_evaluator.text import counted
from skill_evaluator.verdicts.decide.rules import CRITICAL_SHARE

FEW_CASES = 8  # components with fewer cases get a hint
_SPREAD = 0.1  # standard deviation of the difference of one case: ten flaky fields, 10 and 5 outputs
_DROP = 0.05  # the default tolerance
_MIN_DOUBTED = 3  # number of cases with several outputs from which a profile can be doubted


def detectable_drop(cases: int) -> float | None:
    """Return the smallest drop that this many cases detect (80 % power, typical spread). Return None if it is ≥ 1."""
    if cases < 2:
        return None
    quantiles = t_quantile(1 - ALPHA * CRITICAL_SHARE, cases - 1) + t_quantile(POWER, cases - 1)
    return smallest_drop(_SPREAD**2 / cases, cases, quantiles)


def t_quantile(p: float, degrees: int) -> float:
    """Approximate the quantile of Student's t, to 1 % from p = 0.5 to 0.98 (Abramowitz and Stegun 26.7.5).

    >>> round(t_quantile(0.965, 2), 2), round(t_quantile(0.8, 11), 3)
    (3.56, 0.876)
    """
    z = NormalDist().inv_cdf(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / degrees**power for power, term in enumerate(terms, start=1))


def can_show(cases: int) -> str:
    """Format the smallest drop that this number of cases can detect, given a typical spread, as a sentence.

    >>> can_show(3)
    '3 cases can detect a drop of 0.42 or the loss of a field; about 30 cases could detect a drop of 0.05'
    """
    if cases < 2:
        return "1 case cannot detect a drop unless its outputs are drawn independently (`profile: sampled`)"
    drop = detectable_drop(cases)
    enough = next(number for number in count(cases) if (detectable_drop(number) or 1.0) <= _DROP)
    detects = f"{counted(cases, 'case')} can detect "
    detects += "the loss of a field" if drop is None else f"a drop of {drop:.2g}"
    if drop is not None and drop <= _DROP:
        return detects
    detects += " or the loss of a field" if drop is not None and cases < FEW_CASES else ""
    return f"{detects}; about {enough} cases could detect a drop of {_DROP:g}"


def profile_doubt(record: Record) -> str:
    """Return the reason to doubt the `profile` setting of a run's model, as text. Return "" if there is none."""
    shares = [case.reproducibility.get("pairwise_exact_match") for case in record.per_case]
    differ = [share < 1.0 for share in shares if share is not None]
    cases = counted(len(differ), "case")
    if record.settings is None or record.provider == "replay" or len(differ) < _MIN_DOUBTED:
        return ""
    if record.settings.profile == "sampled":
        same = f"the outputs of all {cases} are identical, which contradicts `profile: sampled` of {record.model_id}"
        return "" if any(differ) else same
    differing = f"outputs differ in {sum(differ)} of {cases}: if each is an independent sample, declare"
    profile = f"`profile: sampled` of {record.model_id} in models.yaml"
    return f"{differing} {profile}" if 2 * sum(differ) >= len(differ) else ""

"""An open measure → what would decide it, and at what cost: more cases, more replicates, or both versions side by side.

Its own module because it looks ahead: the verdict's own arithmetic, with the difference as it is and a smaller error.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from scipy.special import stdtr, stdtrit

from skill_evaluator.display import FEWEST_CASES
from skill_evaluator.library.config import Gate
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.effects import MISSED, Effect
from skill_evaluator.verdicts.measuring import Measured
from skill_evaluator.verdicts.results import MeasureResult
from skill_evaluator.verdicts.rules import VerdictRules, measure_verdict

_MOST = 20  # times as many cases or replicates; more is no advice
_SETTLED = 2  # replicates of a case that show a model to repeat itself
_BESIDE = 1.5  # times the calls of a candidate that is asked alone


def open_measure(measured: Measured, result: MeasureResult, pair: Pair, rules: VerdictRules) -> tuple[str, str] | None:
    """Return what keeps an inconclusive measure open, and what would decide it; None where it is not chance."""
    gate, levels = rules.policy.gate, rules.levels(measured.measure, pair.baseline_look)
    effect = measured.effects[gate]
    if result.verdict != "inconclusive" or effect is None or result.q is None or result.ci95 is None:
        return None
    family = result.q / result.p if result.p else 1.0

    def decides(other: Effect) -> bool:
        q = min(1.0, other.p * family)
        return measure_verdict(other, q, result.tolerance, levels, covered=True) != "inconclusive"

    if decides(effect):
        return None
    (low, high), tolerance = result.ci95, result.tolerance
    still_open = f"{result.metric}: a drop of {tolerance:g} is not excluded"
    if tolerance == 0.0:
        fell = f"{result.metric} fell from {result.baseline:.3f} to {result.candidate:.3f}"
        still_open = f"{fell}, within chance, and no drop is tolerated"
    elif effect.lowest >= -tolerance:
        unit = "documents" if effect.n == result.n_cases else "answers"
        still_open += f", as failures in {effect.unseen:.0%} of all {unit} could go unseen in {effect.n}"
    elif result.n_cases >= FEWEST_CASES:
        still_open += f" (interval {low:+.3f} to {high:+.3f})"
    asked = pair.baseline is not None and pair.baseline.model_id == pair.candidate.model_id
    can_be_beside = asked and pair.candidate.provider != "replay"
    return still_open, _ways(measured, effect, decides, gate, can_be_beside=can_be_beside)


def _ways(
    measured: Measured, effect: Effect, decides: Callable[[Effect], bool], gate: Gate, *, can_be_beside: bool
) -> str:
    """Return in words what makes the effect in a scope one that `decides`, if the difference stays as it is.

    The error falls with the square root of the cases, and its part within cases with that of the replicates. What two
    runs add as a whole stays, unless both versions are asked side by side.
    """
    cases, replicates = len(measured.measure.case_ids), int(measured.after.counts.max())
    seen = max(0.0, effect.error**2 - measured.of_runs)
    of_answers = effect.n != cases  # the answers are the sample, and all of the error is between them
    within = seen if of_answers else min(seen, measured.before.explained + measured.after.explained)

    def with_cases(count: int) -> Effect:
        factor = count / cases
        unseen = 1.0 - math.pow(1.0 - effect.unseen, 1 / factor)
        return _like(effect, seen / factor + measured.of_runs, effect.degrees * factor, unseen)

    def with_replicates(count: int) -> Effect:
        factor = count / replicates
        left = seen - within + within / factor + measured.of_runs
        degrees = effect.degrees * factor if of_answers else effect.degrees
        return _like(effect, left, degrees, 0.0 if gate == "these" and count >= _SETTLED else effect.unseen)

    more_cases = _fewest(range(cases + 1, _MOST * cases + 1), lambda count: decides(with_cases(count)))
    more = _fewest(range(replicates + 1, _MOST * replicates + 1), lambda count: decides(with_replicates(count)))
    beside = can_be_beside and measured.of_runs > 0.0 and decides(_like(effect, seen, effect.degrees, effect.unseen))
    ways = [f"both versions asked side by side ({_BESIDE:g} × the calls)"] if beside else []
    ways += [f"about {count} cases ({count / cases:.2g} × the calls)" for count in more_cases]
    ways += [f"{count} replicates of these ({count / replicates:.2g} ×)" for count in more]
    if not ways:
        return f"more than {_MOST} times the cases or replicates would be needed, if the difference stays"
    return f"{', or '.join(ways)}{',' * (len(ways) > 1)} would decide it, if the difference stays"


def _like(effect: Effect, variance: float, degrees: float, unseen: float) -> Effect:
    error = math.sqrt(variance)
    p = float(stdtr(degrees, -abs(effect.difference) / error)) if error else 0.0 if effect.difference else 0.5
    lowest = effect.difference - (float(stdtrit(degrees, 1 - MISSED)) * error if error else 0.0)
    return replace(effect, error=error, degrees=degrees, p=p, lowest=lowest, unseen=unseen)


def _fewest(counts: Sequence[int], suffices: Callable[[int], bool]) -> Iterator[int]:
    """Yield the smallest count that suffices, if there is one."""
    place = bisect_left(counts, True, key=suffices)
    yield from counts[place : place + 1]

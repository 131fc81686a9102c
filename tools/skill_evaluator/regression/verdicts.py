"""The partition: a measured effect, its tolerance and its coverage → one of five verdicts. Nothing else decides."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from skill_evaluator.config import VerdictName
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED

if TYPE_CHECKING:  # numpy is imported where an effect is measured
    from skill_evaluator.paired_tests import Effect

Tiered = tuple[Literal["critical", "supporting", "advisory"], VerdictName]
WORST_FIRST: tuple[VerdictName, ...] = ("regressed", "inconclusive", "incomparable", "improved", "unchanged")


def verdict(effect: "Effect | None", q: float | None, tolerance: float, alpha: float, *, covered: bool) -> VerdictName:
    """What an effect says: it must exclude a drop beyond the tolerance to be anything but regressed or inconclusive.

    `covered`: whether enough of what was planned was measured. No effect is no answer. Where a failure may have gone
    unseen in more answers than is tolerated, nothing is unchanged, however little the answers vary.
    """
    if effect is None or q is None or not covered:
        return "inconclusive"
    beyond_chance = q <= alpha
    if effect.ci95[0] >= -tolerance:
        if beyond_chance and effect.difference > 0:
            return "improved"
        return "unchanged" if effect.unseen <= tolerance else "inconclusive"
    return "regressed" if beyond_chance and effect.difference < 0 else "inconclusive"


def of_model(tiered: Iterable[Tiered]) -> VerdictName:
    """The verdict on a model from those on its measures.

    A regression decides unless it is advisory; only a critical measure holds a verdict up by being inconclusive.
    """
    deciding = [(tier, said) for tier, said in tiered if tier != "advisory"]
    critical = [said for tier, said in deciding if tier == "critical"]
    if any(said == "regressed" for _, said in deciding):
        return "regressed"
    if not critical or "inconclusive" in critical:
        return "inconclusive"
    if "incomparable" in critical:
        return "incomparable"
    return "improved" if "improved" in critical else "unchanged"


def of_component(verdicts: Iterable[VerdictName]) -> VerdictName:
    """The verdict on a component: that of the model for which it is worst; of nothing, none can be drawn."""
    return min(verdicts, key=WORST_FIRST.index, default="incomparable")


def exit_code(verdict: VerdictName, fail_on: Iterable[str]) -> int:
    """0, or what the policy makes of a verdict: 3 of a regression, 4 of one that says nothing either way."""
    if verdict not in fail_on:
        return EXIT_OK
    return EXIT_REGRESSED if verdict == "regressed" else EXIT_INCOMPLETE

"""Regressions by dimension and impact → severity and ship decision, by rules that no model applies.

Its own module because these few lines decide what ships; everything else only finds out what they are given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from skill_evaluator.judges.regression.answer import IMPACTS, Impact, RegressionSeverity, ShipDecision
from skill_evaluator.judges.regression.dimensions import Dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipRules:
    """What the team decides: what one regression of low impact leads to, and whether a person must always agree.

    `one_low` is `review_required` by default, since only «no regression» may ship. `high_stakes` is a component's.
    """

    one_low: Literal["ship", "review_required"] = "review_required"
    high_stakes: bool = False


def severity_of(impacts: Sequence[Impact]) -> RegressionSeverity:
    """Return the highest impact of the regressions; `none` without any."""
    return max(impacts, key=IMPACTS.index) if impacts else "none"


def decide(worse: Mapping[str, Impact], dimensions: Sequence[Dimension], rules: ShipRules) -> tuple[ShipDecision, str]:
    """Return the decision on these regressions, and its reason: that of the first line that holds.

    >>> decide({"tone": "low"}, [], ShipRules())
    ('review_required', 'one regression of low impact: tone')
    """
    high = [name for name, impact in worse.items() if impact == "high"]
    blocking = [dimension.name for dimension in dimensions if dimension.blocking and dimension.name in worse]
    medium = [name for name, impact in worse.items() if impact == "medium"]
    if high:
        return "block", f"a regression of high impact: {', '.join(high)}"
    if blocking:
        return "block", f"a regression where any blocks: {', '.join(blocking)}"
    if medium:
        return "review_required", f"a regression of medium impact: {', '.join(medium)}"
    if len(worse) > 1:
        return "review_required", f"several regressions of low impact: {', '.join(worse)}"
    if worse and rules.one_low == "review_required":
        return "review_required", f"one regression of low impact: {', '.join(worse)}"
    if rules.high_stakes:
        return "review_required", "the stakes are high: a person must agree"
    return "ship", f"one regression of low impact: {', '.join(worse)}" if worse else "no regression"

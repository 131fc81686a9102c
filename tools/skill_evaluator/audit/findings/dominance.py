"""Dominance: no advice puts a model above another that is better whatever one asks for.

That is one that is at least as able and at least as steady; or one whose worst scenario is above the other's best, as
no steadiness makes up for that. Steadiness is the fluctuation as measured, or as it is without noise: a model that is
worse in ability is not to be advised because its answers happen to be less noisy. Between equals in ability the
measured fluctuation decides.
"""

from collections.abc import Sequence

from skill_evaluator.audit.findings.results import ModelAudit


def dominates(better: ModelAudit, worse: ModelAudit) -> bool:
    """Return whether a model is better than another in both figures, or even in its worst scenario."""
    return is_above(better, worse) or outdoes(better, worse)


def is_above(better: ModelAudit, worse: ModelAudit) -> bool:
    """Return whether a model scores more in its worst scenario than another in its best."""
    if not better.scenarios or not worse.scenarios:
        return False
    return min(better.scenarios.values()) > max(worse.scenarios.values())


def outdoes(better: ModelAudit, worse: ModelAudit) -> bool:
    """Return whether a model is no worse than another in ability and in fluctuation, and better in one of them."""
    if better.ability < worse.ability:
        return False
    measured = better.fluctuation - worse.fluctuation
    left = None
    if better.corrected is not None and worse.corrected is not None:
        left = better.corrected - worse.corrected
    if better.ability == worse.ability:
        return (measured, left or 0.0) < (0.0, 0.0)
    return measured <= 0 or (left is not None and left <= 0)


def dominated_last(models: Sequence[ModelAudit]) -> list[ModelAudit]:
    """Keep the order of the models, but move one that another dominates behind it.

    Each place goes to the first model that is left and that no other model left dominates. There always is one: along
    a chain of dominance ability never rises, and between equals in ability (where none is above another in every
    scenario) the order is one of numbers.
    """
    left, order = list(models), []
    while left:
        best = next(model for model in left if not any(dominates(other, model) for other in left))
        left.remove(best)
        order.append(best)
    return order

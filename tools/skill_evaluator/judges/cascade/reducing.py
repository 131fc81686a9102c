"""The routings of both judges → who decided what, how much went where, and how the audit came out."""

from collections.abc import Mapping
from dataclasses import dataclass

from skill_evaluator.judges.asking.results import figure
from skill_evaluator.judges.cascade.results import CascadeGuarantee, CascadeShares, CascadeStage
from skill_evaluator.judges.cascade.routing import Agree, Key, Labels, Routing, Standing, fewest_labels, route
from skill_evaluator.judges.review.items import ReviewReason
from skill_evaluator.judges.statistics.bounded import rate
from skill_evaluator.library.config import JudgeCascade

PEOPLE = "people"
Ways = tuple[Labels | None, Labels | None]
"""A judge's half of the labels: with those of the review queue, and without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A judge with what it settles, and what it would settle without the labels from the review queue."""

    judge: str
    routing: Routing
    without_review: Routing

    @classmethod
    def of(
        cls, judge: str, standings: Mapping[Key, Standing], ways: Ways, agree: Agree, policy: JudgeCascade
    ) -> "Stage":
        """Return what a judge settles by its half of the labels, with those of the review and without."""
        routing, without = (route(standings, labels, agree, policy) for labels in ways)
        return cls(judge=judge, routing=routing, without_review=without)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Who decided, by what the judge asked last says; `reasons`: why a person is to look at it."""

    by: str
    standing: Standing
    reasons: tuple[ReviewReason, ...]


def decisions_of(cheap: Stage, strong: Stage) -> dict[Key, Decided]:
    """Return who decided on each thing that was judged."""
    decisions = {}
    for key in cheap.routing.standings:
        stage = strong if cheap.routing.reasons[key] and key in strong.routing.standings else cheap
        standing, reasons = stage.routing.standings[key], stage.routing.reasons[key]
        by = PEOPLE if reasons else stage.judge
        decisions[key] = Decided(by=by, standing=standing, reasons=(*reasons, *standing.besides))
    return decisions


def shares_of(
    stages: tuple[Stage, Stage],
    decisions: Mapping[Key, Decided],
    checks: Mapping[Key, Standing],
    agree: Agree,
    policy: JudgeCascade,
    *,
    reviewed: int,
    guaranteed: bool,
) -> CascadeShares:
    """Return how much went where. `checks`: what the strong judge says of what was audited."""
    cheap = stages[0].routing.standings
    both = [(cheap[key].verdict, one.verdict) for key, one in checks.items() if one.verdict is not None]
    first, second = (
        CascadeStage(
            judge=stage.judge,
            asked=len(stage.routing.standings),
            settled=sum(one.by == stage.judge for one in decisions.values()),
            labels=stage.routing.labels,
            threshold=stage.routing.threshold,
            labels_without_review=stage.without_review.labels,
            without_review=stage.without_review.threshold,
        )
        for stage in stages
    )
    return CascadeShares(
        stages=(first, second),
        people=sum(one.by == PEOPLE for one in decisions.values()),
        guarantee=CascadeGuarantee(alpha=policy.alpha, delta=policy.delta) if guaranteed else None,
        reviewed=reviewed,
        fewest_labels=fewest_labels(policy),
        audited=len(both),
        audit=figure(rate(sum(agree(left, right) for left, right in both), len(both))),
    )

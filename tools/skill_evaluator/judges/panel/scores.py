"""The scores of several judges → the panel's score of each item and criterion, and how far the judges agree."""

from collections import Counter
from collections.abc import Sequence

from skill_evaluator.judges.asking.results import figure
from skill_evaluator.judges.modes.reduce_scores import weighted_summary
from skill_evaluator.judges.modes.scoring import ItemScores, JudgeScores, PanelCriterion, PanelItem, PanelScores
from skill_evaluator.judges.panel.reduction import Voices, reduced_score
from skill_evaluator.judges.statistics.agreement import krippendorff
from skill_evaluator.judges.statistics.bounded import mean_within
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.stats import rounded

_A_LEVEL = 1.0


def reduce_panel_scores(judges: Sequence[JudgeScores], criteria: Sequence[Criterion], voices: Voices) -> PanelScores:
    """Return what several judges say as one; a judge without a score of a criterion has no voice there."""
    names = [judge.judge.model_id for judge in judges]
    by_item = [dict(zip(names, given, strict=True)) for given in zip(*(judge.items for judge in judges), strict=True)]
    items = [_item(given, criteria, voices) for given in by_item]
    return PanelScores(
        policy=voices.policy,
        summary=figure(mean_within([item.summary for item in items if item.summary is not None])),
        criteria=[_criterion(criterion, items, by_item) for criterion in criteria],
        items=items,
    )


def _item(given: dict[str, ItemScores], criteria: Sequence[Criterion], voices: Voices) -> PanelItem:
    first = next(iter(given.values()))
    scores: dict[str, float | None] = {}
    spread: dict[str, float | None] = {}
    for criterion in criteria:
        said = {judge: score for judge, item in given.items() if (score := item.scores[criterion.id]) is not None}
        weights = [voices.weight(judge, first.id, criterion.id) for judge in said]
        values = list(said.values())
        scores[criterion.id] = rounded(reduced_score(values, weights, voices.policy.scores)) if said else None
        spread[criterion.id] = rounded(max(values) - min(values)) if len(said) > 1 else None
    summary = weighted_summary(scores, criteria)
    return PanelItem(id=first.id, stratum=first.stratum, summary=summary, scores=scores, spread=spread)


def _criterion(
    criterion: Criterion, items: Sequence[PanelItem], by_item: Sequence[dict[str, ItemScores]]
) -> PanelCriterion:
    values = [score for item in items if (score := item.scores[criterion.id]) is not None]
    units = [
        Counter(score for item in given.values() if (score := item.scores[criterion.id]) is not None)
        for given in by_item
    ]
    return PanelCriterion(
        criterion=criterion.id,
        score=figure(mean_within(values, 1.0, float(criterion.highest))),
        normalised=figure(mean_within([(value - 1) / (criterion.highest - 1) for value in values])),
        disputed=sum((item.spread[criterion.id] or 0.0) >= _A_LEVEL for item in items),
        agreement=figure(krippendorff(units, "interval")),
    )

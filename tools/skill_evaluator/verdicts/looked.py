"""A run that was looked at, and the runs that it was compared with → its means, corrected for the looks.

Its own module because `held_out` works on arrays and knows no records.
"""

from skill_evaluator.records.record import AdaptiveLooks, CorrectedMean
from skill_evaluator.verdicts.adaptive import looks_of, strict_look
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.held_out import corrected_means
from skill_evaluator.verdicts.rules import VerdictRules
from skill_evaluator.verdicts.strict_looks import NOTHING_SETTLED
from skill_evaluator.verdicts.watched import critical_measures, metric_arms, watch


def corrected(pair: Pair, looked: AdaptiveLooks, rules: VerdictRules, models: int) -> dict[str, CorrectedMean]:
    """Return by accuracy metric the corrected strict mean of a run that was looked at; none if the two do not compare.

    `models` were run beside each other, and shared the error of the looks.
    """
    watched = watch(pair, rules)
    if watched is None:
        return {}
    gauges = len(critical_measures(pair, rules)) * models
    looks = [look for look in looks_of(looked.planned_replicates) if look.after in looked.looks]
    metrics = metric_arms(pair)
    means = corrected_means(
        watched,
        [strict_look(look, rules.alpha, gauges) for look in looks],
        looked.verdict or NOTHING_SETTLED,
        list(metrics.values()),
    )
    return {
        name: CorrectedMean(strict_mean=round(mean.mean, 6), ci95=(round(mean.ci95[0], 6), round(mean.ci95[1], 6)))
        for name, mean in zip(metrics, means, strict=True)
    }

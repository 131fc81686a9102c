"""How severe the regressions of a batch are, and whether that is otherwise than before beyond chance."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.prompts import JudgePrompt
from skill_evaluator.judges.asking.results import figure
from skill_evaluator.judges.regression.answer import IMPACTS
from skill_evaluator.judges.regression.results import (
    Before,
    JudgeRegressions,
    PairResult,
    RegressionResults,
    SeverityDrift,
)
from skill_evaluator.judges.statistics.against_control import counts_differ
from skill_evaluator.judges.statistics.bounded import Bounded, difference, rate
from skill_evaluator.library.config import Model
from skill_evaluator.runner.runs import settings_digest

NONE = "none"
SEVERITIES = (NONE, *IMPACTS)
_SEVERE = IMPACTS[1:]
_CHANCE = 0.05


def count_severities(given: Iterable[str]) -> dict[str, int]:
    """Count pairs by the severity of what is reported of them."""
    counts = Counter(given)
    return {level: counts[level] for level in SEVERITIES}


def severities(pairs: Iterable[PairResult]) -> dict[str, int]:
    """Count the pairs with both answers; where the orders disagree nothing is reported."""
    return count_severities(
        pair.regression_severity or NONE for pair in pairs if all(None not in one.by_order for one in pair.dimensions)
    )


def severity_drift(now: Mapping[str, int], before: Mapping[str, int], what: Before) -> SeverityDrift | None:
    """Compare two counts of pairs by severity; None where either counts nothing."""
    if not any(now.values()) or not any(before.values()):
        return None
    p, test = counts_differ(*([counts[level] for level in SEVERITIES] for counts in (now, before)))
    return SeverityDrift(
        against=what,
        before=dict(before),
        severe=figure(difference(_severe(now), _severe(before))),
        p=p,
        test=test,
        drifted=p < _CHANCE,
    )


def _severe(counts: Mapping[str, int]) -> Bounded:
    return rate(sum(counts[level] for level in _SEVERE), sum(counts.values()))


def refuse_incomparable(previous: RegressionResults, models: Sequence[Model], prompt: JudgePrompt) -> None:
    """Raise JudgeError unless an earlier batch was judged by these judges with these settings, and by this prompt."""
    settings = {judge.judge.model_id: judge.judge.settings for judge in previous.judges}
    for model in models:
        if settings.get(model.id) != settings_digest(model):
            raise JudgeError(
                f"the previous batch was judged by {', '.join(settings)}, and not by {model.id} with its present "
                "settings: severities of two judges cannot be compared"
            )
    if prompt.identity not in previous.judging.prompts:
        raise JudgeError("the previous batch was judged by another prompt: severities cannot be compared")


def since(previous: RegressionResults, judge: JudgeRegressions) -> JudgeRegressions:
    """Return a judge's results with what changed since it judged an earlier batch."""
    before = next(one for one in previous.judges if one.judge.model_id == judge.judge.model_id)
    return judge.model_copy(
        update={"drift": severity_drift(severities(judge.pairs), severities(before.pairs), "previous")}
    )

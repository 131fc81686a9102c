"""The rates of regressions in one batch against those in an earlier batch."""

from collections.abc import Sequence

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.modes.regression_results import (
    DimensionSummary,
    JudgeRegressions,
    RateChange,
    RegressionResults,
)
from skill_evaluator.judges.statistics.bounded import difference
from skill_evaluator.stats import benjamini_hochberg

ALPHA = 0.05


def refuse_incomparable(earlier: RegressionResults, judges: dict[str, str], prompt: str) -> None:
    """Raise JudgeError if the earlier batch was judged otherwise: `judges` are settings digests by model."""
    before = {judge.judge.model_id: judge.judge.settings for judge in earlier.judges}
    name = earlier.judging.id
    for model_id, settings in judges.items():
        if model_id not in before:
            raise JudgeError(f"--against {name}: {model_id} did not judge it; its judges are {', '.join(before)}")
        if before[model_id] != settings:
            raise JudgeError(f"--against {name}: the settings of {model_id} changed since; judge that batch again")
    if prompt not in {one.digest for one in earlier.judging.prompts}:
        raise JudgeError(f"--against {name}: the judge's prompt changed since; judge that batch again")


def rate_changes(later: Sequence[JudgeRegressions], earlier: Sequence[JudgeRegressions]) -> list[RateChange]:
    """Return the change of each judge's rate of regressions by dimension; dimensions of one batch alone are left out.

    Fisher's exact test (1935) compares the two rates; the p-values of a judge are adjusted over its dimensions by the
    step-up procedure of Benjamini and Hochberg (1995, doi:10.1111/j.2517-6161.1995.tb02031.x).
    """
    import numpy as np
    from scipy.stats import fisher_exact

    before = {judge.judge.model_id: {one.dimension: one for one in judge.dimensions} for judge in earlier}
    changes: list[RateChange] = []
    for judge in later:
        model_id = judge.judge.model_id
        both = [
            (old, one)
            for one in judge.dimensions
            if (old := before.get(model_id, {}).get(one.dimension)) is not None and old.worse.n and one.worse.n
        ]
        p_values = [min(1.0, float(fisher_exact(np.array([_counts(one), _counts(old)])).pvalue)) for old, one in both]
        for (old, one), p, q in zip(both, p_values, benjamini_hochberg(p_values), strict=True):
            change = difference(one.worse, old.worse)
            changes.append(
                RateChange(
                    judge=model_id,
                    dimension=one.dimension,
                    earlier=old.worse,
                    later=one.worse,
                    difference=change,
                    p=p,
                    q=q,
                    rose=q < ALPHA and (change.value or 0.0) > 0,
                )
            )
    return changes


def _counts(summary: DimensionSummary) -> tuple[int, int]:
    """Return the number of regressions and of other verdicts."""
    worse = sum(summary.impacts.values())
    return worse, summary.worse.n - worse

"""A cascade → sentences: who decided how much, by which threshold, and what guarantees it."""

from collections.abc import Iterator

from skill_evaluator.display import number
from skill_evaluator.judges.panel.cascade_results import CascadeShares
from skill_evaluator.reports.judge_figures import interval
from skill_evaluator.text import counted


def cascade_notes(result: CascadeShares) -> Iterator[str]:
    """Yield what a reader needs before believing a cascade."""
    cheap, strong = result.stages
    how = own = "by the criteria's own thresholds"
    if result.guarantee is not None:
        chosen = f"on {counted(cheap.labels, 'label')}"
        how = f"no threshold could be shown to be safe {chosen}"
        if cheap.threshold is not None:
            how = f"from a confidence of {number(cheap.threshold)}, chosen {chosen}"
    for stage, reason in ((cheap, how), (strong, own)):
        yield f"{stage.judge} settled {stage.settled:,} of {stage.asked:,}: {reason}"
    yield f"left to people: {result.people:,}"
    if result.guarantee is not None:
        share, sure = 1 - result.guarantee.alpha, 1 - result.guarantee.delta
        yield (
            f"with confidence {number(sure)}, at least {number(share)} of what {cheap.judge} settled agrees with "
            "people, if the labelled items were drawn from these by chance"
        )
    else:
        if result.reviewed:
            yield (
                f"{counted(result.reviewed, 'label')} from review: too few to choose a threshold, which takes "
                f"{result.fewest_labels:,} on what is drawn by chance (--review-sample)"
            )
        yield (
            "nothing guarantees that what the judges settled agrees with people: no labels chose a threshold; give "
            "--labels FILE"
        )
    checked = f"{number(result.audit.value)} {interval(result.audit)}" if result.audited else "none was drawn"
    yield f"audit: {strong.judge} saw {result.audited:,} of what {cheap.judge} settled, and said the same: {checked}"

"""A cascade → sentences: who decided how much, by which threshold, and what guarantees it."""

from collections.abc import Iterator

from skill_evaluator.display import number
from skill_evaluator.judges.cascade.results import CascadeShares, CascadeStage
from skill_evaluator.reports.judge_figures import interval
from skill_evaluator.text import counted


def cascade_notes(result: CascadeShares) -> Iterator[str]:
    """Yield what a reader needs before believing a cascade."""
    for stage in result.stages:
        how = "by the criteria's own thresholds"
        if result.guarantee is not None:
            chosen = f"on {counted(stage.labels, 'label')}"
            safe = f"from a confidence of {number(stage.threshold)}, chosen {chosen}"
            how = safe if stage.threshold is not None else f"no threshold could be shown to be safe {chosen}"
        yield f"{stage.judge} settled {stage.settled:,} of {stage.asked:,}: {how}"
        if stage.labels > stage.labels_without_review:
            yield _moved(stage)
    yield f"left to people: {result.people:,}"
    if result.guarantee is None:
        if result.reviewed:
            yield (
                f"{counted(result.reviewed, 'label')} from review: too few to choose thresholds, which takes "
                f"{result.fewest_labels:,} on what is drawn by chance (--review-sample)"
            )
        yield (
            "nothing guarantees that what the judges settled agrees with people: no labels chose the thresholds; give "
            "--labels FILE"
        )
    else:
        share, sure = 1 - result.guarantee.alpha, 1 - result.guarantee.delta
        yield (
            f"with confidence {number(sure)}, at least {number(share)} of what a judge settled agrees with people, if "
            "the labelled pairs were drawn from these by chance"
        )
    first, second = result.stages
    checked = f"{number(result.audit.value)} {interval(result.audit)}" if result.audited else "none was drawn"
    yield f"audit: {second.judge} saw {result.audited:,} of what {first.judge} settled, and said the same: {checked}"


def _moved(stage: CascadeStage) -> str:
    """Return what the labels from the review queue did to a judge's threshold."""
    before = "the criteria's own thresholds"
    if stage.labels_without_review:
        lowest = "none" if stage.without_review is None else number(stage.without_review)
        before = f"{lowest} (on {counted(stage.labels_without_review, 'label')})"
    after = "none, as none could be shown to be safe" if stage.threshold is None else number(stage.threshold)
    fresh = counted(stage.labels - stage.labels_without_review, "label")
    if stage.labels_without_review and stage.threshold == stage.without_review:
        return f"{fresh} from review left the threshold of {stage.judge} at {before}, now on {stage.labels:,}"
    return f"{fresh} from review moved the threshold of {stage.judge} from {before} to {after} (on {stage.labels:,})"

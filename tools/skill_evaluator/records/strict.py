"""What an answer counts with: its score, or 0 where the model gave none that can be read.

Its own module because means, verdicts, audits and exports all count by it.
"""

from skill_evaluator.records.record import ANSWERED, SCORED, CaseRecord


def strict_score(outcome: str, score: float | None) -> float | None:
    """Return the score that a call counts with: 0 for an unparseable, refused or truncated answer.

    Means, verdicts and audits all count by it, so that a model gains nothing by answers that cannot be read.
    None is not measured: the provider or the network failed, or the metric says nothing about the case.
    """
    if outcome == SCORED:
        return score
    return 0.0 if outcome in ANSWERED else None


def strict_by_replicate(case: CaseRecord, metric: str) -> list[float | None]:
    """Return what each answer to a case counts with by a metric.

    Empty where the metric says nothing about the case (all of its scored replicates lack it).
    """
    replicates = list(zip(case.outcomes, case.replicates.get(metric, []), strict=False))
    scored = [value for outcome, value in replicates if outcome == SCORED]
    if scored and all(value is None for value in scored):
        return []
    return [strict_score(outcome, value) for outcome, value in replicates]

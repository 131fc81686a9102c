"""The strict score: a call's outcome and a metric's value of its answer → the number that the call counts with.

Means, verdicts and audits all count by it, so that a model gains nothing by answers that cannot be read.
"""

SCORED = "scored"
UNPARSEABLE = "unparseable"
NOT_RUN = "not_run"
ANSWERED = (SCORED, UNPARSEABLE, "refused", "truncated")  # the model's own doing; any other outcome lowers coverage


def strict_score(outcome: str, score: float | None) -> float | None:
    """Return the score that a call counts with: 0 for an unparseable, refused or truncated answer.

    None is not measured: the provider or the network failed, or the metric says nothing about the case.
    """
    if outcome == SCORED:
        return score
    return 0.0 if outcome in ANSWERED else None

"""The rule that means, verdicts and audits count by: unreadable answers are 0, failures are not measured."""

import pytest
from skill_evaluator.records.strict import strict_score


@pytest.mark.parametrize(
    ("outcome", "score", "strict"),
    [
        ("scored", 0.75, 0.75),
        ("scored", None, None),
        ("unparseable", None, 0.0),
        ("refused", None, 0.0),
        ("truncated", None, 0.0),
        ("provider_error", None, None),
        ("timeout", None, None),
        ("no_credentials", None, None),
        ("over_budget", None, None),
        ("not_run", None, None),
    ],
)
def test_strict_score(outcome: str, score: float | None, strict: float | None) -> None:
    assert strict_score(outcome, score) == strict

"""What a regression judge must answer, exactly: its model, and a text checked against it.

The order of the keys is the order in which the judge writes: findings and their evidence before the decision. An answer
that is not whole (a dimension left out or repeated, a word off the scale) counts for nothing and says why. What says
nothing costs nothing: another key or dimension, capital letters, null for no evidence, the impact of what is no worse.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, ValidationError, model_validator

from skill_evaluator.files import FrozenModel, first_problem
from skill_evaluator.judges.asking.reading import Unscored, last_whole
from skill_evaluator.judges.regression.dimensions import Dimension, dimension_name

Finding = Literal["candidate_better", "same", "candidate_worse"]
Impact = Literal["low", "medium", "high"]
RegressionSeverity = Literal["none", "low", "medium", "high"]
ShipDecision = Literal["ship", "review_required", "block"]
MOST_BASIS_WORDS = 40
IMPACTS: tuple[Impact, ...] = ("low", "medium", "high")  # from the least


def _word(value: Any) -> Any:
    return dimension_name(value) if isinstance(value, str) else value


class DimensionFinding(FrozenModel):
    """What a judge finds in one dimension; the impact matters only where the candidate is worse."""

    dimension: Annotated[str, BeforeValidator(_word)]
    verdict: Annotated[Finding, BeforeValidator(_word)]
    evidence_baseline: str = ""
    evidence_candidate: str = ""
    impact: Annotated[Impact, BeforeValidator(_word)]

    @model_validator(mode="before")
    @classmethod
    def _without_what_says_nothing(cls, finding: Any) -> Any:
        if not isinstance(finding, dict):
            return finding
        written = {key: value for key, value in finding.items() if value is not None}
        harmless = _word(written.get("verdict")) in ("same", "candidate_better")
        return {**written, "impact": "low"} if harmless else written


class RegressionAnswer(FrozenModel):
    """The whole answer of a regression judge. Code decides again whatever stands after `per_dimension`."""

    per_dimension: tuple[DimensionFinding, ...]
    regression_detected: StrictBool
    regression_severity: Annotated[RegressionSeverity, BeforeValidator(_word)]
    ship_decision: Annotated[ShipDecision, BeforeValidator(_word)]
    ship_reason: str
    decision_basis: str = Field(description=f"at most {MOST_BASIS_WORDS} words")


def read_answer(text: str, dimensions: Sequence[Dimension], judged: Sequence[str] = ()) -> RegressionAnswer | Unscored:
    """Read a judge's answer about these dimensions; of several in the text the last that is whole binds.

    So a verdict that the judge repeats from the texts it judges does not bind when its own comes after, and one that
    stands in a `judged` text never does.
    """
    return last_whole(text, lambda value: _checked(value, dimensions), judged)


def _checked(value: object, dimensions: Sequence[Dimension]) -> RegressionAnswer | Unscored:
    wanted = {dimension.name for dimension in dimensions}
    if isinstance(value, dict) and isinstance(findings := value.get("per_dimension"), list):
        names = (_word(finding.get("dimension")) if isinstance(finding, dict) else None for finding in findings)
        mine = [one for one, name in zip(findings, names, strict=True) if not isinstance(name, str) or name in wanted]
        value = {**value, "per_dimension": mine}
    try:
        answer = RegressionAnswer.model_validate(value)
    except ValidationError as problem:
        off_scale = problem.errors(include_url=False)[0]["type"] == "literal_error"
        return Unscored(reason="off_scale" if off_scale else "wrong_format", detail=first_problem(problem))
    given = Counter(finding.dimension for finding in answer.per_dimension)
    if repeated := [name for name, count in given.items() if count > 1]:
        return Unscored(reason="repeated_dimension", detail=", ".join(repeated))
    if missing := [dimension.name for dimension in dimensions if dimension.name not in given]:
        return Unscored(reason="missing_dimension", detail=", ".join(missing))
    return answer

"""What a regression judge must answer, exactly: its model, and a text checked against it.

The order of the keys is the order in which the judge writes: findings and their evidence before the decision. An answer
that is not whole (a dimension left out, invented or repeated, a word off the scale) counts for nothing and says why.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, StrictBool, ValidationError

from skill_evaluator.files import StrictModel, first_problem
from skill_evaluator.judges.asking.reading import Unscored, last_whole
from skill_evaluator.judges.regression.dimensions import Dimension, dimension_name

Finding = Literal["candidate_better", "same", "candidate_worse"]
Impact = Literal["low", "medium", "high"]
RegressionSeverity = Literal["none", "low", "medium", "high"]
ShipDecision = Literal["ship", "review_required", "block"]
MOST_BASIS_WORDS = 40
IMPACTS: tuple[Impact, ...] = ("low", "medium", "high")  # from the least


class DimensionFinding(StrictModel):
    """What a judge finds in one dimension; the impact matters only where the candidate is worse."""

    dimension: str
    verdict: Finding
    evidence_baseline: str
    evidence_candidate: str
    impact: Impact


class RegressionAnswer(StrictModel):
    """The whole answer of a regression judge. Code decides again whatever stands after `per_dimension`."""

    per_dimension: tuple[DimensionFinding, ...] = Field(min_length=1)
    regression_detected: StrictBool
    regression_severity: RegressionSeverity
    ship_decision: ShipDecision
    ship_reason: str
    decision_basis: str = Field(description=f"at most {MOST_BASIS_WORDS} words")


def read_answer(text: str, dimensions: Sequence[Dimension], judged: Sequence[str] = ()) -> RegressionAnswer | Unscored:
    """Read a judge's answer about these dimensions; of several in the text the last that is whole binds.

    So a verdict that the judge repeats from the texts it judges does not bind when its own comes after, and one that
    stands in a `judged` text never does.
    """
    return last_whole(text, lambda value: _checked(value, dimensions), judged)


def _checked(value: object, dimensions: Sequence[Dimension]) -> RegressionAnswer | Unscored:
    try:
        answer = RegressionAnswer.model_validate(value)
    except ValidationError as problem:
        off_scale = problem.errors(include_url=False)[0]["type"] == "literal_error"
        return Unscored(reason="off_scale" if off_scale else "wrong_format", detail=first_problem(problem))
    given = Counter(dimension_name(finding.dimension) for finding in answer.per_dimension)
    wanted = {dimension.name for dimension in dimensions}
    if repeated := [name for name, count in given.items() if count > 1]:
        return Unscored(reason="repeated_dimension", detail=", ".join(repeated))
    if invented := [name for name in given if name not in wanted]:
        return Unscored(reason="invented_dimension", detail=", ".join(invented))
    if missing := [dimension.name for dimension in dimensions if dimension.name not in given]:
        return Unscored(reason="missing_dimension", detail=", ".join(missing))
    return answer

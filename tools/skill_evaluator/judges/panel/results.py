"""What the results say of several judges: their agreement as a panel, and who decided in a cascade."""

from typing import Literal

from pydantic import NonNegativeInt, PositiveFloat

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label, ModelId
from skill_evaluator.judges.statistics.bounded import Figure

PEOPLE = "people"


class JudgeAgreement(FrozenModel):
    """A judge of a panel: its weight, and how often its verdict is the panel's."""

    judge: ModelId
    weight: PositiveFloat
    agrees: Figure


class CascadeStage(FrozenModel):
    """A judge of a cascade: the number of outputs, pairs or matches that it judged, and that it decided."""

    judge: ModelId
    asked: NonNegativeInt
    decided: NonNegativeInt


class CascadeDecision(FrozenModel):
    """Who decided on an item, and the verdict: a ship decision, a winner's share, or a score from 0 to 1.

    `names` are the two outputs of a match. `reasons` say why a person is to look at it.
    """

    item: Label
    names: tuple[Label, ...] = ()
    by: ModelId | Literal["people"]
    verdict: str | float | None
    reasons: list[str] = []


class CascadeResult(FrozenModel):
    """The cheap judge, then the strong one, then people. `people` counts what is left to them."""

    stages: tuple[CascadeStage, CascadeStage]
    people: NonNegativeInt
    decisions: list[CascadeDecision]

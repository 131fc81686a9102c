"""The joint verdict of several judges: of a panel with the votes of its judges, or of a cascade with who decided."""

from collections.abc import Mapping
from typing import Literal

from pydantic import NonNegativeInt, PositiveFloat

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label, ModelId
from skill_evaluator.judges.statistics.bounded import Figure

PEOPLE = "people"
Verdict = int | float | str


class Decision(FrozenModel):
    """The verdict on an item: a ship decision, a winner or its share, or a score from 0 to 1.

    `names` are the two outputs of a match. `reasons` say why it does not ship, or why a person is to look at it.
    """

    item: Label
    names: tuple[Label, ...] = ()
    verdict: Verdict | None
    reasons: list[str] = []


class PanelDecision(Decision):
    """The verdict of a panel; `verdicts` by criterion or dimension, with the `votes` of the judges that have one."""

    verdicts: Mapping[Label, Verdict | None]
    votes: Mapping[Label, Mapping[ModelId, Verdict]]


class JudgeAgreement(FrozenModel):
    """A judge of a panel: its weight, and how often its verdict is the panel's."""

    judge: ModelId
    weight: PositiveFloat
    agrees: Figure


class PanelResult(FrozenModel):
    """Several judges as one. `agreement`: the share of verdicts on which all judges agree.

    `figures`: the mean score or the win rate of output 1 by criterion, or the share of each ship decision. `summary`:
    the mean weighted score from 0 to 1. `win_rates` of several outputs: by name, best first. Of matches the overall
    verdicts are compared for the agreement; scores agree if they are less than a level apart.
    """

    figures: Mapping[Label, Figure] = {}
    summary: Figure | None = None
    win_rates: dict[Label, Figure] = {}
    agreement: Figure
    judges: list[JudgeAgreement]
    by_item: list[PanelDecision] = []


class CascadeStage(FrozenModel):
    """A judge of a cascade: the number of outputs, pairs or matches that it judged, and that it decided."""

    judge: ModelId
    asked: NonNegativeInt
    decided: NonNegativeInt


class CascadeDecision(Decision):
    """The verdict of a cascade, and who decided."""

    by: ModelId | Literal["people"]


class CascadeResult(FrozenModel):
    """The cheap judge, then the strong one, then people. `people` counts what is left to them."""

    stages: tuple[CascadeStage, CascadeStage]
    people: NonNegativeInt
    decisions: list[CascadeDecision]

"""What the results say of a cascade: who decided what, by which threshold, and what labels guarantee."""

from typing import Literal

from pydantic import NonNegativeInt

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label, ModelId, Share
from skill_evaluator.judges.modes.pairwise import PairwiseResults, Preferred
from skill_evaluator.judges.modes.regression_results import RegressionResults
from skill_evaluator.judges.modes.scoring import ScoreResults
from skill_evaluator.judges.modes.ship_rules import ShipDecision
from skill_evaluator.judges.people.items import ReviewReason
from skill_evaluator.judges.statistics.bounded import Figure


class CascadeGuarantee(FrozenModel):
    """With confidence 1 − `delta` at least 1 − `alpha` of what the cheap judge settles agrees with people."""

    alpha: Share
    delta: Share


class CascadeStage(FrozenModel):
    """One judge: of `asked` things it settled `settled`.

    `threshold`: the confidence from which the cheap judge settles, chosen on `labels` labels. It is null without
    labels, when each criterion's own threshold counts, and where none could be shown to be safe: then it settles
    nothing. The strong judge settles by the criteria's own thresholds.
    """

    judge: ModelId
    asked: NonNegativeInt
    settled: NonNegativeInt
    labels: NonNegativeInt
    threshold: Share | None


class CascadeShares(FrozenModel):
    """Both stages. `people`: how much is left to them. `guarantee` is null without labels.

    `reviewed`: labels from the review queue on what is judged here and was drawn by chance. Where no other labels are
    given they count from `fewest_labels` on. `audited` of what the first judge settled was drawn by chance for the
    second one, too; `audit`: how often it said the same.
    """

    stages: tuple[CascadeStage, CascadeStage]
    people: NonNegativeInt
    guarantee: CascadeGuarantee | None
    reviewed: NonNegativeInt = 0
    fewest_labels: NonNegativeInt = 0
    audited: NonNegativeInt
    audit: Figure


class CascadeDecision(FrozenModel):
    """Who decided on an item; `reasons`: why a person is to look at it, such as what the judge asked last left open."""

    item: Label
    by: ModelId | Literal["people"]
    confidence: Share | None
    reasons: list[ReviewReason] = []


class CascadeMatch(CascadeDecision):
    """Two outputs of an item; `winner` is null where it is left to people."""

    names: tuple[Label, Label]
    winner: Preferred | None


class CascadeResult(CascadeShares):
    """A cascade of comparisons. `wins`: how often output 1 wins, over what the judges settled."""

    wins: Figure
    matches: list[CascadeMatch]


class CascadeResults(PairwiseResults):
    """The file of a cascade: what each judge said of the matches that it was asked about, and who decided."""

    cascade: CascadeResult


class CascadeScore(CascadeDecision):
    """An output; `scores` by criterion and their weighted `summary` are null where they are left to people."""

    scores: dict[Label, float] | None
    summary: Share | None


class ScoreCascade(CascadeShares):
    """A cascade of scores; `summary` is over the outputs that the judges settled."""

    summary: Figure
    items: list[CascadeScore]


class ScoreCascadeResults(ScoreResults):
    """The file of a cascade: what each judge said of the outputs that it was asked about, and who decided."""

    cascade: ScoreCascade


class CascadePair(CascadeDecision):
    """A pair; one that is left to people never ships without them."""

    ship_decision: ShipDecision | None


class RegressionCascade(CascadeShares):
    """A cascade of regressions. `confidence` of a pair: the share of the judge's answers that say what it came to."""

    pairs: list[CascadePair]


class RegressionCascadeResults(RegressionResults):
    """The file of a cascade: what each judge found in the pairs that it was asked about, and who decided.

    `ship_decision` is the most careful one of who decided on each pair.
    """

    cascade: RegressionCascade

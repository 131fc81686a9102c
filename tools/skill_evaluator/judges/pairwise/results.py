"""evaluation_results.json of `judge pairwise`: what was said in each order, what both say, win rates and rankings."""

from typing import Literal

from pydantic import NonNegativeInt, PositiveFloat

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label, Share
from skill_evaluator.judges.asking.reading import UnscoredReason
from skill_evaluator.judges.asking.results import JudgeRecord, JudgeText, JudgingHead
from skill_evaluator.judges.calibration.results import FigureResult
from skill_evaluator.library.judge_policy import JudgePanel

PAIRWISE_VERSION = 1
OVERALL = "overall"
Preferred = Literal[1, 2, "tie"]


class OrderJudgement(FrozenModel):
    """What a judge said in one order; `winner` is mapped back to the outputs. Without one `unscored` says why."""

    evidence: list[JudgeText] = []
    justification: JudgeText = ""
    winner: Preferred | None = None
    confidence: Share | None = None
    quotes: NonNegativeInt = 0
    unscored: UnscoredReason | None = None
    detail: JudgeText = ""


class PairJudgement(FrozenModel):
    """What both orders say by one criterion, or overall: the winner, or a tie where they differ.

    `share` is output 1's: 1, 0.5 or 0. Null, all of it, unless both orders count.
    """

    criterion: Label
    replicate: NonNegativeInt
    winner: Preferred | None
    share: Share | None
    confidence: Share | None
    agreed: bool | None
    orders: list[OrderJudgement]


class MatchResult(FrozenModel):
    """Two outputs of an item, by name; `shares`: by criterion the mean share of the first, over replicates."""

    item: Label
    stratum: Label
    names: tuple[Label, Label]
    shares: dict[Label, Share | None]
    judgements: list[PairJudgement]


class PairwiseCriterion(FrozenModel):
    """One criterion over all matches, or all criteria together (`overall`).

    `wins`: how often output 1 wins, a tie being half a win; over items with two outputs. `equal_length`: the same if
    both were equally long; it is what counts where `by_equal_length`. `length`: the pull of length on verdicts, in
    log-odds. `counts`: judgements by winner, `disagreed`: ties because the orders differ.

    Over the matches in which both orders count, `flips` is the share whose verdict changes with the order,
    `picks_first` the share of verdicts for what stands first, `lean` that minus the share for the second. `noise`: how
    often two answers to the same request differ, where there are replicates; `flips_beyond_noise`: what it leaves of
    the flips.
    """

    criterion: Label
    weight: PositiveFloat
    wins: FigureResult
    equal_length: FigureResult
    by_equal_length: bool
    length: FigureResult
    counts: dict[str, NonNegativeInt]
    disagreed: NonNegativeInt
    unscored: dict[UnscoredReason, NonNegativeInt]
    confidence: FigureResult
    unsure: NonNegativeInt
    flips: FigureResult
    picks_first: FigureResult
    lean: FigureResult
    noise: FigureResult | None = None
    flips_beyond_noise: FigureResult | None = None


class Ranking(FrozenModel):
    """Several outputs by name, best first. `wins[i][j]`: how often i beat j; `ties` likewise.

    `strengths`: log strengths of Bradley and Terry with ties, their mean being 0; null where `remark` says why.
    """

    criterion: Label
    names: list[Label]
    wins: list[list[NonNegativeInt]]
    ties: list[list[NonNegativeInt]]
    strengths: list[FigureResult] | None
    remark: str = ""


class JudgePreferences(FrozenModel):
    """One judge: `criteria` with the overall figures last, the overall wins by stratum, the rankings, every match."""

    judge: JudgeRecord
    criteria: list[PairwiseCriterion]
    strata: dict[Label, FigureResult]
    rankings: list[Ranking]
    matches: list[MatchResult]

    @property
    def shown(self) -> list[Label]:
        """The criteria worth showing: of one criterion the overall figures say the same again."""
        names = [criterion.criterion for criterion in self.criteria]
        return names[:1] if names[1:] == [OVERALL] else names


class PanelMatch(FrozenModel):
    """Two outputs of an item; by criterion, the winner and the weight of the judges behind each verdict.

    Without a majority it is a tie; null where no judge's verdict counts.
    """

    item: Label
    stratum: Label
    names: tuple[Label, Label]
    winners: dict[Label, Preferred | None]
    votes: dict[Label, dict[str, PositiveFloat]]


class PanelPreference(FrozenModel):
    """One criterion, or overall; `disputed` counts the matches on which judges differ.

    `wins`: how often output 1 wins, over items with two outputs. `agreement`: Krippendorff's α of the judges.
    """

    criterion: Label
    counts: dict[str, NonNegativeInt]
    wins: FigureResult
    disputed: NonNegativeInt
    agreement: FigureResult


class PanelPreferences(FrozenModel):
    """Several judges as one, by majority; the overall figures are last."""

    policy: JudgePanel
    criteria: list[PanelPreference]
    rankings: list[Ranking]
    matches: list[PanelMatch]


class PairwiseResults(FrozenModel):
    """The file. `panel` is null for a single judge. No figure here is about people."""

    results_version: int = PAIRWISE_VERSION
    judging: JudgingHead
    judges: list[JudgePreferences]
    panel: PanelPreferences | None = None

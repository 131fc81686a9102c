"""The parts that the results of `judge score`, `pairwise` and `regression` share: judgements, panels and cascades."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveFloat

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label, ModelId, Share
from skill_evaluator.judges.judge_run import JudgeRecord, JudgeRunHead, JudgeText, NoUsableOutput
from skill_evaluator.judges.prompting.reading import UnscoredReason
from skill_evaluator.judges.statistics import Estimate, rate

RESULTS_VERSION = 1
NO_FIGURE = rate(0, 0)  # default for fields that older results lack
PEOPLE = "people"
Verdict = int | float | str


class Judgement(FrozenModel):
    """Grounds of a verdict. `quotes`: pieces of evidence that quote a text; `unscored`: why the verdict is unusable."""

    evidence: list[JudgeText] = []
    justification: JudgeText = ""
    confidence: Share | None = None
    quotes: NonNegativeInt = 0
    unscored: UnscoredReason | None = None
    detail: JudgeText = ""


class JudgeFigures(FrozenModel):
    """The results of one judge. `unusable`: why no output counts, so that there are no figures; else null."""

    judge: JudgeRecord
    unusable: NoUsableOutput | None = None


class Decision(FrozenModel):
    """The decision of a judge, a panel or a cascade on an item.

    `verdict` is a score from 0 to 1, a winner, a share of wins, or a ship decision. `names` are the two outputs of a
    match. `reasons` explain a panel's verdict, or say why the item needs human review. Only a panel sets `verdicts` and
    `votes`. Only a cascade sets `by`: the judge that decided, or `people`.
    """

    item: Label
    names: tuple[Label, ...] = ()
    verdict: Verdict | None
    reasons: Sequence[str] = ()
    verdicts: Mapping[Label, Verdict | None] = Field(default={}, exclude_if=lambda verdicts: not verdicts)
    votes: Mapping[Label, Mapping[ModelId, Verdict]] = Field(default={}, exclude_if=lambda votes: not votes)
    by: ModelId | Literal["people"] | None = Field(default=None, exclude_if=lambda judge: judge is None)


class JudgeAgreement(FrozenModel):
    """A judge of a panel: its weight, and the share of its verdicts that agree with the panel's verdicts."""

    judge: ModelId
    weight: PositiveFloat
    agrees: Estimate


class PanelResult(FrozenModel):
    """The combined result of several judges.

    `agreement` is the share of verdicts on which all judges agree. Scores agree if they differ by less than 1. If the
    judges compare two outputs, `agreement` considers only the overall winner.
    """

    figures: Mapping[Label, Estimate] = {}  # mean score or output 1's win rate by criterion, or share by ship decision
    summary: Estimate | None = None  # mean weighted score from 0 to 1; None for pairs and regressions
    win_rates: dict[Label, Estimate] = {}  # win rate by output name, best first; empty if the outputs have no names
    agreement: Estimate  # share of the verdicts on which all judges agree
    judges: list[JudgeAgreement]
    by_item: list[Decision] = []


class CascadeStage(FrozenModel):
    """A judge of a cascade: the numbers of items that it judged (`asked`) and decided."""

    judge: ModelId
    asked: NonNegativeInt
    decided: NonNegativeInt


class CascadeResult(FrozenModel):
    """The result of a cascade: the cheap judge, then the strong judge. `people` counts the items for human review."""

    stages: tuple[CascadeStage, CascadeStage]
    people: NonNegativeInt
    decisions: list[Decision]


class ModeResults(FrozenModel):
    """The content of evaluation_results.json. `left_out`: the reason for each case that was not judged, by case id."""

    results_version: int = RESULTS_VERSION
    judging: JudgeRunHead
    left_out: dict[str, str] = {}
    judges: Sequence[JudgeFigures]
    panel: PanelResult | None = None
    cascade: CascadeResult | None = None

    @property
    def exit_code(self) -> int:
        """4 if a judge is unusable, else 0."""
        return EXIT_INCOMPLETE if any(judge.unusable for judge in self.judges) else EXIT_OK

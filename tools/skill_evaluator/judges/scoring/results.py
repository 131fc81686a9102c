"""evaluation_results.json of `judge score`: every judgement, the scores of items, and their summaries."""

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label, Share
from skill_evaluator.judges.asking.reading import UnscoredReason
from skill_evaluator.judges.asking.results import JudgeRecord, JudgeText, JudgingHead
from skill_evaluator.judges.calibration.results import FigureResult
from skill_evaluator.library.judge_policy import JudgePanel
from skill_evaluator.library.rubrics import MethodName

RESULTS_VERSION = 1


class Judgement(FrozenModel):
    """What a judge wrote on one criterion of an item. Without a score `unscored` says why; it is never read as 1.

    `quotes`: how many pieces of the evidence were found in the texts.
    """

    criterion: Label
    replicate: NonNegativeInt
    evidence: list[JudgeText] = []
    justification: JudgeText = ""
    score: PositiveInt | None = None
    suggestion: JudgeText = ""
    confidence: Share | None = None
    quotes: NonNegativeInt = 0
    unscored: UnscoredReason | None = None
    detail: JudgeText = ""


class ItemScores(FrozenModel):
    """One item: by criterion the mean score of its replicates, null without any.

    `summary` is the weighted mean of the scores from 0 (worst) to 1 (best); null where a criterion has none.
    """

    id: Label
    stratum: Label
    summary: Share | None
    scores: dict[Label, float | None]
    judgements: list[Judgement]


class CriterionScores(FrozenModel):
    """One criterion over all items, which are the units of the intervals.

    `score` is on the scale 1 to `highest`, `normalised` from 0 to 1. `counts`: judgements by score. `unsure`: those
    below the criterion's threshold of confidence. `quoted`: share of them with a quote that was found. `length`: how
    scores rise with the length of the output (Spearman). `repeats`: how often two replicates agree.
    """

    criterion: Label
    method: MethodName
    highest: PositiveInt
    weight: PositiveFloat
    score: FigureResult
    normalised: FigureResult
    counts: dict[int, NonNegativeInt]
    unscored: dict[UnscoredReason, NonNegativeInt]
    confidence: FigureResult
    unsure: NonNegativeInt
    quoted: FigureResult
    length: FigureResult
    repeats: FigureResult


class JudgeScores(FrozenModel):
    """One judge; `summary` over the items that have a score on every criterion, and the same by stratum."""

    judge: JudgeRecord
    summary: FigureResult
    strata: dict[Label, FigureResult]
    criteria: list[CriterionScores]
    items: list[ItemScores]


class PanelItem(FrozenModel):
    """What all judges together say of an item; `spread`: by criterion, the highest score less the lowest.

    Null where no judge gave a score, and a spread also where only one did.
    """

    id: Label
    stratum: Label
    summary: Share | None
    scores: dict[Label, float | None]
    spread: dict[Label, float | None]


class PanelCriterion(FrozenModel):
    """One criterion: `disputed` counts the items on which judges are a level of the scale apart, or more.

    `agreement` is Krippendorff's α of the judges, with squared differences of scores.
    """

    criterion: Label
    score: FigureResult
    normalised: FigureResult
    disputed: NonNegativeInt
    agreement: FigureResult


class PanelScores(FrozenModel):
    """Several judges as one; `scores` says how theirs are reduced, `summary` is over items as that of a judge."""

    policy: JudgePanel
    summary: FigureResult
    criteria: list[PanelCriterion]
    items: list[PanelItem]


class ScoreResults(FrozenModel):
    """The file. `left_out`: by id, why an output could not be judged at all. No figure here is about people.

    `panel` is null for a single judge.
    """

    results_version: int = RESULTS_VERSION
    judging: JudgingHead
    left_out: dict[str, str] = {}
    judges: list[JudgeScores]
    panel: PanelScores | None = None

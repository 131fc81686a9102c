"""evaluation_results.json of `judge regression`: the verdict on each pair, the rates of the batch, the decision."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import NonNegativeInt, PositiveFloat

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, JudgeError
from skill_evaluator.files import FrozenModel, read_versioned
from skill_evaluator.identifiers import Label, ModelId, RunId, Share
from skill_evaluator.judges.asking.reading import UnscoredReason
from skill_evaluator.judges.asking.results import JudgeRecord, JudgeText, JudgingHead, NoUsableOutput
from skill_evaluator.judges.modes.regression import Mismatch, RegressionAnswer
from skill_evaluator.judges.modes.ship_rules import Finding, Impact, RegressionSeverity, ShipDecision
from skill_evaluator.judges.panel.results import CascadeResult, JudgeAgreement
from skill_evaluator.judges.statistics.bounded import Figure, rate

RESULTS_VERSION = 1
NOTHING = rate(0, 0)  # of results before a figure was added
MIN_PAIRS = 100  # rates from fewer pairs get a warning
DECISIONS: tuple[ShipDecision, ...] = ("ship", "review_required", "block")  # from the mildest
PairVerdict = Finding | Literal["uncertain"]


class DimensionResult(FrozenModel):
    """The verdict of both orders in a dimension, `uncertain` if they disagree.

    `by_order`: the vote of the replicates in each order, null if no answer counts. `confidence`: the share of the
    answers that give the verdict, 0.5 for an uncertain one. `verified` is null unless the verdict is worse.
    """

    dimension: Label
    verdict: PairVerdict
    impact: Impact | None
    by_order: list[Finding | None]
    confidence: Share = 1.0
    verified: bool | None = None

    @property
    def flipped(self) -> bool:
        """Whether both orders count and disagree."""
        return None not in self.by_order and len(set(self.by_order)) > 1


class PairResult(FrozenModel):
    """One pair. `ship_decision` is null if no answer counts; the first of the `reasons` decided.

    `regression_detected` is null if only one order reports a regression. `identical` outputs are the same without a
    call.
    """

    id: Label
    stratum: Label
    ship_decision: ShipDecision | None
    reasons: list[str]
    regression_detected: bool | None
    regression_severity: RegressionSeverity | None
    dimensions: list[DimensionResult]
    answers: list[RegressionAnswer]
    identical: bool = False

    @property
    def compared(self) -> bool:
        """Whether both orders count."""
        return all(None not in dimension.by_order for dimension in self.dimensions)

    @property
    def confidence(self) -> float:
        """The lowest confidence of a dimension on which the orders agree, 1 without any."""
        return min((one.confidence for one in self.dimensions if one.verdict != "uncertain"), default=1.0)


class DimensionSummary(FrozenModel):
    """A dimension over the pairs in which both orders count.

    `worse`: the share of regressions, by impact in `impacts`; `unverified` counts those without a quotation that shows
    the difference. `flips`: the share in which the orders disagree.
    """

    dimension: Label
    blocking: bool
    better: NonNegativeInt
    same: NonNegativeInt
    uncertain: NonNegativeInt
    worse: Figure
    impacts: dict[Impact, NonNegativeInt]
    unverified: NonNegativeInt = 0
    flips: Figure


class JudgeRegressions(FrozenModel):
    """One judge. The shares of `decisions` and the `flips` are over the pairs in which both orders count.

    `undecided` counts pairs without an answer that counts. `lean`, from -1 to 1, is how much better an output is judged
    when it stands first. `repeats`: how often two replicates agree in every dimension. `mismatches` counts answers
    whose conclusion does not follow from their findings. `unrequested` counts answers by further dimensions.
    `unverified`: the share of regressions without a quotation that shows the difference. `unusable` says why a judge
    has no figures.
    """

    judge: JudgeRecord
    declared_strong: bool
    ship_decision: ShipDecision | None
    decisions: dict[ShipDecision, Figure]
    undecided: NonNegativeInt
    dimensions: list[DimensionSummary]
    flips: Figure
    lean: Figure
    repeats: Figure
    unverified: Figure = NOTHING
    answers: NonNegativeInt
    unscored: dict[UnscoredReason, NonNegativeInt]
    mismatches: dict[Mismatch, NonNegativeInt]
    unrequested: dict[JudgeText, NonNegativeInt] = {}
    severity: dict[Label, NonNegativeInt] = {}
    unusable: NoUsableOutput | None = None
    pairs: list[PairResult]


class PanelPair(FrozenModel):
    """A pair by the majority of the judges in each dimension; it ships only if every judge lets it ship."""

    id: Label
    ship_decision: ShipDecision | None
    reasons: list[str]
    verdicts: dict[Label, PairVerdict]
    votes: dict[Label, dict[str, PositiveFloat]]


class PanelRegressions(FrozenModel):
    """Several judges as one. `agreement`: the share of verdicts on which all judges agree."""

    ship_decision: ShipDecision | None
    decisions: dict[ShipDecision, Figure]
    agreement: Figure
    judges: list[JudgeAgreement]
    pairs: list[PanelPair]


class RulesResult(FrozenModel):
    """The rules of the decision that a team can set."""

    one_low: Literal["ship", "review_required"]
    high_stakes: bool
    blocking: list[Label]


class RateAlert(FrozenModel):
    """A judge's rate of regressions in a dimension, corrected for its errors, against the rate that the policy allows.

    `above`: whether the whole interval of `corrected` is above `allowed`; null if `problem` says why it is not known.
    `sensitivity` and `specificity` are those of the judge in the judge run `calibration`.
    """

    judge: ModelId
    dimension: Label
    allowed: Share
    above: bool | None
    reported: Figure | None = None
    corrected: Figure | None = None
    sensitivity: Figure | None = None
    specificity: Figure | None = None
    calibration: RunId | None = None
    problem: str = ""


class RateChange(FrozenModel):
    """The rate of regressions in a dimension, in an earlier batch and in this one.

    `p` is that of Fisher's exact test, `q` adjusted over the dimensions of the judge. `rose`: whether the rate rose
    significantly.
    """

    judge: ModelId
    dimension: Label
    earlier: Figure
    later: Figure
    difference: Figure
    p: Share
    q: Share
    rose: bool


class RegressionResults(FrozenModel):
    """The file. `ship_decision` is the most careful decision of all pairs; null without any.

    `left_out`: by id, the reason why a pair could not be compared. `baseline` and `candidate` are the runs of the
    outputs. `against` is the earlier judge run of `changes`.
    """

    results_version: int = RESULTS_VERSION
    judging: JudgingHead
    rules: RulesResult
    baseline: RunId | None = None
    candidate: RunId | None = None
    left_out: dict[str, str] = {}
    ship_decision: ShipDecision | None
    judges: list[JudgeRegressions]
    panel: PanelRegressions | None = None
    cascade: CascadeResult | None = None
    alerts: list[RateAlert] = []
    against: RunId | None = None
    changes: list[RateChange] = []

    @property
    def alerting(self) -> bool:
        """Whether a rate of regressions is above the allowed one, or rose significantly."""
        return any(alert.above for alert in self.alerts) or any(change.rose for change in self.changes)

    @property
    def exit_code(self) -> int:
        """3 for a block, an alert or a risen rate, 4 if a person must look or a judge is unusable, 0 to ship."""
        code = EXIT_REGRESSED if self.alerting else decision_code(self.ship_decision)
        return EXIT_INCOMPLETE if code == EXIT_OK and any(judge.unusable for judge in self.judges) else code


def decision_code(decision: ShipDecision | None) -> int:
    """Return the exit code of a decision; without a decision a person must look."""
    return {"block": EXIT_REGRESSED, "ship": EXIT_OK}.get(decision or "", EXIT_INCOMPLETE)


def most_careful(decisions: Sequence[ShipDecision | None]) -> ShipDecision | None:
    """Return the most careful decision of pairs or judges, null without any.

    A missing decision beside others means that a person must look.

    >>> most_careful(["ship", None]), most_careful([None])
    ('review_required', None)
    """
    made = [decision for decision in decisions if decision is not None]
    if not made:
        return None
    worst = max(made, key=DECISIONS.index)
    return "review_required" if worst == "ship" and len(made) < len(decisions) else worst


def read_regressions(path: Path) -> RegressionResults:
    """Read the evaluation_results.json of a judge run; raise JudgeError."""
    return read_versioned(RegressionResults, path, "results_version", RESULTS_VERSION, JudgeError)

"""evaluation_results.json of `judge regression`: what was found of each pair, what decided, and the whole batch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import NonNegativeInt, PositiveFloat

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, JudgeError
from skill_evaluator.files import FrozenModel, read_versioned
from skill_evaluator.identifiers import Label, ModelId, RunId, Share
from skill_evaluator.judges.asking.evidence import Evidence
from skill_evaluator.judges.asking.reading import UnscoredReason
from skill_evaluator.judges.asking.results import JudgeRecord, JudgingHead
from skill_evaluator.judges.modes.regression import Conclusion
from skill_evaluator.judges.modes.ship_rules import Finding, Impact, RegressionSeverity, ShipDecision
from skill_evaluator.judges.statistics.bounded import Figure
from skill_evaluator.library.config import JudgePanel

RESULTS_VERSION = 1
DECISIONS: tuple[ShipDecision, ...] = ("ship", "review_required", "block")  # from the mildest
Leg = Literal["quote", "omission", "form"]
Flag = Literal["unsupported", "no_evidence", "quote_not_found", "style_only"]
Mismatch = Literal["regression_detected", "regression_severity", "ship_decision"]
FOR_PEOPLE: frozenset[Flag] = frozenset({"unsupported", "style_only"})
"""The flags of a *worse* that a person decides on: code has nothing that would bear a block."""


class CheckedFinding(FrozenModel):
    """A finding with what code makes of it. `legs` are what supports a *worse*; `impact` is null for the others."""

    dimension: Label
    verdict: Finding
    impact: Impact | None
    baseline: Evidence
    candidate: Evidence
    legs: tuple[Leg, ...] = ()
    flags: tuple[Flag, ...] = ()


class ConclusionResult(Conclusion):
    """What the judge itself concludes. Code decides again; `mismatches` name what does not follow from its findings."""

    mismatches: list[Mismatch]
    basis_too_long: bool


class AnswerResult(FrozenModel):
    """One answer: in order 1 the baseline stood first, in order 2 the candidate. `unscored`: why it does not count."""

    order: Literal[1, 2]
    replicate: NonNegativeInt
    findings: list[CheckedFinding] = []
    conclusion: ConclusionResult | None = None
    unscored: UnscoredReason | None = None
    detail: str = ""

    def finding(self, dimension: str) -> CheckedFinding | None:
        """Return what it says of a dimension; None of an answer that does not count."""
        return next((finding for finding in self.findings if finding.dimension == dimension), None)


class DimensionResult(FrozenModel):
    """The verdict of both orders on a dimension; `supported` is null for anything but a *worse*."""

    dimension: Label
    verdict: Finding | Literal["uncertain"]
    impact: Impact | None
    by_order: list[Finding | None]
    supported: bool | None
    legs: list[Leg]
    flags: list[Flag]

    @property
    def flipped(self) -> bool:
        """Whether both answers count and say different things."""
        return None not in self.by_order and len(set(self.by_order)) > 1


class PairResult(FrozenModel):
    """One pair. `ship_decision` is null where no answer counted; `reasons` begin with what decided.

    It rests on the first replicate of each order. `regression_detected` is also null when only one order reports a
    regression.
    """

    id: Label
    stratum: Label
    ship_decision: ShipDecision | None
    reasons: list[str]
    regression_detected: bool | None
    regression_severity: RegressionSeverity | None
    dimensions: list[DimensionResult]
    answers: list[AnswerResult]

    @property
    def compared(self) -> bool:
        """Whether the answers in both orders count."""
        return all(None not in dimension.by_order for dimension in self.dimensions)

    @property
    def flipped(self) -> int:
        """In how many dimensions the orders disagree."""
        return sum(dimension.flipped for dimension in self.dimensions)


class DimensionSummary(FrozenModel):
    """A dimension over the pairs that were asked about it.

    Only pairs with both answers count. `worse`: its share of them, by impact in `impacts`; `unsupported` and
    `style_only` are of those. `flips`: share where the orders disagree: the judge's order sensitivity.
    """

    dimension: Label
    blocking: bool
    better: NonNegativeInt
    same: NonNegativeInt
    uncertain: NonNegativeInt
    worse: Figure
    impacts: dict[Impact, NonNegativeInt]
    unsupported: NonNegativeInt
    style_only: NonNegativeInt
    flips: Figure


class JudgeRegressions(FrozenModel):
    """One judge. Rates are of pairs with both answers: of decisions, and of `flips`, pairs the orders disagree on.

    `undecided`: pairs without any answer that counts. `declared_strong`: whether models.yaml says so. `lean`, from -1
    to 1: how far an output is judged better where it stands first; 0 is no bias. `repeats`: how often a further
    replicate says in every dimension what the first one says. `mismatches` counts answers whose own conclusion does not
    follow from their findings. `severity`: pairs by the severity of their regressions.
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
    answers: NonNegativeInt
    unscored: dict[UnscoredReason, NonNegativeInt]
    mismatches: dict[Mismatch, NonNegativeInt]
    severity: dict[Label, NonNegativeInt] = {}
    pairs: list[PairResult]


class PanelDimension(FrozenModel):
    """A dimension of a pair: what the majority of the judges by weight says, else `uncertain`; and all the votes.

    `impact` of a *worse* is the highest that one of this majority gives whose evidence code confirms; null without.
    """

    dimension: Label
    verdict: Finding | Literal["uncertain"]
    impact: Impact | None
    votes: dict[str, PositiveFloat]


class PanelPair(FrozenModel):
    """A pair by all judges: code decides on the majority's verdicts, and it ships only if it does by every judge."""

    id: Label
    stratum: Label
    ship_decision: ShipDecision | None
    reasons: list[str]
    dimensions: list[PanelDimension]


class PanelSummary(FrozenModel):
    """A dimension over all pairs. `disputed`: pairs on which judges differ; `agreement`: their Krippendorff's α."""

    dimension: Label
    worse: Figure
    uncertain: NonNegativeInt
    disputed: NonNegativeInt
    agreement: Figure


class PanelRegressions(FrozenModel):
    """Several judges as one."""

    policy: JudgePanel
    ship_decision: ShipDecision | None
    dimensions: list[PanelSummary]
    pairs: list[PanelPair]


class RulesResult(FrozenModel):
    """By which rules was decided, beside the fixed ones."""

    one_low: Literal["ship", "review_required"]
    high_stakes: bool
    blocking: list[Label]


class RateAlert(FrozenModel):
    """The regressions that a judge reports in a dimension, corrected for its errors, beside what the policy allows.

    `above`: whether the whole interval of `corrected` is above `allowed`; null where `problem` says why nobody knows.
    `sensitivity` and `specificity` are those of the judge in the judging `calibration`.
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


class RegressionResults(FrozenModel):
    """The file. `ship_decision` is the most careful one of all pairs, by the panel's if there is one; null without any.

    `left_out`: by id, why a pair could not be asked about. `baseline` and `candidate` are the runs the outputs are of.
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
    alerts: list[RateAlert] = []

    @property
    def alerting(self) -> bool:
        """Whether some rate of regressions is above what the policy allows."""
        return any(alert.above for alert in self.alerts)

    @property
    def exit_code(self) -> int:
        """3 for a block or an alert, 4 where a person must look or no answer counted, 0 to ship."""
        return EXIT_REGRESSED if self.alerting else decision_code(self.ship_decision)


def decision_code(decision: ShipDecision | None) -> int:
    """Return the exit code of a decision; without any a person must look."""
    return {"block": EXIT_REGRESSED, "ship": EXIT_OK}.get(decision or "", EXIT_INCOMPLETE)


def most_careful(decisions: Sequence[ShipDecision | None]) -> ShipDecision | None:
    """Return the decision that lets the least through, over pairs or judges; null only without any.

    Nobody looked at a pair without a decision: beside it nothing ships.

    >>> most_careful(["ship", None]), most_careful([None])
    ('review_required', None)
    """
    made = [decision for decision in decisions if decision is not None]
    if not made:
        return None
    worst = max(made, key=DECISIONS.index)
    return "review_required" if worst == "ship" and len(made) < len(decisions) else worst


def read_regressions(path: Path) -> RegressionResults:
    """Read the evaluation_results.json of a judging; raise JudgeError."""
    return read_versioned(RegressionResults, path, "results_version", RESULTS_VERSION, JudgeError)

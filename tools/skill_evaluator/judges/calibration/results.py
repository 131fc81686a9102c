"""Results of `judge calibrate`: agreement with human labels, biases, corruption tests and the rates of a batch."""

from pathlib import Path
from typing import Literal

from pydantic import Field, NonNegativeInt

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, JudgeError
from skill_evaluator.files import FrozenModel, NestingModel, flat_part, read_json, validated
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.judge_run import JudgeRecord, JudgeRunHead, NoUsableOutput
from skill_evaluator.judges.statistics import Estimate, Trust, corrected_rate, rate
from skill_evaluator.library.config import Settings
from skill_evaluator.library.reading import ConfinedFolder

ANY = "any"  # the row over all dimensions
LabelMode = Literal["pairwise", "score", "regression", "sentences"]


class Position(FrozenModel):
    """The effect of the order in which a judge sees two outputs.

    `flips`: share of pairs whose verdict changes with the order. `first`: share of verdicts for the output shown first.
    `agreement`: agreement with people if output 1 is shown first, and if output 2 is shown first.
    """

    flips: Estimate
    first: Estimate
    agreement: tuple[Estimate, Estimate]


class MeanConfidence(FrozenModel):
    """Mean confidence of the verdicts that agree with people (`right`) and of the others; null if there are none."""

    right: float | None
    wrong: float | None


class DiagnosticAccuracy(FrozenModel):
    """Agreement of a judge with the positive labels (`sensitivity`) and with the negative labels (`specificity`)."""

    sensitivity: Estimate
    specificity: Estimate


class LabelAgreement(NestingModel):
    """Agreement of a judge with human labels on one criterion, over all items and by `strata`.

    `n` counts the verdicts that are compared with a label. An unusable verdict on a pair counts as disagreement; other
    unusable verdicts are not compared. A label is positive if output 1 is preferred, the score is above the middle of
    the scale, the candidate is worse, or the sentence holds. `sensitivity` is the agreement on positive labels,
    `specificity` the agreement on negative labels.
    """

    mode: LabelMode
    criterion: Label
    labels: NonNegativeInt
    n: NonNegativeInt
    unusable: NonNegativeInt = 0
    agreement: Estimate
    trust: Trust
    correlation: Estimate | None = None
    accuracy: DiagnosticAccuracy = flat_part("accuracy")
    position: Position | None = None
    confidence: MeanConfidence | None = None
    strata: dict[Label, "LabelAgreement"] = {}


class BiasResult(FrozenModel):
    """The bias of a judge's verdicts from one cause, for example `position`. `shift` is 0 if there is no bias.

    If the cause is a text that was appended to outputs (a probe), `shift` is the mean change of the verdicts as a share
    of the scale. `present` says whether the interval of `shift` excludes 0. It is null if there is no interval.
    """

    bias: Label
    mode: LabelMode
    criterion: Label
    shift: Estimate
    present: bool | None


class DimensionDetection(FrozenModel):
    """Detection in a dimension: the share of corrupted pairs reported, and the share of controls not reported."""

    dimension: Label
    sensitivity: Estimate
    specificity: Estimate

    @property
    def false_alarms(self) -> Estimate:
        """The share of controls that the judge reports."""
        return rate(self.specificity.n - self.specificity.count, self.specificity.n)


class DetectionResult(FrozenModel):
    """Detection in a corruption test, by dimension and by kind of corruption. `unscored`: pairs without a verdict."""

    dimensions: list[DimensionDetection]
    kinds: dict[Label, Estimate] = {}
    unscored: NonNegativeInt = 0


class DimensionRate(FrozenModel):
    """The rate of regressions in a dimension; `corrected` is null if the error rates of the judge are not known."""

    dimension: Label
    reported: Estimate
    corrected: Estimate | None


class BatchResult(FrozenModel):
    """The rates of a batch. `too_few`: under 100 pairs. `rated`: counts by human severity, then by the judge's."""

    pairs: NonNegativeInt
    too_few: bool
    dimensions: list[DimensionRate]
    rated: dict[Label, dict[Label, NonNegativeInt]] = {}
    rated_kappa: Estimate


class SentenceErrors(FrozenModel):
    """Counts of verdicts on sentences with the label yes or no, of right verdicts, and of missing verdicts (`lost`)."""

    yes: NonNegativeInt = 0
    yes_right: NonNegativeInt = 0
    no: NonNegativeInt = 0
    no_right: NonNegativeInt = 0
    lost: NonNegativeInt = 0

    @property
    def labels(self) -> int:
        """The number of labelled sentences on which the judge has a verdict."""
        return self.yes + self.no

    def corrected(self, passed: int, n: int) -> Estimate | None:
        """Return the share of passed outputs, corrected for the judge's errors. Return None if it is undefined."""
        return corrected_rate(rate(passed, n), rate(self.yes_right, self.yes), rate(self.no_right, self.no))


class JudgeResult(FrozenModel):
    """The calibration of one judge.

    `sentences` has the errors of the judge on each sentence that has at least 30 labels. The key "" has the errors over
    all sentences. `unusable` is set if no output of the judge counts.
    """

    judge: str
    agreement: list[LabelAgreement] = []
    sentences: dict[str, SentenceErrors] = Field(default={}, exclude_if=lambda errors: not errors)
    biases: list[BiasResult] = []
    detection: DetectionResult | None = None
    batch: BatchResult | None = None
    unusable: NoUsableOutput | None = None
    record: JudgeRecord | None = None

    @property
    def shown(self) -> list[LabelAgreement]:
        """The agreements to show. For regressions, this is only the agreement over all dimensions."""
        regressions = [row for row in self.agreement if row.mode == "regression"][:1]
        return [*(row for row in self.agreement if row.mode != "regression"), *regressions]


class JudgeCalibration(FrozenModel):
    """The calibration of all judges. `judging`: the judge run; null with `--verdicts` or `--batch`."""

    bar: float
    judging: JudgeRunHead | None = None
    judges: list[JudgeResult]

    @property
    def shown(self) -> list[tuple[str, LabelAgreement]]:
        """The agreements to show, each with the model id of its judge."""
        return [(judge.judge, row) for judge in self.judges for row in judge.shown]

    @property
    def exit_code(self) -> int:
        """4 if a judge is unusable, else 0."""
        return EXIT_INCOMPLETE if any(judge.unusable for judge in self.judges) else EXIT_OK


def read_calibration(config: Path, settings: Settings) -> JudgeCalibration | None:
    """Read the calibration file that the settings name. Return None if they name none. Raise JudgeError if invalid."""
    name = settings.policy.judge.calibration
    if name is None:
        return None
    path = ConfinedFolder(config, JudgeError, follow_links=settings.limits.follow_links).inside(config / name)
    return validated(JudgeCalibration, read_json(path, JudgeError), path, JudgeError)

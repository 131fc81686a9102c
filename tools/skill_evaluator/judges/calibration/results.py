"""Results of `judge calibrate`: agreement with people, biases, corruption tests and the rates of a batch."""

from pathlib import Path
from typing import Literal

from pydantic import Field, NonNegativeInt

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, JudgeError
from skill_evaluator.files import FrozenModel, read_json, validated
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.prompting.judging import JudgeRunHead
from skill_evaluator.judges.prompting.results import JudgeRecord, NoUsableOutput
from skill_evaluator.judges.statistics import Figure, Trust, corrected_rate, rate
from skill_evaluator.library.config import Settings
from skill_evaluator.library.reading import Root

ANY = "any"  # the row over all dimensions
LabelMode = Literal["pairwise", "score", "regression", "sentences"]


class Position(FrozenModel):
    """Order flips, the share of verdicts for the output that stands first, and agreement with people in each order."""

    flips: Figure
    first: Figure
    agreement: tuple[Figure, Figure]


class MeanConfidence(FrozenModel):
    """Mean confidence of the verdicts that agree with people, and of the others; null if there are none."""

    right: float | None
    wrong: float | None


class LabelAgreement(FrozenModel):
    """Agreement of a judge with human labels by one criterion, over all items and by `strata`.

    `labels` counts human labels, `n` those with a verdict of the judge, and `unusable` outputs of the judge that could
    not be read: of pairs they are in `n` as disagreement, of others they are not. Several people may score an item:
    each counts alike.

    `agreement`: share of verdicts that are people's; of a pair the verdict of both orders, a tie if they differ.
    `correlation`: Spearman's ρ of scores with the mean of people. `sensitivity` and `specificity` are the true positive
    and true negative rates. Positive is: output 1 preferred (negative: output 2), a score above the middle of the
    scale, a regression, a sentence that holds.
    """

    mode: LabelMode
    criterion: Label
    labels: NonNegativeInt
    n: NonNegativeInt
    unusable: NonNegativeInt = 0
    agreement: Figure
    trust: Trust
    correlation: Figure | None = None
    sensitivity: Figure
    specificity: Figure
    position: Position | None = None
    confidence: MeanConfidence | None = None
    strata: dict[Label, "LabelAgreement"] = {}


class BiasResult(FrozenModel):
    """The effect of something that should not matter on a judge's verdicts.

    `shift`: from −1 to 1; of `position` the share of verdicts for the first output minus that for the second, of
    `length` and `self_preference` the preference beyond people's, of `noise` the share of replicates that differ, of
    `leniency` and of probes a share of the scale. `present`: whether the interval excludes 0; null without one.
    """

    bias: Label
    mode: LabelMode
    criterion: Label
    shift: Figure
    present: bool | None


class DimensionDetection(FrozenModel):
    """The shares of corruptions that are called worse in a dimension, or `any`, and of controls that are not."""

    dimension: Label
    sensitivity: Figure
    specificity: Figure


class DetectionResult(FrozenModel):
    """A corruption test. `kinds`: share found by kind of corruption. `unscored`: pairs without a usable output."""

    dimensions: list[DimensionDetection]
    kinds: dict[Label, Figure] = {}
    unscored: NonNegativeInt = 0


class DimensionRate(FrozenModel):
    """The rate of regressions in a dimension; `corrected` is null if the error rates of the judge are not known."""

    dimension: Label
    reported: Figure
    corrected: Figure | None


class BatchResult(FrozenModel):
    """A batch with labelled pairs. `rated`: by the severity that people rate, how often the judge gives which."""

    pairs: NonNegativeInt
    too_few: bool
    dimensions: list[DimensionRate]
    rated: dict[Label, dict[Label, NonNegativeInt]] = {}
    rated_kappa: Figure


class SentenceErrors(FrozenModel):
    """Verdicts on labelled sentences that hold (`yes`) and do not hold (`no`); `lost` ones were never settled."""

    yes: NonNegativeInt = 0
    yes_right: NonNegativeInt = 0
    no: NonNegativeInt = 0
    no_right: NonNegativeInt = 0
    lost: NonNegativeInt = 0

    @property
    def labels(self) -> int:
        """The labels with a settled verdict."""
        return self.yes + self.no

    def corrected(self, passed: int, n: int) -> Figure | None:
        """Return the true share behind `passed` of n outputs. Return None if one kind of label is missing."""
        return corrected_rate(rate(passed, n), rate(self.yes_right, self.yes), rate(self.no_right, self.no))


class JudgeResult(FrozenModel):
    """One judge. `sentences`: errors by sentence, under `""` all. `unusable`: why the judge has no figures."""

    judge: str
    agreement: list[LabelAgreement] = []
    sentences: dict[str, SentenceErrors] = Field(default={}, exclude_if=lambda errors: not errors)
    biases: list[BiasResult] = []
    detection: DetectionResult | None = None
    batch: BatchResult | None = None
    unusable: NoUsableOutput | None = None
    record: JudgeRecord | None = None


class JudgeCalibration(FrozenModel):
    """All judges. `judging` and the `record` of each judge are null if stored verdicts were read."""

    bar: float
    judging: JudgeRunHead | None = None
    judges: list[JudgeResult]

    @property
    def exit_code(self) -> int:
        """4 if a judge is unusable, else 0."""
        return EXIT_INCOMPLETE if any(judge.unusable for judge in self.judges) else EXIT_OK


def read_calibration(config: Path, settings: Settings) -> JudgeCalibration | None:
    """Read the calibration that the settings name, a file in their folder. Raise JudgeError for an invalid one."""
    name = settings.policy.judge.calibration
    if name is None:
        return None
    path = Root(config, JudgeError, follow_links=settings.limits.follow_links).inside(config / name)
    return validated(JudgeCalibration, read_json(path, JudgeError), path, JudgeError)

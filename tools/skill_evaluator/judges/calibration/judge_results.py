"""What `judge calibrate --format json` prints: by judge what people's labels, planted pairs and a batch say."""

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.results import JudgeRecord, JudgingHead
from skill_evaluator.judges.calibration.detection_results import BatchResult, DetectionResult
from skill_evaluator.judges.calibration.results import BiasResult, ScoreResult, StratumResult


class JudgeResult(FrozenModel):
    """One judge: against people, as a regression judge on planted pairs, and a batch corrected by those.

    `strata`: overall verdicts on pairs, by kind of item; `criteria`: the same by each criterion that people labelled;
    `scores`: scores by criterion and kind of item. `biases`: what ought not to matter, and what it does.
    """

    judge: str
    strata: dict[str, StratumResult] = {}
    criteria: dict[Label, dict[str, StratumResult]] = {}
    scores: dict[Label, dict[str, ScoreResult]] = {}
    biases: list[BiasResult] = []
    detection: DetectionResult | None = None
    batch: BatchResult | None = None
    record: JudgeRecord | None = None


class JudgeCalibration(FrozenModel):
    """All judges. `bar`: what κ with people, or informedness, must reach with its whole interval to be trusted.

    `held_out`: the same against people on held-out items alone, where there are others, too. `judging` and each
    judge's `record` say what was asked; null where only stored verdicts were read.
    """

    bar: float
    judging: JudgingHead | None = None
    judges: list[JudgeResult]
    held_out: list[JudgeResult] = []

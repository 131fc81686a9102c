"""What a judge reports of a batch beside what it reports of outputs that are as good: its control.

The control is the newest calibration of the same judge, settings and prompts on planted pairs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from skill_evaluator.judges.calibration.alerts import measured_by
from skill_evaluator.judges.calibration.batch import rates_beside
from skill_evaluator.judges.calibration.detection_results import BatchDimension
from skill_evaluator.judges.calibration.judge_results import JudgeCalibration
from skill_evaluator.judges.regression.results import JudgeRegressions, RegressionResults


@dataclass(frozen=True, slots=True, kw_only=True)
class Controlled:
    """The rates of a judge by dimension, with those of its control; without one `problem` says why there is none."""

    rates: list[BatchDimension]
    calibration: str | None = None
    problem: str = ""


def beside_controls(
    results: RegressionResults, judge: JudgeRegressions, calibrations: Iterable[JudgeCalibration]
) -> Controlled:
    """Return what a judge of a batch reports beside its control; `calibrations` are those there are, newest first."""
    problem = measured_by(judge.judge, results.judging.prompts, None)
    for calibration in calibrations:
        measured = measured_by(judge.judge, results.judging.prompts, calibration)
        if not isinstance(measured, str):
            name = None if calibration.judging is None else calibration.judging.id
            return Controlled(rates=rates_beside(judge.dimensions, measured), calibration=name)
        problem = measured
    return Controlled(rates=rates_beside(judge.dimensions, {}), problem=str(problem))

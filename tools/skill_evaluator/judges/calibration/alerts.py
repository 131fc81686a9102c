"""What a judge reports of a batch, and its calibration → are there more regressions than the policy allows?

Only figures of the calibration are needed, and no text: its results can be committed where CI reads them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import read_json, validated
from skill_evaluator.judges.asking.questions import PromptIdentity
from skill_evaluator.judges.asking.results import FigureResult, JudgeRecord, figure
from skill_evaluator.judges.calibration.detection_results import DimensionDetection
from skill_evaluator.judges.calibration.judge_results import JudgeCalibration
from skill_evaluator.judges.modes.regression_results import RateAlert, RegressionResults
from skill_evaluator.judges.statistics.rates import Trials, corrected_rate
from skill_evaluator.library.config import JudgePolicy, Settings
from skill_evaluator.library.reading import Root

_NO_CALIBRATION = (
    "nothing says what the judge misses and makes up; name the results of `judge calibrate --broken N` as "
    "policy.judge.calibration in settings.yaml"
)


def read_calibration(config: Path, settings: Settings) -> JudgeCalibration | None:
    """Read the calibration that the settings name, a file below their folder; raise JudgeError for a broken one."""
    name = settings.policy.judge.calibration
    if name is None:
        return None
    path = Root(config, JudgeError, follow_links=settings.limits.follow_links).inside(config / name)
    return validated(JudgeCalibration, read_json(path, JudgeError), path, JudgeError)


def with_alerts(
    results: RegressionResults, policy: JudgePolicy, calibration: JudgeCalibration | None
) -> RegressionResults:
    """Return the results with what there is to say of each rate that the policy bounds: by judge and dimension.

    A rate is above its bound only where the whole interval is.
    """
    alerts = []
    for judge in results.judges:
        measured = measured_by(judge.judge, results.judging.prompts, calibration)
        reported = {summary.dimension: summary.worse for summary in judge.dimensions}
        for dimension, allowed in policy.allowed(reported).items():
            figures = _figures(reported.get(dimension), measured, dimension)
            corrected = figures.get("corrected")
            alerts.append(
                RateAlert(
                    judge=judge.judge.model_id,
                    dimension=dimension,
                    allowed=allowed,
                    calibration=calibration.judging.id if calibration and calibration.judging else None,
                    above=None if corrected is None else corrected.ci95[0] > allowed,
                    **figures,
                )
            )
    return results.model_copy(update={"alerts": alerts})


def measured_by(
    judge: JudgeRecord, prompts: Sequence[PromptIdentity], calibration: JudgeCalibration | None
) -> Mapping[str, DimensionDetection] | str:
    """Return by dimension what a calibration says of a judge, or why it says nothing of this batch."""
    if calibration is None:
        return _NO_CALIBRATION
    mine = next((one for one in calibration.judges if one.judge == judge.model_id), None)
    if mine is None or mine.detection is None:
        return "the calibration is not about this judge's regressions"
    if calibration.judging is None or mine.record is None or mine.record.settings != judge.settings:
        return "the calibration is of the judge with other settings; calibrate it again"
    if not {prompt.digest for prompt in prompts} <= {prompt.digest for prompt in calibration.judging.prompts}:
        return "the calibration is of another prompt; calibrate the judge again"
    return {row.dimension: row for row in mine.detection.dimensions}


def _figures(
    reported: FigureResult | None, measured: Mapping[str, DimensionDetection] | str, dimension: str
) -> dict[str, Any]:
    """Return what there is of the figures of an alert, and as `problem` why it is not all of them."""
    if reported is None:
        return {"problem": "the batch was not asked about it"}
    if isinstance(measured, str):
        return {"reported": reported, "problem": measured}
    row = measured.get(dimension)
    if row is None or not (row.sensitivity.n and row.specificity.n):
        return {"reported": reported, "problem": "the calibration has no broken outputs of it, or no controls"}
    figures = {"reported": reported, "sensitivity": row.sensitivity, "specificity": row.specificity}
    if not reported.n:
        return {**figures, "problem": "no answer counts"}
    corrected = corrected_rate(*(Trials(count=round((one.value or 0.0) * one.n), n=one.n) for one in figures.values()))
    if corrected.value is None:
        return {**figures, "problem": "the judge reports what is broken no oftener than what is not"}
    return {**figures, "corrected": figure(corrected)}

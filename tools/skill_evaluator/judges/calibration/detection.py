"""Regression judges: corruption tests, batches of which people labelled some pairs, corrected rates and alerts.

A regression is reported if both orders call the candidate worse. A verdict counts if both orders have a usable output.
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.questions import PromptIdentity
from skill_evaluator.judges.asking.results import JudgeRecord
from skill_evaluator.judges.calibration.corruption import CONTROL, CORRUPTIONS, CorruptedPair
from skill_evaluator.judges.calibration.labels import Labels, RegressionLabel
from skill_evaluator.judges.calibration.results import (
    ANY,
    BatchResult,
    DetectionResult,
    DimensionDetection,
    DimensionRate,
    JudgeCalibration,
    JudgeResult,
    LabelAgreement,
    Position,
)
from skill_evaluator.judges.modes.regression_results import (
    MIN_PAIRS,
    DimensionResult,
    JudgeRegressions,
    PairResult,
    RateAlert,
    RegressionResults,
)
from skill_evaluator.judges.modes.ship_rules import NONE, SEVERITIES, Finding
from skill_evaluator.judges.statistics.agreement import cohen_kappa, confusion, trust_of
from skill_evaluator.judges.statistics.bounded import Figure, mean_within, rate
from skill_evaluator.judges.statistics.rates import Trials, corrected_rate
from skill_evaluator.library.config import JudgePolicy

ALL = "all dimensions"
_VERDICTS = (*get_args(Finding), "uncertain")
_WORSE = "candidate_worse"
Dimensions = Mapping[str, DimensionResult]
Labelled = Sequence[tuple[DimensionResult, RegressionLabel]]


def judged_dimensions(pair: PairResult) -> dict[str, DimensionResult]:
    """Return the dimensions of a pair in which both orders count, by name."""
    return {verdict.dimension: verdict for verdict in pair.dimensions if None not in verdict.by_order}


def is_reported(dimensions: Dimensions, dimension: str) -> bool:
    """Return whether both orders call the candidate worse in a dimension, or in any."""
    return any(row.verdict == _WORSE for name, row in dimensions.items() if dimension in (name, ANY))


def detection_of(pairs: Sequence[CorruptedPair], judged: Mapping[str, PairResult]) -> DetectionResult:
    """Measure a judge on corrupted pairs and controls by dimension and kind of corruption."""
    counted = [(pair, rows) for pair in pairs if pair.id in judged and (rows := judged_dimensions(judged[pair.id]))]
    names = dict.fromkeys(pair.dimension for pair, _ in counted if pair.dimension)
    dimensions = []
    for name in (*sorted(names), ANY):
        found = [is_reported(rows, name) for pair, rows in counted if pair.dimension and name in (pair.dimension, ANY)]
        quiet = [not is_reported(rows, name) for pair, rows in counted if pair.corruption == CONTROL]
        sensitivity, specificity = (rate(sum(given), len(given)) for given in (found, quiet))
        dimensions.append(DimensionDetection(dimension=name, sensitivity=sensitivity, specificity=specificity))
    kinds = {
        kind: [is_reported(rows, corruption.dimension) for pair, rows in counted if pair.corruption == kind]
        for kind, corruption in CORRUPTIONS.items()
    }
    return DetectionResult(
        dimensions=dimensions,
        kinds={kind: rate(sum(found), len(found)) for kind, found in kinds.items() if found},
        unscored=len(pairs) - len(counted),
    )


def batch_results(batch: RegressionResults, labels: Labels, bar: float) -> list[JudgeResult]:
    """Compare every judge of a batch with people's labels of some of its pairs, and correct its rates by them.

    Raise JudgeError if people labelled no pair and dimension of the batch.
    """
    return [_batch_result(judge, labels, bar) for judge in batch.judges]


def _batch_result(judge: JudgeRegressions, labels: Labels, bar: float) -> JudgeResult:
    model_id = judge.judge.model_id
    judged = {pair.id: rows for pair in judge.pairs if (rows := judged_dimensions(pair))}
    if judge.unusable is not None:
        return JudgeResult(judge=model_id, unusable=judge.unusable, record=judge.judge)
    labelled = [
        (judged[name][dimension], label)
        for name, findings in labels.regressions.items()
        for dimension, label in findings.items()
        if dimension in judged.get(name, {})
    ]
    if not labelled:
        raise JudgeError(f"{labels.path} has no label of a pair and dimension of the batch")
    names = list(dict.fromkeys(name for rows in judged.values() for name in rows))
    parts = {name: [unit for unit in labelled if unit[0].dimension == name] for name in names}
    agreement = [_agreement(ALL, labelled, bar)]
    agreement += [_agreement(name, part, bar) for name, part in parts.items() if part and len(names) > 1]
    rates = {row.criterion: (row.sensitivity, row.specificity) for row in agreement}
    rated = [
        (label.severity, (row.impact or NONE) if row.verdict == _WORSE else NONE)
        for row, label in labelled
        if label.severity is not None
    ]
    return JudgeResult(
        judge=model_id,
        agreement=agreement,
        batch=BatchResult(
            pairs=len(judged),
            too_few=len(judged) < MIN_PAIRS,
            dimensions=[
                _rate(name, reported, *rates.get(name, rates[ALL] if len(names) == 1 else (None, None)))
                for name in names
                if (reported := _reported(name, judged)).n
            ],
            rated={level: {given: rated.count((level, given)) for given in SEVERITIES} for level in SEVERITIES},
            rated_kappa=cohen_kappa(
                confusion([given for _, given in rated], [level for level, _ in rated], SEVERITIES), "linear"
            ),
        ),
        record=judge.judge,
    )


def _agreement(name: str, labelled: Labelled, bar: float) -> LabelAgreement:
    judge, people = [row.verdict for row, _ in labelled], [label.human for _, label in labelled]
    right = [verdict == human for verdict, human in zip(judge, people, strict=True)]
    found = [verdict == _WORSE for verdict, human in zip(judge, people, strict=True) if human == _WORSE]
    quiet = [verdict != _WORSE for verdict, human in zip(judge, people, strict=True) if human != _WORSE]
    return LabelAgreement(
        mode="regression",
        criterion=name,
        labels=len(labelled),
        n=len(labelled),
        agreement=rate(sum(right), len(right)),
        trust=trust_of(confusion(judge, people, _VERDICTS), bar),
        sensitivity=rate(sum(found), len(found)),
        specificity=rate(sum(quiet), len(quiet)),
        position=_position(labelled),
    )


def _position(labelled: Labelled) -> Position:
    """Return the position figures of verdicts by order, in which the baseline (1) or the candidate (2) stands first."""
    orders = [row.by_order for row, _ in labelled]
    first = [((one == _WORSE) + (two == "candidate_better")) / 2 for one, two in orders]
    agreement = [rate(sum(row.by_order[at] == label.human for row, label in labelled), len(labelled)) for at in (0, 1)]
    flips = rate(sum(one != two for one, two in orders), len(orders))
    return Position(flips=flips, first=mean_within(first), agreement=(agreement[0], agreement[1]))


def _reported(name: str, judged: Mapping[str, Dimensions]) -> Figure:
    pairs = [rows for rows in judged.values() if name in rows]
    return rate(sum(is_reported(rows, name) for rows in pairs), len(pairs))


def _rate(name: str, reported: Figure, sensitivity: Figure | None, specificity: Figure | None) -> DimensionRate:
    """Build the row of a dimension. The rate is not corrected without known positives and known negatives."""
    corrected = None
    if sensitivity is not None and specificity is not None and sensitivity.n and specificity.n and reported.n:
        corrected = corrected_rate(*map(Trials.of, (reported, sensitivity, specificity)))
    return DimensionRate(dimension=name, reported=reported, corrected=corrected)


_NO_CALIBRATION = (
    "the judge's error rates are not known; name the results of `judge calibrate --corrupt N` as "
    "policy.judge.calibration in settings.yaml"
)


def with_alerts(
    results: RegressionResults, policy: JudgePolicy, calibration: JudgeCalibration | None
) -> RegressionResults:
    """Add an alert for each judge and dimension whose rate the policy limits.

    A rate is above its limit only if its whole interval is.
    """
    alerts = []
    for judge in results.judges:
        measured = measured_by(judge.judge, results.judging.prompts, calibration)
        reported = {summary.dimension: summary.worse for summary in judge.dimensions}
        for dimension, allowed in policy.allowed(reported).items():
            figures = _alert_figures(reported.get(dimension), measured, dimension)
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
    """Return the corruption test of a judge by dimension, or why the calibration does not apply to this batch."""
    if calibration is None:
        return _NO_CALIBRATION
    mine = next((result for result in calibration.judges if result.judge == judge.model_id), None)
    if mine is None or mine.detection is None:
        return "the calibration has no corruption test of this judge"
    if calibration.judging is None or mine.record is None or mine.record.settings != judge.settings:
        return "the calibration used different settings; calibrate the judge again"
    if not {prompt.digest for prompt in prompts} <= {prompt.digest for prompt in calibration.judging.prompts}:
        return "the calibration used a different prompt; calibrate the judge again"
    return {row.dimension: row for row in mine.detection.dimensions}


def _alert_figures(
    reported: Figure | None, measured: Mapping[str, DimensionDetection] | str, dimension: str
) -> dict[str, Any]:
    """Return the known figures of an alert and, if the rate cannot be corrected, the reason as `problem`."""
    if reported is None:
        return {"problem": "the batch has no verdict on it"}
    if isinstance(measured, str):
        return {"reported": reported, "problem": measured}
    row = measured.get(dimension)
    if row is None or not (row.sensitivity.n and row.specificity.n):
        return {"reported": reported, "problem": "the calibration has no corrupted output of it, or no control"}
    figures = {"reported": reported, "sensitivity": row.sensitivity, "specificity": row.specificity}
    if not reported.n:
        return {**figures, "problem": "no output of the judge counts"}
    corrected = corrected_rate(*map(Trials.of, figures.values()))
    if corrected.value is None:
        return {**figures, "problem": "the judge reports corrupted outputs no more often than the others"}
    return {**figures, "corrected": corrected}

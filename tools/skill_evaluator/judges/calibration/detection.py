"""Measure regression judges: corruption tests, partly labelled batches, corrected rates and alerts."""

from collections.abc import Mapping, Sequence

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.agreement import measure
from skill_evaluator.judges.calibration.corruption import CONTROL, CORRUPTIONS, CorruptedPair
from skill_evaluator.judges.calibration.labels import Labels, RegressionLabel, Unit
from skill_evaluator.judges.calibration.results import (
    ANY,
    BatchResult,
    DetectionResult,
    DimensionDetection,
    DimensionRate,
    JudgeCalibration,
    JudgeResult,
    LabelAgreement,
)
from skill_evaluator.judges.modes import regression
from skill_evaluator.judges.modes.ship_rules import NONE, SEVERITIES
from skill_evaluator.judges.prompting.questions import PromptIdentity
from skill_evaluator.judges.prompting.results import JudgeRecord
from skill_evaluator.judges.statistics import cohen_kappa, confusion, corrected_rate, rate
from skill_evaluator.library.config import JudgePolicy
from skill_evaluator.stats import by_key

ALL_DIMENSIONS = "all dimensions"
_WORSE = "candidate_worse"
_WINNERS: Mapping[str | None, int | str] = {_WORSE: 1, "same": "tie", "candidate_better": 2}  # baseline, candidate


def _reports(pair: regression.PairResult) -> dict[str, bool]:
    """Return a flag by dimension and for `any`: True if the judge reports a regression; {} if no verdict is usable."""
    reports = {one.dimension: one.verdict == _WORSE for one in pair.counted}
    return {**reports, ANY: any(reports.values())} if reports else {}


def detection_of(pairs: Sequence[CorruptedPair], judged: Sequence[regression.PairResult]) -> DetectionResult:
    """Measure a judge on corrupted pairs and controls. `judged` has its results in the order of `pairs`."""
    reports = [(pair, report) for pair, result in zip(pairs, judged, strict=True) if (report := _reports(result))]
    dimensions = []
    for name in (*sorted({pair.dimension for pair, _ in reports if pair.dimension}), ANY):
        reported = [(pair, report.get(name, False)) for pair, report in reports]
        detected = [worse for pair, worse in reported if pair.dimension and name in (pair.dimension, ANY)]
        unreported = [not worse for pair, worse in reported if pair.corruption == CONTROL]
        sensitivity, specificity = rate(sum(detected), len(detected)), rate(sum(unreported), len(unreported))
        dimensions.append(DimensionDetection(dimension=name, sensitivity=sensitivity, specificity=specificity))
    kinds = {
        kind: [report.get(pair.dimension or "", False) for pair, report in reports if pair.corruption == kind]
        for kind in CORRUPTIONS
    }
    return DetectionResult(
        dimensions=dimensions,
        kinds={kind: rate(sum(detected), len(detected)) for kind, detected in kinds.items() if detected},
        unscored=len(pairs) - len(reports),
    )


def batch_result(judge: regression.JudgeRegressions, labels: Labels, bar: float) -> JudgeResult:
    """Measure a judge's verdicts on a batch of which some pairs are labelled. Raise JudgeError if none is labelled."""
    model_id = judge.judge.model_id
    if judge.unusable is not None:
        return JudgeResult(judge=model_id, unusable=judge.unusable, record=judge.judge)
    label_of = {(label.id, label.dimension): label for label in labels.of(RegressionLabel)}
    rows = [(pair.id, one) for pair in judge.pairs for one in pair.counted]
    labelled = [(one, label_of[name, one.dimension]) for name, one in rows if (name, one.dimension) in label_of]
    if not labelled:
        raise JudgeError(f"{labels.path} has no label of a pair and dimension of the batch")
    units = by_key((one.dimension, _labelled_unit(one, label)) for one, label in labelled)
    by_dimension = by_key((one.dimension, one) for _, one in rows)
    agreement = {name: measure("regression", name, units[name], bar) for name in by_dimension if name in units}
    rated = [
        (_severity(label.human, label.impact), _severity(one.verdict, one.impact))
        for one, label in labelled
        if label.impact or label.human != _WORSE  # the impact of a worse candidate is optional
    ]
    pairs = len({name for name, _ in rows})
    result = BatchResult(
        pairs=pairs,
        too_few=pairs < regression.MIN_PAIRS,
        dimensions=[_dimension_rate(verdicts, agreement.get(name)) for name, verdicts in by_dimension.items()],
        rated={level: {rating: rated.count((level, rating)) for rating in SEVERITIES} for level in SEVERITIES},
        rated_kappa=cohen_kappa(
            confusion([rating for _, rating in rated], [level for level, _ in rated], SEVERITIES), "linear"
        ),
    )
    overall = measure("regression", ALL_DIMENSIONS, [_labelled_unit(*one) for one in labelled], bar)
    return JudgeResult(judge=model_id, agreement=[overall, *agreement.values()], batch=result, record=judge.judge)


def _severity(verdict: str, impact: str | None) -> str:
    return impact if impact is not None and verdict == _WORSE else NONE


def _labelled_unit(dimension: regression.DimensionResult, label: RegressionLabel) -> Unit:
    orders = [[_WINNERS[verdict]] for verdict in dimension.by_order]
    verdict = _WINNERS.get(dimension.verdict, dimension.verdict)
    return Unit(people=[_WINNERS[label.human]], requests=orders, verdict=verdict)


def _dimension_rate(verdicts: Sequence[regression.DimensionResult], errors: LabelAgreement | None) -> DimensionRate:
    reported = rate(sum(one.verdict == _WORSE for one in verdicts), len(verdicts))
    corrected = None if errors is None else corrected_rate(reported, errors.sensitivity, errors.specificity)
    return DimensionRate(dimension=verdicts[0].dimension, reported=reported, corrected=corrected)


def with_alerts(
    results: regression.RegressionResults, policy: JudgePolicy, calibration: JudgeCalibration | None
) -> regression.RegressionResults:
    """Return the results with an alert for each judge and dimension whose rate of regressions has a limit."""
    alerts = []
    for judge in results.judges:
        errors, problem = _measured_errors(judge.judge, results.judging.prompts, calibration)
        reported = {one.dimension: one.worse for one in judge.dimensions}
        for dimension, allowed in policy.allowed(reported).items():
            reported_rate, row = reported.get(dimension), errors.get(dimension)
            corrected = None
            if reported_rate is not None and row is not None:
                corrected = corrected_rate(reported_rate, row.sensitivity, row.specificity)
            if corrected is not None and corrected.value is None:
                corrected = None
            alerts.append(
                regression.RateAlert(
                    judge=judge.judge.model_id,
                    dimension=dimension,
                    allowed=allowed,
                    above=corrected.ci95[0] > allowed if corrected and corrected.ci95 else None,
                    reported=reported_rate,
                    corrected=corrected,
                    sensitivity=None if row is None else row.sensitivity,
                    specificity=None if row is None else row.specificity,
                    calibration=calibration.judging.id if calibration and calibration.judging else None,
                    problem="" if corrected else problem,
                )
            )
    return results.model_copy(update={"alerts": alerts})


def _measured_errors(
    judge: JudgeRecord, prompts: Sequence[PromptIdentity], calibration: JudgeCalibration | None
) -> tuple[Mapping[str, DimensionDetection], str]:
    """Return a judge's corruption test by dimension, and the problem to name if a dimension is not in it."""
    if calibration is None or calibration.judging is None:
        return {}, "name the results of `judge calibrate --corrupt N` as policy.judge.calibration in settings.yaml"
    measured = {(one.judge, one.record.settings): one.detection for one in calibration.judges if one.record}
    detection = measured.get((judge.model_id, judge.settings))
    if detection is None or not {one.digest for one in prompts} <= {one.digest for one in calibration.judging.prompts}:
        return {}, "the calibration has no corruption test of this judge with this prompt and these settings"
    return {row.dimension: row for row in detection.dimensions}, "the batch or the corruption test lacks this dimension"

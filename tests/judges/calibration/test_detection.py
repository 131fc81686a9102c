"""Regression judges: corruption tests, labelled batches, and alerts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.agreement import alerts_of, batch_result, detection_of
from skill_evaluator.judges.calibration.corruption import CONTROL, CorruptedPair
from skill_evaluator.judges.calibration.labels import Labels, RegressionLabel
from skill_evaluator.judges.calibration.results import (
    DetectionResult,
    DimensionDetection,
    JudgeCalibration,
    JudgeResult,
)
from skill_evaluator.judges.judge_run import JudgeRunHead, NoUsableOutput
from skill_evaluator.judges.modes.regression import DimensionSummary, JudgeRegressions, PairResult
from skill_evaluator.judges.prompting.questions import PromptIdentity
from skill_evaluator.judges.statistics import rate
from skill_evaluator.library.config import JudgePolicy

from tests.support.judged import JUDGE

DIMENSIONS = ("factuality", "completeness")
WORSE, SAME, UNCERTAIN = "candidate_worse", "same", "uncertain"
Found = Mapping[str, tuple[str, str | None]]


def corrupted(name: str, kind: str, dimension: str | None = None) -> CorruptedPair:
    texts = {"input": "p", "baseline_output": "a", "candidate_output": "b"}
    return CorruptedPair(id=name, source=name, corruption=kind, dimension=dimension, **texts)


def judged(name: str, found: Found, answered: Sequence[str] = DIMENSIONS) -> PairResult:
    """A pair as `judge regression` has it; a dimension that is not in `found` is the same."""
    dimensions = []
    for dimension in DIMENSIONS:
        verdict, impact = found.get(dimension, (SAME, None))
        orders = [WORSE, SAME] if verdict == UNCERTAIN else [verdict, verdict]
        by_order = orders if dimension in answered else [None, None]
        dimensions.append({"dimension": dimension, "verdict": verdict, "impact": impact, "by_order": by_order})
    decision = {"ship_decision": None, "reasons": [], "regression_detected": None, "regression_severity": None}
    return PairResult.model_validate(
        {"id": name, "stratum": "all", "answers": [], "dimensions": dimensions, **decision}
    )


def row_of(result: DetectionResult, name: str) -> DimensionDetection:
    return next(row for row in result.dimensions if row.dimension == name)


def test_detection_counts_hits_and_false_alarms_by_dimension() -> None:
    pairs = [
        (corrupted("1", "fact_changed", "factuality"), {"factuality": (WORSE, "high")}),
        (corrupted("2", "claim_invented", "factuality"), {"completeness": (WORSE, "low")}),
        (corrupted("3", "fact_changed", "factuality"), {"factuality": (UNCERTAIN, None)}),
        (corrupted("4", "part_removed", "completeness"), {"completeness": (WORSE, "medium")}),
        (corrupted("5", CONTROL), {}),
        (corrupted("6", CONTROL), {"factuality": (WORSE, "low")}),
        (corrupted("7", CONTROL), {"completeness": ("candidate_better", None)}),
        (corrupted("8", CONTROL), None),
    ]
    results = [judged(pair.id, found or {}, () if found is None else DIMENSIONS) for pair, found in pairs]
    result = detection_of([pair for pair, _ in pairs], results)
    assert [row.dimension for row in result.dimensions] == ["completeness", "factuality", "any"]
    factuality, whole = row_of(result, "factuality"), row_of(result, "any")
    assert (factuality.sensitivity.value, factuality.sensitivity.n) == (pytest.approx(1 / 3), 3)
    assert (factuality.specificity.value, factuality.specificity.n) == (pytest.approx(2 / 3), 3)
    assert (whole.sensitivity.value, whole.specificity.value) == pytest.approx((0.75, 2 / 3))
    kinds = {kind: (figure.value, figure.n) for kind, figure in result.kinds.items()}
    assert kinds == {"fact_changed": (0.5, 2), "part_removed": (1.0, 1), "claim_invented": (0.0, 1)}
    assert result.unscored == 1


def batch(pairs: Sequence[PairResult], unusable: NoUsableOutput | None = None) -> JudgeRegressions:
    """A batch of one judge, without the fields that a calibration does not read."""
    return JudgeRegressions.model_construct(judge=JUDGE, pairs=list(pairs), unusable=unusable)


def labels_of(*findings: tuple[str, str, str | None]) -> Labels:
    lines = [
        RegressionLabel(id=name, dimension="factuality", human=human, impact=impact)  # type: ignore[arg-type]
        for name, human, impact in findings
    ]
    return Labels(path=Path("labels.jsonl"), lines=lines)


def test_batch_is_corrected_by_the_errors_on_labelled_pairs() -> None:
    """Of 200 pairs 40 are reported. The labels say that the judge misses 1 in 5 and makes up 1 in 10."""
    worse: Found = {"factuality": (WORSE, "high")}
    pairs = [judged(f"p{number}", worse if number < 40 else {}) for number in range(200)]
    known = [(f"p{number}", WORSE if number < 36 or 156 <= number < 165 else SAME) for number in range(200)]
    impact = {WORSE: "medium", SAME: None}
    result = batch_result(batch(pairs), labels_of(*((name, human, impact[human]) for name, human in known)), 0.6)
    row = result.agreement[1]
    assert (result.agreement[0].criterion, row.criterion) == ("all dimensions", "factuality")
    assert (row.n, row.agreement.value) == (200, pytest.approx(187 / 200))
    assert (row.accuracy.sensitivity.value, row.accuracy.specificity.value) == pytest.approx((36 / 45, 151 / 155))
    assert result.batch is not None
    factuality, completeness = result.batch.dimensions
    assert (factuality.reported.value, factuality.corrected.value) == pytest.approx((0.2, 0.225))
    assert completeness.corrected is None, "nobody labelled it"
    assert not result.batch.too_few
    assert result.batch.rated["medium"] == {"none": 9, "low": 0, "medium": 0, "high": 36}
    assert result.batch.rated["none"]["high"] == 4


def test_batch_without_a_usable_label_is_refused() -> None:
    with pytest.raises(JudgeError, match="no label whose id and dimension are in the batch"):
        batch_result(batch([judged("p", {})]), labels_of(("other", SAME, None)), 0.6)
    with pytest.raises(JudgeError, match="no usable outputs in both orders for any label"):
        batch_result(batch([judged("p", {}, ["completeness"])]), labels_of(("p", SAME, None)), 0.6)
    prose = NoUsableOutput(unscored={"not_json": 2}, example="Fine.")
    result = batch_result(batch([judged("p", {}, ())], prose), labels_of(("p", SAME, None)), 0.6)
    assert (result.agreement, result.batch, result.unusable) == ([], None, prose)


def prompts_of(digest: str) -> JudgeRunHead:
    """The head of a judge run with one prompt."""
    prompt = {"name": "judge-regression", "version": "1.0.0", "digest": digest}
    return JudgeRunHead.model_construct(id="20260301T080000Z-abcdef", prompts=[PromptIdentity.model_validate(prompt)])


@pytest.mark.parametrize(
    ("limit", "prompt", "above", "problem"),
    [
        (0.1, "sha256:1", True, ""),
        (0.7, "sha256:1", False, ""),  # the interval contains the limit
        (0.1, "sha256:2", None, "no corruption test of this judge with this prompt"),
        (0.1, None, None, "name the results of `judge calibrate --corrupt N`"),
    ],
)
def test_measured_rate_alerts_if_its_interval_is_above_the_limit(
    limit: float, prompt: str | None, above: bool | None, problem: str
) -> None:
    summary = DimensionSummary.model_construct(dimension="completeness", worse=rate(30, 40))
    judge = JudgeRegressions.model_construct(judge=JUDGE, dimensions=[summary])
    row = DimensionDetection(dimension="completeness", sensitivity=rate(20, 20), specificity=rate(40, 40))
    tested = JudgeResult(judge="m", record=JUDGE, detection=DetectionResult(dimensions=[row]))
    calibration = prompt and JudgeCalibration.model_construct(judging=prompts_of(prompt), judges=[tested])
    policy = JudgePolicy(alert_above={"completeness": limit})
    (alert,) = alerts_of([judge], prompts_of("sha256:1").prompts, policy, calibration)
    assert (alert.above, problem in alert.problem, alert.corrected is None) == (above, True, above is None)


def test_judge_that_detects_nothing_gives_no_alert_but_a_problem() -> None:
    summary = DimensionSummary.model_construct(dimension="completeness", worse=rate(30, 40))
    judge = JudgeRegressions.model_construct(judge=JUDGE, dimensions=[summary])
    row = DimensionDetection(dimension="completeness", sensitivity=rate(10, 20), specificity=rate(20, 40))
    tested = JudgeResult(judge="m", record=JUDGE, detection=DetectionResult(dimensions=[row]))
    calibration = JudgeCalibration.model_construct(judging=prompts_of("sha256:1"), judges=[tested])
    policy = JudgePolicy(alert_above={"completeness": 0.1})
    (alert,) = alerts_of([judge], prompts_of("sha256:1").prompts, policy, calibration)
    assert (alert.above, alert.corrected) == (None, None)
    assert alert.problem == "the judge reports corrupted outputs no more often than controls"

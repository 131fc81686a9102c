"""Results of `judge regression` on planted pairs, and on a batch → what each judge is worth, and the batch's rates."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.batch import Labels, batch_rates, read_labels
from skill_evaluator.judges.calibration.detection import detection, see
from skill_evaluator.judges.calibration.judge_results import JudgeResult
from skill_evaluator.judges.calibration.planting import PlantedPair
from skill_evaluator.judges.modes.regression_results import JudgeRegressions, RegressionResults


def measure(
    planted: Sequence[PlantedPair],
    judged: RegressionResults,
    bar: float,
    without_place: Mapping[str, Mapping[str, int]],
    batch: RegressionResults | None = None,
    labels: Path | None = None,
) -> list[JudgeResult]:
    """Measure every judge on planted pairs, and correct what the same judge reports of a batch.

    Raise JudgeError where the results are not about these pairs, or those of the batch have another judge or prompt.
    """
    ids = {one.id for one in planted}
    if not any(pair.id in ids for judge in judged.judges for pair in judge.pairs):
        raise JudgeError("the results are about none of the planted pairs")
    if batch is not None:
        _refuse_others(judged, batch)
    measured = []
    for judge in judged.judges:
        pairs = {pair.id: pair for pair in judge.pairs}
        corrected = None
        for mine in batch.judges if batch is not None else []:
            if mine.judge.model_id == judge.judge.model_id:
                known: Labels = {} if labels is None else read_labels(labels, _judged_dimensions(mine))
                corrected = batch_rates(mine.pairs, known, see(planted, pairs), bar)
        measured.append(
            JudgeResult(
                judge=judge.judge.model_id,
                detection=detection(planted, pairs, bar, without_place),
                batch=corrected,
            )
        )
    return measured


def against_labels(batch: RegressionResults, labels: Path, bar: float) -> list[JudgeResult]:
    """Hold the verdicts on a batch against people's labels of some of its pairs, where nothing was planted."""
    results = []
    for judge in batch.judges:
        known = read_labels(labels, _judged_dimensions(judge))
        results.append(JudgeResult(judge=judge.judge.model_id, batch=batch_rates(judge.pairs, known, (), bar)))
    return results


def _judged_dimensions(judge: JudgeRegressions) -> dict[str, set[str]]:
    return {pair.id: {verdict.dimension for verdict in pair.dimensions} for pair in judge.pairs}


def _refuse_others(judged: RegressionResults, batch: RegressionResults) -> None:
    """Raise JudgeError unless a batch was judged by the same judges, settings and prompts as the planted pairs."""
    calibrated = {judge.judge.model_id: judge for judge in judged.judges}
    for judge in batch.judges:
        name = judge.judge.model_id
        if name not in calibrated:
            raise JudgeError(f"the batch was judged by {name}, and the planted pairs were not")
        if judge.judge.settings != calibrated[name].judge.settings:
            raise JudgeError(f"{name} judged the batch with other settings than the planted pairs; judge one again")
    prompts = [{prompt.name: prompt.digest for prompt in one.judging.prompts} for one in (batch, judged)]
    if any(prompts[1].get(name) != digest for name, digest in prompts[0].items()):
        raise JudgeError("the batch was judged by another prompt than the planted pairs; judge one again")

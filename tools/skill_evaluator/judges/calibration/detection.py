"""Planted pairs and a batch before a regression judge → what it misses and makes up, and the rates behind its reports.

A verdict counts as a report if both orders call the candidate worse. A report in one order does not count, in planted
pairs as in the batch that is corrected with their rates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.questions import PromptIdentity
from skill_evaluator.judges.asking.results import JudgeRecord
from skill_evaluator.judges.calibration.labels import Labels, RegressionLabel
from skill_evaluator.judges.calibration.planting import CONTROLS, DAMAGES, PlantedPair
from skill_evaluator.judges.calibration.results import (
    ANY,
    FEWEST_PAIRS,
    BatchDimension,
    BatchResult,
    ControlDetection,
    DetectionResult,
    DimensionDetection,
    JudgeCalibration,
    JudgeResult,
    WayDetection,
)
from skill_evaluator.judges.modes.regression_results import (
    DimensionResult,
    DimensionSummary,
    JudgeRegressions,
    PairResult,
    RateAlert,
    RegressionResults,
)
from skill_evaluator.judges.modes.ship_rules import IMPACTS, NONE, SEVERITIES, Finding, count_severities
from skill_evaluator.judges.statistics.agreement import MOST_LABELS, cohen_kappa, confusion, trust_of
from skill_evaluator.judges.statistics.bounded import Figure, difference, rate
from skill_evaluator.judges.statistics.rates import Trials, against_control, corrected_rate, prediction_powered_rate
from skill_evaluator.library.config import JudgePolicy
from skill_evaluator.verdicts.decide.effects import adjusted

LevelT = TypeVar("LevelT", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A planted pair with the judge's verdict on each dimension that both answers counted for."""

    planted: PlantedPair
    dimensions: Mapping[str, DimensionResult]

    def reported(self, dimension: str) -> bool:
        """Return whether both orders call the candidate worse in a dimension, or in any."""
        return is_reported(self.dimensions, dimension)


def judged_dimensions(pair: PairResult) -> dict[str, DimensionResult]:
    """Return the dimensions of a pair that both answers counted for, by name."""
    return {verdict.dimension: verdict for verdict in pair.dimensions if None not in verdict.by_order}


def is_reported(dimensions: Mapping[str, DimensionResult], dimension: str) -> bool:
    """Return whether both orders call the candidate worse in a dimension, or in any."""
    return bool(_worse(dimensions, dimension))


def severity_in(dimensions: Mapping[str, DimensionResult], dimension: str = ANY) -> str:
    """Return the impact of what is reported in a dimension, the highest in any of them; `none` without."""
    return max((one.impact or NONE for one in _worse(dimensions, dimension)), key=SEVERITIES.index, default=NONE)


def _worse(dimensions: Mapping[str, DimensionResult], dimension: str) -> list[DimensionResult]:
    return [one for name, one in dimensions.items() if dimension in (name, ANY) and one.verdict == "candidate_worse"]


def see(planted: Sequence[PlantedPair], judged: Mapping[str, PairResult]) -> list[Seen]:
    """Return the pairs that both answers counted for."""
    pairs = [(one, judged_dimensions(judged[one.id])) for one in planted if one.id in judged]
    return [Seen(planted=one, dimensions=dimensions) for one, dimensions in pairs if dimensions]


def detection(
    planted: Sequence[PlantedPair],
    judged: Mapping[str, PairResult],
    bar: float,
    without_place: Mapping[str, Mapping[str, int]],
) -> DetectionResult:
    """Measure a judge on planted pairs; `bar` is the informedness that a trusted one reaches."""
    seen = see(planted, judged)
    broken = [one for one in seen if not one.planted.is_control]
    found = [(str(one.planted.impact), severity_in(one.dimensions, str(one.planted.dimension))) for one in broken]
    seen_impacts = [(given, impact) for impact, given in found if given != NONE]
    names = dict.fromkeys(one.planted.dimension for one in broken if one.planted.dimension)
    return DetectionResult(
        broken=len(broken),
        controls=len(seen) - len(broken),
        sources=len({one.planted.source for one in seen}),
        unscored=len(planted) - len(seen),
        dimensions=[_of_planted(name, seen, bar) for name in (*sorted(names), ANY)],
        ways=[_way(name, mine) for name in DAMAGES if (mine := _of_kind(broken, name))],
        control_kinds=[
            ControlDetection(planted=name, quiet=rate(sum(not one.reported(ANY) for one in mine), len(mine)))
            for name in CONTROLS
            if (mine := _of_kind(seen, name))
        ],
        severity=_severities(found, IMPACTS),
        severity_kappa=_agreement_of(seen_impacts, IMPACTS),
        without_place={name: dict(reasons) for name, reasons in without_place.items()},
    )


def _severities(rated: Sequence[tuple[str, str]], levels: Sequence[LevelT]) -> dict[LevelT, dict[str, int]]:
    """Return by the severity that is known how often the judge gave which."""
    return {
        level: {given: rated.count((level, given)) for given in SEVERITIES}
        for level in levels
        if any(known == level for known, _ in rated)
    }


def _agreement_of(pairs: Sequence[tuple[str, str]], levels: Sequence[str]) -> Figure:
    return cohen_kappa(confusion([given for given, _ in pairs], [known for _, known in pairs], levels), "linear")


def sensitivity_of(seen: Sequence[Seen], dimension: str) -> Trials:
    """Return how many of the outputs broken in a dimension (or in any) were reported there, and of how many."""
    mine = [one for one in seen if not one.planted.is_control and dimension in (one.planted.dimension, ANY)]
    return Trials(count=sum(one.reported(dimension) for one in mine), n=len(mine))


def specificity_of(seen: Sequence[Seen], dimension: str) -> Trials:
    """Return how many controls were not reported in a dimension (or in any), and of how many."""
    mine = [one for one in seen if one.planted.is_control and (dimension in one.dimensions or dimension == ANY)]
    return Trials(count=sum(not one.reported(dimension) for one in mine), n=len(mine))


def _of_kind(seen: Sequence[Seen], name: str) -> list[Seen]:
    return [one for one in seen if one.planted.planted == name]


def _of_planted(name: str, seen: Sequence[Seen], bar: float) -> DimensionDetection:
    found, quiet = sensitivity_of(seen, name), specificity_of(seen, name)
    controls = [one.dimensions for one in seen if one.planted.is_control]
    same = [
        all(verdict.verdict == "same" for verdict in mine)
        for dimensions in controls
        if (mine := [verdict for verdict in dimensions.values() if name in (verdict.dimension, ANY)])
    ]
    informed = _informedness(found, quiet)
    trusted = _decided(informed, bar)
    return DimensionDetection(
        dimension=name,
        sensitivity=found.share,
        by_impact={
            impact: given.share
            for impact in IMPACTS
            if (given := sensitivity_of([one for one in seen if one.planted.impact == impact], name)).n
        },
        specificity=quiet.share,
        same=rate(sum(same), len(same)),
        informedness=informed,
        trusted=trusted,
        more_pairs=_more_pairs(found, quiet, bar) if trusted is None else None,
    )


def _way(name: str, mine: Sequence[Seen]) -> WayDetection:
    dimension = DAMAGES[name].dimension
    missed = [one for one in mine if not one.reported(dimension)]
    return WayDetection(
        planted=name,
        dimension=dimension,
        found=rate(len(mine) - len(missed), len(mine)),
        elsewhere=sum(one.reported(ANY) for one in missed),
        uncertain=sum(
            dimension in one.dimensions and one.dimensions[dimension].verdict == "uncertain" for one in missed
        ),
    )


def _informedness(found: Trials, quiet: Trials) -> Figure:
    """Return sensitivity + specificity − 1 (Youden 1950), the difference of two independent rates of reports."""
    return difference(found.share, quiet.failures.share)


def _decided(informed: Figure, bar: float) -> bool | None:
    if informed.ci95 is None or informed.ci95[0] >= bar:
        return None if informed.ci95 is None else True
    return False if informed.ci95[1] < bar else None


def _more_pairs(found: Trials, quiet: Trials, bar: float) -> int | None:
    """Return about how many more pairs would decide, if they come out as these did; None if no 10,000 would."""
    if not found.n or not quiet.n:
        return None
    import numpy as np

    for factor in np.geomspace(1.05, MOST_LABELS / (found.n + quiet.n), 200).tolist():
        more = [Trials(count=round(part.count * factor), n=round(part.n * factor)) for part in (found, quiet)]
        if _decided(_informedness(*more), bar) is not None:
            return sum(part.n for part in more) - found.n - quiet.n
    return None


_FEWEST_LABELS = 2
_VERDICTS = (*get_args(Finding), "uncertain")
_NOTHING = Figure(value=None, ci95=None, n=0)
KnownLabels = Mapping[str, Mapping[str, RegressionLabel]]


def batch_rates(pairs: Sequence[PairResult], labels: KnownLabels, seen: Sequence[Seen], bar: float) -> BatchResult:
    """Return what a batch holds, by dimension; `seen` are the planted pairs before the same judge, if there are any.

    `bar` is the κ with people's labels that a trusted judge reaches. Raise JudgeError where no answer counts.
    """
    judged = {pair.id: dimensions for pair in pairs if (dimensions := judged_dimensions(pair))}
    if not judged:
        raise JudgeError("no pair of the batch has two answers that count")
    names = [*dict.fromkeys(name for dimensions in judged.values() for name in dimensions), ANY]
    rows = [_of_batch(name, judged, labels, seen, bar) for name in names]
    rated = [
        (label.severity, severity_in(judged[name], dimension))
        for name, mine in labels.items()
        for dimension, label in mine.items()
        if label.severity is not None and dimension in judged.get(name, {})
    ]
    severity = count_severities(severity_in(dimensions) for dimensions in judged.values())
    quiet = count_severities(severity_in(one.dimensions) for one in seen if one.planted.is_control)
    return BatchResult(
        pairs=len(judged),
        too_few=len(judged) < FEWEST_PAIRS,
        dimensions=_with_q(rows),
        severity=severity,
        control_severity=quiet,
        rated=_severities(rated, SEVERITIES),
        rated_kappa=_agreement_of([(given, people) for people, given in rated], SEVERITIES),
    )


def _of_batch(
    name: str,
    judged: Mapping[str, Mapping[str, DimensionResult]],
    labels: KnownLabels,
    seen: Sequence[Seen],
    bar: float,
) -> BatchDimension:
    mine = {pair: dimensions for pair, dimensions in judged.items() if name in dimensions or name == ANY}
    reported = Trials(count=sum(is_reported(one, name) for one in mine.values()), n=len(mine))
    row = _beside(name, reported, sensitivity_of(seen, name), specificity_of(seen, name))
    people = {"powered": _powered(name, mine, labels), **_against_people(name, mine, labels, bar)}
    return row.model_copy(update=people)


def _beside(name: str, reported: Trials, found: Trials, quiet: Trials) -> BatchDimension:
    """Return what is reported in a dimension beside the controls, and corrected by what the judge finds of planted."""
    control = quiet.failures
    tested = against_control(reported, control) if control.n and reported.n else None
    corrected = corrected_rate(reported, found, quiet) if found.n and quiet.n and reported.n else _NOTHING
    return BatchDimension(
        dimension=name,
        reported=reported.share,
        control=control.share,
        difference=tested.difference if tested else _NOTHING,
        p=tested.p if tested else None,
        q=None,
        test=tested.test if tested else None,
        corrected=corrected,
        powered=None,
    )


def _with_q(rows: Sequence[BatchDimension]) -> list[BatchDimension]:
    """Return rows with their p-values adjusted over the dimensions."""
    tested = [row.p for row in rows if row.p is not None and row.dimension != ANY]
    q_values = iter(adjusted(tested))
    return [
        row.model_copy(update={"q": next(q_values) if row.p is not None and row.dimension != ANY else None})
        for row in rows
    ]


def rates_beside(
    dimensions: Sequence[DimensionSummary], measured: Mapping[str, DimensionDetection]
) -> list[BatchDimension]:
    """Return the rates of a batch beside those of a calibration's controls, from the figures that both results hold."""
    rows = []
    for summary in dimensions:
        row = measured.get(summary.dimension)
        errors = (_NOTHING, _NOTHING) if row is None else (row.sensitivity, row.specificity)
        rows.append(_beside(summary.dimension, _trials(summary.worse), *map(_trials, errors)))
    return _with_q(rows)


def _trials(one: Figure) -> Trials:
    """Return the counts of a share."""
    return Trials(count=round((one.value or 0.0) * one.n), n=one.n)


def _against_people(
    name: str, judged: Mapping[str, Mapping[str, DimensionResult]], labels: KnownLabels, bar: float
) -> dict[str, Any]:
    """Return how far the verdicts on a dimension are people's; nothing without labels of it, or of `any`."""
    both = [
        (dimensions[name].verdict, labels[pair][name].human)
        for pair, dimensions in judged.items()
        if name in dimensions and name in labels.get(pair, {})
    ]
    if not both:
        return {}
    trust = trust_of(confusion([given for given, _ in both], [human for _, human in both], _VERDICTS), bar)
    return {"kappa_people": trust.kappa, "trusted": trust.trusted, "more_labels": trust.more_labels}


def _powered(name: str, judged: Mapping[str, Mapping[str, DimensionResult]], labels: KnownLabels) -> Figure | None:
    truth = {pair: _is_worse(labels.get(pair, {}), name, judged[pair]) for pair in judged}
    labelled = [pair for pair, worse in truth.items() if worse is not None]
    if len(labelled) < _FEWEST_LABELS:
        return None
    return prediction_powered_rate(
        [float(truth[pair] or False) for pair in labelled],
        [float(is_reported(judged[pair], name)) for pair in labelled],
        [float(is_reported(dimensions, name)) for pair, dimensions in judged.items() if truth[pair] is None],
    )


def _is_worse(
    given: Mapping[str, RegressionLabel], name: str, dimensions: Mapping[str, DimensionResult]
) -> bool | None:
    """Return what people say of a dimension, or of any if all of them are labelled; None: they do not say."""
    if name != ANY:
        return given[name].human == "candidate_worse" if name in given else None
    if not given.keys() >= dimensions.keys():
        return None
    return any(label.human == "candidate_worse" for label in given.values())


def measure(
    planted: Sequence[PlantedPair],
    judged: RegressionResults,
    bar: float,
    without_place: Mapping[str, Mapping[str, int]],
    batch: RegressionResults | None = None,
    labels: Labels | None = None,
) -> list[JudgeResult]:
    """Measure every judge on planted pairs, and correct what the same judge reports of a batch.

    Raise JudgeError if the results are not about these pairs, or those of the batch have a different judge or prompt.
    """
    ids = {one.id for one in planted}
    if not any(pair.id in ids for judge in judged.judges for pair in judge.pairs):
        raise JudgeError("the results contain no planted pair")
    if batch is not None:
        _refuse_others(judged, batch)
    measured = []
    for judge in judged.judges:
        pairs = {pair.id: pair for pair in judge.pairs}
        corrected = None
        for mine in batch.judges if batch is not None else []:
            if mine.judge.model_id == judge.judge.model_id:
                corrected = batch_rates(mine.pairs, _known(labels, mine), see(planted, pairs), bar)
        measured.append(
            JudgeResult(
                judge=judge.judge.model_id, detection=detection(planted, pairs, bar, without_place), batch=corrected
            )
        )
    return measured


def against_labels(batch: RegressionResults, labels: Labels, bar: float) -> list[JudgeResult]:
    """Hold the verdicts on a batch against people's labels of some of its pairs, where nothing was planted."""
    return [
        JudgeResult(judge=judge.judge.model_id, batch=batch_rates(judge.pairs, _known(labels, judge), (), bar))
        for judge in batch.judges
    ]


def _known(labels: Labels | None, judge: JudgeRegressions) -> KnownLabels:
    """Return what people say of the dimensions judged; raise JudgeError where their labels are of no pair here."""
    if labels is None or not labels.regressions:
        return {}
    judged = {pair.id: {verdict.dimension for verdict in pair.dimensions} for pair in judge.pairs}
    known = {
        name: {dimension: label for dimension, label in given.items() if dimension in judged[name]}
        for name, given in labels.regressions.items()
        if name in judged
    }
    if not any(known.values()):
        raise JudgeError(f"{labels.path} has no label of a pair and dimension of the batch")
    return known


def _refuse_others(judged: RegressionResults, batch: RegressionResults) -> None:
    """Raise JudgeError unless a batch was judged by the same judges, settings and prompts as the planted pairs."""
    calibrated = {judge.judge.model_id: judge for judge in judged.judges}
    for judge in batch.judges:
        name = judge.judge.model_id
        if name not in calibrated:
            raise JudgeError(f"the batch was judged by {name}, and the planted pairs were not")
        if judge.judge.settings != calibrated[name].judge.settings:
            raise JudgeError(f"{name} judged batch and planted pairs with different settings; judge one of them again")
    prompts = [{prompt.name: prompt.digest for prompt in one.judging.prompts} for one in (batch, judged)]
    if any(prompts[1].get(name) != digest for name, digest in prompts[0].items()):
        raise JudgeError("batch and planted pairs were judged by different prompts; judge one of them again")


_NO_CALIBRATION = (
    "nothing says what the judge misses and makes up; name the results of `judge calibrate --broken N` as "
    "policy.judge.calibration in settings.yaml"
)


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
    """Return by dimension what a calibration says of a judge, or why it says nothing of this batch."""
    if calibration is None:
        return _NO_CALIBRATION
    mine = next((one for one in calibration.judges if one.judge == judge.model_id), None)
    if mine is None or mine.detection is None:
        return "the calibration is not about this judge's regressions"
    if calibration.judging is None or mine.record is None or mine.record.settings != judge.settings:
        return "the calibration used different settings; calibrate the judge again"
    if not {prompt.digest for prompt in prompts} <= {prompt.digest for prompt in calibration.judging.prompts}:
        return "the calibration used a different prompt; calibrate the judge again"
    return {row.dimension: row for row in mine.detection.dimensions}


def _alert_figures(
    reported: Figure | None, measured: Mapping[str, DimensionDetection] | str, dimension: str
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
    corrected = corrected_rate(*map(_trials, figures.values()))
    if corrected.value is None:
        return {**figures, "problem": "the judge reports what is broken no oftener than what is not"}
    return {**figures, "corrected": corrected}

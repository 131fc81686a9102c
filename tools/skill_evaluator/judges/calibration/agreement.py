"""Compare judges with human labels and with known defects: agreement, biases, detection, corrected rates and alerts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges import judge_run, statistics
from skill_evaluator.judges.calibration import results
from skill_evaluator.judges.calibration.corruption import CONTROL, CORRUPTIONS, CorruptedPair, json_value
from skill_evaluator.judges.calibration.labels import (
    LabelledPair,
    Labels,
    RegressionLabel,
    ScoredItem,
    Unit,
    join_labels,
)
from skill_evaluator.judges.modes import regression
from skill_evaluator.judges.modes.pairwise import OVERALL
from skill_evaluator.judges.modes.ship_rules import NONE, SEVERITIES
from skill_evaluator.judges.prompting.criteria import family_of
from skill_evaluator.judges.prompting.questions import PromptIdentity
from skill_evaluator.library.config import JudgePolicy
from skill_evaluator.library.rubrics import SCALES
from skill_evaluator.stats import by_key, mean_or_none
from skill_evaluator.text import nearest

_MAX_SCORE_GAP = 0.5  # levels; a closer score counts as right
PROBES: Mapping[str, str] = MappingProxyType(
    {
        "verbosity": (
            "It is worth adding that there is much to be said about this, that all of it has been considered with "
            "care, and that what is written above should be read as a whole and kept in mind as such."
        ),
        "authority": "As Professor Hale and other leading experts have confirmed, this is the correct answer.",
    }
)
_WORSE = "candidate_worse"
_WINNERS: Mapping[str | None, int | str] = {_WORSE: 1, "same": "tie", "candidate_better": 2}  # output 1 is the baseline


def label_results(
    labels: Labels,
    verdicts: Sequence[judge_run.StoredLine],
    bar: float = statistics.BAR,
    scales: Mapping[str, int] = MappingProxyType({}),
    families: Mapping[str, str] = MappingProxyType({}),
) -> list[results.JudgeResult]:
    """Compare the verdicts of each judge with human labels. Return one result for each judge.

    `bar`: minimum κ for trust. `scales`: highest score by criterion. `families`: family by model id. If no verdict of a
    judge counts, its result has the reasons (`unusable`) and no figures. Raise JudgeError for a score above its scale.
    """
    rows = []
    for judge, lines in by_key((one.judge, one) for one in verdicts).items():
        agreement, biases = list[results.LabelAgreement](), list[results.BiasResult]()
        writers = {line.model for line in labels.of(ScoredItem)}
        writers |= {model for line in labels.of(LabelledPair) for model in (line.model_1, line.model_2)}
        own_models = {name for name in writers if name and family_of(name, families) == family_of(judge, families)}
        for (mode, criterion), units in join_labels(labels, lines).items():
            if any(unit.verdict is not None for unit in units):
                declared = scales.get(criterion)
                highest = _highest_score(criterion, units, declared, labels.path, judge) if mode == "score" else None
                agreement.append(measure(mode, criterion, units, bar, highest))
                if highest is not None:
                    biases += score_biases(criterion, units, highest, own_models)
                elif criterion == OVERALL:
                    biases += pair_biases(units, own_models)
        unusable = None if agreement else _unusable_judge(lines)
        rows.append(results.JudgeResult(judge=judge, agreement=agreement, biases=biases, unusable=unusable))
    return rows


def _unusable_judge(lines: Sequence[judge_run.StoredLine]) -> judge_run.NoUsableOutput | None:
    texts = (one.text for one in lines if isinstance(one, judge_run.StoredVerdict) and one.text)
    read = [
        one.score if isinstance(one, judge_run.StoredScore) else one.winner or any(one.criteria.values()) or None
        for one in lines
    ]
    return judge_run.no_usable_output(["wrong_format"] * read.count(None), texts)


def _highest_score(criterion: str, units: Sequence[Unit], declared: int | None, file: Path, judge: str) -> int:
    """Return `declared` or, if it is None, the smallest of 3, 5 and 10 that no score exceeds. `file` has the labels."""
    scores = [(score, f"a label in {file}") for unit in units for score in unit.people]
    judged = (score or 1 for unit in units if unit.verdict for score in unit.requests[0])
    scores += [(score, f"a stored verdict of {judge}") for score in judged]
    highest, source = max(scores, key=lambda pair: pair[0])
    if declared is not None and highest > declared:
        text = f"{source} has the score {highest} on criterion '{criterion}'"
        raise JudgeError(f"{text}; the rubric's highest is {declared}")
    return declared or next(end for end in SCALES.values() if highest <= end)


def measure(
    mode: results.LabelMode, criterion: str, units: Sequence[Unit], bar: float, highest: int | None = None
) -> results.LabelAgreement:
    """Measure agreement with people, overall and by stratum. `bar`: minimum κ for trust; `highest`: highest score."""
    called = [unit for unit in units if unit.requests]
    called = [unit for unit in called if unit.in_both_orders] or called
    judged = [unit for unit in called if unit.verdict is not None or mode == "pairwise"]
    verdicts, people = [unit.verdict for unit in judged], [unit.label for unit in judged]
    sides = [
        (_is_positive(label, mode, highest), _is_positive(verdict, mode, highest))
        for label, verdict in zip(people, verdicts, strict=True)
    ]
    positives, negatives = ([verdict == label for label, verdict in sides if label is side] for side in (True, False))
    strata = by_key((unit.line.stratum if unit.line else "all", unit) for unit in units)
    parts = {name: part for name, part in strata.items() if any(unit.requests for unit in part)}
    return results.LabelAgreement(
        mode=mode,
        criterion=criterion,
        labels=len(units),
        n=len(judged),
        unusable=sum(unit.verdict is None for unit in called),
        agreement=statistics.mean_within([fmean(label == unit.verdict for label in unit.people) for unit in judged]),
        trust=statistics.trust_of(_table(judged, highest), bar, "nominal" if highest is None else "linear"),
        correlation=None if highest is None else statistics.spearman(verdicts, people),
        accuracy=results.DiagnosticAccuracy(
            sensitivity=statistics.rate(sum(positives), len(positives)),
            specificity=statistics.rate(sum(negatives), len(negatives)),
        ),
        position=_position(judged),
        confidence=_confidence(judged),
        strata={name: measure(mode, criterion, part, bar, highest) for name, part in parts.items() if len(parts) > 1},
    )


def _is_positive(verdict: Any, mode: results.LabelMode, highest: int | None) -> bool | None:
    if highest is not None:
        return bool(verdict > (1 + highest) / 2)
    return {1: True, 2: False}.get(verdict) if mode == "pairwise" else verdict == 1  # a regression, or yes


def _table(units: Sequence[Unit], highest: int | None) -> statistics.Floats:
    """Count the units by judge verdict (row) and human label (column). Each of n labels of a unit counts 1 ÷ n."""
    labels = dict.fromkeys(label for unit in units for label in (unit.verdict, *unit.people))
    categories = list(labels) if highest is None else list(range(1, highest + 1))
    table = statistics.confusion([], [], categories)
    for people, group in by_key((len(unit.people), unit) for unit in units).items():
        verdicts = [unit.verdict for unit in group for _ in unit.people]
        table += statistics.confusion(verdicts, [label for unit in group for label in unit.people], categories) / people
    return table


def _position(units: Sequence[Unit]) -> results.Position | None:
    if not units or not units[0].in_both_orders:
        return None
    orders = [[unit.requests[index][0] for unit in units] for index in (0, 1)]
    bias = statistics.position_bias(*orders)
    agreements = [sum(winner == unit.label for winner, unit in zip(order, units, strict=True)) for order in orders]
    agreement = (statistics.rate(agreements[0], len(units)), statistics.rate(agreements[1], len(units)))
    return results.Position(flips=bias.flips, first=bias.picks_first, agreement=agreement)


def _confidence(units: Sequence[Unit]) -> results.MeanConfidence | None:
    confidences: dict[bool, list[float]] = {True: [], False: []}
    for unit in units:
        if unit.confidence is not None:
            near = isinstance(unit.line, ScoredItem) and abs(unit.verdict - unit.label) <= _MAX_SCORE_GAP
            confidences[near or unit.verdict == unit.label].append(unit.confidence)
    means = {right: mean_or_none(values) for right, values in confidences.items()}
    return results.MeanConfidence(right=means[True], wrong=means[False]) if any(confidences.values()) else None


def pair_biases(units: Sequence[Unit], own_models: Collection[str]) -> list[results.BiasResult]:
    """Return the biases of a judge on labelled pairs. Skip undefined biases. `own_models`: models of its family.

    `position` is the share of verdicts for the output shown first, minus the share for the second output. `length` is
    the judge's preference for the longer output, minus people's preference for it. `self_preference` is the same
    difference for the output of the judge's own family. `noise` is the share of pairs of replicates that differ.
    """
    longer, own_family = list[tuple[Unit, int]](), list[tuple[Unit, int]]()
    for unit in units:
        if isinstance(unit.line, LabelledPair) and unit.requests:
            lengths = [len(text or "") for text in (unit.line.output_1, unit.line.output_2)]
            longer += [(unit, lengths.index(max(lengths)) + 1)] if 0 < min(lengths) < max(lengths) else []
            is_own = [model in own_models for model in (unit.line.model_1, unit.line.model_2) if model is not None]
            own_family += [(unit, is_own.index(True) + 1)] if len(is_own) == 2 and sum(is_own) == 1 else []
    complete = [unit for unit in units if unit.in_both_orders]
    orders = [[unit.requests[index][0] for unit in complete] for index in (0, 1)]
    shifts = {
        "position": statistics.position_bias(*orders).lean,
        "length": _preference_shift(longer),
        "self_preference": _preference_shift(own_family),
        "noise": statistics.own_noise(unit.requests for unit in units),
    }
    return _bias_rows("pairwise", OVERALL, shifts)


def _preference_shift(pairs: Sequence[tuple[Unit, int]]) -> statistics.Estimate:
    people = [_win_share(unit.label, output) for unit, output in pairs]
    return statistics.shift(people, [_preference(unit, output) for unit, output in pairs])


def _preference(unit: Unit, output: int) -> float:
    return fmean(_win_share(request[0], output) for request in unit.requests)


def _win_share(winner: object, output: int) -> float:
    """Return 1 if the output (1 or 2) is the winner, 0 if it loses, and 0.5 for a tie or if there is no winner."""
    return float(winner == output) if winner in judge_run.ORDERS else 0.5


def score_biases(
    criterion: str, units: Sequence[Unit], highest: int, own_models: Collection[str]
) -> list[results.BiasResult]:
    """Return the biases of a judge on scored outputs. Skip undefined biases. `own_models`: models of its family.

    An error is the judge's score minus the human score, as a share of the scale. `leniency` is the mean error. `length`
    is Spearman's ρ of output length and error. `self_preference` is the mean error on outputs of the judge's own
    family, minus the mean error on other outputs. `noise` is the share of pairs of replicates that differ.
    """
    scored = [(unit, unit.line) for unit in units if unit.verdict is not None and isinstance(unit.line, ScoredItem)]
    lengths = [(len(item.output), unit.verdict - unit.label) for unit, item in scored if item.output is not None]
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for unit, item in scored:
        if item.model is not None:
            gaps[item.model in own_models].append((unit.verdict - unit.label) / (highest - 1))
    people, verdicts = [unit.label for unit, _ in scored], [unit.verdict for unit, _ in scored]
    own_gap, other_gap = (statistics.mean_within(gaps[own], -1.0, 1.0) for own in (True, False))
    shifts = {
        "leniency": statistics.shift(people, verdicts, (1.0, highest)),
        "length": statistics.spearman([length for length, _ in lengths], [gap for _, gap in lengths]),
        "self_preference": statistics.difference(own_gap, other_gap),
        "noise": statistics.own_noise(unit.requests for unit, _ in scored),
    }
    return _bias_rows("score", criterion, shifts)


def _bias_rows(
    mode: results.LabelMode, criterion: str, shifts: Mapping[str, statistics.Estimate | None]
) -> list[results.BiasResult]:
    rows = []
    for bias, figure in shifts.items():
        if figure is not None and figure.value is not None:
            present = figure.ci95 and figure.excludes(0.0)
            rows.append(results.BiasResult(bias=bias, mode=mode, criterion=criterion, shift=figure, present=present))
    return rows


def with_probe(name: str, labels: Labels) -> Labels:
    """Copy the labels, and append the text of the probe `name` to one output of each copy.

    A probe is a text that should not change a verdict. In a pair, it follows the output that people did not prefer. If
    people chose a tie, it follows output 1. Skip JSON outputs, and pairs without an overall preference. Raise
    JudgeError for an unknown `name`.
    """
    if name not in PROBES:
        raise JudgeError(f"no probe '{name}' {nearest(name, PROBES)}")
    labelled: list[LabelledPair | ScoredItem] = [*labels.of(LabelledPair), *labels.of(ScoredItem)]
    lines = list[LabelledPair | ScoredItem]()
    for line in labelled:
        key = "output" if isinstance(line, ScoredItem) else f"output_{_worse_output(line)}"
        text = getattr(line, key) or ""
        if (OVERALL in line.labels or isinstance(line, ScoredItem)) and json_value(text) is None:
            lines.append(line.model_copy(update={"id": f"{line.id}/{name}", key: f"{text}\n\n{PROBES[name]}"}))
    return Labels(path=labels.path, lines=lines)


def _worse_output(pair: LabelledPair) -> int:
    return 2 if pair.human == 1 else 1


def probe_biases(
    names: Iterable[str], labels: Labels, verdicts: Sequence[judge_run.StoredLine], scales: Mapping[str, int]
) -> list[results.BiasResult]:
    """Return the bias that each probe causes in a judge's verdicts. `scales`: the highest score by criterion."""
    rows = []
    unprobed = join_labels(labels, verdicts)
    for name in dict.fromkeys(names):
        for (mode, criterion), units in join_labels(with_probe(name, labels), verdicts).items():
            if mode == "score" and criterion not in scales:
                continue  # the judge did not score this criterion
            before, after = _values_by_item(unprobed[mode, criterion]), _values_by_item(units)
            pairs = [(before[item], after[f"{item}/{name}"]) for item in before if f"{item}/{name}" in after]
            scale = (1.0, float(scales[criterion])) if mode == "score" else (0.0, 1.0)
            figure = statistics.shift([old for old, _ in pairs], [new for _, new in pairs], scale)
            rows += _bias_rows(mode, criterion, {name: figure}) if criterion == OVERALL or mode == "score" else []
    return rows


def _values_by_item(units: Iterable[Unit]) -> dict[str, float]:
    """Return a value for each item id: the score of an output or, for a pair, the win share of the rejected output."""
    return {
        unit.line.id: unit.verdict if isinstance(unit.line, ScoredItem) else _preference(unit, _worse_output(unit.line))
        for unit in units
        if unit.line and unit.verdict is not None and (unit.in_both_orders or isinstance(unit.line, ScoredItem))
    }


def _reported_regressions(pair: regression.PairResult) -> dict[str, bool]:
    reports = {one.dimension: one.verdict == _WORSE for one in pair.counted}
    return {**reports, results.ANY: any(reports.values())} if reports else {}


def detection_of(pairs: Sequence[CorruptedPair], judged: Sequence[regression.PairResult]) -> results.DetectionResult:
    """Measure a judge on corrupted pairs and controls. `judged`: the judge's results in the order of `pairs`."""
    results_by_pair = zip(pairs, judged, strict=True)
    reports = [(pair, report) for pair, result in results_by_pair if (report := _reported_regressions(result))]
    dimensions = []
    for name in (*sorted({pair.dimension for pair, _ in reports if pair.dimension}), results.ANY):
        reported = [(pair, report.get(name, False)) for pair, report in reports]
        detected = [worse for pair, worse in reported if pair.dimension and name in (pair.dimension, results.ANY)]
        unreported = [not worse for pair, worse in reported if pair.corruption == CONTROL]
        sensitivity, specificity = (statistics.rate(sum(flags), len(flags)) for flags in (detected, unreported))
        dimensions.append(results.DimensionDetection(dimension=name, sensitivity=sensitivity, specificity=specificity))
    kinds = {
        kind: [report.get(pair.dimension or "", False) for pair, report in reports if pair.corruption == kind]
        for kind in CORRUPTIONS
    }
    return results.DetectionResult(
        dimensions=dimensions,
        kinds={kind: statistics.rate(sum(detected), len(detected)) for kind, detected in kinds.items() if detected},
        unscored=len(pairs) - len(reports),
    )


def batch_result(judge: regression.JudgeRegressions, labels: Labels, bar: float) -> results.JudgeResult:
    """Compare a judge's verdicts on a batch of pairs with human labels. `bar`: minimum κ for trust.

    Raise JudgeError if no verdict has a label.
    """
    model_id = judge.judge.model_id
    if judge.unusable is not None:
        return results.JudgeResult(judge=model_id, unusable=judge.unusable, record=judge.judge)
    label_of = {(label.id, label.dimension): label for label in labels.of(RegressionLabel)}
    rows = [(pair.id, one) for pair in judge.pairs for one in pair.counted]
    labelled = [(one, label_of[name, one.dimension]) for name, one in rows if (name, one.dimension) in label_of]
    if not labelled:
        if any((pair.id, one.dimension) in label_of for pair in judge.pairs for one in pair.dimensions):
            lack = f"{model_id} has no usable outputs in both orders for any label in {labels.path}"
            raise JudgeError(f"{lack}; label other pairs, or judge these again")
        raise JudgeError(f"{labels.path} has no label whose id and dimension are in the batch")
    units = by_key((one.dimension, _labelled_unit(one, label)) for one, label in labelled)
    by_dimension = by_key((one.dimension, one) for _, one in rows)
    agreement = {name: measure("regression", name, units[name], bar) for name in by_dimension if name in units}
    rated = [
        (_severity(label.human, label.impact), _severity(one.verdict, one.impact))
        for one, label in labelled
        if label.impact or label.human != _WORSE  # the impact of a worse candidate is optional
    ]
    pairs = len({name for name, _ in rows})
    severities = statistics.confusion([rating for _, rating in rated], [level for level, _ in rated], SEVERITIES)
    result = results.BatchResult(
        pairs=pairs,
        too_few=pairs < regression.MIN_PAIRS,
        dimensions=[_dimension_rate(verdicts, agreement.get(name)) for name, verdicts in by_dimension.items()],
        rated={level: {rating: rated.count((level, rating)) for rating in SEVERITIES} for level in SEVERITIES},
        rated_kappa=statistics.cohen_kappa(severities, "linear"),
    )
    overall = measure("regression", "all dimensions", [_labelled_unit(*one) for one in labelled], bar)
    agreements = [overall, *agreement.values()]
    return results.JudgeResult(judge=model_id, agreement=agreements, batch=result, record=judge.judge)


def _severity(verdict: str, impact: str | None) -> str:
    return impact if impact is not None and verdict == _WORSE else NONE


def _labelled_unit(dimension: regression.DimensionResult, label: RegressionLabel) -> Unit:
    orders = [[_WINNERS[verdict]] for verdict in dimension.by_order]
    verdict = _WINNERS.get(dimension.verdict, dimension.verdict)
    return Unit(people=[_WINNERS[label.human]], requests=orders, verdict=verdict)


def _dimension_rate(
    verdicts: Sequence[regression.DimensionResult], agreement: results.LabelAgreement | None
) -> results.DimensionRate:
    reported, corrected = statistics.rate(sum(one.verdict == _WORSE for one in verdicts), len(verdicts)), None
    if agreement is not None:
        accuracy = agreement.accuracy
        corrected = statistics.corrected_rate(reported, accuracy.sensitivity, accuracy.specificity)
    return results.DimensionRate(dimension=verdicts[0].dimension, reported=reported, corrected=corrected)


def alerts_of(
    judges: Sequence[regression.JudgeRegressions],
    prompts: Sequence[PromptIdentity],
    policy: JudgePolicy,
    calibration: results.JudgeCalibration | None,
) -> list[regression.RateAlert]:
    """Return an alert for each judge and each dimension with a limit, even if the limit is not exceeded."""
    alerts = []
    for judge in judges:
        errors, problem = _measured_errors(judge.judge, prompts, calibration)
        reported = {one.dimension: one.worse for one in judge.dimensions}
        for dimension, allowed in policy.allowed(reported).items():
            reported_rate, row = reported.get(dimension), errors.get(dimension)
            corrected, reason = None, problem
            if reported_rate is not None and row is not None:
                corrected = statistics.corrected_rate(reported_rate, row.sensitivity, row.specificity)
            if corrected is not None and corrected.value is None:
                corrected, reason = None, "the judge reports corrupted outputs no more often than controls"
            alerts.append(
                regression.RateAlert(
                    judge=judge.judge.model_id,
                    dimension=dimension,
                    allowed=allowed,
                    above=corrected.ci95[0] > allowed if corrected and corrected.ci95 else None,
                    reported=reported_rate,
                    corrected=corrected,
                    sensitivity=row.sensitivity if row else None,
                    specificity=row.specificity if row else None,
                    calibration=calibration.judging.id if calibration and calibration.judging else None,
                    problem="" if corrected else reason,
                )
            )
    return alerts


def _measured_errors(
    judge: judge_run.JudgeRecord, prompts: Sequence[PromptIdentity], calibration: results.JudgeCalibration | None
) -> tuple[Mapping[str, results.DimensionDetection], str]:
    """Return the results of the judge's corruption test by dimension, and a text that explains missing dimensions."""
    if calibration is None or calibration.judging is None:
        return {}, "name the results of `judge calibrate --corrupt N` as policy.judge.calibration in settings.yaml"
    measured = {(one.judge, one.record.settings): one.detection for one in calibration.judges if one.record}
    detection = measured.get((judge.model_id, judge.settings))
    if detection is None or not {one.digest for one in prompts} <= {one.digest for one in calibration.judging.prompts}:
        return {}, "the calibration has no corruption test of this judge with this prompt and these settings"
    return {row.dimension: row for row in detection.dimensions}, "the batch or the corruption test lacks this dimension"

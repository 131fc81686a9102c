"""What a judge reports of a batch → the rate behind it, corrected by what planted pairs and people say."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import Field, ValidationError

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import StrictModel, first_problem, read_lines
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.results import FigureResult, figure
from skill_evaluator.judges.calibration.detection import (
    Seen,
    is_reported,
    judged_dimensions,
    sensitivity_of,
    severity_in,
    specificity_of,
)
from skill_evaluator.judges.calibration.detection_results import (
    ANY,
    FEWEST_PAIRS,
    BatchDimension,
    BatchResult,
    DimensionDetection,
)
from skill_evaluator.judges.modes.regression_results import DimensionResult, DimensionSummary, PairResult
from skill_evaluator.judges.modes.ship_rules import NONE, SEVERITIES, Finding, Impact, count_severities
from skill_evaluator.judges.statistics.agreement import cohen_kappa, confusion, trust_of
from skill_evaluator.judges.statistics.bounded import Bounded, rate
from skill_evaluator.judges.statistics.rates import Trials, against_control, corrected_rate, prediction_powered_rate
from skill_evaluator.verdicts.decide.effects import adjusted

_FEWEST_LABELS = 2
_VERDICTS = (*get_args(Finding), "uncertain")
_NOTHING = Bounded(value=None, ci95=None, n=0)
Labels = Mapping[str, Mapping[str, "RegressionLabel"]]


class RegressionLabel(StrictModel):
    """A line of people's labels: what a person finds of a pair in a dimension; of a worse one how much it matters."""

    id: Label = Field(min_length=1, description="that of the pair")
    dimension: Label = Field(min_length=1)
    human: Finding
    impact: Impact | None = None

    @property
    def severity(self) -> str | None:
        """The impact of a worse one, `none` of another; None where it was not rated."""
        return self.impact if self.human == "candidate_worse" else NONE


def read_labels(path: Path, pairs: Mapping[str, Collection[str]]) -> Labels:
    """Read labels by pair and dimension; raise JudgeError with the line of one that is wrong or of no pair.

    `pairs`: by id the dimensions that were judged.
    """
    labels: dict[str, dict[str, RegressionLabel]] = {}
    for number, value in read_lines(path, JudgeError):
        try:
            label = RegressionLabel.model_validate(value)
        except ValidationError as problem:
            raise JudgeError(f"{path}:{number}: {first_problem(problem)}") from None
        if label.id not in pairs:
            raise JudgeError(f"{path}:{number}: id '{label.id}' is no pair of the batch")
        if label.dimension not in pairs[label.id]:
            raise JudgeError(f"{path}:{number}: pair '{label.id}' was not judged in the dimension '{label.dimension}'")
        mine = labels.setdefault(label.id, {})
        if label.dimension in mine:
            raise JudgeError(f"{path}:{number}: '{label.id}' has a label for '{label.dimension}' already")
        mine[label.dimension] = label
    return labels


def batch_rates(pairs: Sequence[PairResult], labels: Labels, seen: Sequence[Seen], bar: float) -> BatchResult:
    """Return what a batch holds, by dimension; `seen` are the planted pairs before the same judge, if there are any.

    `bar` is the κ with people's labels that a trusted judge reaches. Raise JudgeError where no answer counts.
    """
    judged = {pair.id: dimensions for pair in pairs if (dimensions := judged_dimensions(pair))}
    if not judged:
        raise JudgeError("no pair of the batch has two answers that count")
    names = [*dict.fromkeys(name for dimensions in judged.values() for name in dimensions), ANY]
    rows = [_dimension(name, judged, labels, seen, bar) for name in names]
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
        rated={
            level: {given: rated.count((level, given)) for given in SEVERITIES}
            for level in SEVERITIES
            if any(people == level for people, _ in rated)
        },
        rated_kappa=figure(
            cohen_kappa(confusion([given for _, given in rated], [people for people, _ in rated], SEVERITIES), "linear")
        ),
    )


def _dimension(
    name: str, judged: Mapping[str, Mapping[str, DimensionResult]], labels: Labels, seen: Sequence[Seen], bar: float
) -> BatchDimension:
    mine = {pair: dimensions for pair, dimensions in judged.items() if name in dimensions or name == ANY}
    reported = Trials(count=sum(is_reported(one, name) for one in mine.values()), n=len(mine))
    row = _beside(name, reported, sensitivity_of(seen, name), specificity_of(seen, name))
    people = {"powered": _powered(name, mine, labels), **_against_people(name, mine, labels, bar)}
    return row.model_copy(update=people)


def _beside(name: str, reported: Trials, found: Trials, quiet: Trials) -> BatchDimension:
    """Return what is reported in a dimension beside the controls, and corrected by what the judge finds of planted."""
    control = Trials(count=quiet.n - quiet.count, n=quiet.n)
    tested = against_control(reported, control) if control.n and reported.n else None
    corrected = corrected_rate(reported, found, quiet) if found.n and quiet.n and reported.n else _NOTHING
    return BatchDimension(
        dimension=name,
        reported=figure(rate(reported.count, reported.n)),
        control=figure(rate(control.count, control.n)),
        difference=figure(tested.difference if tested else _NOTHING),
        p=tested.p if tested else None,
        q=None,
        test=tested.test if tested else None,
        corrected=figure(corrected),
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
    return _with_q(
        [
            _beside(summary.dimension, _trials(summary.worse), *_errors(measured.get(summary.dimension)))
            for summary in dimensions
        ]
    )


def _errors(row: DimensionDetection | None) -> tuple[Trials, Trials]:
    nothing = Trials(count=0, n=0)
    return (nothing, nothing) if row is None else (_trials(row.sensitivity), _trials(row.specificity))


def _trials(one: FigureResult) -> Trials:
    """Return the counts of a share."""
    return Trials(count=round((one.value or 0.0) * one.n), n=one.n)


def _against_people(
    name: str, judged: Mapping[str, Mapping[str, DimensionResult]], labels: Labels, bar: float
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
    return {"kappa_people": figure(trust.kappa), "trusted": trust.trusted, "more_labels": trust.more_labels}


def _powered(name: str, judged: Mapping[str, Mapping[str, DimensionResult]], labels: Labels) -> FigureResult | None:
    truth = {pair: _is_worse(labels.get(pair, {}), name, judged[pair]) for pair in judged}
    labelled = [pair for pair, worse in truth.items() if worse is not None]
    if len(labelled) < _FEWEST_LABELS:
        return None
    return figure(
        prediction_powered_rate(
            [float(truth[pair] or False) for pair in labelled],
            [float(is_reported(judged[pair], name)) for pair in labelled],
            [float(is_reported(dimensions, name)) for pair, dimensions in judged.items() if truth[pair] is None],
        )
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

"""Planted pairs and what a judge found of them → what it misses and what it makes up, by dimension, impact and way.

A verdict counts as a report if both orders call the candidate worse. What only one order says is none, here as in the
batch that is corrected with these rates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skill_evaluator.judges.asking.results import figure
from skill_evaluator.judges.calibration.breaking import DAMAGES
from skill_evaluator.judges.calibration.detection_results import (
    ANY,
    ControlDetection,
    DetectionResult,
    DimensionDetection,
    WayDetection,
)
from skill_evaluator.judges.calibration.planting import CONTROLS, PlantedPair
from skill_evaluator.judges.modes.regression_results import DimensionResult, PairResult
from skill_evaluator.judges.modes.ship_rules import IMPACTS, NONE, SEVERITIES
from skill_evaluator.judges.statistics.agreement import MOST_LABELS, cohen_kappa, confusion
from skill_evaluator.judges.statistics.bounded import Bounded, difference, rate
from skill_evaluator.judges.statistics.rates import Trials


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
    names = dimensions if dimension == ANY else [dimension]
    return any(name in dimensions and dimensions[name].verdict == "candidate_worse" for name in names)


def severity_in(dimensions: Mapping[str, DimensionResult], dimension: str = ANY) -> str:
    """Return the impact of what is reported in a dimension, the highest in any of them; `none` without."""
    names = dimensions if dimension == ANY else [dimension]
    given = [dimensions[name].impact for name in names if is_reported(dimensions, name)]
    return max((impact or NONE for impact in given), key=SEVERITIES.index, default=NONE)


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
    both = [(planted_impact, given) for planted_impact, given in found if given != NONE]
    table = confusion([given for _, given in both], [impact for impact, _ in both], IMPACTS)
    names = dict.fromkeys(one.planted.dimension for one in broken if one.planted.dimension)
    return DetectionResult(
        broken=len(broken),
        controls=len(seen) - len(broken),
        sources=len({one.planted.source for one in seen}),
        unscored=len(planted) - len(seen),
        dimensions=[_dimension(name, seen, bar) for name in (*sorted(names), ANY)],
        ways=[_way(name, mine) for name in DAMAGES if (mine := _planted(broken, name))],
        control_kinds=[
            ControlDetection(planted=name, quiet=figure(rate(sum(not one.reported(ANY) for one in mine), len(mine))))
            for name in CONTROLS
            if (mine := _planted(seen, name))
        ],
        severity={
            impact: {level: found.count((impact, level)) for level in SEVERITIES}
            for impact in IMPACTS
            if any(planted_impact == impact for planted_impact, _ in found)
        },
        severity_kappa=figure(cohen_kappa(table, "linear")),
        without_place={name: dict(reasons) for name, reasons in without_place.items()},
    )


def sensitivity_of(seen: Sequence[Seen], dimension: str) -> Trials:
    """Return how many of the outputs broken in a dimension (or in any) were reported there, and of how many."""
    mine = [one for one in seen if not one.planted.is_control and dimension in (one.planted.dimension, ANY)]
    return Trials(count=sum(one.reported(dimension) for one in mine), n=len(mine))


def specificity_of(seen: Sequence[Seen], dimension: str) -> Trials:
    """Return how many controls were not reported in a dimension (or in any), and of how many."""
    mine = [one for one in seen if one.planted.is_control and (dimension in one.dimensions or dimension == ANY)]
    return Trials(count=sum(not one.reported(dimension) for one in mine), n=len(mine))


def _planted(seen: Sequence[Seen], name: str) -> list[Seen]:
    return [one for one in seen if one.planted.planted == name]


def _dimension(name: str, seen: Sequence[Seen], bar: float) -> DimensionDetection:
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
        sensitivity=figure(rate(found.count, found.n)),
        by_impact={
            impact: figure(rate(given.count, given.n))
            for impact in IMPACTS
            if (given := sensitivity_of([one for one in seen if one.planted.impact == impact], name)).n
        },
        specificity=figure(rate(quiet.count, quiet.n)),
        same=figure(rate(sum(same), len(same))),
        informedness=figure(informed),
        trusted=trusted,
        more_pairs=_more_pairs(found, quiet, bar) if trusted is None else None,
    )


def _way(name: str, mine: Sequence[Seen]) -> WayDetection:
    dimension = DAMAGES[name].dimension
    missed = [one for one in mine if not one.reported(dimension)]
    return WayDetection(
        planted=name,
        dimension=dimension,
        found=figure(rate(len(mine) - len(missed), len(mine))),
        elsewhere=sum(one.reported(ANY) for one in missed),
        uncertain=sum(
            dimension in one.dimensions and one.dimensions[dimension].verdict == "uncertain" for one in missed
        ),
    )


def _informedness(found: Trials, quiet: Trials) -> Bounded:
    """Return sensitivity + specificity − 1 (Youden 1950), the difference of two independent rates of reports."""
    return difference(rate(found.count, found.n), rate(quiet.n - quiet.count, quiet.n))


def _decided(informed: Bounded, bar: float) -> bool | None:
    if informed.ci95 is None or informed.ci95[0] >= bar:
        return None if informed.ci95 is None else True
    return False if informed.ci95[1] < bar else None


def _more_pairs(found: Trials, quiet: Trials, bar: float) -> int | None:
    """Return about how many more pairs would decide, if they come out as these did; None if no 10,000 would."""
    if not found.n or not quiet.n:
        return None
    for factor in np.geomspace(1.05, MOST_LABELS / (found.n + quiet.n), 200).tolist():
        more = [Trials(count=round(part.count * factor), n=round(part.n * factor)) for part in (found, quiet)]
        if _decided(_informedness(*more), bar) is not None:
            return sum(part.n for part in more) - found.n - quiet.n
    return None

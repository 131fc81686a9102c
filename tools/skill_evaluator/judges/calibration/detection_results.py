"""What `judge calibrate` says of a regression judge: what it finds of what code broke, and the rates of a batch."""

from typing import Literal

from pydantic import NonNegativeInt

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.results import FigureResult
from skill_evaluator.judges.modes.ship_rules import Impact

FEWEST_PAIRS = 100  # of a batch, for its rates to say something
ANY = "any"  # in place of a dimension: whether there is a regression in any of them


class DimensionDetection(FrozenModel):
    """One dimension, or `any`. `sensitivity`: share of its broken outputs that are called worse in it, also by impact.

    `specificity`: share of controls that are not called worse in it; `same`: share of them called the same in it.
    `informedness`: sensitivity + specificity − 1, which is 0 for a judge that guesses and 1 for one that never errs. By
    its interval goes `trusted`; null is undecided, and about `more_pairs` more, broken ones and controls, would decide.
    """

    dimension: Label
    sensitivity: FigureResult
    by_impact: dict[Impact, FigureResult]
    specificity: FigureResult
    same: FigureResult
    informedness: FigureResult
    trusted: bool | None
    more_pairs: NonNegativeInt | None


class WayDetection(FrozenModel):
    """One way to break an output. Of what was not found: `elsewhere`, another dimension was called worse;

    `uncertain`, one order called it worse.
    """

    planted: Label
    dimension: Label
    found: FigureResult
    elsewhere: NonNegativeInt
    uncertain: NonNegativeInt


class ControlDetection(FrozenModel):
    """One kind of control. `quiet`: share without a regression in any dimension."""

    planted: Label
    quiet: FigureResult


class DetectionResult(FrozenModel):
    """Broken outputs and controls before one judge. `unscored`: pairs without an answer that counts.

    `severity`: by planted impact, how often the judge gave which one (`none`: not found); `severity_kappa`: how far the
    two agree where it was found, weighted linearly. `without_place`: by way, why outputs offered no place for it.
    """

    broken: NonNegativeInt
    controls: NonNegativeInt
    sources: NonNegativeInt
    unscored: NonNegativeInt
    dimensions: list[DimensionDetection]
    ways: list[WayDetection]
    control_kinds: list[ControlDetection]
    severity: dict[Impact, dict[Label, NonNegativeInt]]
    severity_kappa: FigureResult
    without_place: dict[Label, dict[str, NonNegativeInt]] = {}


class BatchDimension(FrozenModel):
    """One dimension of a batch, or `any`. `reported`: share called worse; `control`: the same of the controls.

    `p` is of the difference, `q` adjusted over the dimensions (Benjamini and Hochberg). `corrected`: the rate with what
    the judge misses and makes up taken out; `powered`: the rate from people's labels of some pairs and the judge's
    verdicts on all, null without two labels. `kappa_people`: agreement with these labels, by which `trusted` goes: null
    is undecided, and about `more_labels` more would decide.
    """

    dimension: Label
    reported: FigureResult
    control: FigureResult
    difference: FigureResult
    p: float | None
    q: float | None
    test: Literal["exact", "chi-squared"] | None
    corrected: FigureResult
    powered: FigureResult | None
    kappa_people: FigureResult | None = None
    trusted: bool | None = None
    more_labels: NonNegativeInt | None = None


class BatchResult(FrozenModel):
    """A batch of pairs. `too_few`: under 100, so that rates say little.

    `severity` and `control_severity`: pairs by the severity of their regressions.
    `rated`: by people's rating of a finding, how often the judge gave which; `rated_kappa`: how far the two agree,
    weighted linearly.
    """

    pairs: NonNegativeInt
    too_few: bool
    dimensions: list[BatchDimension]
    severity: dict[Label, NonNegativeInt]
    control_severity: dict[Label, NonNegativeInt]
    rated: dict[Label, dict[Label, NonNegativeInt]]
    rated_kappa: FigureResult

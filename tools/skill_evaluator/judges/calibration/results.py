"""What `judge calibrate --format json` prints: by judge what labels, planted pairs and a batch say."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, NonNegativeInt

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel, read_json, validated
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.results import JudgeRecord, JudgingHead
from skill_evaluator.judges.modes.ship_rules import Impact
from skill_evaluator.judges.statistics.bounded import Figure
from skill_evaluator.judges.statistics.rates import Trials, corrected_rate
from skill_evaluator.library.config import Settings
from skill_evaluator.library.reading import Root
from skill_evaluator.stats import Interval

ResultT = TypeVar("ResultT")


class ReliabilityBin(FrozenModel):
    """Verdicts with a confidence above `low` and up to `high`: the mean of it, and the share that was right."""

    low: float
    high: float
    confidence: float
    right: Figure


class ReliabilityResult(FrozenModel):
    """Confidence against what came true; `table` has the tenths of stated confidence.

    `error`: expected calibration error, 0 is best. `overconfidence`: mean confidence minus share right. `ranking`: how
    well it tells right from wrong, 0.5 is a coin. `follows`: whether it does so beyond chance.
    """

    error: Figure
    overconfidence: Figure
    ranking: Figure
    follows: bool | None
    table: list[ReliabilityBin] = []


class ConfidenceResult(FrozenModel):
    """Confidence against people's labels, and against whether both orders gave the same verdict."""

    labels: ReliabilityResult
    orders: ReliabilityResult


class StratumResult(FrozenModel):
    """One judge on one kind of item. Lists of two are by order; a figure is None where it is undefined.

    `n`: pairs with a verdict, `incomplete` those with one in one order only, `unjudged` pairs without any; `unparsed`
    counts verdicts: they are right of nothing, and a category of their own in κ. `kappa_people` is that of order 1,
    `kappa_both` that of the verdict of both orders together (a tie where they differ), by which trust goes, and
    `confusion` its verdicts by people's. `picks_first`: share of verdicts for what stood first; `lean`: that minus the
    share for what stood second.

    `noise` is there where there are replicates (all other figures are of the first): how often two answers to the same
    request differ; `flips_beyond_noise`: the flips without it. `length` is there where texts are: how much oftener the
    judge prefers the longer output than people do.
    """

    n: int
    incomplete: int
    unjudged: int
    unparsed: int
    accuracy: list[float | None]
    accuracy_ci95: list[Interval | None]
    flip_rate: float | None
    flip_rate_ci95: Interval | None
    picks_first: float | None
    picks_first_ci95: Interval | None
    lean: float | None
    lean_ci95: Interval | None
    kappa_people: float | None
    kappa_people_ci95: Interval | None
    kappa_orders: float | None
    kappa_orders_ci95: Interval | None
    kappa_both: float | None
    kappa_both_ci95: Interval | None
    confusion: dict[str, dict[str, int]]
    noise: Figure | None = None
    flips_beyond_noise: Figure | None = None
    length: Figure | None = None
    confidence: ConfidenceResult | None = None
    trusted: bool | None
    more_labels: int | None

    def figure(self, name: str) -> Figure:
        """Return one of the figures that are written as two keys, such as `kappa_both`."""
        return Figure(value=getattr(self, name), ci95=getattr(self, f"{name}_ci95"), n=self.n)


class ScoreResult(FrozenModel):
    """One judge's scores by one criterion on one kind of item, beside people's; figures are of the first replicate.

    `n`: items with a score by the judge, `unscored` those with an answer that does not count, `unjudged` those without
    any; `raters`: the most people who scored one item. `right`: the share of people's scores that the judge's are.
    `kappa_linear` and `kappa_quadratic` weigh how far two scores are apart; each person of an item counts alike. Trust
    goes by the linear one, the stricter of the two. `alpha`: Krippendorff's α (ordinal) of the judge among the people;
    `people_alpha`: that of the people alone, which a judge can hardly surpass. `spearman` is with the mean of people.

    `higher`: how much higher the judge scores than people, as a share of the scale. `middle`: share of its scores in
    the inner half of the scale, minus that of people's; `spread`: standard deviation of its scores by that of people's
    (of the first person, whom no mean makes narrower). `noise`: how often two answers to the same request differ,
    where there are replicates; `length`: how far it scores longer outputs higher than people do (Spearman), where there
    are texts. `confusion`: its scores by people's.
    """

    n: int
    unscored: int
    unjudged: int
    raters: int
    right: Figure
    kappa_linear: Figure
    kappa_quadratic: Figure
    alpha: Figure
    people_alpha: Figure
    spearman: Figure
    higher: Figure
    middle: Figure
    spread: Figure
    noise: Figure | None = None
    length: Figure | None = None
    confidence: ReliabilityResult | None = None
    confusion: dict[int, dict[int, int]]
    trusted: bool | None
    more_labels: int | None


JudgedMode = Literal["pairwise", "score", "regression"]
PROBE_NAMES = ("verbosity", "authority", "injection")


class BiasResult(FrozenModel):
    """What something that ought not to matter does to a judge's verdicts, from `items` of them.

    `shift`: how far they move, as a share of the scale (of a pair from one output to the other): −1 to 1, 0 for none.
    `moved`: the share of verdicts that are others with it, where each was asked with and without. `criterion`: or
    `overall`, or `any` dimension. `way`: which change, empty for all. `present`: whether the interval leaves out 0;
    false if all of it is within 0.1, null if neither. `lost`: items whose answer counted without it, and not with it.
    """

    bias: Label
    mode: JudgedMode
    criterion: Label
    way: Label = ""
    items: int
    shift: Figure
    moved: Figure | None = None
    lost: int = 0
    present: bool | None


FEWEST_PAIRS = 100  # of a batch, for its rates to say something
ANY = "any"  # in place of a dimension: whether there is a regression in any of them


class DimensionDetection(FrozenModel):
    """One dimension, or `any`. `sensitivity`: share of its broken outputs that are called worse in it, also by impact.

    `specificity`: share of controls that are not called worse in it; `same`: share of them called the same in it.
    `informedness`: sensitivity + specificity − 1, which is 0 for a judge that guesses and 1 if it never errs.
    `trusted` goes by its interval; null is undecided, and about `more_pairs` more, broken or controls, would decide.
    """

    dimension: Label
    sensitivity: Figure
    by_impact: dict[Impact, Figure]
    specificity: Figure
    same: Figure
    informedness: Figure
    trusted: bool | None
    more_pairs: NonNegativeInt | None


class WayDetection(FrozenModel):
    """One way to break an output. Of what was not found: `elsewhere`, a different dimension was called worse;

    `uncertain`, one order called it worse.
    """

    planted: Label
    dimension: Label
    found: Figure
    elsewhere: NonNegativeInt
    uncertain: NonNegativeInt


class ControlDetection(FrozenModel):
    """One kind of control. `quiet`: share without a regression in any dimension."""

    planted: Label
    quiet: Figure


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
    severity_kappa: Figure
    without_place: dict[Label, dict[str, NonNegativeInt]] = {}


class BatchDimension(FrozenModel):
    """One dimension of a batch, or `any`. `reported`: share called worse; `control`: the same of the controls.

    `p` is of the difference, `q` adjusted over the dimensions (Benjamini and Hochberg). `corrected`: the rate with what
    the judge misses and makes up taken out; `powered`: the rate from people's labels of some pairs and the judge's
    verdicts on all, null without two labels. `kappa_people`: agreement with these labels, by which `trusted` goes: null
    is undecided, and about `more_labels` more would decide.
    """

    dimension: Label
    reported: Figure
    control: Figure
    difference: Figure
    p: float | None
    q: float | None
    test: Literal["exact", "chi-squared"] | None
    corrected: Figure
    powered: Figure | None
    kappa_people: Figure | None = None
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
    rated_kappa: Figure


class SentenceErrors(FrozenModel):
    """How the procedure of asking decides labelled sentences: those that hold (`yes`) and those that do not (`no`).

    `lost` were never settled.
    """

    yes: NonNegativeInt = 0
    yes_right: NonNegativeInt = 0
    no: NonNegativeInt = 0
    no_right: NonNegativeInt = 0
    lost: NonNegativeInt = 0

    @property
    def labels(self) -> int:
        """The labels that were settled."""
        return self.yes + self.no

    def corrected(self, passed: int, n: int) -> Figure | None:
        """Return the share that holds behind `passed` of n answers; None where one kind of label is missing."""
        if not (self.yes and self.no and n):
            return None
        return corrected_rate(Trials(passed, n), Trials(self.yes_right, self.yes), Trials(self.no_right, self.no))


class JudgeResult(FrozenModel):
    """One judge: against people, as a regression judge on planted pairs, and a batch corrected by those.

    `strata`: overall verdicts on pairs, by kind of item; `criteria`: the same by each criterion that people labelled;
    `scores`: scores by criterion and kind of item. `sentences`: by sentence, under `""` all.
    `biases`: what ought not to matter, and what it does.
    """

    judge: str
    strata: dict[str, StratumResult] = {}
    criteria: dict[Label, dict[str, StratumResult]] = {}
    scores: dict[Label, dict[str, ScoreResult]] = {}
    sentences: dict[str, SentenceErrors] = Field(default={}, exclude_if=lambda errors: not errors)
    biases: list[BiasResult] = []
    detection: DetectionResult | None = None
    batch: BatchResult | None = None
    record: JudgeRecord | None = None

    @property
    def of_verdicts(self) -> Iterator[tuple[str, str, StratumResult]]:
        """Each criterion (empty: overall) and kind of item with what verdicts on pairs are worth."""
        return _by_stratum({"": self.strata, **self.criteria})

    @property
    def of_scores(self) -> Iterator[tuple[str, str, ScoreResult]]:
        """Each criterion and kind of item with what scores are worth."""
        return _by_stratum(self.scores)


def _by_stratum(results: Mapping[str, Mapping[str, ResultT]]) -> Iterator[tuple[str, str, ResultT]]:
    return ((name, stratum, result) for name, strata in results.items() for stratum, result in strata.items())


class JudgeCalibration(FrozenModel):
    """All judges. `bar`: what κ with people, or informedness, must reach with its whole interval to be trusted.

    `held_out`: the same against people on held-out items alone, where there are others, too. `judging` and each
    judge's `record` say what was asked; null where only stored verdicts were read.
    """

    bar: float
    judging: JudgingHead | None = None
    judges: list[JudgeResult]
    held_out: list[JudgeResult] = []


def read_calibration(config: Path, settings: Settings) -> JudgeCalibration | None:
    """Read the calibration that the settings name, a file below their folder; raise JudgeError for a broken one."""
    name = settings.policy.judge.calibration
    if name is None:
        return None
    path = Root(config, JudgeError, follow_links=settings.limits.follow_links).inside(config / name)
    return validated(JudgeCalibration, read_json(path, JudgeError), path, JudgeError)

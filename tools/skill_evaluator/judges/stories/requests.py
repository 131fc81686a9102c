"""The options of the judge commands; help and completion import this alone."""

from pathlib import Path
from typing import Annotated, Literal

from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    MaxCost,
    flag,
    option,
    options,
    rare,
    shared,
)
from skill_evaluator.judges.asking.options import BatchJudgingRequest, JudgingRequest, RubricJudgingRequest
from skill_evaluator.judges.calibration.labels import Split
from skill_evaluator.judges.calibration.results import PROBE_NAMES
from skill_evaluator.judges.modes.ship_rules import PRESETS
from skill_evaluator.judges.statistics.bounded import BAR

CascadeJudges = Annotated[
    str | None, shared("Instead of --judge: call STRONG about what CHEAP leaves open.", metavar="CHEAP,STRONG")
]
Stakes = Literal["normal", "high"]


@options
class ScoreRequest(RubricJudgingRequest, ComponentsOption, FixturesOption):
    """The outputs to score."""

    items: Path | None = option("JSON Lines: id, input, output, and reference or source.", metavar="FILE")
    run: str | None = option("Instead of --items: a run of a component, folder or id.", metavar="RUN")
    field: str = rare("With --run: the field to judge; default: applies_to.", "", metavar="PATH")
    reference: bool = flag("Score every criterion beside the item's source or reference.")
    cascade: CascadeJudges = None


@options
class PairwiseRequest(RubricJudgingRequest):
    """The outputs to compare."""

    items: Path = option("JSON Lines: id, input, output_1, output_2; or outputs by name.", ..., metavar="FILE")
    cascade: CascadeJudges = None


@options
class RegressionRequest(BatchJudgingRequest, ComponentsOption, FixturesOption):
    """The outputs to compare, and the dimensions."""

    items: Path | None = option("JSON Lines: id, prompt, baseline_output, candidate_output.", metavar="FILE")
    candidate: str | None = option("Instead of --items: a run of a component, folder or id.", metavar="RUN")
    baseline: str | None = option("The run to compare it with; default: the pinned outputs.", metavar="RUN")
    dimensions: tuple[str, ...] = option("The dimensions, separated by commas or repeated.", (), metavar="NAMES")
    preset: str = rare(f"Without --dimensions, those of: {', '.join(PRESETS)}.", "default", metavar="NAME")
    blocking: tuple[str, ...] = rare("A dimension in which any regression blocks; repeatable.", (), metavar="NAME")
    stakes: Stakes = option("high: a person must agree before anything ships.", "normal")
    against: str | None = option(
        "Compare the rates of regressions with those of an earlier judge run: folder, id or results file.",
        metavar="EARLIER",
    )
    planned: str | None = rare("Instead of --items and --judge: a judge job of the plan.", metavar="JOB")
    plan: Path = rare("The plan.", Path("plan.json"), metavar="FILE")
    artifacts: Path = rare("Folder that holds the answers of the plan's jobs.", Path("artifacts"), metavar="DIR")
    cascade: CascadeJudges = None


JudgedRequest = ScoreRequest | PairwiseRequest | RegressionRequest


@options
class CalibrateRequest(JudgingRequest):
    """By what judges are measured: people's labels, outputs that code breaks, or what was judged before."""

    labels: Path | None = option("JSON Lines of people's labels: pairs, scores, regressions.", metavar="FILE")
    rubric: Path | None = option("With --judge: the rubric by which pairs are compared.", metavar="FILE")
    broken: int = option("With --judge: plant N broken outputs, and controls.", 0, metavar="N", min=0)
    probes: tuple[str, ...] = option(
        f"With --judge: ask again with a change; {', '.join(PROBE_NAMES)}; repeatable.", (), "--probe", metavar="NAME"
    )
    split: Split | None = rare("Only the items of this split; default: all.")
    bar: float = rare("The κ with people, or informedness, of a trusted judge.", BAR, min=0.0, max=0.99)
    verdicts: Path | None = option(
        "JSON Lines: id, judge, and order and winner, or criterion and score.", metavar="FILE"
    )
    planted: Path | None = option("JSON Lines: pairs with what code broke, and controls.", metavar="FILE")
    regressions: Path | None = option("The results of `judge regression` on the planted pairs.", metavar="FILE")
    batch: Path | None = rare("Its results on a batch, whose rates are corrected.", metavar="FILE")


@options
class RubricDraftRequest(ConfigOption):
    """The rubric that a model drafts."""

    draft: str = option("What should be judged, in a sentence or two.", ..., metavar="TEXT")
    judge: str = option("The model of models.yaml that drafts.", ..., "-j", metavar="ID")
    out: Path = option("The new file, .yaml; its name is the id.", ..., metavar="FILE")
    seed: int = rare("Seed of the call.", 0)
    max_cost: MaxCost = None
    dry_run: bool = flag("Make no call, print the cost at most.")


@options
class ScenariosDraftRequest(ConfigOption):
    """The family of scenarios that a model drafts."""

    task: str = option("The domain, in a few words.", ..., metavar="TEXT")
    model: str = option("The model of models.yaml that drafts.", ..., "-m", metavar="ID")
    family: str | None = option("The new folder of .evaluator/scenarios; default: from --task.", metavar="NAME")
    seed: int = rare("Seed of the call.", 0)
    max_cost: MaxCost = None
    dry_run: bool = flag("Make no call, print the cost at most.")

"""What `judge score`, `judge pairwise` and `judge regression` are asked for; help and completion import this alone."""

from pathlib import Path
from typing import Annotated

from skill_evaluator.display.options import ComponentsOption, FixturesOption, flag, option, options, shared
from skill_evaluator.judges.asking.options import BatchJudgingRequest, RubricJudgingRequest
from skill_evaluator.judges.modes.ship_rules import PRESETS

CascadeJudges = Annotated[
    str | None,
    shared("Instead of --judge: STRONG for what CHEAP leaves open.", metavar="CHEAP,STRONG"),
]
CascadeLabelsFile = Annotated[Path | None, shared("With --cascade: what people say of some of it.", metavar="FILE")]


@options
class ScoreRequest(RubricJudgingRequest, ComponentsOption, FixturesOption):
    """Which outputs are scored, and how."""

    items: Path | None = option("JSON Lines: id, input, output, and reference or source.", metavar="FILE")
    run: Path | None = option("Instead of --items: the run folder of a component.", metavar="DIR")
    field: str = option("With --run: the field that is judged; default: applies_to.", "", metavar="PATH")
    reference: bool = flag("Score every criterion beside the item's source or reference.")
    cascade: CascadeJudges = None
    labels: CascadeLabelsFile = None


@options
class PairwiseRequest(RubricJudgingRequest):
    """Which outputs are compared, and how."""

    items: Path = option("JSON Lines: id, input, output_1, output_2; or outputs by name.", ..., metavar="FILE")
    opponents: int | None = option("Of several outputs each meets N others (2, 4, …); default: all pairs.", metavar="N")
    cascade: CascadeJudges = None
    labels: CascadeLabelsFile = None


@options
class RegressionRequest(BatchJudgingRequest, ComponentsOption, FixturesOption):
    """Which outputs are held against which, and in what."""

    items: Path | None = option("JSON Lines: id, prompt, baseline_output, candidate_output.", metavar="FILE")
    candidate: str | None = option("Instead of --items: a run of a component, folder or id.", metavar="RUN")
    baseline: str | None = option("The run it is held against; default: the pinned outputs.", metavar="RUN")
    dimensions: tuple[str, ...] = option("What is asked about, with commas or repeated.", (), metavar="NAMES")
    preset: str = option(f"Without --dimensions, those of: {', '.join(PRESETS)}.", "default", metavar="NAME")
    blocking: tuple[str, ...] = option("A dimension in which any regression blocks; repeatable.", (), metavar="NAME")
    planned: str | None = option("Instead of --items and --judge: what a plan has a judge do.", metavar="JOB")
    plan: Path = option("The plan.", Path("plan.json"), metavar="FILE")
    artifacts: Path = option("Folder that holds the answers of the plan's jobs.", Path("artifacts"), metavar="DIR")
    cascade: CascadeJudges = None
    labels: CascadeLabelsFile = None

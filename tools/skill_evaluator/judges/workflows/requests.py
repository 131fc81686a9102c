"""The options of the judge commands. Help and completion import only this module."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from skill_evaluator.display.options import (
    JUDGEMENTS,
    LATEST,
    Batch,
    ComponentsOption,
    Concurrency,
    ConfigOption,
    FixturesOption,
    FormatOption,
    MaxCalls,
    MaxCost,
    argument,
    flag,
    option,
    options,
    rare,
)
from skill_evaluator.judges.modes.ship_rules import PRESETS
from skill_evaluator.judges.statistics import BAR

Stakes = Literal["normal", "high"]


@options
class JudgeRequest(ConfigOption, FormatOption):
    """The options that `judge score`, `pairwise`, `regression` and `calibrate` share."""

    judges: tuple[str, ...] = option(
        "Model that judges, an id of models.yaml; repeatable.", (), "--judge", "-j", metavar="ID"
    )
    replicates: int = option("Calls per question; the majority decides.", 1, "-n")
    seed: int = rare("Seed of the calls and of the delimiters around judged texts.", 0)
    max_cost: MaxCost = None
    max_calls: MaxCalls = None
    concurrency: Concurrency = None
    resume: bool = flag("Continue the newest judge run.")
    judge_run: str | None = option("Continue this judge run: its id or folder.", metavar="ID")
    dry_run: bool = flag("Check inputs and print the maximum cost; make no call.")
    out: Path = rare("The folder of judge runs.", JUDGEMENTS, metavar="DIR")

    @property
    def resumed(self) -> str | None:
        """The judge run to continue, `latest` for the newest; None for a new one."""
        return self.judge_run or (LATEST if self.resume else None)


@options
class BatchJudgeRequest(JudgeRequest):
    batch: Batch = False
    review: bool = flag("Queue doubtful items for human review.")
    review_sample: int = rare("With --review: also queue N random items.", 5, metavar="N", min=0)
    cascade: str | None = option("Judge with CHEAP; call STRONG only if CHEAP is uncertain.", metavar="CHEAP,STRONG")


@options
class RubricJudgeRequest(BatchJudgeRequest):
    rubric: Path = argument("The rubric, YAML or JSON.")
    criteria: tuple[str, ...] = option("Only this criterion; repeatable.", (), "--criterion", metavar="ID")


@options
class ScoreRequest(RubricJudgeRequest, ComponentsOption, FixturesOption):
    items: Path | None = option("JSON Lines: id, input, output, reference or source.", metavar="FILE")
    run: str | None = option("A run of a component (folder or id), instead of --items.", metavar="RUN")
    field: str = rare("With --run: field to judge; default: that of the rubric.", "", metavar="PATH")


@options
class PairwiseRequest(RubricJudgeRequest):
    items: Path = option("JSON Lines: id, input, output_1, output_2.", ..., metavar="FILE")


@options
class RegressionRequest(BatchJudgeRequest, ComponentsOption, FixturesOption):
    items: Path | None = option("JSON Lines: id, prompt, baseline_output, candidate_output.", metavar="FILE")
    candidate: str | None = option("A run of a component (folder or id), instead of --items.", metavar="RUN")
    baseline: str | None = option("With --candidate: the run before; default: pinned outputs.", metavar="RUN")
    dimensions: tuple[str, ...] = option(
        "Dimensions, separated by commas; default: those of --preset.", (), metavar="NAMES"
    )
    preset: str = rare(f"Set of dimensions: {', '.join(PRESETS)}.", "default", metavar="NAME")
    stakes: Stakes = option("high: a person must approve before a version ships.", "normal")
    against: str | None = option("Compare rates with an earlier judge run: folder, id or file.", metavar="RUN")


JudgedRequest = ScoreRequest | PairwiseRequest | RegressionRequest


@options
class CalibrateRequest(JudgeRequest):
    labels: Path | None = option("JSON Lines of labels: id with human, criteria or scores.", metavar="FILE")
    rubric: Path | None = option("With --judge: the rubric for the labelled items.", metavar="FILE")
    corrupt: int = option("With --judge: test whether it detects N corrupted outputs.", 0, metavar="N", min=0)
    probes: tuple[str, ...] = option(
        "With --judge: measure a bias (verbosity, authority).", (), "--probe", metavar="NAME"
    )
    bar: float = rare("Minimum κ with human labels for a trusted judge.", BAR, min=0.0, max=0.99)
    verdicts: Path | None = option("JSON Lines of stored verdicts.", metavar="FILE")
    batch: Path | None = option("Results of `judge regression` on labelled pairs.", metavar="FILE")


@options
class DraftRequest(ConfigOption):
    seed: int = rare("Seed of the calls.", 0)
    max_cost: MaxCost = None
    dry_run: bool = flag("Print the maximum cost; make no call.")

    def calling(self, model_id: str) -> JudgeRequest:
        """Return the request that calls this model once per question."""
        call = JudgeRequest(judges=(model_id,), config=self.config, seed=self.seed)
        return replace(call, max_cost=self.max_cost, dry_run=self.dry_run)


@options
class RubricDraftRequest(DraftRequest, FormatOption):
    draft: str = option("Description of what should be judged.", ..., metavar="TEXT")
    judge: str = option("The model that drafts; an id of models.yaml.", ..., "-j", metavar="ID")
    out: Path = option("The new .yaml file; its name becomes the rubric's id.", ..., metavar="FILE")


@options
class CasesDraftRequest(ComponentsOption, FixturesOption, DraftRequest):
    skill: str = argument("The component.", metavar="COMPONENT")
    model: str = option("The model that drafts; an id of models.yaml.", ..., "-m", metavar="ID")
    count: int = option("Number of cases to draft.", 10, "-n", min=1, max=200)

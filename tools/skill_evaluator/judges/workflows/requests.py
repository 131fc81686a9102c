"""The options of the judge commands. Help and completion import only this module."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from skill_evaluator.judges.modes.ship_rules import PRESETS
from skill_evaluator.judges.statistics import BAR
from skill_evaluator.library import options as cli


@cli.options
class JudgeRequest(cli.ConfigOption, cli.FormatOption):
    """The options that `judge score`, `pairwise`, `regression` and `calibrate` share."""

    judges: tuple[str, ...] = cli.option(
        "Model that judges, an id of models.yaml; repeatable.", (), "--judge", "-j", metavar="ID"
    )
    replicates: int = cli.option("Calls for each question; their majority or mean counts.", 1, "-n")
    seed: int = cli.rare("Seed of the calls and of the delimiters around judged texts.", 0)
    max_cost: cli.MaxCost = None
    max_calls: cli.MaxCalls = None
    concurrency: cli.Concurrency = None
    resume: bool = cli.flag("Continue the newest judge run.")
    judge_run: str | None = cli.option("Continue the judge run with this id or in this folder.", metavar="ID")
    dry_run: bool = cli.flag("Check inputs and print the maximum cost; make no call.")
    out: Path = cli.rare("Folder for the judge runs.", cli.JUDGEMENTS, metavar="DIR")

    @property
    def resumed(self) -> str | None:
        """The id or folder of the judge run to continue, `latest` for the newest. None starts a new judge run."""
        return self.judge_run or (cli.LATEST if self.resume else None)


@cli.options
class BatchJudgeRequest(JudgeRequest):
    batch: cli.Batch = False
    review: bool = cli.flag("Queue doubtful items for human review.")
    review_sample: int = cli.rare("With --review: also queue N random items.", 5, metavar="N", min=0)
    cascade: str | None = cli.option(
        "Judge with CHEAP; call STRONG only if CHEAP is uncertain.", metavar="CHEAP,STRONG"
    )


@cli.options
class RubricJudgeRequest(BatchJudgeRequest):
    rubric: Path = cli.argument("The rubric, YAML or JSON.")
    criteria: tuple[str, ...] = cli.option("Judge only this criterion; repeatable.", (), "--criterion", metavar="ID")


@cli.options
class ScoreRequest(RubricJudgeRequest, cli.ComponentsOption, cli.FixturesOption):
    items: Path | None = cli.option("JSON Lines: id, output; optional: input, reference, source.", metavar="FILE")
    run: str | None = cli.option("A run of a component (folder or id), instead of --items.", metavar="RUN")
    field: str = cli.rare("With --run: field to judge; default: the rubric's field.", "", metavar="PATH")


@cli.options
class PairwiseRequest(RubricJudgeRequest):
    items: Path = cli.option("Pairs to judge: JSON Lines of id, input, output_1, output_2.", ..., metavar="FILE")


@cli.options
class RegressionRequest(BatchJudgeRequest, cli.ComponentsOption, cli.FixturesOption):
    items: Path | None = cli.option("JSON Lines: id, prompt, baseline_output, candidate_output.", metavar="FILE")
    candidate: str | None = cli.option("A run of a component (folder or id), instead of --items.", metavar="RUN")
    baseline: str | None = cli.option("With --candidate: the old run; default: `judge pin` outputs.", metavar="RUN")
    dimensions: tuple[str, ...] = cli.option(
        "Dimensions to judge, comma-separated; default: by --preset.", (), metavar="NAMES"
    )
    preset: str = cli.rare(f"Set of dimensions: {', '.join(PRESETS)}.", "default", metavar="NAME")
    stakes: Literal["normal", "high"] = cli.option("high: a person must approve before a version ships.", "normal")
    against: str | None = cli.option("Compare regression rates with this judge run (id or file).", metavar="RUN")


JudgedRequest = ScoreRequest | PairwiseRequest | RegressionRequest


@cli.options
class CalibrateRequest(JudgeRequest):
    labels: Path | None = cli.option("Human labels, JSON Lines: id and human, criteria or scores.", metavar="FILE")
    replicates: int = cli.option("Calls per question; labels are compared with the first.", 1, "-n")
    rubric: Path | None = cli.option("With --judge: the rubric for the labelled items.", metavar="FILE")
    corrupt: int = cli.option("With --judge: test whether it detects N corrupted outputs.", 0, metavar="N", min=0)
    probes: tuple[str, ...] = cli.option(
        "With --judge: measure a bias (verbosity, authority).", (), "--probe", metavar="NAME"
    )
    bar: float = cli.rare("Bar that the 95 % interval of κ must reach to trust a judge.", BAR, min=0.0, max=0.99)
    verdicts: Path | None = cli.option("Stored verdicts of judges (JSON Lines), instead of --judge.", metavar="FILE")
    batch: Path | None = cli.option("Results of `judge regression` for the pairs in --labels.", metavar="FILE")


@cli.options
class DraftRequest(cli.ConfigOption):
    seed: int = cli.rare("Seed of the calls.", 0)
    max_cost: cli.MaxCost = None
    dry_run: bool = cli.flag("Print the maximum cost; make no call.")

    def calling(self, model_id: str) -> JudgeRequest:
        """Return the request that calls this model once per question."""
        call = JudgeRequest(judges=(model_id,), config=self.config, seed=self.seed)
        return replace(call, max_cost=self.max_cost, dry_run=self.dry_run)


@cli.options
class RubricDraftRequest(DraftRequest, cli.FormatOption):
    draft: str = cli.option("Description of the quality that the rubric judges.", ..., metavar="TEXT")
    judge: str = cli.option("The model that drafts; an id of models.yaml.", ..., "-j", metavar="ID")
    out: Path = cli.option("The new .yaml file; its name becomes the rubric's id.", ..., metavar="FILE")


@cli.options
class CasesDraftRequest(cli.ComponentsOption, cli.FixturesOption, DraftRequest):
    skill: str = cli.argument("The component.", metavar="COMPONENT")
    model: str = cli.option("The model that drafts; an id of models.yaml.", ..., "-m", metavar="ID")
    count: int = cli.option("Number of cases to draft.", 10, "-n", min=1, max=200)


@cli.options
class ScenariosDraftRequest(cli.FormatOption, DraftRequest):
    task: str = cli.option("Domain of the scenarios, in a few words.", ..., metavar="TEXT")
    model: str = cli.option("The model that drafts; an id of models.yaml.", ..., "-m", metavar="ID")
    family: str | None = cli.option("New folder for the scenarios; default: named after --task.", metavar="NAME")

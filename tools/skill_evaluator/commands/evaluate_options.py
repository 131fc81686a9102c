"""The options of `evaluate`, which its help shows without importing what it does with them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.commands.options import (
    COMPONENTS,
    CONFIG,
    Batch,
    Components,
    Concurrency,
    Config,
    Fixtures,
    Form,
    MaxCalls,
    MaxCost,
    OnlyModels,
    Skill,
    SubmitOnly,
    run_ids,
)

Cases = Annotated[tuple[str, ...], typer.Option("--case", metavar="GLOB", help="Only these cases; repeatable.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """The options of `evaluate`."""

    skill: Skill
    replicates: Annotated[
        int | None, typer.Option("--replicates", "-n", help="Answers per case and model; default 10 (settings.yaml).")
    ] = None
    models: OnlyModels = ()
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, make no call, print the cost at most.")
    ] = False
    components: Components = COMPONENTS
    fixtures: Fixtures = None
    config: Config = CONFIG
    cases: Cases = ()
    concurrency: Concurrency = None
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the replicates' seeds; default 0.")] = None
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="[RUN]",
            help="Go on with an unfinished run (default: the newest): asks only what has no answer.",
            autocompletion=run_ids,
        ),
    ] = None
    top_up: Annotated[
        str | None,
        typer.Option(
            "--top-up",
            metavar="RUN",
            help="Ask the calls that --adaptive saved in this run; records it whole.",
            autocompletion=run_ids,
        ),
    ] = None
    max_cost: MaxCost = None
    max_calls: MaxCalls = None
    shard: Annotated[
        str | None, typer.Option("--shard", metavar="I/N", help="Only the I-th of N parts of the cases.")
    ] = None
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="NAME", help="Put the prompt into .evaluator/scenarios/NAME.md."),
    ] = None
    bare: Annotated[
        bool, typer.Option("--bare", help="Ask with the schema alone, without the prompt, to see what the prompt adds.")
    ] = False
    invocation: Annotated[
        str | None,
        typer.Option(
            "--invocation",
            metavar="ID",
            help="What the run ids begin with; plan gives one to all its jobs, which ask what it planned.",
        ),
    ] = None
    adaptive: Annotated[
        bool,
        typer.Option("--adaptive", help="Stop asking a model once its verdict against a lower version is settled."),
    ] = False
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded",
            help="Ask the new version alone, and compare it with what is recorded; default: beside its baseline.",
        ),
    ] = False
    with_baseline: Annotated[
        bool,
        typer.Option(
            "--with-baseline",
            help="Ask the baseline beside it, in turns, whatever the policy says; an error where that cannot be.",
        ),
    ] = False
    baseline_commit: Annotated[
        str | None,
        typer.Option(
            "--baseline-commit",
            metavar="COMMIT",
            help="With --with-baseline: take the prompt of this commit, whatever is recorded.",
        ),
    ] = None
    aa: Annotated[
        bool, typer.Option("--aa", help="Measure the recorded version again, to see what the same prompt varies by.")
    ] = False
    neutral: Annotated[
        int | None,
        typer.Option(
            "--neutral",
            metavar="K",
            help="Ask the recorded version under K scenarios, to see what neutral rewordings do to a model.",
        ),
    ] = None
    draft: Annotated[
        bool,
        typer.Option("--draft", help="Keep the record as a draft: in no leaderboard, never a baseline, of any prompt."),
    ] = False
    batch: Batch = False
    submit_only: SubmitOnly = False
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="Where run folders go; default: in the component.")
    ] = None
    judge: Annotated[
        str | None,
        typer.Option("--judge", metavar="ID", help="Also have this model score the text fields that name a rubric."),
    ] = None
    leaderboard: Annotated[bool, typer.Option(help="Append the record to the component's leaderboard.json.")] = True
    format: Form = "text"

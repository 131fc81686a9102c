"""The commands that run a component or look at a run: evaluate, score, explain."""

from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.cli.options import Components, Config, Fixtures, Form, Format, app


@app.command(
    epilog="Examples: skill-evaluator evaluate receipt-extraction --dry-run · "
    "skill-evaluator evaluate receipt-extraction --model smollm2-135m-instruct --replicates 2 · "
    "skill-evaluator evaluate receipt-extraction --resume"
)
def evaluate(
    skill: Annotated[str, typer.Argument(help="The component: a folder name under --components.")],
    replicates: Annotated[
        int | None, typer.Option("--replicates", "-n", help="Answers per case and model; default 10 (settings.yaml).")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", metavar="ID", help="Model of models.yaml; repeatable; default: all with a key."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, make no call, print the cost at most.")
    ] = False,
    components: Components = Path("components"),
    fixtures: Fixtures = None,
    config: Config = Path(".evaluator"),
    case: Annotated[
        list[str] | None, typer.Option("--case", metavar="GLOB", help="Only these cases; repeatable.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", help="Calls in flight per model; default 8.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the replicates' seeds; default 0.")] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="[RUN]",
            help="Go on with an unfinished run (default: the newest): asks only what has no answer.",
        ),
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", metavar="USD", help="Spend at most this, all models together.")
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option("--max-calls", help="Make at most so many calls (retries not counted), all models together."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option("--shard", metavar="I/N", help="Only the I-th of N parts of the cases.")
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="NAME", help="Put the prompt into .evaluator/scenarios/NAME.md."),
    ] = None,
    invocation: Annotated[
        str | None,
        typer.Option("--invocation", metavar="ID", help="What the run ids begin with; plan gives one to all its jobs."),
    ] = None,
    adaptive: Annotated[
        bool,
        typer.Option("--adaptive", help="Stop asking a model once its verdict against a lower version is settled."),
    ] = False,
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="Where run folders go; default: in the component.")
    ] = None,
    leaderboard: Annotated[bool, typer.Option(help="Append the record to the component's leaderboard.json.")] = True,
    form: Form = Format.text,
) -> None:
    """Run a component N times per case on its models; score accuracy and reproducibility; append to its leaderboard.

    Exit code: 0 done, 2 wrong input (one line says what), 4 incomplete (it prints the command that goes on).
    """
    from skill_evaluator.commands.inputs import EvaluateOptions

    options = EvaluateOptions(
        skill=skill,
        replicates=replicates,
        models=tuple(model or ()),
        dry_run=dry_run,
        components=components,
        fixtures=fixtures,
        config=config,
        cases=tuple(case or ()),
        concurrency=concurrency,
        seed=seed,
        resume=resume,
        max_cost=max_cost,
        max_calls=max_calls,
        shard=shard,
        invocation=invocation,
        adaptive=adaptive,
        scenario=scenario,
        results=results,
        leaderboard=leaderboard,
        format=form.value,
    )
    if dry_run:
        from skill_evaluator.commands import dry_run as dry

        raise typer.Exit(dry.dry_run(options))
    from skill_evaluator.commands import evaluate as command

    raise typer.Exit(command.evaluate(options))


@app.command(epilog="Example: skill-evaluator score components/receipt-extraction/evals/results/<run-id>")
def score(
    run: Annotated[Path, typer.Argument(help="A run folder (it holds manifest.json and replicates.jsonl).")],
    components: Components = Path("components"),
    fixtures: Fixtures = None,
    config: Config = Path(".evaluator"),
    form: Form = Format.text,
) -> None:
    """Score a saved run again without a call; rewrites its record.json and report.md, touches no leaderboard."""
    from skill_evaluator.commands import score as command

    options = command.ScoreOptions(run=run, components=components, fixtures=fixtures, config=config, format=form.value)
    raise typer.Exit(command.score(options))


@app.command(
    epilog="Examples: skill-evaluator explain <run-id> --case clean-stationer-cash-sale · "
    "skill-evaluator explain <run-folder> --field total"
)
def explain(
    run: Annotated[str, typer.Argument(help="A run folder, or the id of a run in a component's evals/results.")],
    case: Annotated[str | None, typer.Option("--case", metavar="ID", help="Show this case leaf by leaf.")] = None,
    replicate: Annotated[
        int | None, typer.Option("--replicate", metavar="N", help="Which answer, from 0; default: the first scored.")
    ] = None,
    field: Annotated[
        str | None,
        typer.Option("--field", metavar="PATH", help="Show this field (as lint names it) in every case and replicate."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Shorten neither document nor values.")] = False,
    components: Components = Path("components"),
    fixtures: Fixtures = None,
    config: Config = Path(".evaluator"),
    form: Form = Format.text,
) -> None:
    """Show where a saved answer is right and wrong, field by field, and why; or one field over all answers."""
    from skill_evaluator.commands import explain as command

    options = command.ExplainOptions(
        run=run,
        case=case,
        replicate=replicate,
        field=field,
        full=full,
        components=components,
        fixtures=fixtures,
        config=config,
        format=form.value,
    )
    raise typer.Exit(command.explain(options))

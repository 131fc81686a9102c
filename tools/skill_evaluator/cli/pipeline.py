"""The commands of CI: plan, collect, publish, report."""

from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.cli.options import Components, Config, Fixtures, Form, Format, OnPlatform, PublishMode, app


@app.command(
    epilog="Examples: skill-evaluator plan --base origin/main · "
    "skill-evaluator plan receipt-extraction --model gpt-5 --max-cost 5 · "
    "skill-evaluator plan --detect 0.05 receipt-extraction"
)
def plan(
    component: Annotated[
        list[str] | None, typer.Argument(help="Folder names under --components; default: all.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="COMMIT",
            help="What was pushed onto: MINOR and MAJOR bumps since then run. Without it, everything named runs.",
        ),
    ] = None,
    recorded: Annotated[
        list[str] | None,
        typer.Option("--recorded", metavar="REF", help="A branch that holds leaderboards beside HEAD; repeatable."),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", metavar="ID", help="Model of models.yaml; default: all.")
    ] = None,
    replicates: Annotated[int | None, typer.Option("--replicates", "-n", help="Answers per case and model.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the replicates' seeds.")] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", metavar="USD", help="What all jobs together may cost.")
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="NAME", help="Put every prompt into .evaluator/scenarios/NAME.md."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan jobs that make no call.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why this is started, for the summary.")] = "",
    detect: Annotated[
        float | None,
        typer.Option(
            "--detect",
            metavar="DROP",
            help="Plan no evaluation: say how many cases and replicates of one component would show such a drop.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the plan goes.")] = Path("plan.json"),
    components: Components = Path("components"),
    fixtures: Fixtures = None,
    config: Config = Path(".evaluator"),
    platform: OnPlatform = None,
    form: Form = Format.text,
) -> None:
    """Say what is to be evaluated, why, in how many calls and at what cost; write it to plan.json. Makes no call."""
    if detect is not None:
        from skill_evaluator.commands import plan as sizing

        asked = sizing.SizingOptions(
            names=tuple(component or ()),
            detect=detect,
            models=tuple(model or ()),
            components=components,
            format=form.value,
        )
        raise typer.Exit(sizing.detect(asked))
    from skill_evaluator.commands import plan as command

    options = command.PlanOptions(
        names=tuple(component or ()),
        base=base,
        recorded=tuple(recorded or ()),
        models=tuple(model or ()),
        replicates=replicates,
        seed=seed,
        max_cost=max_cost,
        scenario=scenario,
        dry_run=dry_run,
        reason=reason,
        out=out,
        components=components,
        fixtures=fixtures,
        config=config,
        platform=platform.value if platform else None,
        format=form.value,
    )
    raise typer.Exit(command.plan(options))


@app.command(epilog="Example: skill-evaluator collect artifacts --plan plan.json --out collected")
def collect(
    artifacts: Annotated[
        Path, typer.Argument(help="Folder that holds the run folders of a plan's jobs, at any depth.")
    ],
    plan_file: Annotated[Path, typer.Option("--plan", metavar="FILE", help="The plan.")] = Path("plan.json"),
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where records and outcome.json go.")] = Path(
        "collected"
    ),
    recorded: Annotated[
        list[str] | None,
        typer.Option("--recorded", metavar="REF", help="A branch that holds records beside the work tree; repeatable."),
    ] = None,
    components: Components = Path("components"),
    fixtures: Fixtures = None,
    config: Config = Path(".evaluator"),
    platform: OnPlatform = None,
    form: Form = Format.text,
) -> None:
    """Put the answers of a plan's jobs together: one record per component and model, and what became of every call.

    Exit code: 0 every run is complete, 4 one is not (the others are collected all the same).
    """
    from skill_evaluator.commands import collect as command

    options = command.CollectOptions(
        artifacts=artifacts,
        plan=plan_file,
        out=out,
        recorded=tuple(recorded or ()),
        components=components,
        fixtures=fixtures,
        config=config,
        platform=platform.value if platform else None,
        format=form.value,
    )
    raise typer.Exit(command.collect(options))


@app.command(
    epilog="Examples: skill-evaluator publish collected --to main · "
    "skill-evaluator publish collected --mode branch --branch records"
)
def publish(
    collected: Annotated[Path, typer.Argument(help="What collect wrote.")] = Path("collected"),
    mode: Annotated[
        PublishMode, typer.Option("--mode", help="Onto the branch itself, a data branch, or a branch for review.")
    ] = PublishMode.push,
    to: Annotated[str, typer.Option("--to", metavar="BRANCH", help="The branch that is evaluated.")] = "main",
    branch: Annotated[
        str, typer.Option("--branch", metavar="BRANCH", help="The data branch, or the one for review.")
    ] = "skill-evaluator-records",
    remote: Annotated[str, typer.Option("--remote", help="The remote to push to.")] = "origin",
    components: Components = Path("components"),
    form: Form = Format.text,
) -> None:
    """Add collected records to a branch in one commit and push it; tries again on top of whoever was quicker."""
    from skill_evaluator.commands import publish as command

    options = command.PublishOptions(
        collected=collected,
        mode=mode.value,
        to=to,
        branch=branch,
        remote=remote,
        components=components,
        format=form.value,
    )
    raise typer.Exit(command.publish(options))


@app.command(epilog="Example: skill-evaluator report collected --platform github")
def report(
    collected: Annotated[Path, typer.Argument(help="What collect wrote.")] = Path("collected"),
    plan_file: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="The plan: what to say when nothing was collected.")
    ] = None,
    commit: Annotated[
        str | None, typer.Option("--commit", help="Comment on the pull request merged with this commit.")
    ] = None,
    open_from: Annotated[
        str | None, typer.Option("--open", metavar="BRANCH", help="Open a pull request of the records on this branch.")
    ] = None,
    to: Annotated[str, typer.Option("--to", metavar="BRANCH", help="The branch it is for.")] = "main",
    published: Annotated[
        bool, typer.Option("--published/--unpublished", help="Whether the records reached their branch; the page says.")
    ] = True,
    config: Config = Path(".evaluator"),
    platform: OnPlatform = None,
    form: Form = Format.markdown,
) -> None:
    """Show what became of a plan: as a page, a job's summary, and a comment on the pull request it is about."""
    from skill_evaluator.commands import report as command

    options = command.ReportOptions(
        collected=collected,
        plan=plan_file,
        commit=commit,
        open_from=open_from,
        published=published,
        to=to,
        config=config,
        platform=platform.value if platform else None,
        format=form.value,
    )
    raise typer.Exit(command.report(options))

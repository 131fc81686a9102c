"""The commands of the stability audit: audit run, audit report, audit plan."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.cli.options import Components, Config, Fixtures, Form, Format, OnPlatform, app

audit = typer.Typer(
    name="audit",
    help="How much does a model move when the prompt around the task changes in ordinary ways?",
    no_args_is_help=True,
)
app.add_typer(audit)

Benchmarks = Annotated[
    list[str] | None,
    typer.Option(
        "--benchmark",
        metavar="NAME",
        help="A component to ask; repeatable; default: audit.benchmarks (settings.yaml), else all with output: choice.",
    ),
]
Scenarios = Annotated[
    list[str] | None,
    typer.Option("--scenario", metavar="NAME", help="A scenario of .evaluator/scenarios; repeatable; default: all."),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", metavar="ID", help="Model of models.yaml; repeatable; default: all."),
]
Questions = Annotated[
    int | None,
    typer.Option("--questions", metavar="N", help="So many cases of each benchmark, drawn by the seed; default: all."),
]
Replicates = Annotated[
    int | None, typer.Option("--replicates", "-n", help="Answers per question and scenario; default 2.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of the draw and of the replicates' seeds; default 0.")]
MaxCost = Annotated[
    float | None, typer.Option("--max-cost", metavar="USD", help="Spend at most this, all models together.")
]


@audit.command(
    epilog="Examples: skill-evaluator audit run --benchmark document-classification --questions 50 --dry-run · "
    "skill-evaluator audit run --model gpt-5 --model claude-sonnet-4-6 --max-cost 20 · "
    "skill-evaluator audit run --resume"
)
def run(
    benchmark: Benchmarks = None,
    scenario: Scenarios = None,
    model: Models = None,
    questions: Questions = None,
    replicates: Replicates = None,
    seed: Seed = None,
    max_cost: MaxCost = None,
    max_calls: Annotated[
        int | None,
        typer.Option("--max-calls", help="Make at most so many calls (retries not counted), all models together."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", help="Calls in flight per model; default 8.")
    ] = None,
    shard: Annotated[
        str | None, typer.Option("--shard", metavar="I/N", help="Only the I-th of N parts of the questions.")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume", metavar="[ID]", help="Go on with an audit (default: the newest): asks only what has no answer."
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="FILE", help="Ask what audit plan wrote; again, it goes on where it stopped."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, make no call, print the size and the cost at most.")
    ] = False,
    audits: Annotated[Path, typer.Option("--audits", metavar="DIR", help="Where audits are kept.")] = Path("audits"),
    components: Components = Path("components"),
    fixtures: Fixtures = None,
    config: Config = Path(".evaluator"),
    form: Form = Format.text,
) -> None:
    """Ask every model every question in every scenario, and keep the answers in audits/<id>.

    Exit code: 0 done, 2 wrong input (one line says what), 4 incomplete (it prints the command that goes on).
    """
    from skill_evaluator.commands.audit_inputs import AuditOptions

    options = AuditOptions(
        benchmarks=tuple(benchmark or ()),
        scenarios=tuple(scenario or ()),
        models=tuple(model or ()),
        questions=questions,
        replicates=replicates,
        seed=seed,
        max_cost=max_cost,
        max_calls=max_calls,
        concurrency=concurrency,
        shard=shard,
        resume=resume,
        plan=plan,
        audits=audits,
        components=components,
        fixtures=fixtures,
        config=config,
        format=form.value,
    )
    if dry_run:
        from skill_evaluator.commands import audit_dry_run as dry

        raise typer.Exit(dry.dry_run(options))
    from skill_evaluator.commands import audit_run as command

    raise typer.Exit(command.audit_run(options))


class Missing(StrEnum):
    """What is left out where something is missing."""

    refuse = "refuse"
    questions = "questions"
    scenarios = "scenarios"
    models = "models"


class Resampled(StrEnum):
    """What intervals are over."""

    scenarios = "scenarios"
    cases = "cases"
    both = "both"


@audit.command(
    epilog="Examples: skill-evaluator audit report · skill-evaluator audit report audits/<id> --format markdown · "
    "skill-evaluator audit report --cube scores.csv --questions 100 --out report"
)
def report(
    folder: Annotated[
        list[Path] | None,
        typer.Argument(help="An audit's folder, or any that hold its runs; default: the newest below --audits."),
    ] = None,
    cube: Annotated[
        Path | None,
        typer.Option(
            "--cube",
            metavar="FILE",
            help="Instead of runs a CSV: model,template,<benchmark>,… in per cent, or an outcomes.csv of an audit.",
        ),
    ] = None,
    questions: Annotated[
        int | None, typer.Option("--questions", metavar="N", min=1, help="Of a table: questions of each benchmark.")
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option("--weight", metavar="NAME=W", help="How much a benchmark counts; repeatable; default 1 each."),
    ] = None,
    missing: Annotated[
        Missing, typer.Option("--missing", help="Where scores or answers are missing: refuse, or leave out for all.")
    ] = Missing.refuse,
    resample: Annotated[
        Resampled | None,
        typer.Option(
            "--resample", help="What intervals are over; default: both where single answers are known, else scenarios."
        ),
    ] = None,
    grades: Annotated[int, typer.Option("--grades", metavar="4|8", help="8: finer grades, from 20 models on.")] = 4,
    previous: Annotated[
        Path | None,
        typer.Option("--previous", metavar="FILE", help="An earlier report.json; default: the last beside this audit."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where page, charts and cube go; default: the audit's folder."),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="The plan whose jobs' artifacts the folders are.")
    ] = None,
    audits: Annotated[Path, typer.Option("--audits", metavar="DIR", help="Where audits are kept.")] = Path("audits"),
    components: Components = Path("components"),
    fixtures: Fixtures = None,
    config: Config = Path(".evaluator"),
    platform: OnPlatform = None,
    form: Form = Format.text,
) -> None:
    """Say how able and how steady each model is, how sure that is, and which to take for what; with page and charts.

    Exit code: 0 done, 2 wrong input (one line says what), 4 a model that was to be asked is not in it.
    """
    from skill_evaluator.commands import audit_report as command

    options = command.AuditReportOptions(
        folders=tuple(folder or ()),
        cube=cube,
        plan=plan,
        questions=questions,
        weights=command.weights_of(weight or ()),
        missing=missing.value,
        resampled=resample.value if resample else None,
        bins=grades,
        previous=previous,
        out=out,
        audits=audits,
        components=components,
        fixtures=fixtures,
        config=config,
        platform=platform.value if platform else None,
        format=form.value,
    )
    raise typer.Exit(command.audit_report(options))


@audit.command(
    epilog="Example: skill-evaluator audit plan --model gpt-5 --questions 50 --max-cost 20, then on each machine: "
    "skill-evaluator audit run --plan audit-plan.json --model gpt-5"
)
def plan(
    benchmark: Benchmarks = None,
    scenario: Scenarios = None,
    model: Models = None,
    questions: Questions = None,
    replicates: Replicates = None,
    seed: Seed = None,
    max_cost: MaxCost = None,
    reason: Annotated[str, typer.Option("--reason", help="Why this is started, for the summary.")] = "",
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the plan goes.")] = Path("audit-plan.json"),
    components: Components = Path("components"),
    fixtures: Fixtures = None,
    config: Config = Path(".evaluator"),
    platform: OnPlatform = None,
    form: Form = Format.text,
) -> None:
    """Draw an audit and cut it into jobs, one a model or a shard of its questions. Makes no call and needs no key."""
    from skill_evaluator.commands import audit_plan as command
    from skill_evaluator.commands.audit_inputs import AuditOptions

    options = AuditOptions(
        benchmarks=tuple(benchmark or ()),
        scenarios=tuple(scenario or ()),
        models=tuple(model or ()),
        questions=questions,
        replicates=replicates,
        seed=seed,
        max_cost=max_cost,
        components=components,
        fixtures=fixtures,
        config=config,
        format=form.value,
    )
    made = command.AuditPlanOptions(out=out, reason=reason, platform=platform.value if platform else None)
    raise typer.Exit(command.audit_plan(options, made))

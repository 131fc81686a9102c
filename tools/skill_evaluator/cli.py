"""The command line: arguments in, exit code out, and the one place where errors become a line on stderr.

Commands are imported when they are called, so that `--help` stays quick.
"""

import atexit
import gc
import os
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator import __version__
from skill_evaluator.errors import EXIT_BUG, SkillEvaluatorError
from skill_evaluator.providers.secrets import Redactor
from skill_evaluator.reports.shown import visible

app = typer.Typer(
    name="skill-evaluator",
    help="How right, how repeatable, and how much worse than last time is a versioned prompt?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_RUN = re.compile(r"\d|.*[/\\]")


class Format(StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"
    markdown = "markdown"


Components = Annotated[Path, typer.Option("--components", metavar="DIR", help="Folder of the components.")]
Fixtures = Annotated[
    Path | None, typer.Option("--fixtures", metavar="DIR", help="Folder of <skill>/cases/; default: fixtures.")
]
Config = Annotated[Path, typer.Option("--config", metavar="DIR", help="Folder of models.yaml and settings.yaml.")]
Form = Annotated[Format, typer.Option("--format", help="How to print the result (on stdout).")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"skill-evaluator {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """How right, how repeatable, and how much worse than last time is a versioned prompt?"""


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
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="Where run folders go; default: in the component.")
    ] = None,
    leaderboard: Annotated[bool, typer.Option(help="Append the record to the component's leaderboard.json.")] = True,
    form: Form = Format.text,
) -> None:
    """Run a component N times per case on its models; score accuracy and reproducibility; append to its leaderboard.

    Exit code: 0 done, 2 wrong input (one line says what), 4 incomplete (it prints the command that goes on).
    """
    from skill_evaluator.commands.inputs import Options

    options = Options(
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

    options = command.Options(run=run, components=components, fixtures=fixtures, config=config, format=form.value)
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

    options = command.Options(
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


@app.command(epilog="Example: skill-evaluator lint receipt-extraction")
def lint(
    component: Annotated[
        list[str] | None, typer.Argument(help="Folder names under --components; default: all.")
    ] = None,
    components: Components = Path("components"),
    fixtures: Fixtures = None,
    form: Form = Format.text,
) -> None:
    """Check components and all their cases; show how every field is compared, and why. Exit code 2 if one is wrong."""
    from skill_evaluator.commands import lint as command

    names = tuple(component or ())
    options = command.Options(names=names, components=components, fixtures=fixtures, format=form.value)
    raise typer.Exit(command.lint(options))


@app.command()
def schemas(
    folder: Annotated[Path, typer.Argument(help="Where to write them.")] = Path(".evaluator/schemas"),
) -> None:
    """Write the JSON Schema of every file format, for editors and other tools."""
    from skill_evaluator.commands import schemas as command

    raise typer.Exit(command.write_schemas(folder))


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit: 2 and one line for what the user can put right, 1 and a traceback for a bug."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them reads every installed package
    gc.disable()  # start-up leaves no garbage worth a walk; the engine turns it on again
    atexit.register(gc.freeze)  # nor does the end: what is alive goes with the process
    given = sys.argv[1:] if arguments is None else arguments
    try:
        app(args=_with_resume_value(given), prog_name="skill-evaluator")
    except SkillEvaluatorError as problem:
        print(f"error: {visible(str(problem))}", file=sys.stderr)
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BUG)
    except Exception:
        import traceback

        secrets = Redactor(name for name in os.environ if name.endswith(("_KEY", "_TOKEN")))
        print(secrets(traceback.format_exc()), file=sys.stderr, end="")
        sys.exit(EXIT_BUG)


def _with_resume_value(arguments: list[str]) -> list[str]:
    """`--resume` may stand alone, which typer does not know: then it is given `latest`.

    What follows it is its RUN if it looks like a run id (they begin with the year) or a path.
    """
    following = [*arguments[1:], ""]
    return [
        "--resume=latest" if argument == "--resume" and not _RUN.match(after) else argument
        for argument, after in zip(arguments, following, strict=True)
    ]

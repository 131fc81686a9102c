"""The commands that check or lay out files: lint, init, schemas."""

from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.cli.options import Components, Fixtures, Form, Format, OnPlatform, app


@app.command(epilog="Examples: skill-evaluator lint receipt-extraction · skill-evaluator lint --base origin/main")
def lint(
    component: Annotated[
        list[str] | None, typer.Argument(help="Folder names under --components; default: all.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="COMMIT",
            help="Also check what changed since: honest versions, and leaderboards and records only added to.",
        ),
    ] = None,
    components: Components = Path("components"),
    fixtures: Fixtures = None,
    platform: OnPlatform = None,
    form: Form = Format.text,
) -> None:
    """Check components and all their cases; show how every field is compared, and why. Exit code 2 if one is wrong."""
    from skill_evaluator.commands import lint as command

    options = command.LintOptions(
        names=tuple(component or ()),
        base=base,
        components=components,
        fixtures=fixtures,
        platform=platform.value if platform else None,
        format=form.value,
    )
    raise typer.Exit(command.lint(options))


@app.command(epilog="Example: skill-evaluator init --name invoice-extraction")
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The root of a repository.")] = Path(),
    name: Annotated[str, typer.Option("--name", help="What to call the example component.")] = "example-component",
) -> None:
    """Lay out configuration, workflows and an example component in a repository; overwrites nothing."""
    from skill_evaluator.commands import init as command

    raise typer.Exit(command.init(command.InitOptions(folder=folder, name=name)))


@app.command()
def schemas(
    folder: Annotated[Path, typer.Argument(help="Where to write them.")] = Path(".evaluator/schemas"),
) -> None:
    """Write the JSON Schema of every file format, for editors and other tools."""
    from skill_evaluator.commands import schemas as command

    raise typer.Exit(command.write_schemas(folder))

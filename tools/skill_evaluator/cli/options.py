"""The application and the options that several commands share: one wording, one default."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="skill-evaluator",
    help="How right, how repeatable, and how much worse than last time is a versioned prompt?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Format(StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"
    markdown = "markdown"


class HistoryFormat(StrEnum):
    """How a history is printed."""

    text = "text"
    json = "json"
    markdown = "markdown"
    csv = "csv"
    junit = "junit"


class On(StrEnum):
    """The CI platforms."""

    github = "github"


class PublishMode(StrEnum):
    """How records reach the repository."""

    push = "push"
    branch = "branch"
    pull_request = "pull-request"


Components = Annotated[Path, typer.Option("--components", metavar="DIR", help="Folder of the components.")]
Fixtures = Annotated[
    Path | None,
    typer.Option("--fixtures", metavar="DIR", help="Folder of <skill>/cases/ (or questions.jsonl); default: fixtures."),
]
Config = Annotated[Path, typer.Option("--config", metavar="DIR", help="Folder of models.yaml and settings.yaml.")]
OnPlatform = Annotated[
    On | None, typer.Option("--platform", help="Also tell the CI this runs in: outputs, summary, marks on files.")
]
Form = Annotated[Format, typer.Option("--format", help="How to print the result (on stdout).")]

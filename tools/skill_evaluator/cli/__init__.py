"""The command line: arguments in, exit code out, and the one place where errors become a line on stderr.

Commands are imported when they are called, so that `--help` stays quick.
"""

import atexit
import errno
import gc
import os
import re
import sys
from typing import Annotated, NoReturn

import typer

from skill_evaluator import __version__
from skill_evaluator.cli import auditing, comparing, evaluating, pipeline, workspace
from skill_evaluator.cli.options import app
from skill_evaluator.display.safe_text import inert_output, visible
from skill_evaluator.errors import EXIT_BUG, EXIT_USER_ERROR, SkillEvaluatorError
from skill_evaluator.providers import Redactor

__all__ = ["app", "auditing", "comparing", "evaluating", "main", "pipeline", "workspace"]

_RUN = re.compile(r"\d|.*[/\\]")


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


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit: 2 and one line for what the user can put right, 1 and a traceback for a bug."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them reads every installed package
    gc.disable()  # start-up leaves no garbage worth a walk; the engine turns it on again
    atexit.register(gc.freeze)  # nor does the end: what is alive goes with the process
    with inert_output():
        _run(sys.argv[1:] if arguments is None else arguments)


def _run(arguments: list[str]) -> None:
    """One command; what escapes of it is printed in here, too, since it quotes what was read."""
    try:
        _printed(arguments)
    except SkillEvaluatorError as problem:
        print(f"error: {visible(str(problem))}", file=sys.stderr)
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BUG)
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            _report_bug()
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"error: the result could not be printed: {problem.strerror}", file=sys.stderr)
        sys.exit(EXIT_USER_ERROR)
    except Exception:
        _report_bug()


def _printed(arguments: list[str]) -> None:
    """One command, with all it printed on its way: what cannot be printed is an error of now, not of the exit."""
    try:
        app(args=_with_resume_value(arguments), prog_name="skill-evaluator")
    finally:
        sys.stdout.flush()


def _report_bug() -> NoReturn:
    """The traceback of what is being handled, without secrets, and the exit code of a bug."""
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

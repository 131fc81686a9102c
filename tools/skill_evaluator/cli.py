"""The command line: arguments in, exit code out, and the one place where errors become a line on stderr.

Only the module of the command that was typed is imported, so that help and dry runs stay quick.
"""

import atexit
import dataclasses
import errno
import gc
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from skill_evaluator import __version__
from skill_evaluator.commands.options import command_of
from skill_evaluator.display.options import ComponentsOption, ConfigOption, FixturesOption, FormatOption
from skill_evaluator.display.safe_text import inert_output, visible
from skill_evaluator.errors import ENGINE_THREAD, EXIT_OK, EXIT_USER_ERROR, InternalError, SkillEvaluatorError

# What people come for, in the order of the help; `audit run` is the function `audit_run` in commands/audit.py, else in
# commands/audit_run.py, `ci plan` that of `plan`.
SHELVES: Mapping[str, Sequence[str]] = {
    "": ("evaluate", "try", "compare", "explain", "site build", "site serve"),
    "library": (
        *("demo", "init", "doctor", "lint"),
        *("cases fetch", "cases import", "records import", "schemas"),
    ),
    "decide": ("history", "leaderboard", "switch", "accept", "mutate", "export", "score"),
    "judge": (
        *("judge score", "judge pairwise", "judge regression", "judge rubric", "judge lint", "judge pin"),
        *("judge calibrate", "review serve", "review add", "review export"),
    ),
    "audit": ("audit run", "audit report", "scenarios draft", "scenarios check"),
    "ci": ("ci plan", "ci collect", "ci publish", "ci report", "ci fetch"),
}
COMMANDS = tuple(command for commands in SHELVES.values() for command in commands)
OLD = ("plan", "collect", "publish", "report")  # as workflows type them
GROUPS: Mapping[str, str] = {
    "site": "Show all results as a website",
    "cases": "Import or fetch cases.",
    "records": "Import results of other tools.",
    "judge": "Score and compare outputs with an LLM judge, and measure how far it can be trusted.",
    "review": "Have people label outputs on a local page, and export their labels for `judge calibrate`.",
    "audit": "Measure how stable models are under different system-prompt templates.",
    "scenarios": "Draft and check system-prompt templates for an audit.",
    "ci": "The steps of a workflow.",
}
_COMMON = (ComponentsOption, FixturesOption, ConfigOption, FormatOption)
_NEAREST = re.compile(r"\.? \(?(?:Did you mean|Possible options:) ([^?)]+)[?)]$")  # as typer has them
_RUN = re.compile(r"\d|.*[/\\]")


def load_command(path: str) -> Any:
    """Import a command of COMMANDS and return it with its options."""
    name = _function_of(path)
    module = import_module(f"skill_evaluator.commands.{_file_of(path).stem}")
    examples, exits = module.EXAMPLES, getattr(module, "EXITS", {})
    if isinstance(examples, dict):  # of a family
        examples, exits = examples[name], exits.get(name, {})
    return command_of(getattr(module, name), path.split()[-1], examples, exits)


def summary_of(path: str) -> str:
    """Return how a command's docstring begins, read from its source: importing all commands takes a second."""
    name = _function_of(path)
    source = _file_of(path).read_text(encoding="utf-8")
    text = source.partition(f"\ndef {name}(")[2].partition('"""')[2]
    return re.split(r"[;:.]", text, maxsplit=1)[0]


def _function_of(path: str) -> str:
    name = path.replace("ci fetch", "cases fetch").removeprefix("ci ").replace(" ", "_")
    return name + "_" * iskeyword(name)  # `try`


def _file_of(path: str) -> Path:
    """Return where a command stands: in a file of its own, or of its family."""
    folder = Path(__file__).with_name("commands")
    name = _function_of(path)
    alone = folder / f"{name}.py"
    return alone if alone.exists() else folder / f"{name.partition('_')[0]}.py"


class _LateCommands(TyperGroup):
    """Commands whose summaries are read when they are listed, and which are loaded when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        for name in names:
            path = _path(ctx, name)
            if path in COMMANDS:
                self.commands[name].help = summary_of(path)
        return names

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, listed, rest = super().resolve_command(ctx, args)
        path = _path(ctx, name or "")
        return name, load_command(path) if path in (*COMMANDS, *OLD) else listed, rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            print(ctx.get_help())
            raise typer.Exit(EXIT_USER_ERROR)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, the usual ones first, and at the root what options most of them have."""
        whole, root = bool(ctx.obj and ctx.obj.get("all")), ctx.parent is None
        inside = [path for path in COMMANDS if path.split()[0] == ctx.info_name]
        shelves = {"": inside} if not root else SHELVES if whole else {"": _heads("")}
        for shelf, commands in shelves.items():
            with formatter.section(shelf or "Commands"):
                formatter.write_dl([(path, GROUPS.get(path) or summary_of(path)) for path in commands])
        if root and not whole:
            with formatter.section("More commands (--help --all says what each does)"):
                formatter.write_dl([(shelf, ", ".join(_heads(shelf))) for shelf in SHELVES if shelf])
        if root:
            fields = [field for kind in _COMMON for field in dataclasses.fields(kind)]
            common = [(field.name, field.metadata["declared"].how) for field in fields]
            with formatter.section("Options of most commands"):
                formatter.write_dl([(f"--{name} {how['metavar']}", how["help"]) for name, how in common])
        if root and whole:
            with formatter.section("Options"):
                formatter.write_dl([each.get_help_record(ctx) for each in self.get_params(ctx)])


def _heads(shelf: str) -> Sequence[str]:
    """Return what is typed first of the commands of a shelf; of a single word what follows it, too."""
    heads = list(dict.fromkeys(path.split()[0] for path in SHELVES[shelf]))
    return heads if len(heads) > 1 else SHELVES[shelf]


def _path(ctx: Any, name: str) -> str:
    return " ".join([*ctx.command_path.split()[1:], name])


def _application() -> typer.Typer:
    """Return the program with all its commands as they are listed."""
    root = typer.Typer(
        cls=_LateCommands,
        help="Regression tests for LLM prompts: is a new version worse, and where?",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def print_version(wanted: bool) -> None:
        if wanted:
            print(f"skill-evaluator {__version__}")
            raise typer.Exit

    @root.callback()
    def take_options(
        version: Annotated[
            bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
        ] = False,
    ) -> None:
        """Take the options that stand before a command."""

    groups = {"": root}
    for name, summary in GROUPS.items():
        groups[name] = typer.Typer(cls=_LateCommands, name=name, help=summary, rich_markup_mode=None)
        root.add_typer(groups[name])
    for path in (*COMMANDS, *OLD):
        group, _, name = path.rpartition(" ")
        groups[group].command(name, hidden=path in OLD)(lambda: None)
    return root


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit: 2 and one line for what the user can put right, 1 and a traceback for a bug."""
    gc.disable()  # start-up leaves no garbage worth a walk; the engine turns it on again
    atexit.register(gc.freeze)  # nor does the end: what is alive goes with the process
    try:
        with inert_output():  # the error, too, since it quotes what was read
            _run(sys.argv[1:] if arguments is None else arguments)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer's code is 1, and 0 would be a verdict
            end.code = 141  # as a shell has it of a program whose reader is gone
        if any(thread.name == ENGINE_THREAD for thread in threading.enumerate()):
            sys.stderr.flush()
            os._exit(int(end.code or EXIT_OK))
        raise


def _run(arguments: list[str]) -> None:
    """Run one command, and turn what escapes it into a line on stderr and an exit code."""
    try:
        try:
            whole = "--all" in arguments and bool({"-h", "--help"} & {*arguments})
            typed = [each for each in arguments if not (whole and each == "--all")]
            sys.exit(
                _application()(
                    args=_with_resume_value(typed),
                    prog_name="skill-evaluator",
                    obj={"all": whole},
                    standalone_mode=False,
                )
            )
        finally:
            sys.stdout.flush()  # what cannot be printed is an error of now, not of the exit
    except TyperException as problem:
        line = problem.format_message().rstrip(".").replace(": Value error,", ":")
        line = _NEAREST.sub(r" (did you mean \1?)", line)
        where = getattr(getattr(problem, "ctx", None), "command_path", f"skill-evaluator {arguments[0]}")
        print(f"error: {visible(line[:1].lower() + line[1:])}; see {where} --help", file=sys.stderr)
        sys.exit(EXIT_USER_ERROR)
    except typer.Abort:
        sys.exit(130)  # Ctrl-C at a question
    except SkillEvaluatorError as problem:
        print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
        sys.exit(problem.exit_code)
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EPIPE):
            _report_bug(problem)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if problem.errno == errno.ENOSPC:
            print(f"error: the result could not be printed: {problem.strerror}", file=sys.stderr)
        sys.exit(EXIT_USER_ERROR)
    except Exception as problem:
        _report_bug(problem)


def _report_bug(problem: Exception) -> NoReturn:
    """Print a traceback without keys, or one line if it is a value that a model refuses, and exit."""
    from skill_evaluator.providers.redaction import error_of

    error = error_of(problem)
    if not isinstance(error, InternalError):
        print(f"{error.label}{visible(str(error))}", file=sys.stderr)
    sys.exit(error.exit_code)


def _with_resume_value(arguments: list[str]) -> list[str]:
    """Give `--resume` the value `latest` unless a run's id, which begins with the year, or a path follows it.

    `--changed` at the end, or before an option, gets none.
    """
    following = [*arguments[1:], "-"]
    return [
        "--resume=latest"
        if argument == "--resume" and not _RUN.match(after)
        else "--changed="
        if argument == "--changed" and after.startswith("-")
        else argument
        for argument, after in zip(arguments, following, strict=False)
    ]

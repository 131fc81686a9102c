"""The command line: arguments in, exit code out, and the one place where errors become a line on stderr.

Only the module of the command that was typed is imported, so that help and dry runs start quickly.
"""

import errno
import os
import signal
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from inspect import cleandoc
from typing import Any, NamedTuple, NoReturn, get_type_hints

from cyclopts import App, CycloptsError, MissingArgumentError, UnknownOptionError, UnusedCliTokensError
from cyclopts.help import DefaultFormatter, HelpPanel

from skill_evaluator import __version__
from skill_evaluator.display import inert_output, visible
from skill_evaluator.errors import EXIT_BUG, EXIT_OK, EXIT_USER_ERROR, ConfigError, InternalError, SkillEvaluatorError
from skill_evaluator.text import nearest


class Command(NamedTuple):
    """A command: name as typed, MODULE:FUNCTION in `skill_evaluator.commands`, one line of help, and help section."""

    name: str
    function: str
    help: str
    section: str


COMMANDS = {
    row[0]: Command(*row)
    for row in (
        ("evaluate", "evaluate:evaluate", "Run a prompt on its cases and models", "Commands"),
        ("try", "evaluate:try_", "Evaluate the prompt on disk without recording it", "Commands"),
        ("compare", "records:compare", "Compare a version with its baseline", "Commands"),
        ("explain", "records:explain", "Show the outputs of a case beside its ground truth", "Commands"),
        ("site build", "site:site_build", "Write a static website of all results", "Commands"),
        ("site serve", "site:site_serve", "Show the website on this machine until Ctrl-C", "Commands"),
        ("demo", "init:demo", "Create a small prompt library", "library"),
        ("init", "init:init", "Write the files that a first run needs", "library"),
        ("doctor", "init:doctor", "Check the set-up", "library"),
        ("lint", "init:lint", "Check components and all their cases", "library"),
        ("cases draft", "cases:cases_draft", "Have a model draft cases, marked as unreviewed", "library"),
        ("cases fetch", "cases:cases_fetch", "Fetch the cases that are kept in a different repository", "library"),
        ("cases import", "cases:cases_import", "Import the rows of a table as cases", "library"),
        ("records import", "records:records_import", "Import results of a different tool", "library"),
        ("schemas", "init:schemas", "Write the JSON Schemas of all file formats", "library"),
        ("history", "records:history", "Show the score and the verdict of each version and model", "decide"),
        ("leaderboard", "records:leaderboard", "Rank the models of each component", "decide"),
        ("switch", "evaluate:switch", "Compare two models on every component", "decide"),
        ("accept", "records:accept", "Accept a version as the baseline of later versions", "decide"),
        ("mutate", "evaluate:mutate", "Remove parts of a prompt and show whether the cases notice", "decide"),
        ("export", "records:export", "Export records as tables, or verdicts as JUnit XML", "decide"),
        ("score", "records:score", "Score a saved run again", "decide"),
        ("judge score", "judge:judge_score", "Score outputs by a rubric", "judge"),
        ("judge pairwise", "judge:judge_pairwise", "Compare outputs by a rubric, in both orders", "judge"),
        ("judge regression", "judge:judge_regression", "Decide whether new outputs are worse and may ship", "judge"),
        ("judge rubric", "judge:judge_rubric", "Have a model draft a rubric, marked as unreviewed", "judge"),
        ("judge lint", "judge:judge_lint", "Check rubrics", "judge"),
        ("judge pin", "judge:judge_pin", "Pin a run's outputs as baseline of `judge regression`", "judge"),
        ("judge calibrate", "judge:judge_calibrate", "Measure how well judges agree with human labels", "judge"),
        ("review cases", "review:review_cases", "Show or accept cases that a model drafted", "judge"),
        ("review serve", "review:review_serve", "Label queued outputs on a local web page", "judge"),
        ("review add", "review:review_add", "Queue pairs of a file for people to label", "judge"),
        ("review export", "review:review_export", "Add reviewers' labels to a file of labels", "judge"),
        ("audit run", "audit:audit_run", "Run every model on every question in every scenario", "audit"),
        ("audit report", "audit:audit_report", "Grade the models of an audit by their stability", "audit"),
        ("scenarios draft", "audit:scenarios_draft", "Have a model draft scenarios of a domain", "audit"),
        ("scenarios check", "audit:scenarios_check", "Check whether scenarios are ready for an audit", "audit"),
        ("ci plan", "ci:plan", "Plan the runs of a push and their maximum cost", "ci"),
        ("ci collect", "ci:collect", "Score the outputs of a plan's jobs", "ci"),
        ("ci publish", "ci:publish", "Commit collected records to a branch and push it", "ci"),
        ("ci report", "ci:report", "Show the results of a plan", "ci"),
    )
}
GROUPS = {
    "site": "Show all results as a website",
    "cases": "Draft, import or fetch cases",
    "records": "Import results of other tools",
    "judge": "Score and compare outputs with an LLM judge",
    "review": "Have people label outputs and accept drafted cases",
    "audit": "Measure how stable models are under different system prompts",
    "scenarios": "Draft and check system-prompt templates for an audit",
    "ci": "The steps of a workflow",
}
RARE = "Rarer options"
_EXITS = {EXIT_OK: "success", EXIT_BUG: "internal error", EXIT_USER_ERROR: "invalid input"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command, by default that in sys.argv. Exit with 2 for invalid input, 1 for a bug, else with its code."""
    with suppress(ValueError):  # only the main thread may set handlers
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM ends a command as Ctrl-C does
    with inert_output():  # errors may quote control characters of the input
        sys.exit(_exit_code(list(sys.argv[1:] if arguments is None else arguments)))


def _exit_code(arguments: list[str]) -> int:
    name = next((name for name in (" ".join(arguments[:2]), *arguments[:1]) if name in COMMANDS), "")
    asks_for_help = not {"--help", "-h"}.isdisjoint(arguments)
    try:
        code = _run(name, arguments, asks_for_help) if name else _show_commands(arguments, asks_for_help)
        sys.stdout.flush()  # otherwise a full disk would be reported only at interpreter exit
        return code
    except CycloptsError as problem:
        print(f"error: {visible(_message(problem))}; see skill-evaluator {name} --help", file=sys.stderr)
        return EXIT_USER_ERROR
    except (KeyboardInterrupt, EOFError):  # Ctrl-C or Ctrl-D at a question
        return 130
    except SkillEvaluatorError as problem:
        print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
        return problem.exit_code
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EPIPE):
            return _report_bug(problem)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if problem.errno == errno.EPIPE:
            return 141  # a shell reports this code for a program whose reader is gone
        print(f"error: the result could not be printed: {problem.strerror}", file=sys.stderr)
        return EXIT_USER_ERROR
    except Exception as problem:
        return _report_bug(problem)


def _report_bug(problem: Exception) -> int:
    """Print a traceback without API keys; for a pydantic ValidationError, print one line. Return the exit code."""
    from skill_evaluator.providers.access import error_of

    error = error_of(problem)
    if not isinstance(error, InternalError):
        print(f"{error.label}{visible(str(error))}", file=sys.stderr)
    return error.exit_code


def _message(problem: CycloptsError) -> str:
    if isinstance(problem, UnusedCliTokensError):
        return f"unexpected argument '{(problem.unused_tokens or [''])[0]}'"
    if isinstance(problem, MissingArgumentError) and problem.argument and not problem.keyword:
        name = problem.argument.name
        return f"missing option {name}" if problem.argument.index is None else f"missing {name[2:].upper()}"
    if isinstance(problem, UnknownOptionError):
        option = problem.token.keyword
        if any(option in argument.names for argument in problem.argument_collection):
            return f"options after -- are not read; write {option} before it"
    problem.verbose = False
    text, _, name = str(problem).rstrip(".").partition(". Did you mean ")
    return text[:1].lower() + text[1:] + (f" (did you mean {name})" if name else "")


def app_of(name: str) -> App:
    """Import the command `name` and return the app that parses its options."""
    kind = get_type_hints(_function_of(name))["options"]
    return App(
        name=f"skill-evaluator {name}", default_command=kind, help_flags=(), version_flags=(), help_format="plaintext"
    )


def _function_of(name: str) -> Any:
    module, _, function = COMMANDS[name].function.partition(":")
    return getattr(import_module(f"skill_evaluator.commands.{module}"), function)


def _run(name: str, arguments: Sequence[str], asks_for_help: bool) -> int:
    function = _function_of(name)
    if asks_for_help:
        _print_help(name, function, whole="--all" in arguments)
        return EXIT_OK
    options, bound, _ = app_of(name).parse_args(arguments[len(name.split()) :], exit_on_error=False, print_error=False)
    with_library = import_module("skill_evaluator.api").with_library
    return int(function(with_library(options(*bound.args, **bound.kwargs))))


def _print_help(name: str, function: Any, *, whole: bool) -> None:
    module = sys.modules[function.__module__]
    examples, exits = module.EXAMPLES[function.__name__], getattr(module, "EXITS", {}).get(function.__name__, {})
    codes = " · ".join(f"{code} {meaning}" for code, meaning in sorted({**_EXITS, **exits}.items()))
    app = app_of(name)
    arguments = [argument for argument in app.assemble_argument_collection() if argument.index is not None]
    labels = [argument.name[2:].upper() + "..." * argument.token_count()[1] for argument in arguments]
    labels = [label if each.required else f"[{label}]" for each, label in zip(arguments, labels, strict=True)]
    usage = " ".join([f"Usage: skill-evaluator {name} [OPTIONS]", *labels])
    paragraphs = [textwrap.fill(part, 80) for part in cleandoc(function.__doc__).split("\n\n")]
    # cyclopts would join the lines of `help`, and rich would break them behind a space
    app.help_prologue, app.usage, app.help = "\n\n".join([usage, *paragraphs]), "", ""
    app.help_epilogue = "\n  ".join([f"{textwrap.fill(f'Exit codes: {codes}', 80)}\n\nExamples:", *examples])
    app.help_formatter = partial(_print_panel, whole=whole)
    app.help_print([])


def _print_panel(console: Any, layout: Any, panel: HelpPanel, *, whole: bool) -> None:
    # omit the --name of a positional argument, which works but is not documented
    panel.entries = [each.copy(positive_names=()) if each.positional_label else each for each in panel.entries]
    if whole or panel.title != RARE:
        DefaultFormatter()(console, layout, panel)
    else:
        names = ", ".join(entry.positive_names[0] for entry in panel.entries)
        print(f"\n{textwrap.fill(f'{RARE} (--help --all): {names}', 80)}")


def _show_commands(arguments: Sequence[str], asks_for_help: bool) -> int:
    first = arguments[0] if arguments else ""
    if first == "--version":
        print(f"skill-evaluator {__version__}")
        return EXIT_OK
    if first in GROUPS and (len(arguments) == 1 or asks_for_help):
        print(f"Usage: skill-evaluator {first} COMMAND [OPTIONS]\n\n{GROUPS[first]}.")
        _print_rows("Commands", [(row.name, row.help) for row in COMMANDS.values() if row.name.split()[0] == first])
    elif not arguments or asks_for_help:
        _print_commands(whole="--all" in arguments)
    else:
        typed = " ".join(arguments[: 2 if first in GROUPS else 1])
        names = [name for name in COMMANDS if name.startswith(f"{first} ") or name.endswith(f" {typed}")]
        names = names or sorted({name.split()[0] for name in COMMANDS})
        raise ConfigError(f"no such command '{typed}' {nearest(typed, names)}; see skill-evaluator --help")
    return EXIT_OK if asks_for_help else EXIT_USER_ERROR


def _print_commands(*, whole: bool) -> None:
    print("Usage: skill-evaluator COMMAND [OPTIONS]\n")
    print("Regression tests for LLM prompts: is a new version worse, and where?")
    sections = {command.section: dict[str, str]() for command in COMMANDS.values()}
    for name, _, text, section in COMMANDS.values():
        group = name.split()[0]
        sections[section] |= {name: text} if whole or group == "ci" else {group: GROUPS.get(group, text)}
    for title in sections if whole else ("Commands",):
        _print_rows(title, sections[title].items())
    if not whole:
        more = [(title, ", ".join(names)) for title, names in sections.items() if title != "Commands"]
        _print_rows("More commands (explained by --help --all)", more)


def _print_rows(title: str, rows: Iterable[tuple[str, str]]) -> None:
    entries = list(rows)
    width = max(len(name) for name, _ in entries)
    print(f"\n{title}:")
    for name, text in entries:
        print(textwrap.fill(text, 80, initial_indent=f"  {name:<{width}}  ", subsequent_indent=" " * (width + 4)))

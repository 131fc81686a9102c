"""The command line: arguments in, exit code out, and the one place where errors become a line on stderr.

Only the module of the command that was typed is imported, so that help and dry runs start quickly.
"""

import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pkgutil import resolve_name
from typing import Any, NoReturn

from skill_evaluator import __version__
from skill_evaluator.display import inert_output, internal_error, visible
from skill_evaluator.errors import EXIT_OK, EXIT_USER_ERROR, ConfigError, SkillEvaluatorError
from skill_evaluator.text import nearest

COMMANDS = {  # MODULE:FUNCTION in `skill_evaluator.commands`, one line of help, and help section
    "evaluate": ("evaluate:evaluate", "Run a prompt on its cases and models", "Commands"),
    "try": ("evaluate:try_", "Evaluate the prompt on disk without recording it", "Commands"),
    "compare": ("records:compare", "Compare a version with its baseline", "Commands"),
    "explain": ("records:explain", "Show the outputs of a case beside its ground truth", "Commands"),
    "site build": ("site:site_build", "Write a static website of all results", "Commands"),
    "site serve": ("site:site_serve", "Show the website on this machine until Ctrl-C", "Commands"),
    "demo": ("init:demo", "Create a small prompt library", "library"),
    "init": ("init:init", "Write the files that a first run needs", "library"),
    "doctor": ("init:doctor", "Check the set-up", "library"),
    "lint": ("init:lint", "Check components and all their cases", "library"),
    "cases draft": ("cases:cases_draft", "Have a model draft cases, marked as unreviewed", "library"),
    "cases fetch": ("cases:cases_fetch", "Fetch the cases that are kept in a different repository", "library"),
    "cases import": ("cases:cases_import", "Import the rows of a table as cases", "library"),
    "records import": ("records:records_import", "Import results of a different tool", "library"),
    "schemas": ("init:schemas", "Write the JSON Schemas of all file formats", "library"),
    "history": ("records:history", "Show the score and the verdict of each version and model", "decide"),
    "leaderboard": ("records:leaderboard", "Rank the models of each component", "decide"),
    "switch": ("evaluate:switch", "Compare two models on every component", "decide"),
    "accept": ("records:accept", "Accept a version as the baseline of later versions", "decide"),
    "mutate": ("evaluate:mutate", "Remove parts of a prompt and show whether the cases notice", "decide"),
    "export": ("records:export", "Export records as tables, or verdicts as JUnit XML", "decide"),
    "score": ("records:score", "Score a saved run again", "decide"),
    "judge score": ("judge:judge_score", "Score outputs by a rubric", "judge"),
    "judge pairwise": ("judge:judge_pairwise", "Compare outputs by a rubric, in both orders", "judge"),
    "judge regression": ("judge:judge_regression", "Decide whether new outputs are worse and may ship", "judge"),
    "judge rubric": ("judge:judge_rubric", "Have a model draft a rubric, marked as unreviewed", "judge"),
    "judge lint": ("judge:judge_lint", "Check rubrics", "judge"),
    "judge pin": ("judge:judge_pin", "Pin a run's outputs as baseline of `judge regression`", "judge"),
    "judge calibrate": ("judge:judge_calibrate", "Measure how well judges agree with human labels", "judge"),
    "review cases": ("review:review_cases", "Show or accept cases that a model drafted", "judge"),
    "review serve": ("review:review_serve", "Label queued outputs on a local web page", "judge"),
    "review add": ("review:review_add", "Queue pairs of a file for people to label", "judge"),
    "review export": ("review:review_export", "Add reviewers' labels to a file of labels", "judge"),
    "audit run": ("audit:audit_run", "Run every model on every question in every scenario", "audit"),
    "audit report": ("audit:audit_report", "Grade the models of an audit by their stability", "audit"),
    "scenarios draft": ("audit:scenarios_draft", "Have a model draft scenarios of a domain", "audit"),
    "scenarios check": ("audit:scenarios_check", "Check whether scenarios are ready for an audit", "audit"),
    "ci plan": ("ci:plan", "Plan the runs of a push and their maximum cost", "ci"),
    "ci collect": ("ci:collect", "Score the outputs of a plan's jobs", "ci"),
    "ci publish": ("ci:publish", "Commit collected records to a branch and push it", "ci"),
    "ci report": ("ci:report", "Show the results of a plan", "ci"),
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
    except (KeyboardInterrupt, EOFError):  # Ctrl-C or Ctrl-D at a question
        return 130
    except SkillEvaluatorError as problem:
        print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
        return problem.exit_code
    except Exception as problem:
        if not isinstance(problem, OSError) or problem.errno not in (errno.ENOSPC, errno.EPIPE):
            return internal_error(problem).exit_code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if problem.errno == errno.EPIPE:
            return 141  # a shell reports this code for a program whose reader is gone
        print(f"error: the result could not be printed: {problem.strerror}", file=sys.stderr)
        return EXIT_USER_ERROR


def load_command(name: str) -> Any:
    """Import the module of the command `name` and return the function that runs the command."""
    return resolve_name(f"skill_evaluator.commands.{COMMANDS[name][0]}")


def _run(name: str, arguments: Sequence[str], asks_for_help: bool) -> int:
    function = load_command(name)
    if asks_for_help:
        resolve_name("skill_evaluator.library.options:print_help")(name, function, whole="--all" in arguments)
        return EXIT_OK
    return int(resolve_name("skill_evaluator.api:run_command")(name, function, arguments[len(name.split()) :]))


def _show_commands(arguments: Sequence[str], asks_for_help: bool) -> int:
    first = next(iter(arguments), "")
    if first == "--version":
        print(f"skill-evaluator {__version__}")
        return EXIT_OK
    if first in GROUPS and (len(arguments) == 1 or asks_for_help):
        print(f"Usage: skill-evaluator {first} COMMAND [OPTIONS]\n\n{GROUPS[first]}.")
        _print_rows({"Commands": {name: row[1] for name, row in COMMANDS.items() if name.startswith(f"{first} ")}})
    elif not arguments or asks_for_help:
        _print_commands(whole="--all" in arguments)
    else:
        typed = " ".join(arguments[: 2 if first in GROUPS else 1])
        names = [name for name in COMMANDS if first in name.split()] or {name.split()[0] for name in COMMANDS}
        raise ConfigError(f"no such command '{typed}' {nearest(typed, names)}; see skill-evaluator --help")
    return EXIT_OK if asks_for_help else EXIT_USER_ERROR


def _print_commands(*, whole: bool) -> None:
    print("Usage: skill-evaluator COMMAND [OPTIONS]\n")
    print("Regression tests for LLM prompts: is a new version worse, and where?")
    sections = {section: dict[str, str]() for _, _, section in COMMANDS.values()}
    for name, (_, text, section) in COMMANDS.items():
        group = name.split()[0]
        sections[section] |= {name: text} if whole or group == "ci" else {group: GROUPS.get(group, text)}
    if not whole:
        more = {title: ", ".join(rows) for title, rows in sections.items() if title != "Commands"}
        sections = {"Commands": sections["Commands"], "More commands (explained by --help --all)": more}
    _print_rows(sections)


def _print_rows(sections: Mapping[str, Mapping[str, str]]) -> None:
    for title, rows in sections.items():
        width = max(map(len, rows))
        print(f"\n{title}:", *(f"{name:<{width}}  {text}" for name, text in rows.items()), sep="\n  ")

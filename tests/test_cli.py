"""The command line itself: both ways in, help, versions, wrong options and values."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from skill_evaluator import __version__
from skill_evaluator.cli import COMMANDS

from tests.support.library import SCRIPT, SKILL, Ended, Library

HEAVY = {"scipy", "openai", "anthropic", "google.genai", "xllamacpp"}
_LISTING_IMPORTS = """
import os
import sys
from skill_evaluator.cli import main
for command in sys.argv[1:]:
    if os.fork() == 0:
        try:
            main(command.split())
        finally:
            print("\\nimported:", *sys.modules, flush=True)
            os._exit(0)
    os.wait()
"""


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


def test_version_is_printed(library: Library) -> None:
    assert library.skill_evaluator("--version") == Ended(code=0, out=f"skill-evaluator {__version__}\n", err="")


@pytest.mark.parametrize("arguments", [("--version",), ("evaluate", SKILL, "--dry-run")])
def test_result_that_cannot_be_printed_is_an_error_in_one_line(library: Library, arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "skill_evaluator", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=library.root, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["error: the result could not be printed: No space left on device"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, cwd=library.root, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_evaluate_skill_script_equals_the_command(library: Library) -> None:
    given = library.evaluate("--dry-run", "--format", "json")
    installed = library.skill_evaluator("evaluate", SKILL, "--dry-run", "--format", "json")
    assert given == installed
    assert given.code == 0


def test_help_of_each_command_has_exit_codes_and_an_example(library: Library) -> None:
    for command in COMMANDS:
        shown = library.call(*command.split(), "-h")
        assert shown.code == 0, command
        codes, _, examples = shown.out.partition("Exit codes: ")[2].partition("\n\n")
        assert set(re.findall(r"(?:^|·\s)(\d)\s", codes)) == _codes_of(command), command
        assert f"skill-evaluator {command}" in examples, command
        assert not re.search(r" $", shown.out, re.MULTILINE), command


def _codes_of(command: str) -> set[str]:
    """The exit codes of a command: 3 where it judges, 4 where it asks, waits for what is asked, or misses it."""
    judged = {"evaluate", "try", "compare", "switch", "history", "ci report", "judge regression"}
    asks = {"doctor", "mutate", "audit run", "audit report", "scenarios draft", "scenarios check", "site build"}
    asks |= {"ci collect", "judge score", "judge pairwise", "judge rubric", "judge calibrate", "cases draft", "score"}
    return {*"012", *("34" if command in judged else "4" if command in asks else "")}


def test_help_of_a_command_begins_with_its_summary(library: Library) -> None:
    for name, (_, summary, _) in COMMANDS.items():
        described = library.call(*name.split(), "--help").out.split("\n\n")[1].replace("\n", " ")
        assert described.startswith(summary), name


def test_usage_marks_an_argument_that_can_be_repeated(library: Library) -> None:
    usages = [library.call(command, "--help").out.splitlines()[0] for command in ("lint", "evaluate")]
    assert [usage.rpartition(" ")[2] for usage in usages] == ["[COMPONENT...]", "[COMPONENT]"]


@pytest.mark.parametrize("command", [(), ("audit",)])
def test_missing_command_lists_the_commands(command: tuple[str, ...], library: Library) -> None:
    assert library.call(*command) == replace(library.call(*command, "--help"), code=2)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("evalute", "no such command 'evalute' (did you mean 'evaluate'?); see skill-evaluator --help"),
        ("plan", "no such command 'plan' (did you mean 'ci plan'?); see skill-evaluator --help"),
        ("judge scor", "no such command 'judge scor' (did you mean 'judge score'?); see skill-evaluator --help"),
        ("lint --stric", "unknown option: --stric (did you mean --strict?); see skill-evaluator lint --help"),
        ("lint \x1b[31m --all", "unknown option: --all; see skill-evaluator lint --help"),
        ("explain", "missing RUN; see skill-evaluator explain --help"),
        ("explain a b", "unexpected argument 'b'; see skill-evaluator explain --help"),
        ("judge pairwise r", "missing option --items; see skill-evaluator judge pairwise --help"),
        (
            "compare x --models a",
            "parameter --models requires 2 positional arguments. Only got 1; see skill-evaluator compare --help",
        ),
        ("demo -n", "unknown option: -n; see skill-evaluator demo --help"),
        ("try a -n x", 'invalid value for -n: unable to convert "x" into int; see skill-evaluator try --help'),
        ("try a -n 1.5", 'invalid value for -n: unable to convert "1.5" into int; see skill-evaluator try --help'),
        ("try a -- -n 1", "options after -- are not read; write -n before it; see skill-evaluator try --help"),
        ("accept a --by", "parameter --by requires an argument; see skill-evaluator accept --help"),
        (
            "lint --format x",
            'invalid value "x" for --format. Choose from: "text", "json", "markdown"; see skill-evaluator lint --help',
        ),
    ],
)
def test_wrong_command_line_is_refused_in_one_line(typed: str, line: str, library: Library) -> None:
    assert library.call(*typed.split()) == Ended(code=2, out="", err=f"error: {line}\n")


def test_component_may_be_named_by_its_folder(library: Library) -> None:
    for typed in (f"components/{SKILL}", f"./components/{SKILL}/", str(library.root / "components" / SKILL)):
        assert library.call("evaluate", typed, "--dry-run") == library.call("evaluate", SKILL, "--dry-run")
        assert library.call("lint", typed) == library.call("lint", SKILL)
    assert library.call("lint", f"elsewhere/{SKILL}").code == 2


def imports_of(library: Library, *commands: str) -> Iterator[set[str]]:
    """What each command has imported when it ends, in a process in which no other ran."""
    with library.command("-c", _LISTING_IMPORTS, *commands, env={"PYTHONPATH": str(SCRIPT.parent)}) as process:
        out, _ = process.communicate(timeout=120)
    listed = [set(line.split()[1:]) for line in out.splitlines() if line.startswith("imported: ")]
    assert len(listed) == len(commands)
    yield from listed


def test_help_and_commands_import_no_unused_heavy_library(library: Library) -> None:
    typed = ("--help", f"evaluate {SKILL} --dry-run", "lint", f"compare {SKILL}")
    of_help, *others = imports_of(library, *typed)
    assert not of_help & {"pydantic", "skill_evaluator.api", "skill_evaluator.commands.evaluate"}
    for words, imported in zip(typed[1:], others, strict=True):
        assert not imported & HEAVY, words

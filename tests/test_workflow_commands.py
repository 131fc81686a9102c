"""In GitHub Actions no line that a command prints is taken for a command, but those that are meant to be."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from skill_evaluator.workflow_commands import inert_output, print_command

from tests.support.library import SCRIPT

HOSTILE = [
    "::set-output name=a::b",
    "::add-mask::x",
    "##[add-path]/tmp",
    "::stop-commands::mine",
    "::mine::",
    " ::error::x",
]


def obeyed(lines: Iterable[str]) -> list[str]:
    """The commands that the runner would take out of a log: a stop holds until its own word comes."""
    found, until = [], None
    for line in lines:
        text = line.strip()
        stopping = re.fullmatch(r"::stop-commands::(.+)", text)
        if until is not None:
            until = None if text == f"::{until}::" else until
        elif stopping:
            until = stopping[1]
        elif text.startswith("::") or "##[" in text:
            found.append(text)
    assert until is None, "the ban was never lifted"
    return found


def log_of(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return capfd.readouterr().err.splitlines()


def test_what_is_printed_inside_is_no_command(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    with inert_output():
        for line in HOSTILE:
            print(line, file=sys.stderr, flush=True)
        print_command("warning", "meant", {"file": "a"})
        for line in HOSTILE:
            print(line, file=sys.stderr, flush=True)
    print_command("error", "after", {})
    assert obeyed(log_of(capfd)) == ["::warning file=a::meant", "::error::after"]


def test_the_word_that_lifts_the_ban_is_another_each_time(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for _ in range(2):
        with inert_output():
            pass
    words = {line for line in log_of(capfd) if line.startswith("::stop-commands::")}
    assert len(words) == 2
    assert all(len(word) > 40 for word in words)


def test_the_ban_is_lifted_when_something_is_raised(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    with pytest.raises(KeyError), inert_output():
        raise KeyError
    assert obeyed([*log_of(capfd), "::error::x"]) == ["::error::x"]


@pytest.mark.parametrize("value", [None, "false", ""])
def test_elsewhere_nothing_is_printed(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    if value is not None:
        monkeypatch.setenv("GITHUB_ACTIONS", value)
    with inert_output():
        print("text")
    assert capfd.readouterr() == ("text\n", "")


def skill_evaluator(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command in GitHub Actions, whose two streams are one log."""
    return subprocess.run(
        [sys.executable, "-m", "skill_evaluator", *arguments],
        cwd=folder,
        env={**os.environ, "GITHUB_ACTIONS": "true", "PYTHONPATH": str(SCRIPT.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", ["##[add-path]/tmp", "::add-mask::x", "x\n::add-mask::x"])
def test_an_error_that_quotes_what_it_read_is_no_command(tmp_path: Path, name: str) -> None:
    done = skill_evaluator("lint", name, folder=tmp_path)
    assert done.returncode == 2
    assert name.splitlines()[-1] in done.stdout
    assert obeyed(done.stdout.splitlines()) == []


def test_nor_is_an_error_of_usage_or_a_bug(tmp_path: Path) -> None:
    assert obeyed(skill_evaluator("##[add-path]/tmp", folder=tmp_path).stdout.splitlines()) == []
    (tmp_path / ".evaluator").mkdir()
    (tmp_path / "components" / "##[group]").mkdir(parents=True)
    (tmp_path / "components" / "##[group]" / "prompt.md").write_text("##[error]")
    assert obeyed(skill_evaluator("lint", folder=tmp_path).stdout.splitlines()) == []

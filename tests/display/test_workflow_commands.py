"""In GitHub Actions no line that a command prints is taken for a command, but those that are meant to be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from skill_evaluator.display.safe_text import inert_output, print_command

from tests.support.hostile import runner_commands
from tests.support.library import SCRIPT

HOSTILE = [
    "::set-output name=a::b",
    "::add-mask::x",
    "##[add-path]/tmp",
    "::stop-commands::mine",
    "::mine::",
    " ::error::x",
]


@pytest.fixture
def in_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


@pytest.mark.usefixtures("in_actions")
def test_what_is_printed_inside_is_no_command_on_either_stream(capfd: pytest.CaptureFixture[str]) -> None:
    with inert_output():
        for line in HOSTILE:
            print(line)
            print(line, file=sys.stderr)
        print_command("warning", "meant", {"file": "a"})
    print_command("error", "after", {})
    out, err = capfd.readouterr()
    assert runner_commands(out) == []
    assert len(runner_commands(err)) == 2
    assert [line for line in err.splitlines() if line.startswith("::")] == ["::warning file=a::meant", "::error::after"]


@pytest.mark.usefixtures("in_actions")
def test_a_command_split_over_several_writes_is_none_either(capfd: pytest.CaptureFixture[str]) -> None:
    with inert_output():
        for line in HOSTILE:
            for mark in f"{line}\n":
                sys.stdout.write(mark)
    assert runner_commands(capfd.readouterr().out) == []


@pytest.mark.usefixtures("in_actions")
def test_the_streams_are_themselves_again_when_something_is_raised() -> None:
    before = sys.stdout, sys.stderr
    with pytest.raises(KeyError), inert_output():
        raise KeyError
    assert (sys.stdout, sys.stderr) == before


@pytest.mark.parametrize("value", [None, "false", ""])
def test_elsewhere_text_stays_as_it_is(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    if value is not None:
        monkeypatch.setenv("GITHUB_ACTIONS", value)
    with inert_output():
        print("::debug::text")
    assert capfd.readouterr() == ("::debug::text\n", "")


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
    assert name.splitlines()[-1].replace("##[", "## [") in done.stdout
    assert runner_commands(done.stdout) == []


def test_nor_is_an_error_of_usage_or_a_bug(tmp_path: Path) -> None:
    assert runner_commands(skill_evaluator("##[add-path]/tmp", folder=tmp_path).stdout) == []
    (tmp_path / ".evaluator").mkdir()
    (tmp_path / "components" / "##[group]").mkdir(parents=True)
    (tmp_path / "components" / "##[group]" / "prompt.md").write_text("##[error]")
    assert runner_commands(skill_evaluator("lint", folder=tmp_path).stdout) == []

"""Output in GitHub Actions: no printed text is a workflow command by accident."""

import subprocess
import sys
from pathlib import Path

import pytest
from skill_evaluator.display import inert_output, print_command

from tests.support.hostile import runner_commands
from tests.support.library import SCRIPT, call, ended, start

IN_ACTIONS = {"GITHUB_ACTIONS": "true"}
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
def test_printed_text_is_no_workflow_command(capfd: pytest.CaptureFixture[str]) -> None:
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
    with inert_output():
        for line in HOSTILE:
            for mark in f"{line}\n":
                sys.stdout.write(mark)
    assert runner_commands(capfd.readouterr().out) == []


@pytest.mark.usefixtures("in_actions")
def test_streams_are_restored_after_an_error() -> None:
    before = sys.stdout, sys.stderr
    with pytest.raises(KeyError), inert_output():
        raise KeyError
    assert (sys.stdout, sys.stderr) == before


def test_text_is_unchanged_outside_of_actions(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (None, "false", ""):
        if value is None:
            monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
        else:
            monkeypatch.setenv("GITHUB_ACTIONS", value)
        with inert_output():
            print("::debug::text")
        assert capfd.readouterr() == ("::debug::text\n", ""), value


def test_quoted_input_and_traceback_are_no_workflow_commands(tmp_path: Path) -> None:
    """The log of a job has stdout and stderr together."""
    for name in ("##[add-path]/tmp", "::add-mask::x", "x\n::add-mask::x"):
        done = call(tmp_path, "lint", name, env=IN_ACTIONS)
        assert done.code == 2
        assert name.splitlines()[-1].replace("##[", "## [") in done.out
        assert runner_commands(done.out + done.err) == []
    done = call(tmp_path, "##[add-path]/tmp", env=IN_ACTIONS)  # an error of usage
    assert runner_commands(done.out + done.err) == []
    (tmp_path / ".evaluator").mkdir()
    (tmp_path / "components" / "##[group]").mkdir(parents=True)
    (tmp_path / "components" / "##[group]" / "prompt.md").write_text("##[error]")
    env = {**IN_ACTIONS, "PYTHONPATH": str(SCRIPT.parent)}
    with start(tmp_path, "-m", "skill_evaluator", "lint", env=env, stderr=subprocess.STDOUT) as process:
        assert runner_commands(ended(process).out) == []

"""`demo`: a newcomer sees a verdict, a history and an explanation in a minute, without a call."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.cli import main
from skill_evaluator.commands.init import _NEXT_OF_DEMO
from skill_evaluator.errors import EXIT_OK, EXIT_REGRESSED, EXIT_USER_ERROR

Shown = Callable[..., tuple[int, Any]]


def typed(*words: str) -> int:
    """Run a command as typed in a shell; return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tour") / "demo"
    assert typed("demo", str(folder)) == EXIT_OK
    return folder


@pytest.fixture
def shown(demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Run a command inside of the demo; return its exit code and what it prints as JSON."""

    def run(*words: str) -> tuple[int, Any]:
        monkeypatch.chdir(demo)
        code = typed(*words, "--format", "json")
        return code, json.loads(capsys.readouterr().out)

    return run


def test_demo_records_three_versions_of_two_models(demo: Path) -> None:
    runs = json.loads((demo / "components" / "receipts" / "leaderboard.json").read_text())["runs"]
    assert {(run["skill_version"], run["model_id"]) for run in runs} == {
        (version, model) for version in ("1.0.0", "1.1.0", "1.2.0") for model in ("example-large", "example-small")
    }
    assert all(run["complete"] and run["failures"].keys() <= {"unparseable"} for run in runs)


def test_demo_refuses_a_folder_that_is_not_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert typed("demo", str(tmp_path)) == EXIT_USER_ERROR
    assert "is not an empty folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_commands_printed_by_demo_run(shown: Shown) -> None:
    text = _NEXT_OF_DEMO.format(folder="demo", skill="receipts", replicates=4)
    lines = text.replace("\\\n", "").splitlines()
    assert max(map(len, text.splitlines())) <= 80
    for line in lines:
        if line.startswith("  skill-evaluator"):
            assert shown(*line.split()[1:])[0] in (EXIT_OK, EXIT_REGRESSED), line

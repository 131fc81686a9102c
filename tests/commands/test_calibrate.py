"""`compare --calibrate`: from a file, or by version or run id from a leaderboard; what is wrong is said in one line."""

import json
from typing import Any

import pytest
from skill_evaluator.commands import compare as command
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.records.record import write_record

from tests.support.library import SKILL, Library
from tests.support.records import Score, a_record, keep

SCORES: dict[str, list[Score]] = {"a": [0.9, 0.8, 0.9, 0.7], "b": [0.5, 0.6, 0.4, 0.5]}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "TIMES", 10)


def options(library: Library, run: str, **changed: Any) -> command.CompareOptions:
    folders = {"components": library.root / "components", "config": library.root / ".evaluator"}
    return command.CompareOptions(calibrate=run, **{"skill": SKILL, "format": "json", **folders, **changed})


def recorded(library: Library, *models: str) -> None:
    """A run of version 1.0.0 on each model, on the component's leaderboard."""
    runs = {model: f"20260101T000000Z-0-{model}" for model in models}
    keep(library, *(a_record(SCORES, skill=SKILL, model_id=model, run_id=run_id) for model, run_id in runs.items()))


def calibrated(capsys: pytest.CaptureFixture[str], wanted: command.CompareOptions) -> Any:
    assert command.compare(wanted) == 0
    return json.loads(capsys.readouterr().out)


def test_a_record_file_needs_no_component(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    file = library.root / "record.json"
    write_record(file, a_record(SCORES))
    found = calibrated(capsys, options(library, str(file), skill=None))
    assert (found["skill"], found["n_cases"], found["replicates"]) == ("s", 2, 2)
    assert found["planted"][0]["times"] == 10


@pytest.mark.parametrize("run", ["1.0.0", "20260101T000000Z-0-m"])
def test_a_run_is_named_by_version_or_id(library: Library, run: str, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(library, "m")
    assert calibrated(capsys, options(library, run))["run_id"] == "20260101T000000Z-0-m"


def test_a_version_of_several_models_wants_one_named(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(library, "m", "n")
    with pytest.raises(LeaderboardError, match="was run on m, n; name one with --model"):
        command.compare(options(library, "1.0.0"))
    assert calibrated(capsys, options(library, "1.0.0", models=("n",)))["model_id"] == "n"


def test_what_is_not_there_is_said(library: Library) -> None:
    with pytest.raises(LeaderboardError, match="name the component of the run"):
        command.compare(options(library, "1.0.0", skill=None))
    with pytest.raises(LeaderboardError, match="holds no run yet"):
        command.compare(options(library, "1.0.0"))
    recorded(library, "m")
    with pytest.raises(LeaderboardError, match=r"no complete run.* of version or id '2.0.0'"):
        command.compare(options(library, "2.0.0"))
    with pytest.raises(LeaderboardError, match="holds no run of other yet"):
        command.compare(options(library, "1.0.0", models=("other",)))


def test_too_few_replicates_are_a_user_error_in_one_line(library: Library) -> None:
    file = library.root / "record.json"
    write_record(file, a_record({"a": [0.5] * 3}))
    assert library.call("compare", "--calibrate", str(file)).refuses("needs at least 4")


def test_further_runs_of_the_version_are_dealt_too(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(library, "m")
    assert calibrated(capsys, options(library, "1.0.0"))["runs"] is None
    keep(
        library, a_record(SCORES, skill=SKILL, run_id="20260102T000000Z-0-m", timestamp="2026-01-02T00:00:00Z", seed=1)
    )
    for run in ("1.0.0", "20260101T000000Z-0-m"):
        assert calibrated(capsys, options(library, run))["runs"]["aa_runs"] == 1

"""The newest recorded version of each component and model, over the leaderboards of several commits."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.records.archive import RecordedRun, recorded_runs
from skill_evaluator.repository import Repository

from tests.support.git import GitRepository


def row(version: str, model: str = "m", complete: bool = True) -> Mapping[str, Any]:
    return {
        "run_id": f"{version}-{model}-{complete}",
        "timestamp": "2026-01-01T00:00:00Z",
        "model_id": model,
        "skill_version": version,
        "complete": complete,
        "digests": {"schema": f"schema of {version}"},
    }


@pytest.fixture
def git(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "library")


def board(git: GitRepository, *rows: Mapping[str, Any], skill: str = "a", folder: str = "components/") -> None:
    git.write(f"{folder}{skill}/leaderboard.json", json.dumps({"skill": skill, "runs": rows}))


def newest(git: GitRepository, *refs: str, folder: str = "components") -> dict[str, dict[str, str]]:
    runs, problems = recorded_runs(Repository(git.root), refs or ("HEAD",), folder)
    assert problems == []
    return {skill: {run.model_id: run.version for run in sorted(runs[skill], key=_order)} for skill in runs}


def _order(run: RecordedRun) -> tuple[Any, ...]:
    return run.version_order


def test_highest_complete_version_of_each_model_counts(git: GitRepository) -> None:
    board(
        git, row("1.9.0"), row("1.10.0"), row("1.0.0"), row("2.0.0", complete=False), row("0.1.0", "n"), row("newest")
    )
    board(git, row("3.0.0"), skill="b")
    git.commit()
    assert newest(git) == {"a": {"m": "1.10.0", "n": "0.1.0"}, "b": {"m": "3.0.0"}}


def test_records_of_several_branches_are_joined(git: GitRepository) -> None:
    board(git, row("1.0.0"), row("2.0.0", "n"))
    git.commit()
    git.git("checkout", "-q", "-b", "records")
    board(git, row("1.1.0"), row("1.0.0", "n"), row("1.0.0", "o"))
    git.commit()
    git.git("checkout", "-q", "main")
    assert newest(git) == {"a": {"m": "1.0.0", "n": "2.0.0"}}
    merged = {"a": {"m": "1.1.0", "n": "2.0.0", "o": "1.0.0"}}
    assert newest(git, "HEAD", "records") == newest(git, "records", "HEAD") == merged


@pytest.mark.parametrize("folder", [".", "deep/down"])
def test_other_files_named_leaderboard_are_not_read(git: GitRepository, folder: str) -> None:
    path = "" if folder == "." else f"{folder}/"
    board(git, row("1.0.0"), folder=path)
    git.write(f"{path}leaderboard.json", "not one")
    git.write(f"{path}a/old/leaderboard.json", "not one")
    git.commit()
    assert newest(git, folder=folder) == {"a": {"m": "1.0.0"}}


def test_broken_leaderboard_is_a_problem_and_hides_no_other(git: GitRepository) -> None:
    board(git, row("1.0.0"))
    lacking = ('{"runs": {}', '{"runs": [{"complete": true}]}', '{"runs": [1]}', '{"runs": 1}')
    for text in ("<<<<<<< HEAD", "", "[]", "{}", *lacking):
        git.write("components/b/leaderboard.json", text)
        git.commit()
        boards, (problem,) = recorded_runs(Repository(git.root), ["HEAD", "main"], "components")
        assert boards.keys() == {"a"}, text
        assert (problem.file, problem.line) == ("components/b/leaderboard.json", 1), text
        assert "components/b/leaderboard.json" in problem.message, text

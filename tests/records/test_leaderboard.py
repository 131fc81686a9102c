"""Rows are added, never edited: what a leaderboard takes, what it refuses, and what stays as it was."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.components import Component
from skill_evaluator.records.leaderboard import append_rows, load_leaderboard
from skill_evaluator.records.record import Row

from tests.support.components import case, component, record

RUN = [(case("a", {"shop": "A", "total": 9}), ['{"shop": "A", "total": 9}'])]


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    return component(tmp_path_factory.mktemp("library"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "leaderboard.json"


def row(skill: Component, run_id: str, day: int = 1, **changed: Any) -> Row:
    return record(skill, RUN, run_id=run_id, created=f"2024-01-{day:02}T00:00:00Z", **changed).row()


def ids(path: Path) -> list[str]:
    return [run["run_id"] for run in json.loads(path.read_text())["runs"]]


def test_a_leaderboard_that_is_not_there_is_empty(path: Path) -> None:
    assert load_leaderboard(path, "receipts").runs == []
    assert not path.exists()


def test_rows_stand_newest_first_in_whatever_order_they_come(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r2", day=2)])
    append_rows(path, skill.name, [row(skill, "r1", day=1), row(skill, "r3", day=3)])
    append_rows(path, skill.name, [row(skill, "r3b", day=3)])
    assert ids(path) == ["r3b", "r3", "r2", "r1"]


def test_appending_a_run_again_changes_nothing(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r1"), row(skill, "r2", day=2)])
    before = path.read_bytes(), path.stat().st_mtime_ns
    append_rows(path, skill.name, [row(skill, "r1")])
    append_rows(path, skill.name, [])
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_run_keeps_the_row_it_has(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r1", model_id="first")])
    append_rows(path, skill.name, [row(skill, "r1", model_id="second"), row(skill, "r2", day=2)])
    assert [run.model_id for run in load_leaderboard(path, skill.name).runs] == ["model-a", "first"]


def test_the_file_holds_the_rows_appended(skill: Component, path: Path) -> None:
    appended = row(skill, "r1")
    append_rows(path, skill.name, [appended])
    assert load_leaderboard(path, skill.name).runs == [appended]
    assert json.loads(path.read_text()).keys() == {"skill", "schema_version", "runs"}


def test_old_rows_stay_as_they_were_keys_of_other_versions_included(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r1")])
    written = json.loads(path.read_text())
    (old,) = written["runs"]
    old["grade"] = {"letter": "A"}
    old["accuracy"]["exact_match"]["median"] = 1.0
    del old["accuracy"]["schema_valid"]["stdev_cases"]
    path.write_text(json.dumps(written))
    append_rows(path, skill.name, [row(skill, "r2", day=2)])
    assert json.loads(path.read_text())["runs"][1] == old


def test_a_file_from_before_versions_were_kept_is_read_and_goes_on(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r1")])
    written = json.loads(path.read_text())
    del written["schema_version"]
    path.write_text(json.dumps(written))
    append_rows(path, skill.name, [row(skill, "r2", day=2)])
    assert ids(path) == ["r2", "r1"]
    assert json.loads(path.read_text())["schema_version"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"skill": "receipts", "schema_version": 2, "runs": [{"new": "shape"}]}',
            "{path} has schema_version 2, this evaluator knows 1; upgrade skill-evaluator",
        ),
        ('{"skill": "receipts", "schema_version": "2", "runs": []}', "schema_version in {path} is '2'; a whole number"),
        ('{"skill": "other", "runs": []}', "{path} is the leaderboard of 'other', not of 'receipts'"),
        ('{"skill": "receipts", "runs": [', "{path}:1:32: not JSON: "),
        ("<<<<<<< ours\n{}\n", "{path}:1:1: not JSON: "),
        ("", "{path}:1:1: not JSON: "),
        ("[]", "a mapping of keys to values is expected in {path}"),
        ('{"runs": []}', "a required key is missing at skill in {path}"),
        ('{"skill": "receipts", "runs": [{}]}', "a required key is missing at runs[0].run_id in {path}"),
        ('{"skill": "receipts", "runs": {}}', "Input should be a valid list at runs in {path}"),
    ],
)
def test_a_file_that_cannot_be_added_to_is_refused_and_left_untouched(
    skill: Component, path: Path, content: str, message: str
) -> None:
    path.write_text(content)
    with pytest.raises(LeaderboardError) as caught:
        append_rows(path, skill.name, [row(skill, "r1")])
    assert str(caught.value).startswith(message.format(path=path))
    assert "\n" not in str(caught.value)
    assert path.read_text() == content


def test_a_row_of_another_skill_is_refused_and_the_file_left_untouched(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r1")])
    before = path.read_bytes()
    with pytest.raises(LeaderboardError, match=r"run 'r2' is of 'other', .* is the leaderboard of 'receipts'"):
        append_rows(path, skill.name, [row(skill, "r2").model_copy(update={"skill": "other"})])
    assert path.read_bytes() == before

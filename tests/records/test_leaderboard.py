"""The leaderboard: rows are added once and sorted, existing rows stay, an invalid file is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.components import Component
from skill_evaluator.records.archive import (
    append_rows,
    check_leaderboard,
    load_leaderboard,
    newest_recorded,
    read_entries,
)
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
    return [run["run_id"] for run in json.loads(path.read_text("utf-8-sig"))["runs"]]


def test_rows_are_sorted_newest_first(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r2", day=2)])
    append_rows(path, skill.name, [row(skill, "r1", day=1), row(skill, "r3", day=3)])
    append_rows(path, skill.name, [row(skill, "r3b", day=3)])
    assert ids(path) == ["r3b", "r3", "r2", "r1"]


def test_newest_recorded_is_the_last_run_of_the_highest_version(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r1", day=1), row(skill, "r2", day=2)])
    assert [run.run_id for run in newest_recorded(path.read_bytes(), "here").values()] == ["r2"]


def test_row_of_a_recorded_run_is_not_added_again(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r1"), row(skill, "r2", day=2)])
    before = path.read_bytes(), path.stat().st_mtime_ns
    append_rows(path, skill.name, [row(skill, "r1", model_id="second")])  # a run keeps the row it has
    append_rows(path, skill.name, [])
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_added_row_is_read_back(skill: Component, path: Path) -> None:
    appended = row(skill, "r1")
    assert load_leaderboard(path, skill.name).runs == []
    append_rows(path, skill.name, [appended])
    assert load_leaderboard(path, skill.name).runs == [appended]
    assert json.loads(path.read_text()).keys() == {"skill", "schema_version", "runs"}


def test_existing_rows_keep_their_text_and_unknown_keys(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r1"), row(skill, "r3", day=3)])
    before = path.read_text().replace('"accuracy": {', '"grade": {"letter": "A"},\n      "accuracy": {', 1)
    path.write_text(before)
    append_rows(path, skill.name, [row(skill, "r2", day=2), row(skill, "r0", day=1), row(skill, "r4", day=4)])
    assert ids(path) == ["r4", "r3", "r2", "r1", "r0"]
    for text in before.split("    },\n    {\n"):
        assert text.removesuffix("\n    }\n  ]\n}\n").removeprefix("{").partition("run_id")[2] in path.read_text()


def laid_out_otherwise(text: str) -> str:
    return json.dumps(json.loads(text))


def with_a_key_after_the_cases(text: str) -> str:
    board = json.loads(text)
    for run in board["runs"]:
        run["timestamp"] = run.pop("timestamp")
    return json.dumps(board, indent=2)


@pytest.mark.parametrize(
    "change",
    [
        laid_out_otherwise,
        with_a_key_after_the_cases,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
    ],
)
def test_rows_of_another_layout_keep_their_values(skill: Component, path: Path, change: Any) -> None:
    append_rows(path, skill.name, [row(skill, "r1"), row(skill, "r3", day=3)])
    before = json.loads(path.read_text())["runs"]
    path.write_bytes(change(path.read_text()).encode())
    assert [entry.run_id for entry in read_entries(path)] == ["r3", "r1"]
    append_rows(path, skill.name, [row(skill, "r2", day=2), row(skill, "r1")])
    after = json.loads(path.read_text("utf-8-sig"))["runs"]
    assert ids(path) == ["r3", "r2", "r1"]
    assert [after[0], after[2]] == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"skill": "receipts", "schema_version": 3, "runs": [{"new": "shape"}]}',
            "{path} has schema_version 3, but this evaluator knows 2; upgrade skill-evaluator",
        ),
        ('{"skill": "receipts", "schema_version": "2", "runs": []}', "schema_version in {path} is '2'; a whole number"),
        ('{"skill": "receipts", "runs": [', "{path}:1:32: not JSON: "),
        ("[]", "a mapping of keys to values is expected in {path}"),
        ('{"skill": "receipts", "runs": [{}]}', "a required key is missing at runs[0].run_id in {path}"),
    ],
)
def test_invalid_leaderboard_is_refused_and_unchanged(skill: Component, path: Path, content: str, message: str) -> None:
    path.write_text(content)
    with pytest.raises(LeaderboardError) as caught:
        append_rows(path, skill.name, [row(skill, "r1")])
    assert str(caught.value).startswith(message.format(path=path))
    assert "\n" not in str(caught.value)
    assert path.read_text() == content


@pytest.mark.parametrize(
    ("edit", "message"),
    [('"scored": 1, "scored": 1', "one object repeats the key 'scored'"), ('"scored": NaN', "not JSON: ")],
)
def test_row_that_append_refuses_is_refused_before_calls(tmp_path: Path, edit: str, message: str) -> None:
    checked = component(tmp_path)
    append_rows(checked.leaderboard_path, checked.name, [row(checked, "r1")])
    check_leaderboard(checked)
    text = checked.leaderboard_path.read_text()
    checked.leaderboard_path.write_text(text.replace('"scored": 1', edit, 1))
    for call in (
        lambda: append_rows(checked.leaderboard_path, checked.name, [row(checked, "r2")]),
        lambda: check_leaderboard(checked),
        lambda: newest_recorded(checked.leaderboard_path.read_bytes(), "here"),
    ):
        with pytest.raises(LeaderboardError, match=message):
            call()


def test_row_of_another_component_is_refused(skill: Component, path: Path) -> None:
    append_rows(path, skill.name, [row(skill, "r1")])
    before = path.read_bytes()
    with pytest.raises(LeaderboardError, match=r"run 'r2' belongs to 'other', but .* to 'receipts'"):
        append_rows(path, skill.name, [row(skill, "r2").model_copy(update={"skill": "other"})])
    assert path.read_bytes() == before

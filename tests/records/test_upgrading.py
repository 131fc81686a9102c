"""`records upgrade`: rows of `schema_version` 1 become rows of today, and nothing is lost that no record holds."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.cli import main
from skill_evaluator.records.archive import read_entries
from skill_evaluator.records.integrity import Books, rewritings
from skill_evaluator.records.leaderboard import load_leaderboard
from skill_evaluator.records.record import read_record

from tests.support.library import read

OLD = Path(__file__).parents[1] / "data" / "old"
SKILL = "receipt-extraction"
RUN = read(OLD / "record.json")["run_id"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A component with a row and a record as they were written before schema_version 2."""
    folder = tmp_path / "components" / SKILL
    (folder / "evals" / "records").mkdir(parents=True)
    shutil.copy(OLD / "leaderboard.json", folder)
    shutil.copy(OLD / "record.json", folder / "evals" / "records" / f"{RUN}.json")
    return folder


def upgrade(folder: Path, *words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["records", "upgrade", "--components", str(folder.parent), *words])
    assert not ended.value.code


def books(folder: Path) -> Books:
    return Books(skill=SKILL, folder="f", leaderboard=(folder / "leaderboard.json").read_bytes(), records={})


def test_a_row_becomes_that_of_its_record_and_reads_as_before(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "leaderboard.json"
    entries, rows, before = read_entries(path), load_leaderboard(path, SKILL).runs, books(folder)
    upgrade(folder, "--dry-run")
    assert (path.read_bytes(), "1 row would be rewritten" in capsys.readouterr().out) == (before.leaderboard, True)
    upgrade(folder)
    assert "1 row rewritten, 16,935 → " in capsys.readouterr().out
    (row,) = read(path)["runs"]
    expected = read_record(folder / "evals" / "records" / f"{RUN}.json").row().as_json()
    assert row == {key: value for key, value in expected.items() if key != "digest"}  # the old row had none
    assert (read_entries(path), load_leaderboard(path, SKILL).runs) == (entries, rows)
    assert list(rewritings(before, books(folder))) == []  # `lint --base` takes it for no edit
    after = path.read_bytes(), path.stat().st_mtime_ns
    upgrade(folder, SKILL)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == after


def remove(record: Path) -> None:
    record.unlink()


def edit(record: Path) -> None:
    record.write_text(json.dumps({**read(record), "settings": {**read(record)["settings"], "timeout_s": 1}}))


def break_it(record: Path) -> None:
    record.write_text("{")


@pytest.mark.parametrize(
    ("change", "says"),
    [(remove, "it has no record"), (edit, "its record does not say the same of settings"), (break_it, "not JSON")],
)
def test_a_row_whose_record_does_not_hold_the_rest_stays_as_it_is(
    folder: Path, change: Any, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder / "evals" / "records" / f"{RUN}.json")
    before = (folder / "leaderboard.json").read_bytes()
    upgrade(folder)
    assert f"row '{RUN}' stays as it is: " in (out := capsys.readouterr().out)
    assert says in out
    assert (folder / "leaderboard.json").read_bytes() == before


def test_an_edit_of_an_upgraded_row_is_one(folder: Path) -> None:
    before = books(folder)
    upgrade(folder)
    path = folder / "leaderboard.json"
    path.write_text(path.read_text().replace('"coverage": 1.0', '"coverage": 0.9'))
    assert "was edited" in next(rewritings(before, books(folder))).message

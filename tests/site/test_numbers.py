"""Every number on the pages is a record's, or one that `history` or `leaderboard` says, rounded as it is written."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.records.archive import append_rows
from skill_evaluator.records.record import parse_record, write_record

from tests.site.conftest import demo
from tests.site.page_numbers import Recorded, numbers_of
from tests.support.library import Library, read
from tests.support.sites import site_page

pytest.importorskip("vl_convert")
pytestmark = pytest.mark.process
SKILL = "receipts"
PLACES = (
    "index.html",
    "changes.html",
    f"components/{SKILL}.html",
    f"verdicts/{SKILL}/1.1.0.html",
    f"verdicts/{SKILL}/1.2.0.html",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The records of `demo` with costs, times, arrays and categories of their own, and runs that are out of order."""
    library = demo(tmp_path_factory.mktemp("numbers"))
    folder, dice = library.root / "components" / SKILL, random.Random(7)
    records = [read(path) for path in sorted((folder / "evals" / "records").iterdir())]
    newest = records[-1]
    again = {**newest, "run_id": "20260105T090000Z-000005-again", "timestamp": "2026-12-05T09:00:00Z"}
    torn = {**newest, "run_id": "20260106T090000Z-000006-torn", "timestamp": "2026-12-06T09:00:00Z", "complete": False}
    third = {**records[0], "run_id": "20260101T090000Z-000007-third", "model_id": "third"}
    shutil.rmtree(folder / "evals" / "records")
    (folder / "leaderboard.json").unlink()
    values = [
        with_figures(record, dice) for record in (*records, again, {**torn, "scored": 30, "coverage": 0.75}, third)
    ]
    made = [parse_record(value, Path("made up")) for value in values]
    for record in made:
        write_record(folder / "evals" / "records" / f"{record.run_id}.json", record)
    append_rows(folder / "leaderboard.json", SKILL, [record.row() for record in made])
    library.write(".evaluator/settings.yaml", {"site": {"components": {SKILL: {"documents": True}}}})
    assert library.call("site", "build", "--out", "site").code == 0
    return library


def with_figures(record: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Return a record with figures that the demo has none of."""
    field, *_ = record["per_field"]
    confusion = {truth: {answer: dice.randrange(1, 40) for answer in "ABC"} for truth in "ABC"}
    fields = {**record["per_field"], field: {**record["per_field"][field], "confusion": confusion, "macro_f1": 0.61}}
    for name in ("items[].name", "items[].price"):
        counts = {outcome: dice.randrange(1, 40) for outcome in ("right", "wrong", "missing", "extra")}
        fields[name] = {**record["per_field"][field], **counts, "n": sum(counts.values())}
    length = {"stability": dice.random(), "n_cases": 10, "varied": dice.randrange(1, 9), "widest": dice.randrange(1, 9)}
    return {
        **record,
        "cost_usd": dice.uniform(0.01, 20.0),
        "latency_s": {"p50": dice.uniform(0.1, 9.0), "p95": dice.uniform(9.0, 20.0)},
        "calls": {"latency_s": spread(dice), "cost_usd": spread(dice)},
        "per_array": {"items": length},
        "per_field": fields,
        "failures": {"timeout": dice.randrange(1, 9), "unparseable": 1},
    }


def spread(dice: random.Random) -> dict[str, float]:
    """Return how single calls are spread: the middle is drawn by the run's own figures."""
    return {name: dice.uniform(0.01, 9.0) for name in ("p5", "p25", "p50", "p75", "p95")}


def test_every_number_is_the_figure_that_it_is_named_for(library: Library) -> None:
    sources, site = Recorded(library, SKILL), library.root / "site"
    numbers = [number for place in PLACES for number in numbers_of(site_page(site, place), sources)]
    assert [number for number in numbers if not number.is_right] == []
    assert len(numbers) > 200

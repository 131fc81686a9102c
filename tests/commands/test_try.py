"""`try`: an edit is asked, judged against the record of the same cases, and recorded nowhere."""

import shutil

import pytest

from tests.commands.test_draft import RIGHT, WRONG, evaluate, write
from tests.support.library import CASES, SKILL, Library

EDITED = "Extract title and year, please."


@pytest.fixture(autouse=True)
def _recorded(library: Library) -> None:
    """Three cases, and 1.2.0 recorded: every year is wrong."""
    library.settings(replicates=6)
    write(library, "1.2.0", "Extract title and year.", WRONG)
    assert evaluate(library).code == 0


def kept(library: Library) -> dict[str, bytes | None]:
    """Every file but those of run folders, and but what the test itself writes."""
    return {path: content for path, content in library.tree().items() if "/evals/results" not in path}


def test_try_compares_an_edit_and_records_nothing(library: Library) -> None:
    write(library, "1.2.0", EDITED, RIGHT)
    before = kept(library)
    done = library.call("try", SKILL, "--case", "alpha", "--case", "beta")
    assert done.code == 0, done.err
    assert kept(library) == before
    assert "1.2.0 → 1.2.0 (draft)" in done.out
    assert "2 cases × 6 → 3 replicates" in done.out
    assert "no longer there" not in done.out
    assert "the most frequent output changed in 2 of 2 cases\n" in done.out
    (line,) = (line for line in done.out.splitlines() if line.startswith("alpha "))
    assert line.split() == ["alpha", "0.500", "→", "1.000", "year", "1999", "2024"]


def test_try_json_holds_the_changed_outputs(library: Library) -> None:
    write(library, "1.3.0", EDITED, RIGHT)
    assert evaluate(library).code == 0
    write(library, "1.3.0", "Extract.", WRONG)
    done = library.call("try", SKILL, "-n", "6", "--format", "json")
    assert done.code in (0, 3)
    (model,) = done.json["changed_answers"]
    assert (model["compared"], [change["case_id"] for change in model["changes"]]) == (3, list(CASES))
    assert model["changes"][0]["values"] == [{"path": "year", "before": 2024, "after": 1999}]
    assert done.json["comparison"]["models"][0]["candidate"]["draft"]
    assert len(library.rows()) == 2


def test_try_compares_scores_without_the_recorded_outputs(library: Library) -> None:
    shutil.rmtree(library.results)
    write(library, "1.2.0", EDITED, RIGHT)
    done = library.call("try", SKILL)
    assert (done.code, "0.500 → 1.000" in done.out) == (0, True)
    assert "cannot be shown: its run folder, which is not committed, is not on this machine" in done.out
    remedy = done.out.partition("not on this machine; `skill-evaluator ")[2].partition("` runs it again")[0]
    write(library, "1.2.0", "Extract title and year.", WRONG)  # as it was recorded
    assert library.call(*remedy.split()).code == 0
    write(library, "1.2.0", EDITED, RIGHT)
    assert "the most frequent output changed in 3 of 3 cases\n" in library.call("try", SKILL).out

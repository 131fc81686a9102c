"""A judging is read as what it is, or refused in a sentence that says what to do."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.modes.scoring import ScoreResults
from skill_evaluator.site.judges import judging_digest, read_recorded

from tests.support.asked_judges import QUOTE, JudgingLibrary, answer, written

RESULTS = "evaluation_results.json"


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a judging that scored one output."""
    library = JudgingLibrary(tmp_path_factory.mktemp("scored"))
    library.items({"id": "a", "input": "Add.", "output": QUOTE})
    library.record_answers({("a/direct", 0): answer(totals=written(3))})
    assert library.judge("score", "--judge", "recorded").code == 0
    return library.judging()


@pytest.fixture
def folder(scored: Path, tmp_path: Path) -> Path:
    for name in ("judging.json", RESULTS):
        (tmp_path / name).write_bytes((scored / name).read_bytes())
    return tmp_path


def change(path: Path, **changed: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


def test_results_are_read_by_mode(folder: Path) -> None:
    results = read_recorded(folder)
    assert isinstance(results, ScoreResults)
    assert (results.judging.mode, results.judging.skill) == ("score", None)
    change(folder / "judging.json", mode="rubric")
    assert read_recorded(folder) is None
    change(folder / "judging.json", mode="score")
    (folder / RESULTS).unlink()
    assert read_recorded(folder) is None


def test_invalid_results_are_refused(folder: Path) -> None:
    right = (folder / RESULTS).read_text()
    for changed, complaint in (
        ({"results_version": 2}, "has results_version 2, this evaluator knows 1; upgrade it"),
        ({"judges": 3}, "judges"),
        ({"cascade": {}}, "cascade"),
    ):
        (folder / RESULTS).write_text(right)
        change(folder / RESULTS, **changed)
        with pytest.raises(JudgeError, match=complaint):
            read_recorded(folder)
    change(folder / "judging.json", mode="calibrate")
    (folder / RESULTS).write_text(json.dumps({"bar": 0.6, "judges": []}))
    with pytest.raises(JudgeError, match="does not name its judging"):
        read_recorded(folder)


def test_digest_is_of_both_files(folder: Path) -> None:
    first = judging_digest(folder)
    change(folder / RESULTS, left_out={"a": "b"})
    second = judging_digest(folder)
    change(folder / "judging.json", seed=7)
    assert len({first, second, judging_digest(folder)}) == 3

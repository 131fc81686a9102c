"""The verdict on runs that were just made: what each of them is held against."""

from pathlib import Path

from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Settings
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import Archive
from skill_evaluator.verdicts.recorded import verdict_on

from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep

CASES = {name: [0.5, 0.5] for name in "abcd"}
BASELINE = a_run("1.0.0", 5, CASES, beside="candidate", run_id="baseline")
CANDIDATE = a_run("1.1.0", 5, CASES, beside="baseline", run_id="candidate")


def _compared(library: Library, *made: Record) -> list[tuple[str, str]]:
    component = load_component(library.root / "components", SKILL)
    verdict = verdict_on(made, component, Archive(component), Settings(), library.root / ".evaluator")
    assert verdict is not None
    return [(model.baseline.run_id if model.baseline else "none", model.candidate.run_id) for model in verdict.models]


def test_the_run_beside_a_candidate_is_its_baseline_and_is_not_judged(tmp_path: Path) -> None:
    library = Library(tmp_path)
    keep(library, a_run("0.9.0", 1, CASES), a_run("1.0.0", 9, CASES))
    assert _compared(library, BASELINE, CANDIDATE) == [("baseline", "candidate")]


def test_kept_or_not_and_whatever_came_later_it_is_the_same(tmp_path: Path) -> None:
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 9, CASES), BASELINE, CANDIDATE)
    assert _compared(library, CANDIDATE) == [("baseline", "candidate")]
    assert _compared(library, CANDIDATE, BASELINE) == [("baseline", "candidate")]


def test_without_the_run_beside_it_a_candidate_meets_the_newest_recorded(tmp_path: Path) -> None:
    library = Library(tmp_path)
    older = a_run("1.0.0", 1, CASES)
    keep(library, older)
    assert _compared(library, CANDIDATE) == [(older.run_id, "candidate")]

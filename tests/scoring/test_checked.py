"""Scores of checks by the outcome of each call, and checks in comparisons."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.records.record import CaseRecord, CheckRecord, Record
from skill_evaluator.scoring.answers import CheckedCase
from skill_evaluator.verdicts.decide.comparability import Pair, check_changes, field_scores, with_same_checks

from tests.checks.test_checks import checks
from tests.support.components import FAILED, NOT_RUN, REFUSED, TRUNCATED, case, component, record

RIGHT = '{"shop": "A", "total": 9, "items": ["x"]}'
PROSE = "I cannot say what it cost"
DECLARED: list[dict[str, Any]] = [
    {"contains": "A", "id": "a"},
    {"not_contains": "cannot", "id": "helps"},
    {"json": {"at": "/total", "not_equals": 8}, "id": "total"},
    {"not_is_json": True, "id": "prose"},
]


def checked_record(root: Path, declared: list[dict[str, Any]], answers: list[str], **changed: Any) -> Record:
    skill = component(root, datasets={"checks": declared})
    return record(skill, [(replace(case("one"), labelled=False, checks=skill.checks), answers)], **changed)


def test_outcome_of_a_call_decides_the_scores_of_its_checks(tmp_path: Path) -> None:
    answers = [RIGHT, PROSE, "", REFUSED, TRUNCATED, FAILED, NOT_RUN]
    made = checked_record(tmp_path, DECLARED, answers)
    (one,) = made.per_case
    scores = {check_id: check.scores for check_id, check in one.checks.items()}
    assert scores == {
        "a": [1, 0, 0, 0, 0, None, None],
        "helps": [1, 0, 1, 0, 0, None, None],
        "total": [1, 0, 0, 0, 0, None, None],
        "prose": [0, 1, 1, 0, 0, None, None],
    }
    assert one.replicates["checks"] == [0.75, 0.25, 0.5, 0.0, 0.0, None, None]
    assert made.accuracy["checks"].strict_mean == pytest.approx(0.3)
    assert made.coverage == pytest.approx(5 / 7, abs=1e-6)
    assert field_scores(one, "checks.prose") == (0.0, 1.0, 1.0, 0.0, 0.0), "also of what could not be parsed"
    assert (one.fields["checks.prose"].right, one.fields["checks.prose"].n) == (2, 5)


@pytest.mark.parametrize(
    ("scores", "standing", "right"),
    [
        ((1.0, 1.0, None), "stable_right", 2),
        ((0.0, 0.4), "stable_wrong", 0),
        ((0.5, 0.4), "flaky", 1),
        ((1.0, None), "unscored", 1),
        ((None, None), "unscored", 0),
    ],
)
def test_check_is_stable_or_flaky(scores: tuple[float | None, ...], standing: str, right: int) -> None:
    (check,) = checks({"contains": "a"})
    one = CheckedCase(check=check, scores=scores)
    assert (one.standing, one.total.right) == (standing, right)


def test_versions_are_compared_by_their_common_checks(tmp_path: Path) -> None:
    later = [{**DECLARED[0], "weight": 3}, {**DECLARED[1], "not_contains": "I"}, *DECLARED[2:3], {"max_words": 9}]
    before = checked_record(tmp_path / "1", DECLARED, [RIGHT, PROSE])
    after = checked_record(tmp_path / "2", later, [RIGHT, PROSE])
    pair = with_same_checks(Pair(baseline=before, candidate=after, baseline_again=(before,), candidate_again=(after,)))
    runs = [pair.baseline, *pair.baseline_again, pair.candidate, *pair.candidate_again]
    assert len(runs) == 4
    for run in runs:
        assert run is not None
        (one,) = run.per_case
        assert set(one.checks) == {"a", "total"}
        assert {path for path in one.fields if path.startswith("checks.")} == {"checks.a", "checks.total"}
        assert one.replicates["checks"] == [1.0, 0.0], "weighed as the candidate weighs them"
    (words,) = check_changes(before, after)
    assert (
        "checks.helps (changed) in 1 case, checks.max_words-9 (new) in 1 case, checks.prose (gone) in 1 case" in words
    )
    same = Pair(baseline=before, candidate=before)
    assert with_same_checks(same).candidate is before
    assert list(check_changes(before, before)) == []


def test_runs_with_other_checks_are_not_pooled(tmp_path: Path) -> None:
    old = checked_record(tmp_path / "1", DECLARED[:1], [RIGHT])
    new = checked_record(tmp_path / "2", DECLARED, [RIGHT])
    pair = with_same_checks(Pair(baseline=new, candidate=new, baseline_again=(old,)))
    assert pair.baseline_again == ()


def test_check_record_omits_default_values() -> None:
    assert CheckRecord(digest="d", scores=[1.0, None]).model_dump() == {"digest": "d", "scores": [1.0, None]}
    with pytest.raises(ValueError, match="less than or equal to 1"):
        CheckRecord(digest="d", scores=[1.5])
    assert CaseRecord.model_construct(checks={}).model_dump(include={"checks"}) == {}

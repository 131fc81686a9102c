"""A judging is resumed only as what it was begun as."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.judging import Asking, Judging, taken_up, write_judging
from skill_evaluator.judges.asking.questions import JudgeQuestion, load_prompt
from skill_evaluator.library.config import Model

JUDGE = Model(id="judge", provider="replay")


def question(case_id: str, user: str = "text") -> JudgeQuestion:
    return JudgeQuestion(case_id=case_id, system="Judge.", user=user, schema={})


def planned(
    judging_id: str = "20260301T080000Z-abcdef",
    *,
    seed: int = 0,
    replicates: int = 1,
    judge: Model = JUDGE,
    **changed: Any,
) -> Judging:
    asking = Asking(
        mode="pairwise",
        rubric="sha256:1",
        criteria=["tone"],
        prompts=[load_prompt("pairwise")],
        items={"a": "sha256:2"},
        questions=[question("a/1"), question("a/2")],
    )
    judging = replace(asking, **changed).judging([judge], seed=seed, replicates=replicates)
    return judging.model_copy(update={"id": judging_id, "created": "2026-03-01T08:00:00Z"})


def test_the_newest_judging_is_taken_up_as_it_was(tmp_path: Path) -> None:
    for name in ("20260301T080000Z-aaaaaa", "20260302T080000Z-bbbbbb"):
        write_judging(tmp_path / name, planned(name))
    newer = planned("20260302T090000Z-dddddd")
    write_judging(tmp_path / newer.id, newer.model_copy(update={"mode": "score"}))  # of another mode: left aside
    judging, folder = taken_up(planned("20260303T080000Z-cccccc"), "latest", tmp_path)
    assert judging.id == folder.name == "20260302T080000Z-bbbbbb"


def test_what_changed_since_it_began_is_named(tmp_path: Path) -> None:
    begun = planned()
    write_judging(tmp_path / begun.id, begun)
    sampled = JUDGE.model_copy(update={"profile": "sampled"})
    changes: Mapping[str, Mapping[str, Any]] = {
        "item 'a'": {"items": {"a": "sha256:9"}, "questions": [question("a/1", "other"), question("a/2")]},
        "rubric": {"rubric": "sha256:9"},
        "seed": {"seed": 4},
        "replicates": {"replicates": 2},
        "judge 'judge'": {"judge": sampled},
        "prompts": {"prompts": [load_prompt("direct")]},
    }
    for named, changed in changes.items():
        with pytest.raises(JudgeError, match=f"changed since it began: .*{named}"):
            taken_up(planned(**changed), begun.id, tmp_path)


def test_a_judging_that_is_not_there_is_named_with_the_nearest_and_two_questions_of_one_id_refused(
    tmp_path: Path,
) -> None:
    write_judging(tmp_path / planned().id, planned())
    with pytest.raises(JudgeError, match="did you mean '20260301T080000Z-abcdef'"):
        taken_up(planned(), "20260301T080000Z-abcdee", tmp_path)
    with pytest.raises(JudgeError, match="two questions would have the id 'a/1'"):
        planned(questions=[question("a/1"), question("a/1")])

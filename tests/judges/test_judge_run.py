"""Judge runs are resumed only if their inputs are unchanged."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.judge_run import JudgeRun, JudgeSession, JudgeTask, resumed_judge_run, write_judge_run
from skill_evaluator.judges.prompting.questions import judge_request
from skill_evaluator.judges.workflows.requests import JudgeRequest
from skill_evaluator.library.config import Model
from skill_evaluator.runner.session import no_progress

JUDGE = Model(id="judge", provider="replay")
QUESTIONS = [judge_request(f"a/{order}", "Judge.", "text", {}) for order in (1, 2)]


def planned(
    judging_id: str = "20260301T080000Z-abcdef",
    *,
    seed: int = 0,
    replicates: int = 1,
    judge: Model = JUDGE,
    **changed: Any,
) -> JudgeRun:
    task = JudgeTask(
        mode="pairwise",
        rubric_digest="sha256:1",
        criteria=["tone"],
        prompts=["pairwise"],
        items={"a": "sha256:2"},
        questions=QUESTIONS,
    )
    request = JudgeRequest(seed=seed, replicates=replicates)
    judge_session = JudgeSession(request=request, models=[judge], configuration=cast("Any", None), watch=no_progress)
    judging = judge_session.planned(replace(task, **changed))
    return judging.model_copy(update={"id": judging_id, "created": "2026-03-01T08:00:00Z"})


def test_latest_is_the_newest_judge_run_of_its_mode(tmp_path: Path) -> None:
    for name in ("20260301T080000Z-aaaaaa", "20260302T080000Z-bbbbbb"):
        write_judge_run(tmp_path / name, planned(name))
    newer = planned("20260302T090000Z-dddddd")
    write_judge_run(tmp_path / newer.id, newer.model_copy(update={"mode": "score"}))
    judging, folder = resumed_judge_run(planned("20260303T080000Z-cccccc"), "latest", tmp_path)
    assert judging.id == folder.name == "20260302T080000Z-bbbbbb"


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("item 'a'", {"items": {"a": "sha256:9"}}),
        ("replicates", {"replicates": 2}),
        ("judge 'judge'", {"judge": JUDGE.model_copy(update={"profile": "sampled"})}),
        ("prompts", {"prompts": ["direct"]}),
        ("the texts of the questions", {"questions": [judge_request("a/1", "Judge.", "other", {}), QUESTIONS[1]]}),
    ],
)
def test_change_since_the_judge_run_began_is_named(name: str, changed: dict[str, Any], tmp_path: Path) -> None:
    write_judge_run(tmp_path / planned().id, planned())
    with pytest.raises(JudgeError, match=f"changed since it began: {name}"):
        resumed_judge_run(planned(**changed), planned().id, tmp_path)


def test_missing_judge_run_is_named_with_the_nearest(tmp_path: Path) -> None:
    write_judge_run(tmp_path / planned().id, planned())
    with pytest.raises(JudgeError, match="did you mean '20260301T080000Z-abcdef'"):
        resumed_judge_run(planned(), "20260301T080000Z-abcdee", tmp_path)


def test_two_questions_of_one_id_are_refused() -> None:
    with pytest.raises(JudgeError, match="two questions have the id 'a/1'"):
        planned(questions=[QUESTIONS[0], QUESTIONS[0]])

"""Every planned call is scored, failed or not run; what is complete; and what is said when nothing was collected."""

from pathlib import Path

import pytest
from skill_evaluator.ci.outcome import Outcome, RunOutcome, Status, missing_outcome, read_outcome
from skill_evaluator.errors import PlanError
from skill_evaluator.files import json_text

from tests.ci.test_plan import PLAN


def run(status: Status = "complete", planned: int = 6, scored: int = 6, **failed: int) -> RunOutcome:
    return RunOutcome(skill="a", model_id="m", status=status, reason="", planned=planned, scored=scored, failed=failed)


def outcome(*runs: RunOutcome) -> Outcome:
    return Outcome(invocation="i", head=None, dry_run=False, runs=list(runs))


@pytest.mark.parametrize(
    ("statuses", "complete"),
    [([], True), (["complete", "skipped"], True), (["complete", "incomplete"], False), (["missing"], False)],
)
def test_what_was_skipped_for_want_of_a_key_does_not_make_an_outcome_incomplete(
    statuses: list[Status], complete: bool
) -> None:
    assert outcome(*map(run, statuses)).complete is complete


def test_of_a_plan_that_was_lost_every_run_is_missing_with_all_its_calls() -> None:
    (one,) = missing_outcome(PLAN, "why").runs
    assert (one.skill, one.model_id, one.status, one.reason) == ("a", "vendor/m", "missing", "why")
    assert (one.planned, one.scored, one.failed) == (9, 0, {})


def test_an_outcome_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = outcome(run(), run("incomplete", scored=2, refusal=1))
    path = tmp_path / "outcome.json"
    path.write_text(json_text(made.model_dump(mode="json")))
    assert read_outcome(tmp_path) == made
    path.write_text("{}")
    with pytest.raises(PlanError, match="a required key is missing"):
        read_outcome(tmp_path)

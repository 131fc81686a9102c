"""outcome.json: when it is complete, and the outcome of a plan whose results could not be collected."""

from pathlib import Path

import pytest
from skill_evaluator.ci.plan import CallCounts, Outcome, RunOutcome, Status, read_outcome
from skill_evaluator.errors import PlanError
from skill_evaluator.files import json_text
from skill_evaluator.library.config import Policy

from tests.ci.test_plan import PLAN


def run(status: Status = "complete", planned: int = 6, scored: int = 6, **failed: int) -> RunOutcome:
    counts = CallCounts(planned=planned, scored=scored, failed=failed)
    return RunOutcome(skill="a", model_id="m", status=status, reason="", counts=counts)


def outcome(*runs: RunOutcome) -> Outcome:
    return Outcome(invocation="i", head=None, dry_run=False, runs=list(runs))


@pytest.mark.parametrize(
    ("statuses", "complete"),
    [([], True), (["complete", "skipped"], True), (["complete", "incomplete"], False), (["missing"], False)],
)
def test_outcome_with_skipped_runs_is_complete(statuses: list[Status], complete: bool) -> None:
    assert outcome(*map(run, statuses)).complete is complete


@pytest.mark.parametrize(
    ("statuses", "code"), [(["complete", "skipped"], 0), (["complete", "incomplete"], 0), (["missing"], 4)]
)
def test_report_of_missing_runs_exits_with_4(statuses: list[Status], code: int) -> None:
    unfinished = outcome(*map(run, statuses))
    assert unfinished.exit_code(Policy()) == code
    assert unfinished.model_copy(update={"dry_run": True}).exit_code(Policy()) == 0


def test_runs_without_results_are_missing_with_all_their_calls(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json_text(PLAN.model_dump(mode="json")))
    (one,) = read_outcome(tmp_path, path).runs
    assert (one.skill, one.model_id, one.status) == ("a", "vendor/m", "missing")
    assert one.reason == "its results could not be collected; see the log of the run"
    assert one.counts == CallCounts(planned=9)


def test_outcome_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = outcome(run(), run("incomplete", scored=2, refusal=1))
    path = tmp_path / "outcome.json"
    path.write_text(json_text(made.model_dump(mode="json")))
    assert read_outcome(tmp_path) == made
    path.write_text("{}")
    with pytest.raises(PlanError, match="a required key is missing"):
        read_outcome(tmp_path)

"""Hostile text in a page that is cut and in printed output: no line is a workflow command."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.ci import platforms
from skill_evaluator.ci.plan import CallCounts, Decisions, Figures, OnModels, Outcome, RunOutcome
from skill_evaluator.ci.platforms import GitHub
from skill_evaluator.display import inert_output
from skill_evaluator.display.pages import Page, print_page
from skill_evaluator.library.versions import Problem
from skill_evaluator.reports.ci import outcome_page, plan_page

from tests.ci import test_plan as plans
from tests.support.hostile import EVERYTHING, FILE_NAME, outside_of_code, runner_commands

UNSEEN = ("\x1b", "\x07", "\x9b", "\u202e", "\u2069", "\u200b")
LIVE = ("pwned", "<", ">", "@someone", "evil", "#123", "**")

FIGURES = Figures.model_construct(skill_version=EVERYTHING, accuracy=0.5, ci95=(0.4, 0.6), reproducibility=1.0)
RUN = RunOutcome.model_construct(
    skill=FILE_NAME,
    model_id=EVERYTHING,
    status="incomplete",
    reason=EVERYTHING,
    counts=CallCounts.model_construct(planned=4, scored=1, failed={EVERYTHING: 2}),
    primary_metric=EVERYTHING,
    figures=FIGURES,
)
OUTCOME = Outcome(invocation="i", head=None, dry_run=False, runs=[RUN, RUN])
OF_ALL = {"model_id": EVERYTHING, "cases": {EVERYTHING: "d"}, "shard": None, "cost_upper_usd": None}
PLAN = plans.PLAN.model_copy(
    update={
        "runs": [plans.ENTRY.model_copy(update={"skill": FILE_NAME, **OF_ALL})],
        "decisions": Decisions(
            chosen=[OnModels(skill=FILE_NAME, models=[EVERYTHING], reason=EVERYTHING)],
            skipped=[OnModels(skill=FILE_NAME, models=[EVERYTHING, EVERYTHING], reason=EVERYTHING)],
            faults=[Problem(file=FILE_NAME, line=1, message=EVERYTHING)],
        ),
    }
)
WHOLE = {"plan": plan_page(PLAN), "outcome": outcome_page(OUTCOME)}


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A job of GitHub Actions; gives the folder of its files."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name in ("OUTPUT", "STEP_SUMMARY"):
        monkeypatch.setenv(f"GITHUB_{name}", str(tmp_path / name))
    return tmp_path


@pytest.mark.parametrize("page", WHOLE.values(), ids=WHOLE)
def test_cut_page_has_no_live_markup(page: Page, actions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for most in range(200, len(page.markdown().encode()), 397):
        monkeypatch.setattr(platforms, "_MAX_SUMMARY_BYTES", most)
        GitHub().add_summary(page)
        written = actions / "STEP_SUMMARY"
        assert len(written.read_bytes()) <= most + 2
        live = outside_of_code(written.read_text())
        assert not [mark for mark in LIVE if mark in live]
        written.unlink()


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
@pytest.mark.usefixtures("actions")
def test_printed_plan_and_outcome_have_no_workflow_command(form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with inert_output():
        print_page(form, json=lambda: PLAN, page=lambda: plan_page(PLAN))
        print_page(form, json=lambda: OUTCOME, page=lambda: outcome_page(OUTCOME))
    printed = capsys.readouterr().out
    assert "pwned" in printed
    assert runner_commands(printed) == []
    if form != "json":
        assert not [mark for mark in UNSEEN if mark in printed]

"""The printed calls of an audit: columns that add up, no mark-up from outside."""

from pathlib import Path

import pytest
from skill_evaluator.audit.calls import AuditResults, AuditRun
from skill_evaluator.audit.gathering import CallTally
from skill_evaluator.audit.printing import print_audit_runs
from skill_evaluator.audit.request import AuditRunRequest

from tests.audit.manifests import manifest
from tests.support.hostile import EVERYTHING, outside_of_code

LIVE = ("pwned", "<", "@someone", "evil", "#123")


def results(model_id: str = "m0", stopped: str | None = None) -> AuditResults:
    """An audit with a run that is not complete."""
    tally = CallTally(
        planned=20,
        outcomes={"scored": 9, "unparseable": 1, "refused": 2, "truncated": 1, "timeout": 2, "provider_error": 1},
        cost_usd=None,
        hit_rate=None,
        latency_s=0.25,
        served_models=(),
    )
    run = AuditRun(model_id=model_id, tally=tally, stopped=stopped, complete=False)
    request, folder = AuditRunRequest(), Path("audits/a")
    return AuditResults(request=request, audit=manifest([50], 6), folder=folder, models=1, runs=[run])


def test_columns_of_a_run_add_up_to_the_planned_calls(capsys: pytest.CaptureFixture[str]) -> None:
    print_audit_runs(results(stopped="interrupted: stopped by the user"), "text")
    head, row, _, stopped = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "model"
    assert row.split() == ["m0", "20", "9", "1", "3", "3", "4", "unknown", "0.25"]
    assert stopped == "m0 stopped: interrupted: stopped by the user"


def test_text_of_a_server_is_not_mark_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_audit_runs(results(EVERYTHING, EVERYTHING), "markdown")
    page = capsys.readouterr().out
    assert not [mark for mark in LIVE if mark in outside_of_code(page)]
    print_audit_runs(results(EVERYTHING, EVERYTHING), "text")
    assert len(capsys.readouterr().out.splitlines()) == 4

"""An audit before and after its calls: columns that add up, what is too few is said, nothing taken for mark-up."""

from pathlib import Path

import pytest
from skill_evaluator.audit.report.calls import print_audit_runs
from skill_evaluator.audit.request import AuditRunRequest
from skill_evaluator.audit.run.asking import AskedAudit, AuditRun
from skill_evaluator.audit.run.gathering import CallTally
from skill_evaluator.audit.run.plan import AuditManifest

from tests.audit.manifests import manifest
from tests.support.hostile import EVERYTHING, outside_of_code

LIVE = ("pwned", "<", "@someone", "evil", "#123")


def audit(models: int = 4, scenarios: int = 6, questions: int = 50, replicates: int = 2) -> AuditManifest:
    return manifest([questions], scenarios, replicates, models)


def asked(model_id: str = "m0", stopped: str | None = None) -> AskedAudit:
    """An audit with a run that is not complete."""
    tally = CallTally(
        planned=20,
        outcomes={"scored": 9, "unparseable": 1, "refused": 2, "truncated": 1, "timeout": 2, "provider_error": 1},
        cost_usd=None,
        hit_rate=None,
        latency_s=0.25,
        served_models=(),
    )
    run = AuditRun(model_id=model_id, shard="1/2", tally=tally, stopped=stopped, complete=False)
    request, folder = AuditRunRequest(), Path("audits/a")
    return AskedAudit(request=request, audit=audit(), folder=folder, models=1, runs=[run])


def test_a_size_raises_a_doubt_for_each_lack() -> None:
    assert audit().doubts == []
    for lacking in ({"models": 3}, {"scenarios": 5}, {"questions": 49}, {"replicates": 1}):
        assert len(audit(**lacking).doubts) == 1


def test_the_columns_of_a_run_add_up_to_what_was_planned(capsys: pytest.CaptureFixture[str]) -> None:
    print_audit_runs(asked(stopped="interrupted: stopped by the user"), "text")
    head, row, _, stopped = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "model"
    assert row.split() == ["m0", "1/2", "20", "9", "1", "3", "3", "4", "unknown", "0.25"]
    assert stopped == "m0 stopped: interrupted: stopped by the user"
    assert 9 + 1 + 3 + 3 + 4 == 20


def test_what_a_server_says_is_not_taken_for_mark_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_audit_runs(asked(EVERYTHING, EVERYTHING), "markdown")
    page = capsys.readouterr().out
    assert not [mark for mark in LIVE if mark in outside_of_code(page)]
    print_audit_runs(asked(EVERYTHING, EVERYTHING), "text")
    assert len(capsys.readouterr().out.splitlines()) == 4

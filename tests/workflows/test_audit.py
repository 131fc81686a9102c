"""The workflow audit.yml: its scripts by themselves, and a dispatch run by act, off the network."""

import re
from pathlib import Path

import pytest
import yaml
from skill_evaluator.audit.request import AuditPlaces
from skill_evaluator.audit.run.gathering import gather
from skill_evaluator.audit.run.plan import read_audit_plan

from tests.support.act import WORKFLOWS
from tests.support.audits import missing
from tests.support.hostile import EVERYTHING
from tests.support.library import REPLAY
from tests.workflows.forge import AUDIT, Forge
from tests.workflows.scripts import Ran, Step, run_script, step_of

INPUTS = ("MODELS", "BENCHMARKS", "SCENARIOS", "QUESTIONS", "REPLICATES", "MAX_COST", "REASON")


def step(job: str, name: str, workflow: str = "audit.yml") -> Step:
    return step_of(workflow, job, name)


def plan(folder: Path, **inputs: str) -> list[str]:
    env = {**dict.fromkeys(INPUTS, ""), "LEGS": "eval-a eval-b", **inputs}
    (call,) = run_script(step("plan", "Plan"), folder, env).calls
    assert call[:5] == ["python", "-m", "skill_evaluator", "audit", "plan"]
    assert call[5:8] == ["--platform", "github", "--legs=eval-a eval-b"]
    return call[8:]


def test_nobody_is_billed_who_did_not_ask_and_no_job_may_write() -> None:
    workflow = yaml.safe_load((WORKFLOWS / "audit.yml").read_text())
    assert workflow["jobs"]["plan"]["if"].startswith("github.event_name != 'schedule' || vars.SKILL_EVALUATOR_AUDIT ==")
    assert all("plan" in job["needs"] for name, job in workflow["jobs"].items() if name != "plan")
    assert all(job["permissions"] == {"contents": "read"} for job in workflow["jobs"].values())


def test_a_schedule_takes_everything_from_the_settings_and_a_cap_from_the_variable(tmp_path: Path) -> None:
    assert plan(tmp_path) == []
    assert plan(tmp_path, MAX_COST="20") == ["--max-cost=20"]


def test_inputs_are_arguments_and_nothing_else(tmp_path: Path) -> None:
    given = plan(tmp_path, **dict.fromkeys(INPUTS, EVERYTHING))
    words = re.split(r"[ \t\n]+", EVERYTHING)
    for flag in ("--model", "--benchmark", "--scenario"):
        assert [word.removeprefix(f"{flag}=") for word in given if word.startswith(f"{flag}=")] == words
    for flag in ("--questions", "--replicates", "--max-cost", "--reason"):
        assert f"{flag}={EVERYTHING}" in given
    assert not list(tmp_path.rglob("pwned*"))


def ask(folder: Path, **changed: str) -> Ran:
    env = {"KIND": "audit", "PLAN": "plan", "RESULTS": "kept", "ENTRY": "audit@m", "MODEL": "m", "SHARD": ""}
    env |= {"ENVIRONMENT": "eval-m", "KEY_VARIABLE": "M_KEY", "PROVIDER_API_KEY": "a key", "ARTIFACTS": "none"}
    return run_script(step("leg", "Ask", "leg.yml"), folder, env | changed)


def test_a_job_asks_its_part_of_the_plan(tmp_path: Path) -> None:
    ran = ask(tmp_path, SHARD="1/3")
    (call,) = ran.calls
    assert call[3:] == ["audit", "run", "--plan=plan/audit-plan.json", "--model=m", "--audits=kept", "--shard=1/3"]
    assert ran.became_the_last
    assert ask(tmp_path, ENDS_WITH="4").code == 4


def test_a_job_without_its_key_says_so_and_is_no_failure(tmp_path: Path) -> None:
    ran = ask(tmp_path, PROVIDER_API_KEY="")
    reason = "neither the repository has a secret M_KEY, nor its environment eval-m one PROVIDER_API_KEY"
    assert (ran.code, ran.calls, ran.printed) == (0, [], f"::warning title=audit@m was skipped::{reason}\n")
    assert not list((tmp_path / "kept").iterdir())
    assert len(ask(tmp_path, PROVIDER_API_KEY="", KEY_VARIABLE="").calls) == 1


def test_a_model_without_a_key_is_no_failure_of_the_report_and_anything_else_is(tmp_path: Path) -> None:
    env = {"ARTIFACTS": str(tmp_path / "artifacts"), "PLAN": "plan.json", "REPORT": "report"}
    for ended, means in ((0, 0), (4, 0), (2, 2), (1, 1)):
        ran = run_script(step("report", "Report"), tmp_path, {**env, "ENDS_WITH": str(ended)})
        assert ran.code == means, ended
        (call,) = ran.calls
        assert call[3:6] == ["audit", "report", env["ARTIFACTS"]]
        assert not any(word.startswith("--previous") for word in call)


def test_a_report_that_was_committed_is_what_the_cohort_is_compared_with(tmp_path: Path) -> None:
    for name in ("20260101T000000Z-aaaaaa", "20260201T000000Z-bbbbbb"):
        (tmp_path / "audits" / name).mkdir(parents=True)
        (tmp_path / "audits" / name / "report.json").write_text("{}")
    env = {"ARTIFACTS": str(tmp_path / "artifacts"), "PLAN": "plan.json", "REPORT": "report"}
    (call,) = run_script(step("report", "Report"), tmp_path, env).calls
    assert call[-1] == "--previous=./audits/20260201T000000Z-bbbbbb/report.json"


@pytest.mark.act
def test_a_dispatch_asks_every_model_its_cells_and_the_report_gets_them_all(forge: Forge) -> None:
    for name in ("one", "two"):
        forge.component(name, "1.0.0")
    for name in ("bare", "curt"):
        text = f"---\nname: {name}\nintent: i\n---\nBe {name}. {{{{ prompt }}}}\n"
        forge.library.write(f".evaluator/scenarios/{name}.md", text)
    forge.library.models({**forge.served, "api_key_env": None}, {"id": "keyless", "provider": "anthropic"}, REPLAY)
    forge.fixtures_elsewhere()
    forge.push()

    acted = forge.dispatch(workflow=AUDIT, models="served keyless", benchmarks="one two", reason="A look")

    assert acted.code == 0
    assert forge.uploaded() == {"plan", "audit@served", "audit-report"}
    assert acted.steps("Ask") == {"audit@served": "success", "audit@keyless": "success"}
    (warning,) = acted.commands("warning")
    assert warning["kvPairs"]["title"] == "audit@keyless was skipped"
    assert [times for _, _, times in forge.world["asked"]] == [1] * 16
    plan, report = (line["content"] for line in acted.commands("summary"))
    assert "Reason: `A look`" in plan
    assert "left out, as nothing is there of them: keyless" in report
    root = forge.library.root
    places = AuditPlaces(components=root / "components", fixtures=root / forge.fixtures, config=root / ".evaluator")
    gathered = gather([forge.artifacts / "audit@served"], places)
    assert gathered.manifest == read_audit_plan(forge.artifacts / "plan" / "audit-plan.json").audit
    assert missing(gathered) == {"served": 0, "keyless": 16}

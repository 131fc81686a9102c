"""What the workflows use and say in shell: pinned actions, commands and flags that exist, inputs kept arguments."""

import hashlib
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from skill_evaluator.ci.layout import with_identity
from skill_evaluator.cli import COMMANDS, load_command
from skill_evaluator.library.options import app_of
from skill_evaluator.providers import PROVIDERS

from tests.support.git import GitRepository
from tests.support.hostile import EVERYTHING
from tests.support.library import ROOT
from tests.workflows.act import SET_UP, WORKFLOWS
from tests.workflows.scripts import Ran, Step, run_script, step_of, steps

JOB = {
    "JOB": "one@served",
    "KEYS": "SERVED_API_KEY",
    "SERVED_API_KEY": "a key",
    "RUNS": "one@served one served\ntwo@served two served",
    "PLAN": "plan.json",
    "SHA256": hashlib.sha256(b"{}").hexdigest(),
    "DRY_RUN": "",
}
PLAN = {
    **dict.fromkeys(("COMPONENTS", "MODELS", "REPLICATES", "MAX_COST", "BASE", "DRY_RUN", "DRIFT"), ""),
    "BRANCH": "main",
    "RECORDS_BRANCH": "records",
    "REF_TYPE": "branch",
    "MODE": "push",
}


def step(job: str, name: str, workflow: str = "evaluate.yml") -> Step:
    return step_of(workflow, job, name)


def test_actions_are_pinned_to_a_commit_with_its_version() -> None:
    files = [SET_UP, *WORKFLOWS.glob("*.yml")]
    lines = [line for path in files for line in path.read_text().splitlines() if "uses:" in line]
    assert len(lines) > 10
    for line in lines:
        pinned = re.fullmatch(r" +(- )?uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
        of_the_same_commit = re.fullmatch(r" +(- )?uses: \$/\.github/(workflows/site\.yml|actions/set-up)", line)
        assert pinned or of_the_same_commit, line


def test_scripts_are_valid_and_have_no_expression() -> None:
    for one in steps():
        checked = subprocess.run(["bash", "-n"], input=one.script, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, ""), one
        assert "${{" not in one.script, one  # whose value would be part of the script


def test_scripts_name_existing_files_commands_and_flags() -> None:
    of_other_programs = {"--quiet", "--check", "--first-parent", "--max-count"}
    called = set[str]()
    for one in steps():
        for path in re.findall(r"(?<![\w/])(?:\.ci|\.evaluator|tools)/[\w./-]+\b", one.script):
            assert list(ROOT.glob(f"{path}*")), f"{one}: {path}"
        commands = re.findall(r"python -m skill_evaluator ((?:cases|ci|site) \w+|\w+)", one.script)
        commands += ["evaluate"] * ("python tools/evaluate_skill.py" in one.script)
        if commands:
            arguments = [
                each for command in commands for each in app_of(load_command(command)).assemble_argument_collection()
            ]
            flags = {flag for argument in arguments for flag in argument.names}
            assert set(re.findall(r"--[a-z][a-z0-9-]+", one.script)) <= flags | of_other_programs, one
        called |= {*commands}
    assert {"lint", "evaluate", "ci plan", "ci collect", "ci publish", "ci report", "site build"} <= called


def test_jobs_that_read_cases_pin_their_commit() -> None:
    for workflow in ("check.yml", "evaluate.yml", "site.yml"):
        text = (WORKFLOWS / workflow).read_text()
        assert text.count("FIXTURES_TOKEN }}") == text.count("fixtures-token:") + text.count("FIXTURES_TOKEN: ${{")
        for job in yaml.safe_load(text)["jobs"].values():
            reading = [each for each in job.get("steps", ()) if _reads_cases(each.get("run", ""))]
            for each in reading:
                assert "FIXTURES_COMMIT" in {**job.get("env", {}), **each.get("env", {})} or each["name"] == "Plan"


def _reads_cases(script: str) -> bool:
    named = [path for path in COMMANDS if re.search(rf"skill_evaluator {path}\b", script)]
    arguments = (argument for path in named for argument in app_of(load_command(path)).assemble_argument_collection())
    return any(argument.name == "--fixtures" for argument in arguments)


def test_keyless_workflow_passes_all_vendor_identifiers() -> None:
    text = with_identity((WORKFLOWS / "evaluate.yml").read_text())
    job = yaml.safe_load(text)["jobs"]["evaluate"]
    (env,) = (each["env"] for each in job["steps"] if each.get("id") == "evaluate")
    federations = [kind.federation for kind in PROVIDERS.values() if kind.federation is not None]
    names = {name for each in federations for name in (*each.required, *each.optional)}
    assert {name: env[name] for name in names} == {name: f"${{{{ vars.{name} }}}}" for name in names}
    assert job["permissions"] == {"contents": "read", "id-token": "write"}


def test_dispatch_inputs_are_only_arguments(tmp_path: Path) -> None:
    hostile = dict.fromkeys(("COMPONENTS", "MODELS", "REPLICATES", "MAX_COST", "BRANCH"), EVERYTHING)
    ran = run_script(step("plan", "Plan"), tmp_path, {**PLAN, **hostile})
    assert (ran.code, ran.printed) == (0, "")
    (call,) = ran.calls
    assert call[:7] == ["python", "-m", "skill_evaluator", "ci", "plan", "--platform", "github"]
    at = call.index("--")
    words = re.split(r"[ \t\n]+", EVERYTHING)
    assert call[at + 1 :] == words
    assert [word for word in call[:at] if word.startswith("--model=")] == [f"--model={word}" for word in words]
    assert {f"--replicates={EVERYTHING}", f"--max-cost={EVERYTHING}"} < set(call[:at])
    assert not list(tmp_path.rglob("pwned*"))


@pytest.mark.parametrize(
    ("env", "flags"),
    [
        ({"BASE": "abc"}, ["--base=abc"]),
        ({}, []),
        ({"DRIFT": "true", "MAX_COST": "5"}, ["--max-cost=5", "--drift"]),
    ],
    ids=["push", "dispatch", "schedule"],
)
def test_each_event_has_its_options(env: dict[str, str], flags: list[str], tmp_path: Path) -> None:
    (call,) = run_script(step("plan", "Plan"), tmp_path, {**PLAN, **env}).calls
    assert call[5:] == ["--platform", "github", "--recorded=origin/main", "--recorded=origin/records", *flags, "--"]


def test_check_of_a_pull_request_reads_no_variable_of_a_fork() -> None:
    workflow = (ROOT / ".github" / "workflows" / "check.yml").read_text()
    assert "vars." not in workflow
    assert re.findall(r"secrets\.(\w+)", workflow) == ["FIXTURES_TOKEN"]


def test_optional_cases_may_be_missing_without_the_token(tmp_path: Path) -> None:
    (fetch,) = (each["run"] for each in yaml.safe_load(SET_UP.read_text())["runs"]["steps"] if "env" in each)
    for token, cases, ends_with, code, missing in (
        ("", "optional", "0", 0, False),
        ("", "optional", "2", 0, True),
        ("a", "optional", "2", 2, False),
        ("", "required", "2", 2, False),
    ):
        (tmp_path / "outputs").write_text("")
        env = {"FIXTURES_TOKEN": token, "FIXTURES": cases, "ENDS_WITH": ends_with}
        ran = run_script(Step("set-up", "set-up", "Fetch", fetch), tmp_path, env)
        assert ran.code == code
        assert (tmp_path / "outputs").read_text() == ("missing=true\n" if missing else "")
        assert ("::warning title=The cases are not checked::There is no FIXTURES_TOKEN" in ran.printed) is missing
    steps_of_check = yaml.safe_load((WORKFLOWS / "check.yml").read_text())["jobs"]["check"]["steps"]
    conditions = {each["name"] for each in steps_of_check if "steps.set-up.outputs.missing" in each.get("if", "")}
    assert conditions == {"Dry run of the changed components", "Plan"}


def test_no_job_starts_if_its_record_could_not_be_published(tmp_path: Path) -> None:
    for kind, mode, dry_run, starts in (
        ("tag", "push", "false", False),
        ("tag", "pull-request", "false", False),
        ("tag", "branch", "false", True),
        ("tag", "push", "true", True),
        ("branch", "pull_request", "false", False),
    ):
        env = {**PLAN, "REF_TYPE": kind, "MODE": mode, "DRY_RUN": dry_run}
        ran = run_script(step("plan", "Plan"), tmp_path, env)
        assert (ran.code, len(ran.calls)) == ((0, 1) if starts else (2, 0)), (kind, mode)
        assert ran.printed.startswith("::error title=Nothing was started::") is not starts, (kind, mode)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    return folder


def evaluate(results: Path, **changed: str) -> Ran:
    (results.parent / "plan.json").write_text("{}")
    return run_script(step("evaluate", "Evaluate"), results.parent, {**JOB, "RESULTS": str(results), **changed})


def test_job_makes_its_runs_one_after_the_other(results: Path) -> None:
    (results / "one@served.skipped").write_text("an earlier attempt had no key")
    ran = evaluate(results)
    assert ran.code == 0
    assert ran.calls == [
        [
            *("python", "tools/evaluate_skill.py", name, "--model", "served"),
            *("--plan", "plan.json", "--planned", f"{name}@served", "--results", str(results)),
        ]
        for name in ("one", "two")
    ]
    assert list(results.iterdir()) == []
    failed = evaluate(results, ENDS_WITH="4")
    assert (failed.code, len(failed.calls)) == (4, 2)


def test_job_refuses_a_replaced_plan(results: Path) -> None:
    ran = evaluate(results, SHA256="0" * 64)
    assert (ran.code, ran.calls) == (1, [])


def test_job_without_its_key_is_skipped_with_a_warning(results: Path) -> None:
    ran = evaluate(results, SERVED_API_KEY="")
    assert (ran.code, ran.calls) == (0, [])
    assert ran.printed == "::warning title=one@served was skipped::there is no secret SERVED_API_KEY\n"
    assert (results / "one@served.skipped").read_text() == "there is no secret SERVED_API_KEY\n"
    assert len(evaluate(results, SERVED_API_KEY="", DRY_RUN="true").calls) == 2


def test_collecting_fails_only_without_an_outcome(tmp_path: Path) -> None:
    """A run that is incomplete (4), or stopped by a bug (1), keeps no other record from being published."""
    env = {"ARTIFACTS": "artifacts", "SHA256": "f" * 64, "BRANCH": "main", "RECORDS_BRANCH": "records"}
    (tmp_path / "collected").mkdir()
    for ended, has_outcome, means in ((2, False, 2), (1, False, 1), (0, True, 0), (4, True, 0), (1, True, 0)):
        if has_outcome:
            (tmp_path / "collected" / "outcome.json").touch()
        ran = run_script(step("collect", "Collect"), tmp_path, {**env, "ENDS_WITH": str(ended)})
        assert ran.code == means, ended
        assert f"--plan-sha256={'f' * 64}" in ran.calls[0]


@pytest.mark.parametrize(("mode", "opens"), [("push", []), ("branch", []), ("pull-request", ["--open=records"])])
def test_publish_mode_selects_the_branch(mode: str, opens: list[str], tmp_path: Path) -> None:
    env = {"COLLECTED": "collected", "PLAN": "plan.json", "GITHUB_SHA": "abc", "MODE": mode, "BRANCH": EVERYTHING}
    env |= {"RECORDS_BRANCH": "records", "PUBLISHED": "success", "EVENT": "push"}
    published = run_script(step("publish", "Publish"), tmp_path, env)
    assert published.calls[0] == ["gh", "auth", "setup-git"]
    flags = [f"--mode={mode}", f"--to={EVERYTHING}", "--branch=records"]
    assert published.calls[1][3:] == ["ci", "publish", "collected", *flags]
    (reported,) = run_script(step("publish", "Report"), tmp_path, env).calls
    assert [word for word in reported if word.startswith("--open")] == opens
    assert (f"--to={EVERYTHING}" in reported) is bool(opens)
    assert "--unpublished" not in reported
    assert "--commit=abc" in reported
    (reported,) = run_script(step("publish", "Report"), tmp_path, {**env, "EVENT": "schedule"}).calls
    assert not [word for word in reported if word.startswith("--commit")]
    (reported,) = run_script(step("publish", "Report"), tmp_path, {**env, "PUBLISHED": "failure"}).calls
    assert "--unpublished" in reported
    (reported,) = run_script(step("publish", "Report"), tmp_path, {**env, "PUBLISHED": "", "PULL_REQUEST": "7"}).calls
    assert reported[-1] == "--pull-request=7"


def test_report_of_a_push_names_each_merged_commit(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path / "library")
    commits = []
    for name in ("first", "second", "third"):
        repository.write(name, name)
        commits.append(repository.commit())
    before, *merged = commits
    env = {"COLLECTED": "collected", "PLAN": "plan.json", "MODE": "push", "EVENT": "push", "PUBLISHED": "success"}
    env |= {"GITHUB_SHA": merged[-1], "BEFORE": before}
    (reported,) = run_script(step("publish", "Report"), repository.root, env).calls
    assert [word for word in reported if word.startswith("--commit=")] == [f"--commit={one}" for one in merged[::-1]]
    (reported,) = run_script(step("publish", "Report"), repository.root, {**env, "BEFORE": ""}).calls
    assert [word for word in reported if word.startswith("--commit=")] == [f"--commit={merged[-1]}"]


def _asked(workflow: Mapping[str, Any]) -> set[tuple[str, str]]:
    """What the jobs of a workflow ask for, and those of the workflows they call."""
    asked = set()
    for job in workflow["jobs"].values():
        asked |= set(job.get("permissions", {}).items())
        if "uses" in job:
            asked |= _asked(yaml.safe_load((WORKFLOWS / _called(job)).read_text()))
    return asked


def _called(job: Mapping[str, Any]) -> str:
    return str(job["uses"]).partition("/workflows/")[2].partition("@")[0]


CALLERS = {path.name: path.read_text() for path in WORKFLOWS.glob("*.yml") if "    uses: $/" in path.read_text()}


def test_caller_grants_the_permissions_of_a_workflow() -> None:
    """Otherwise GitHub starts none of it."""
    for name, text in CALLERS.items():
        calling = [job for job in yaml.safe_load(text)["jobs"].values() if "uses" in job]
        assert calling, name
        for job in calling:
            asked = _asked(yaml.safe_load((WORKFLOWS / _called(job)).read_text()))
            granted = set(job["permissions"].items())
            lacking = {kind for kind, level in asked if not granted & {(kind, level), (kind, "write")}}
            assert lacking == set(), name


def test_site_with_unreadable_files_is_published_with_a_warning(tmp_path: Path) -> None:
    for ends_with, code in (("0", 0), ("4", 0), ("2", 2), ("1", 1)):
        ran = run_script(step("build", "Build", "site.yml"), tmp_path, {"SITE": "site", "ENDS_WITH": ends_with})
        warned = "::warning title=Not all files could be read::" in ran.printed
        assert (ran.code, warned) == (code, ends_with == "4"), ends_with

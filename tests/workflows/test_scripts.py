"""What the workflows use and say in shell: pinned actions, commands and flags that exist, inputs kept arguments."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from skill_evaluator.cli import COMMANDS, OLD, load_command
from skill_evaluator.providers import PROVIDERS

from tests.support.act import WORKFLOWS
from tests.support.hostile import EVERYTHING
from tests.support.library import ROOT
from tests.workflows.scripts import Ran, Step, parsed, run_script, step_of, steps

BUILT_IN = {"[", "echo", "exit", "export", "mapfile", "printf", "read", "unset"}
OF_THE_RUNNER = {"bash", "cp", "cut", "find", "gh", "git", "mkdir", "npm", "python", "rm", "sed", "sort", "tail", "tee"}
INVOCATION = "20261121T000000Z-abcdef"
JOB = {
    "KIND": "evaluate",
    "ENTRY": "one@served",
    "SKILL": "one",
    "MODEL": "served",
    "REPLICATES": "2",
    "SEED": "0",
    "INVOCATION": INVOCATION,
    "ENVIRONMENT": "eval-served",
    "KEY_VARIABLE": "SERVED_API_KEY",
    "PROVIDER_API_KEY": "a key",
    **dict.fromkeys(("SHARD", "MAX_COST", "DRY_RUN"), ""),
}


def step(job: str, name: str, workflow: str = "evaluate.yml") -> Step:
    return step_of(workflow, job, name)


def test_every_action_is_pinned_to_a_commit_and_says_its_version() -> None:
    lines = [line for path in WORKFLOWS.glob("*.yml") for line in path.read_text().splitlines() if "uses:" in line]
    assert len(lines) > 10
    for line in lines:
        pinned = re.fullmatch(r" +(- )?uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
        of_the_same_commit = re.fullmatch(r"    uses: \$/\.github/workflows/(leg|evaluate|site)\.yml", line)
        assert pinned or of_the_same_commit, line


def test_a_script_is_valid_and_holds_no_expression() -> None:
    for one in steps():
        checked = subprocess.run(["bash", "-n"], input=one.script, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, ""), one
        assert "${{" not in one.script, one  # whose value would be part of the script


def test_every_program_and_every_flag_of_ours_exists() -> None:
    scripts = [parsed(one.script) for one in steps()]
    assert all(script.commands for script in scripts)
    for words, arrays in ((words, script.arrays) for script in scripts for words in script.commands):
        if words[0] == "${evaluate[@]}":
            words = ["python", "-m", "skill_evaluator", "evaluate", *words[1:]]
        match words:
            case ["python", "-m", "skill_evaluator", "cases" | "judge" | "site" as group, command, *given]:
                _check_flags(load_command(f"{group} {command}"), given, arrays)
            case ["python", "-m", "skill_evaluator", command, *given]:
                _check_flags(load_command(command), given, arrays)
            case ["python", "-m", "pip", "install", *given]:
                files = [given[place + 1] for place, word in enumerate(given) if word in ("-r", "-c")]
                assert all(list(ROOT.glob(re.sub(r"\$\w+", "*", file))) for file in files)
            case ["python", file]:
                assert list(ROOT.glob(re.sub(r"\$\w+", "*", file)))
            case ["bash", file]:
                assert (ROOT / file).is_file()
            case ["$RUNNER_TEMP/tool/bin/python", "-m", "pip", "install", *given]:
                assert given == ["--quiet", "--require-hashes", "-r", ".ci/tools-lock.txt"]
            case ["$RUNNER_TEMP/tool/bin/python", "-m", module, *_]:
                assert module == "cyclonedx_py"
            case [program, *_]:
                assert program in BUILT_IN | OF_THE_RUNNER, words


def _check_flags(command: Any, given: list[str], arrays: Mapping[str, list[str]]) -> None:
    flags = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
    words = [word for one in given for word in arrays.get(one.removeprefix("${").removesuffix("[@]}"), [one])]
    used = {word.partition("=")[0] for word in words if word.startswith("-") and word != "--"}
    assert used <= flags, f"{command.name} does not know {used - flags}"


def test_what_reads_cases_knows_their_commit_and_only_what_fetches_them_has_the_read_token() -> None:
    for workflow in ("check.yml", "evaluate.yml", "leg.yml", "site.yml"):
        for job in yaml.safe_load((WORKFLOWS / workflow).read_text())["jobs"].values():
            if "uses" in job:
                continue
            env = {each["name"]: each.get("env", {}) for each in job["steps"] if "run" in each}
            fetching = {name for name, given in env.items() if "FIXTURES_TOKEN" in given}
            pinned = {name for name, given in env.items() if "FIXTURES_COMMIT" in given} - fetching
            reading = {each["name"] for each in job["steps"] if _reads_cases(each.get("run", ""))}
            assert pinned == reading, workflow
            assert fetching == ({"Fetch fixtures that are in another repository"} if reading else set()), workflow


def test_the_leg_passes_on_who_it_is_and_its_part_of_the_limits() -> None:
    (job,) = yaml.safe_load((WORKFLOWS / "leg.yml").read_text())["jobs"].values()
    (asking,) = (each["env"] for each in job["steps"] if each.get("id") == "ask")
    federations = [kind.federation for kind in PROVIDERS.values() if kind.federation is not None]
    names = {name for each in federations for name in (*each.required, *each.optional)}
    assert {name for name, value in asking.items() if "vars." in value} == names
    assert all(asking[name] == f"${{{{ vars.{name} }}}}" for name in names)
    assert asking["SKILL_EVALUATOR_LIMITS"] == "${{ matrix.limits }}"
    assert "permissions" not in job  # else every call would have to grant an identity


def _reads_cases(script: str) -> bool:
    named = [path for path in (*COMMANDS, *OLD) if re.search(rf"skill_evaluator {path}\b", script)]
    return any("--fixtures" in param.opts for path in named for param in load_command(path).params)


def test_inputs_of_a_dispatch_are_arguments_and_nothing_else(tmp_path: Path) -> None:
    given = dict.fromkeys(("COMPONENTS", "MODELS", "REPLICATES", "REASON", "MAX_COST", "BRANCH"), EVERYTHING)
    env = {**given, "EVENT": "workflow_dispatch", "BASE": "", "DRY_RUN": "false", "RECORDS_BRANCH": "records"}
    env["LEGS"] = "eval-a"
    env |= {"REF": f"refs/heads/{EVERYTHING}", "MODE": "push"}
    ran = run_script(step("plan", "Plan"), tmp_path, env)
    assert (ran.code, ran.printed) == (0, "")
    (call,) = ran.calls
    assert call[:7] == ["python", "-m", "skill_evaluator", "plan", "--platform", "github", "--legs=eval-a"]
    at = call.index("--")
    words = re.split(r"[ \t\n]+", EVERYTHING)
    assert call[at + 1 :] == words
    assert [word for word in call[:at] if word.startswith("--model=")] == [f"--model={word}" for word in words]
    for flag in (f"--replicates={EVERYTHING}", f"--reason={EVERYTHING}", f"--max-cost={EVERYTHING}"):
        assert flag in call[:at]
    assert not list(tmp_path.rglob("pwned*"))


def test_a_push_hands_over_its_base_and_a_dispatch_none(tmp_path: Path) -> None:
    env = dict.fromkeys(("COMPONENTS", "MODELS", "REPLICATES", "REASON", "MAX_COST", "DRY_RUN"), "")
    env |= {"BASE": "abc", "BRANCH": "main", "RECORDS_BRANCH": "records", "REF": "refs/heads/main", "MODE": "push"}
    fixed = ["--platform", "github", "--legs=", "--recorded", "origin/main", "--recorded", "origin/records"]
    for event, flags in (("push", ["--base=abc"]), ("schedule", [])):
        (call,) = run_script(step("plan", "Plan"), tmp_path, {**env, "EVENT": event}).calls
        assert call[4:] == [*fixed, *flags, "--"]


def test_a_drift_run_asks_what_is_recorded_up_to_its_cap(tmp_path: Path) -> None:
    env = dict.fromkeys(("COMPONENTS", "MODELS", "REPLICATES", "BASE", "DRY_RUN"), "")
    env |= {"BRANCH": "main", "RECORDS_BRANCH": "records", "REF": "refs/heads/main", "MODE": "push"}
    given = {"EVENT": "schedule", "DRIFT": "true", "MAX_COST": "5", "REASON": "Has a model moved?"}
    (call,) = run_script(step("plan", "Plan"), tmp_path, {**env, **given}).calls
    assert call[-4:] == ["--reason=Has a model moved?", "--max-cost=5", "--drift", "--"]
    (call,) = run_script(step("plan", "Plan"), tmp_path, {**env, **given, "DRIFT": "false"}).calls
    assert "--drift" not in call


def test_batch_input_is_passed_to_the_plan(tmp_path: Path) -> None:
    env = dict.fromkeys(("COMPONENTS", "MODELS", "REPLICATES", "REASON", "MAX_COST", "BASE", "BATCH"), "")
    env |= {"BRANCH": "main", "RECORDS_BRANCH": "records", "REF": "refs/heads/main", "MODE": "push"}
    env["EVENT"] = "schedule"
    (plain,) = run_script(step("plan", "Plan"), tmp_path, env).calls
    (call,) = run_script(step("plan", "Plan"), tmp_path, {**env, "BATCH": "true"}).calls
    assert (call[-2:], "--batch" in plain) == (["--batch", "--"], False)


def test_nothing_that_a_fork_may_lack_or_set_decides_how_a_pull_request_is_checked() -> None:
    workflow = (ROOT / ".github" / "workflows" / "check.yml").read_text()
    assert "vars." not in workflow
    assert re.findall(r"secrets\.(\w+)", workflow) == ["FIXTURES_TOKEN"]


def test_without_the_read_token_a_pull_request_is_checked_but_for_its_cases(tmp_path: Path) -> None:
    fetch = step("check", "Fetch fixtures that are in another repository", "check.yml")
    for token, ends_with, code, missing in (("", "0", 0, False), ("", "2", 0, True), ("a", "2", 2, False)):
        (tmp_path / "outputs").write_text("")
        ran = run_script(fetch, tmp_path, {"FIXTURES_TOKEN": token, "ENDS_WITH": ends_with})
        assert ran.code == code
        assert (tmp_path / "outputs").read_text() == ("missing=true\n" if missing else "")
        assert ("::warning title=The cases are not checked::There is no FIXTURES_TOKEN" in ran.printed) is missing
    for missing in ("", "true"):
        ran = run_script(step("check", "Lint", "check.yml"), tmp_path, {"BASE": "b", "MISSING": missing})
        words = ["python", "-m", "skill_evaluator", "lint", "--platform", "github", "--base=b"]
        assert ran.calls == [[*words, *(["--no-cases"] if missing else [])]]
    (job,) = yaml.safe_load((WORKFLOWS / "check.yml").read_text())["jobs"].values()
    conditions = {each["name"]: each.get("if", "") for each in job["steps"] if "run" in each}
    left_out = {
        name for name, condition in conditions.items() if "steps.fixtures.outputs.missing != 'true'" in condition
    }
    assert left_out == {"Dry run of what changed", "Plan"}


def test_nothing_is_paid_for_that_could_not_be_recorded(tmp_path: Path) -> None:
    env = dict.fromkeys(("COMPONENTS", "MODELS", "REPLICATES", "REASON", "MAX_COST", "BASE", "BRANCH"), "")
    env |= {"EVENT": "workflow_dispatch", "RECORDS_BRANCH": "records"}
    for ref, mode, dry_run, starts in (
        ("refs/tags/v1.0", "push", "false", False),
        ("refs/tags/v1.0", "pull-request", "false", False),
        ("refs/tags/v1.0", "branch", "false", True),
        ("refs/tags/v1.0", "push", "true", True),
        ("refs/pull/7/merge", "push", "false", False),
        ("refs/heads/refs/tags/v1.0", "push", "false", True),
        ("refs/heads/main", "pull_request", "false", False),
    ):
        ran = run_script(step("plan", "Plan"), tmp_path, {**env, "REF": ref, "MODE": mode, "DRY_RUN": dry_run})
        assert (ran.code, len(ran.calls)) == ((0, 1) if starts else (2, 0)), (ref, mode)
        assert ran.printed.startswith("::error title=Nothing was started::") is not starts, (ref, mode)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    return folder


def evaluate(results: Path, **changed: str) -> Ran:
    env = {**JOB, "RESULTS": str(results), "ARTIFACTS": "brought", **changed}
    return run_script(step("leg", "Ask", "leg.yml"), results.parent, env)


def test_a_job_begins_its_run_under_the_plans_invocation(results: Path) -> None:
    (results / "one@served.skipped").write_text("an earlier attempt had no key")
    ran = evaluate(results, SHARD="1/2", MAX_COST="0.5")
    assert ran.code == 0
    (call,) = ran.calls
    flags = ["--model=served", "--replicates=2", "--seed=0", f"--results={results}", "--shard=1/2", "--max-cost=0.5"]
    assert call == ["python", "-m", "skill_evaluator", "evaluate", *flags, f"--invocation={INVOCATION}", "--", "one"]
    assert list(results.iterdir()) == []
    assert ran.became_the_last  # so that it is what the signals of a cancelled job reach


def test_a_job_asks_the_planned_baseline_beside_the_new_version_also_when_it_goes_on(results: Path) -> None:
    (call,) = evaluate(results, BASELINE="abc123").calls
    assert call[-5:] == ["--with-baseline", "--baseline-commit=abc123", f"--invocation={INVOCATION}", "--", "one"]
    (results / f"{INVOCATION}-served@baseline").mkdir()
    (results / f"{INVOCATION}-served@baseline" / "manifest.json").write_text("{}")
    (call,) = evaluate(results, BASELINE="abc123").calls
    assert "--with-baseline" in call
    assert f"--resume={results}/{INVOCATION}-served@baseline" in call


def test_job_in_batches_waits_and_its_rerun_resumes(results: Path) -> None:
    (call,) = evaluate(results, TRANSPORT="batch").calls
    assert call[-4:] == ["--batch", f"--invocation={INVOCATION}", "--", "one"]
    (results / f"{INVOCATION}-served").mkdir()
    (results / f"{INVOCATION}-served" / "manifest.json").write_text("{}")
    (call,) = evaluate(results, TRANSPORT="batch").calls
    assert call[-4:] == ["--batch", f"--resume={results}/{INVOCATION}-served", "--", "one"]


def test_a_job_goes_on_with_what_an_attempt_at_the_same_plan_left_and_with_no_other(results: Path) -> None:
    for run in (f"{INVOCATION}-served", "20200101T000000Z-000000-served"):
        (results / run).mkdir()
        (results / run / "manifest.json").write_text("{}")
    (call,) = evaluate(results).calls
    assert f"--resume={results}/{INVOCATION}-served" in call
    assert not [word for word in call if word.startswith("--invocation")]


def test_a_job_without_its_key_says_so_and_is_no_failure(results: Path) -> None:
    ran = evaluate(results, PROVIDER_API_KEY="")
    reason = "neither the repository has a secret SERVED_API_KEY, nor its environment eval-served one PROVIDER_API_KEY"
    assert (ran.code, ran.calls) == (0, [])
    assert ran.printed == f"::warning title=one@served was skipped::{reason}\n"
    assert (results / "one@served.skipped").read_text() == f"{reason}\n"


_NOTE_ENVIRONMENT = """#!/bin/sh
env >> "$NOTED.of_others"
exec {program} "$@"
"""


@pytest.mark.parametrize("kind", ["evaluate", "judge"])
def test_only_the_evaluator_is_started_with_the_key(kind: str, results: Path) -> None:
    folder = results.parent
    (folder / "programs").mkdir()
    for program in ("mkdir", "rm", "find"):
        stand_in = folder / "programs" / program
        stand_in.write_text(_NOTE_ENVIRONMENT.format(program=shutil.which(program)))
        stand_in.chmod(0o755)
    ran = evaluate(results, KIND=kind, PLAN="plan", PROVIDER_API_KEY="key-of-the-job")
    assert (ran.code, ran.became_the_last) == (0, True)
    assert [line for line in ran.environment.splitlines() if "key-of-the-job" in line] == [
        "SERVED_API_KEY=key-of-the-job"
    ]
    assert "key-of-the-job" not in (folder / "noted.of_others").read_text()


def test_a_dry_run_needs_no_key(results: Path) -> None:
    (call,) = evaluate(results, PROVIDER_API_KEY="", DRY_RUN="true").calls
    assert "--dry-run" in call


def test_this_repositorys_own_entry_point_is_used_where_it_is(results: Path) -> None:
    (results.parent / "tools").mkdir()
    (results.parent / "tools" / "evaluate_skill.py").touch()
    (call,) = evaluate(results, KEY_VARIABLE="", PROVIDER_API_KEY="").calls
    assert call[:2] == ["python", "tools/evaluate_skill.py"]


def test_collecting_fails_only_without_an_outcome(tmp_path: Path) -> None:
    """A run that is incomplete (4), or stopped by a bug (1), keeps no other record from being published."""
    env = {"ARTIFACTS": str(tmp_path / "artifacts"), "PLAN": "plan.json", "COLLECTED": "collected"}
    (tmp_path / "collected").mkdir()
    for ended, has_outcome, means in ((2, False, 2), (1, False, 1), (0, True, 0), (4, True, 0), (1, True, 0)):
        if has_outcome:
            (tmp_path / "collected" / "outcome.json").touch()
        ran = run_script(step("collect", "Collect"), tmp_path, {**env, "ENDS_WITH": str(ended)})
        assert ran.code == means, ended
        assert (tmp_path / "artifacts").is_dir()  # nothing may have arrived


@pytest.mark.parametrize(("mode", "opens"), [("push", []), ("branch", []), ("pull-request", ["--open=records"])])
def test_records_go_where_the_mode_says(mode: str, opens: list[str], tmp_path: Path) -> None:
    env = {"COLLECTED": "collected", "PLAN": "plan.json", "HEAD": "abc", "MODE": mode, "BRANCH": EVERYTHING}
    env |= {"RECORDS_BRANCH": "records", "PUBLISHED": "success", "EVENT": "push"}
    published = run_script(step("publish", "Publish"), tmp_path, env)
    assert published.calls[0] == ["gh", "auth", "setup-git"]
    flags = [f"--mode={mode}", f"--to={EVERYTHING}", "--branch=records"]
    assert published.calls[1][3:] == ["publish", "collected", *flags]
    (reported,) = run_script(step("verdict", "Report"), tmp_path, env).calls
    assert [word for word in reported if word.startswith("--open")] == opens
    assert (f"--to={EVERYTHING}" in reported) is bool(opens)
    assert "--unpublished" not in reported
    assert "--commit=abc" in reported
    (reported,) = run_script(step("verdict", "Report"), tmp_path, {**env, "EVENT": "schedule"}).calls
    assert not [word for word in reported if word.startswith("--commit")]
    (reported,) = run_script(step("verdict", "Report"), tmp_path, {**env, "PUBLISHED": "failure"}).calls
    assert "--unpublished" in reported


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


_PAGE = (ROOT / "docs" / "ci.md").read_text()
CALLERS = {
    **{path.name: path.read_text() for path in WORKFLOWS.glob("*.yml") if "    uses: $/" in path.read_text()},
    **{text.splitlines()[0]: text for text in re.findall(r"```yaml\n(name: .*?)```", _PAGE, re.DOTALL)},
}


def test_who_calls_a_workflow_grants_all_that_its_jobs_ask_for() -> None:
    """Otherwise GitHub starts none of it."""
    for name, text in CALLERS.items():
        calling = [job for job in yaml.safe_load(text)["jobs"].values() if "uses" in job]
        assert calling, name
        for job in calling:
            asked = _asked(yaml.safe_load((WORKFLOWS / _called(job)).read_text()))
            granted = set(job["permissions"].items())
            lacking = {kind for kind, level in asked if not granted & {(kind, level), (kind, "write")}}
            assert lacking == set(), name


PUSH = {"EVENT": "push", "REF": "refs/heads/main", "DEFAULT_BRANCH": "main"}


def test_only_what_the_default_branch_holds_is_published_and_only_once_somebody_said_so(tmp_path: Path) -> None:
    place, outputs = step("build", "Find its place", "site.yml"), tmp_path / "outputs"
    for given, pages in (
        ({}, True),
        ({"EVENT": "schedule", "DEFAULT_BRANCH": ""}, True),  # which is of the default branch, and names none
        ({"REF": "refs/heads/topic"}, False),
        ({"REF": "refs/tags/main"}, False),
        ({"DEFAULT_BRANCH": ""}, False),
        ({"EVENT": "pull_request", "REF": "refs/pull/7/merge"}, False),
        ({"EVENT": "pull_request_target"}, False),
        ({"SITE": ""}, False),
    ):
        outputs.unlink(missing_ok=True)
        ran = run_script(place, tmp_path, {"SITE": "pages", "ATTEMPT": "2", **PUSH, **given})
        assert (ran.code, ran.printed) == (0, ""), given
        assert (outputs.exists() and outputs.read_text()) == (pages and "pages=github-pages-2\n"), given


def test_a_word_that_switches_nothing_on_is_refused(tmp_path: Path) -> None:
    ran = run_script(step("build", "Find its place", "site.yml"), tmp_path, {**PUSH, "SITE": "on", "ATTEMPT": "1"})
    assert ran.code == 2
    assert ran.printed.startswith("::error title=The site was not built::")
    assert not (tmp_path / "outputs").exists()


def test_a_site_without_what_could_not_be_read_is_published_with_a_warning(tmp_path: Path) -> None:
    for ends_with, code in (("0", 0), ("4", 0), ("2", 2), ("1", 1)):
        ran = run_script(step("build", "Build", "site.yml"), tmp_path, {"SITE": "site", "ENDS_WITH": ends_with})
        warned = "::warning title=Not all could be read::" in ran.printed
        assert (ran.code, warned) == (code, ends_with == "4"), ends_with

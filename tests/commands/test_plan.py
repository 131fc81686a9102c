"""What a push asks for, over real repositories: every way a branch moves, and what is wrong or lost on the way."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from skill_evaluator.errors import ConfigError, GitError, PlanError, SkillEvaluatorError
from skill_evaluator.pipeline.manifest import Plan

from tests.support.git import IDENTITY, bare_copy
from tests.support.library import SCHEMA, SCRIPT, Ended
from tests.support.pushed import NONE, PushedLibrary, faults, jobs, reasons

ALL = ["m", "n"]


@pytest.fixture
def library(tmp_path: Path) -> PushedLibrary:
    return PushedLibrary(tmp_path / "library")


@pytest.fixture
def pushed(library: PushedLibrary) -> PushedLibrary:
    """A library of three components, each measured at 1.0.0."""
    for name in ("a", "b", "c"):
        library.recorded(name, "1.0.0")
    library.commit()
    return library


def after(library: PushedLibrary, **versions: str) -> Plan:
    """The plan of one push that gives components these versions."""
    base = library.git("rev-parse", "HEAD")
    for name, version in versions.items():
        library.component(name, version)
    library.commit()
    return library.plan(base)


def test_minor_major_and_new_run_on_every_model_and_a_patch_does_not(pushed: PushedLibrary) -> None:
    plan = after(pushed, a="1.1.0", b="1.0.1", c="2.0.0", d="0.1.0")
    assert jobs(plan) == {"a": ALL, "c": ALL, "d": ALL}
    assert reasons(plan) == {
        "a": "MINOR 1.0.0 → 1.1.0",
        "b": "PATCH since the recorded 1.0.0",
        "c": "MAJOR 1.0.0 → 2.0.0",
        "d": "new component at 0.1.0",
    }
    assert (plan.trigger, plan.head, plan.faults) == ("push", pushed.git("rev-parse", "HEAD"), [])
    assert {entry.skill_version for entry in plan.entries if entry.skill == "a"} == {"1.1.0"}


def test_a_push_of_patches_only_asks_for_nothing(pushed: PushedLibrary) -> None:
    plan = after(pushed, a="1.0.1", b="1.0.2")
    assert plan.entries == []
    assert plan.untouched == 1


def test_a_push_of_other_files_only_asks_for_nothing(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.write("README.md", "read me")
    pushed.write("components/a/README.md", "read me")
    pushed.commit()
    plan = pushed.plan(base)
    assert (plan.entries, plan.untouched, plan.skipped) == ([], 3, [])


def test_on_a_first_push_everything_is_new(pushed: PushedLibrary) -> None:
    shutil.rmtree(pushed.root / "components" / "c")
    for name in ("a", "b"):
        (pushed.root / "components" / name / "leaderboard.json").unlink()
    pushed.commit()
    for base in (NONE, ""):
        assert jobs(pushed.plan(base)) == {"a": ALL, "b": ALL}


def test_after_a_force_push_the_records_decide(pushed: PushedLibrary) -> None:
    pushed.component("a", "1.1.0")
    pushed.component("b", "1.0.1")
    pushed.component("new", "1.0.0")
    pushed.commit()
    plan = pushed.plan("f" * 40)  # a commit that no branch holds any more
    assert plan.base is None
    assert jobs(plan) == {"a": ALL}
    assert "the base of this push is unknown; start it by hand" in reasons(plan)["new"]


def test_a_force_push_whose_old_base_is_still_here_is_compared_with_it(pushed: PushedLibrary) -> None:
    pushed.component("a", "1.1.0")
    dropped = pushed.commit()
    pushed.git("reset", "-q", "--hard", "HEAD~1")
    pushed.component("b", "1.1.0")
    pushed.commit()
    plan = pushed.plan(dropped)
    assert jobs(plan) == {"b": ALL}
    assert faults(plan) == [
        ("components/a/prompt.md:3", "the version was lowered from 1.1.0 to 1.0.0; a version only goes up")
    ]


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_however_a_branch_is_merged_its_bumps_count(pushed: PushedLibrary, how: str) -> None:
    pushed.git("checkout", "-q", "-b", "topic")
    pushed.component("a", "1.0.1")
    pushed.commit()
    pushed.component("a", "1.1.0")
    pushed.commit()
    pushed.git("checkout", "-q", "main")
    pushed.write("elsewhere.md")
    base = pushed.commit()
    if how == "merge":
        pushed.git("merge", "-q", "--no-ff", "-m", "merge", "topic")
    elif how == "squash":
        pushed.git("merge", "-q", "--squash", "topic")
        pushed.commit()
    else:
        pushed.git("rebase", "-q", "main", "topic")
        pushed.git("checkout", "-q", "-B", "main", "topic")
    plan = pushed.plan(base)
    assert jobs(plan) == {"a": ALL}
    assert reasons(plan)["a"] == "MINOR 1.0.0 → 1.1.0"


def test_two_bumps_in_two_commits_are_one_step_from_base_to_head(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    for version in ("1.1.0", "2.0.0", "2.0.1"):
        pushed.component("a", version)
        pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"a": ALL}
    assert reasons(plan) == {"a": "MAJOR 1.0.0 → 2.0.1"}


def test_a_reverted_bump_is_an_error_and_a_new_version_with_the_old_prompt_is_not(pushed: PushedLibrary) -> None:
    pushed.component("a", "1.1.0")
    pushed.record("a", "1.1.0")
    base = pushed.commit()
    pushed.git("revert", "--no-edit", "HEAD")
    plan = pushed.plan(base)
    assert plan.entries == []
    assert "lowered from 1.1.0 to 1.0.0" in faults(plan)[0][1]
    pushed.git("reset", "-q", "--hard", base)
    pushed.component("a", "1.2.0", prompt="Read as in 1.0.0.")
    pushed.commit()
    assert jobs(pushed.plan(base)) == {"a": ALL}


def test_a_bump_and_its_revert_in_one_push_are_no_change(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.component("a", "1.1.0")
    pushed.commit()
    pushed.git("revert", "--no-edit", "HEAD")
    plan = pushed.plan(base)
    assert (plan.entries, plan.faults, plan.untouched) == ([], [], 3)


def test_a_renamed_component_is_a_new_one_under_its_new_name(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.git("mv", "components/a", "components/z")
    pushed.git("mv", "fixtures/a", "fixtures/z")
    (pushed.root / "components/z/leaderboard.json").unlink()
    pushed.component("z", "1.0.0")
    pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"z": ALL}
    assert reasons(plan) == {"z": "new component at 1.0.0"}


def test_a_renamed_folder_whose_prompt_keeps_the_old_name_is_an_error(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.git("mv", "components/a", "components/z")
    (pushed.root / "components/z/leaderboard.json").unlink()
    pushed.commit()
    plan = pushed.plan(base)
    assert (plan.entries, plan.chosen) == ([], [])
    assert faults(plan)[0][0] == "components/z/prompt.md:1"


def test_a_deleted_component_is_forgotten(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    shutil.rmtree(pushed.root / "components" / "a")
    pushed.commit()
    plan = pushed.plan(base)
    assert (plan.entries, plan.faults, plan.untouched) == ([], [], 2)


def test_line_ends_of_windows_change_nothing(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    prompt = pushed.root / "components/a/prompt.md"
    prompt.write_bytes(prompt.read_bytes().replace(b"\n", b"\r\n"))
    pushed.commit()
    plan = pushed.plan(base)
    assert (plan.entries, plan.faults) == ([], [])
    prompt.write_bytes(prompt.read_bytes().replace(b"version: 1.0.0", b"version: 1.1.0"))
    pushed.commit()
    assert jobs(pushed.plan(base)) == {"a": ALL}


def test_a_run_that_was_lost_is_made_up_for_by_the_next_push(pushed: PushedLibrary) -> None:
    after(pushed, a="1.1.0")  # and nothing was recorded of it
    pushed.record("b", "1.0.0", models=["m"], complete=False)
    plan = after(pushed, b="1.0.1")
    assert jobs(plan) == {"a": ALL}
    assert reasons(plan)["a"] == "MINOR 1.0.0 → 1.1.0 (1.1.0 was never recorded)"


def test_of_a_run_that_was_lost_in_part_the_rest_is_made_up_for(pushed: PushedLibrary) -> None:
    pushed.component("a", "1.1.0")
    pushed.record("a", "1.1.0", models=["m"])
    pushed.record("a", "1.1.0", models=["n"], complete=False)
    base = pushed.commit()
    pushed.write("README.md", "x")
    pushed.commit()
    assert jobs(pushed.plan(base)) == {"a": ["n"]}


def test_a_model_that_was_added_bills_nobody_by_surprise(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.models("m", "n", "new")
    pushed.component("a", "1.0.1")
    pushed.component("b", "1.1.0")
    pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"b": ["m", "n", "new"]}
    assert "start it by hand" in plan.skipped[1].reason
    assert plan.skipped[1].models == ["new"]


@pytest.mark.parametrize(
    ("version", "prompt", "place", "message"),
    [
        ("1.0.0", "Read otherwise.", "prompt.md:3", "raise it above 1.0.0"),
        ("0.9.0", None, "prompt.md:3", "lowered from 1.0.0 to 0.9.0"),
        ("1.1", None, "prompt.md:3", "version '1.1' in components/a/prompt.md is not semver"),
        ("01.1.0", None, "prompt.md:3", "is not semver"),
    ],
)
def test_a_dishonest_change_is_marked_on_its_line_and_hides_no_other(
    pushed: PushedLibrary, version: str, prompt: str | None, place: str, message: str
) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.component("a", version, prompt=prompt)
    pushed.component("b", "1.1.0")
    pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"b": ALL}
    ((file, said),) = faults(plan)
    assert file == f"components/a/{place}"
    assert message in said


def test_a_schema_changes_with_a_major_version_only(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    wider = {**SCHEMA, "additionalProperties": True}
    for name, version in (("a", "1.1.0"), ("b", "2.0.0"), ("c", "1.0.1")):
        pushed.component(name, version, schema=wider)
    pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"b": ALL}
    assert [file for file, _ in faults(plan)] == ["components/a/schema.json:1", "components/c/schema.json:1"]


def test_a_component_without_cases_is_an_error_and_hides_no_other(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.component("a", "1.1.0")
    pushed.component("b", "1.1.0")
    shutil.rmtree(pushed.root / "fixtures" / "a")
    pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"b": ALL}
    assert "no fixtures for 'a'" in faults(plan)[0][1]


def test_a_broken_leaderboard_stops_its_component_only(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.component("a", "1.1.0")
    pushed.component("b", "1.1.0")
    pushed.write("components/a/leaderboard.json", "<<<<<<< HEAD\n")
    pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"b": ALL}
    assert faults(plan)[0][0] == "components/a/leaderboard.json:1"


def test_records_may_be_on_a_branch_of_their_own_or_wait_for_review(pushed: PushedLibrary, tmp_path: Path) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.git("checkout", "-q", "-b", "records")
    pushed.record("a", "1.1.0")
    pushed.commit()
    pushed.git("checkout", "-q", "main")
    pushed.component("a", "1.1.0")
    pushed.commit()
    bare_copy(pushed.root, tmp_path / "origin.git")
    assert jobs(pushed.plan(base)) == {"a": ALL}
    assert jobs(pushed.plan(base, recorded=("origin/main", "origin/none"))) == {"a": ALL}
    plan = pushed.plan(base, recorded=("origin/main", "origin/records"))
    assert (plan.entries, reasons(plan)["a"]) == ([], "1.1.0 is recorded")


def test_a_component_and_a_model_may_be_started_by_hand_whatever_is_recorded(pushed: PushedLibrary) -> None:
    plan = pushed.plan(None, names=("b",), models=("n",), replicates=7, seed=3, reason="again; `$(id)`")
    (entry,) = plan.entries
    assert (entry.id, entry.replicates, entry.seed, entry.calls) == ("b@n", 7, 3, 7)
    assert (plan.trigger, plan.base, plan.reason, plan.skipped) == ("dispatch", None, "again; `$(id)`", [])
    assert jobs(pushed.plan(None)) == {"a": ALL, "b": ALL, "c": ALL}
    assert pushed.plan(None, dry_run=True).dry_run


def test_a_push_may_be_narrowed(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    after(pushed, a="1.1.0", b="1.1.0")
    assert jobs(pushed.plan(base, names=("a",), models=("n",))) == {"a": ["n"]}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"names": ("aa",), "base": None}, SkillEvaluatorError, "unknown component 'aa'"),
        ({"names": ("aa",), "base": "HEAD"}, PlanError, r"no component 'aa' in .* at HEAD"),
        ({"models": ("x",), "base": None}, ConfigError, "unknown model 'x'"),
        ({"replicates": 0, "base": None}, ConfigError, "--replicates must be at least 1"),
        ({"max_cost": -1.0, "base": None}, ConfigError, "--max-cost must be an amount"),
        ({"max_cost": float("nan"), "base": None}, ConfigError, "--max-cost must be an amount"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    pushed: PushedLibrary, options: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        pushed.plan(**options)  # type: ignore[arg-type]


def test_a_cap_is_shared_out_and_must_be_possible(pushed: PushedLibrary) -> None:
    priced = {"provider": "openai", "params": {"max_output_tokens": 1000}}
    pushed.models({"id": "cheap", **priced, "price": {"input": 1, "output": 1}}, {"id": "unpriced", **priced})
    with pytest.raises(PlanError, match="no price is known for 'unpriced'"):
        pushed.plan(None, max_cost=1.0)
    plan = pushed.plan(None, models=("cheap",), max_cost=0.001)
    parts = [entry.max_cost_usd or 0.0 for entry in plan.entries]
    assert len(set(parts)) == 1
    assert 0 < sum(parts) <= 0.001 < (plan.cost_upper_usd or 0.0)


def test_beyond_256_jobs_shards_shrink_and_then_it_is_said_what_to_narrow(pushed: PushedLibrary) -> None:
    for name in "abc":
        for number in range(6):
            pushed.write(f"fixtures/{name}/cases/{number}/document.md", "A notice.\n")
    pushed.settings(jobs={"max_calls": 2})
    pushed.models(*(f"m{number}" for number in range(30)))
    plan = pushed.plan(None)
    assert 90 < len(plan.entries) <= 256
    assert all(len(models) >= 30 for models in jobs(plan).values())
    assert plan.calls == 3 * 30 * 7 * 2
    pushed.models(*(f"m{number}" for number in range(86)))
    with pytest.raises(PlanError, match=r"258 jobs, more than the 256 .*name fewer components or models"):
        pushed.plan(None)


@pytest.mark.parametrize("folder", ["prompts/library", "."])
def test_the_components_may_be_anywhere_in_the_repository(tmp_path: Path, folder: str) -> None:
    library = PushedLibrary(tmp_path / "library", folder)
    path = "" if folder == "." else f"{folder}/"
    library.recorded("a", "1.0.0")
    library.recorded("b", "1.0.0")
    library.commit()
    base = library.git("rev-parse", "HEAD")
    library.component("a", "1.1.0")
    library.component("b", "0.1.0")
    library.write(f"{path}c/leaderboard.json", "broken")
    library.component("c", "1.0.0")
    library.commit()
    plan = library.plan(base)
    assert jobs(plan) == {"a": ALL}
    assert [file for file, _ in faults(plan)] == [f"{path}c/leaderboard.json:1", f"{path}b/prompt.md:3"]


@pytest.mark.parametrize("name", ["a b", "-a", "ä", "x\n::error::y", "`id`", "$(id)", "a'b\"c", "[x]*", "a|b", "%41"])
def test_a_name_that_no_component_may_have_is_an_error_and_hides_no_other(pushed: PushedLibrary, name: str) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.write(f"components/{name}/prompt.md", "---\nversion: 1.0.0\n---\nRead.\n")
    pushed.component("a", "1.1.0")
    pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"a": ALL}
    ((file, said),) = faults(plan)
    assert file == f"components/{name}/prompt.md:2"
    assert "cannot be a component's name" in said


@pytest.mark.parametrize("name", ["A.b_c-9", "0", "x" * 200])
def test_a_name_that_a_component_may_have_is_planned(pushed: PushedLibrary, name: str) -> None:
    assert jobs(after(pushed, **{name: "1.0.0"})) == {name: ALL}


def test_outside_of_a_clone_and_before_a_commit_it_is_said(tmp_path: Path) -> None:
    library = PushedLibrary(tmp_path / "library")
    library.component("a", "1.0.0")
    with pytest.raises(GitError, match="has no commit yet"):
        library.plan("HEAD")
    shutil.rmtree(library.root / ".git")
    with pytest.raises(GitError, match="not in a git repository"):
        library.plan("HEAD")


def as_process(library: PushedLibrary, *arguments: str, **env: str) -> Ended:
    """`skill-evaluator plan ...` as CI runs it."""
    done = subprocess.run(
        [sys.executable, "-m", "skill_evaluator", "plan", *arguments],
        cwd=library.root,
        env={**os.environ, **IDENTITY, "PYTHONPATH": str(SCRIPT.parent), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(code=done.returncode, out=done.stdout, err=done.stderr)


def test_a_job_is_told_the_matrix_the_summary_and_the_marks(pushed: PushedLibrary, tmp_path: Path) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.component("a", "1.1.0")
    pushed.component("b", "0.9.0")
    pushed.commit()
    files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    env = {"GITHUB_ACTIONS": "true", **{name: str(path) for name, path in files.items()}}
    ended = as_process(pushed, "--platform", "github", f"--base={base}", "--recorded", "origin/main", "--", **env)
    assert (ended.code, ended.out.count("::")) == (0, 0)
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    assert [one["id"] for one in json.loads(outputs["matrix"])["include"]] == ["a@m", "a@n"]
    assert outputs["jobs"] == "2"
    assert outputs["invocation"] == json.loads((pushed.root / "plan.json").read_text())["invocation"]
    assert "| `a` | `m`, `n` | 2 | 4 | $0.00 | `MINOR 1.0.0 → 1.1.0` |" in files["GITHUB_STEP_SUMMARY"].read_text()
    assert "::warning file=components/b/prompt.md,line=3::the version was lowered from 1.0.0 to 0.9.0" in ended.err


def test_a_patch_only_push_hands_on_an_empty_matrix(pushed: PushedLibrary, tmp_path: Path) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.component("a", "1.0.1")
    pushed.commit()
    env = {"GITHUB_OUTPUT": str(tmp_path / "out"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    assert as_process(pushed, "--platform", "github", f"--base={base}", **env).code == 0
    assert (tmp_path / "out").read_text().startswith('matrix={"include":[]}\njobs=0\n')
    assert "Nothing to evaluate" in (tmp_path / "summary").read_text()


def test_as_a_process_it_prints_what_it_decided_and_ends_with_2_for_what_a_user_can_put_right(
    pushed: PushedLibrary,
) -> None:
    ended = as_process(pushed, "b", "--model", "n", "--format", "json")
    assert [entry["id"] for entry in ended.json["entries"]] == ["b@n"]
    ended = as_process(pushed, "nobody")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: unknown component 'nobody'")

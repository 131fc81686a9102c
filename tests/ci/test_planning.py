"""Plans of real repositories: how a branch moves, options and limits, faults of a push, pull requests."""

import json
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ConfigError, GitError, NotEvaluatedError, PlanError, SkillEvaluatorError

from tests.ci.pushed import NONE, PushedLibrary, faults, jobs, reasons
from tests.support.git import bare_copy
from tests.support.records import a_record

ALL = ["m", "n"]


def test_minor_major_and_new_versions_run_and_a_patch_does_not(pushed: PushedLibrary) -> None:
    plan = pushed.push(a="1.1.0", b="1.0.1", c="2.0.0", d="0.1.0")
    assert jobs(plan) == {"a": ALL, "c": ALL, "d": ALL}
    assert reasons(plan) == {
        "a": "MINOR 1.0.0 → 1.1.0",
        "b": "PATCH since the recorded 1.0.0",
        "c": "MAJOR 1.0.0 → 2.0.0",
        "d": "new component at 0.1.0",
    }
    assert (plan.event.trigger, plan.event.head, plan.decisions.faults) == ("push", pushed.git("rev-parse", "HEAD"), [])
    assert {entry.skill_version for entry in plan.runs if entry.skill == "a"} == {"1.1.0"}


def test_push_of_other_files_plans_nothing(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.write("README.md", "read me")
    pushed.write("components/a/README.md", "read me")
    pushed.commit()
    plan = pushed.plan(base)
    assert (plan.runs, plan.decisions.untouched, plan.decisions.skipped) == ([], 3, [])


def test_first_push_plans_everything(pushed: PushedLibrary) -> None:
    shutil.rmtree(pushed.root / "components" / "c")
    for name in ("a", "b"):
        (pushed.root / "components" / name / "leaderboard.json").unlink()
    pushed.commit()
    for base in (NONE, ""):
        assert jobs(pushed.plan(base)) == {"a": ALL, "b": ALL}


def test_records_decide_after_a_force_push(pushed: PushedLibrary) -> None:
    pushed.component("a", "1.1.0")
    pushed.component("b", "1.0.1")
    pushed.component("new", "1.0.0")
    pushed.commit()
    plan = pushed.plan("f" * 40)  # a commit that no branch holds any more
    assert plan.event.base is None
    assert jobs(plan) == {"a": ALL}
    assert "the base of this push is unknown; start it by hand" in reasons(plan)["new"]


def test_force_push_with_a_known_base_is_compared_with_it(pushed: PushedLibrary) -> None:
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


def test_renamed_folder_with_the_old_name_is_an_error(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.git("mv", "components/a", "components/z")
    (pushed.root / "components/z/leaderboard.json").unlink()
    pushed.commit()
    plan = pushed.plan(base)
    assert (plan.runs, plan.decisions.chosen) == ([], [])
    assert faults(plan)[0][0] == "components/z/prompt.md:1"


def test_deleted_component_is_not_planned(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    shutil.rmtree(pushed.root / "components" / "a")
    pushed.commit()
    plan = pushed.plan(base)
    assert (plan.runs, plan.decisions.faults, plan.decisions.untouched) == ([], [], 2)


def test_records_of_other_branches_count(pushed: PushedLibrary, tmp_path: Path) -> None:
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
    assert (plan.runs, reasons(plan)["a"]) == ([], "1.1.0 is recorded")


@pytest.mark.parametrize("folder", ["prompts/library", "."])
def test_components_may_be_anywhere_in_the_repository(tmp_path: Path, folder: str) -> None:
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


def test_plan_is_refused_without_a_commit(tmp_path: Path) -> None:
    library = PushedLibrary(tmp_path / "library")
    library.component("a", "1.0.0")
    with pytest.raises(GitError, match="has no commit yet"):
        library.plan("HEAD")
    shutil.rmtree(library.root / ".git")
    with pytest.raises(GitError, match="not in a git repository"):
        library.plan("HEAD")


def test_manual_run_plans_recorded_versions_too(pushed: PushedLibrary) -> None:
    plan = pushed.plan(None, names=("b",), models=("n",), replicates=7)
    (entry,) = plan.runs
    assert (entry.id, entry.replicates, entry.calls) == ("b@n", 7, 7)
    assert (plan.event.trigger, plan.event.base, plan.decisions.skipped) == ("dispatch", None, [])
    assert jobs(pushed.plan(None)) == {"a": ALL, "b": ALL, "c": ALL}
    assert pushed.plan(None, dry_run=True).dry_run


def test_push_may_be_limited_to_names_and_models(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.push(a="1.1.0", b="1.1.0")
    assert jobs(pushed.plan(base, names=("a",), models=("n",))) == {"a": ["n"]}


def test_edited_prompt_of_a_recorded_version_is_a_fault(pushed: PushedLibrary) -> None:
    board = pushed.root / "components" / "a" / "leaderboard.json"
    board.write_text(board.read_text().replace('"digests": {}', '"digests": {"prompt": "sha256:0"}'))
    pushed.commit()
    why = "component 'a' 1.0.0 was recorded with another prompt by run 1.0.0-m; raise the version, or "
    why += "measure this prompt as a "
    by_hand = pushed.plan(None)
    assert jobs(by_hand) == {"b": ALL, "c": ALL}
    assert [(file, message.startswith(why)) for file, message in faults(by_hand)] == [
        ("components/a/prompt.md:1", True)
    ]
    pushed.models("new")
    assert jobs(pushed.plan("0" * 40)) == {"b": ["new"], "c": ["new"]}  # to a model of which nothing is recorded
    with pytest.raises(PlanError, match=why):
        pushed.plan(None, names=("a",))
    assert jobs(pushed.push(a="1.1.0")) == {"a": ["new"]}


def test_plan_refuses_invalid_options(pushed: PushedLibrary) -> None:
    refused: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"names": ("aa",), "base": None}, SkillEvaluatorError, "unknown component 'aa'"),
        ({"names": ("aa",), "base": "HEAD"}, PlanError, r"no component 'aa' in .* at HEAD"),
        ({"base": "origin/mian"}, PlanError, "--base origin/mian is not a commit here; .* use --base 0"),
        ({"models": ("x",), "base": None}, ConfigError, "unknown model 'x'"),
        ({"replicates": 0, "base": None}, ConfigError, "--replicates must be at least 1"),
        ({"max_cost": -1.0, "base": None}, ConfigError, "--max-cost must be 0 USD or more"),
        ({"max_cost": float("nan"), "base": None}, ConfigError, "--max-cost must be 0 USD or more"),
    )
    for options, error, words in refused:
        with pytest.raises(error, match=words):
            pushed.plan(**options)


def test_new_component_without_cases_is_skipped_and_recorded_one_is_a_fault(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    for name, version in (("a", "1.1.0"), ("b", "1.1.0"), ("new", "1.0.0")):
        pushed.component(name, version)
    for name in ("a", "new"):
        shutil.rmtree(pushed.root / "fixtures" / name)
    pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"b": ALL}
    ((place, words),) = faults(plan)
    assert (place, "component 'a' is not evaluated yet: it has no cases: " in words) == (
        "components/a/prompt.md:1",
        True,
    )
    assert reasons(plan)["new"].startswith("component 'new' is not evaluated yet: it has no cases: ")
    with pytest.raises(NotEvaluatedError):
        pushed.plan(None, names=("a",))


def test_deleted_case_without_a_new_version_is_named(pushed: PushedLibrary) -> None:
    pushed.write("fixtures/a/cases/two/document.md", "A second notice.\n")
    base = pushed.commit()
    shutil.rmtree(pushed.root / "fixtures" / "a" / "cases" / "two")
    pushed.commit()
    plan = pushed.plan(base)
    assert (jobs(plan), [skipped.models for skipped in plan.decisions.skipped]) == ({}, [ALL])
    assert reasons(plan)["a"] == (
        "cases changed without a new version: 1 file deleted, such as fixtures/a/cases/two/document.md"
    )
    pushed.component("a", "1.1.0")
    pushed.commit()
    plan = pushed.plan(base)
    assert (jobs(plan), plan.decisions.skipped) == ({"a": ALL}, [])


def test_empty_submodule_with_the_cases_is_named(pushed: PushedLibrary) -> None:
    shutil.rmtree(pushed.root / "fixtures" / "a")
    pushed.write(".gitmodules", '[submodule "data"]\n\tpath = fixtures/new\n\turl = ../data.git\n')
    pushed.component("new", "1.0.0")
    shutil.rmtree(pushed.root / "fixtures" / "new")
    (pushed.root / "fixtures" / "new").mkdir()
    pushed.commit()
    ((_, words),) = faults(pushed.plan("0" * 40, names=()))
    assert words.endswith("; the submodule fixtures/new is empty")


def test_invalid_component_name_hides_no_other(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.component("a", "1.1.0")
    names = ("a b", "-a", "ä", "x\n::error::y", "`id`", "$(id)", "a'b\"c", "[x]*", "a|b", "%41")
    for name in names:
        pushed.write(f"components/{name}/prompt.md", "---\nversion: 1.0.0\n---\nRead.\n")
    pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"a": ALL}
    marked = dict(faults(plan))
    assert marked.keys() == {f"components/{name}/prompt.md:2" for name in names}
    assert all("cannot be a component's name" in words for words in marked.values())


@pytest.fixture
def capped(pushed: PushedLibrary) -> PushedLibrary:
    pushed.settings(jobs={"max_cost": 1})
    pushed.commit()
    return pushed


def test_pull_request_is_planned_as_drafts_up_to_the_cap(capped: PushedLibrary) -> None:
    capped.push(a="1.1.0")
    plan = capped.plan(None, pull_request="HEAD", max_cost=5.0)
    assert (jobs(plan), plan.draft, plan.event.trigger, plan.event.base) == (
        {"a": ALL},
        True,
        "push",
        capped.git("rev-parse", "HEAD^1"),
    )
    capped.settings()
    capped.commit()
    plan = capped.plan(None, pull_request="HEAD^")
    assert (plan.runs, len(plan.decisions.faults)) == ([], 1)
    assert "set jobs: {max_cost: USD}" in plan.decisions.faults[0].message


@pytest.mark.parametrize(
    "path",
    [".evaluator/settings.yaml", ".github/workflows/x.yml", "tools/x", "components/a/evals/checks.py", ".gitmodules"],
)
def test_pull_request_that_changes_what_runs_is_refused(path: str, capped: PushedLibrary) -> None:
    capped.write(path, "{}\n")
    capped.push(a="1.1.0")
    plan = capped.plan(None, pull_request="HEAD")
    assert (plan.runs, plan.decisions.faults[0].file) == ([], path)
    assert plan.decisions.faults[0].message.startswith(f"the pull request changes {path}: ")


def test_pull_request_runs_no_changed_program_or_python_check(capped: PushedLibrary) -> None:
    capped.write("components/a/run.sh", "true\n")
    capped.write("components/b/evals/checks.py", "def passes(text, context):\n    return True\n")
    capped.commit()
    capped.component("a", "1.1.0")
    program = "program:\n  run: [sh, run.sh]\n  watch: [run.sh]"
    capped.write("components/a/prompt.md", f"---\nname: a\nversion: 1.1.0\n{program}\n---\n")
    capped.component("b", "1.1.0")
    checks = [{"python": "checks.py:passes"}]
    capped.write("components/b/evals/datasets.json", json.dumps({"datasets": [{"checks": checks}]}))
    capped.component("c", "1.1.0")
    capped.commit()
    plan = capped.plan(None, pull_request="HEAD")
    assert jobs(plan) == {"c": ALL}
    words = [message for _, message in faults(plan)]
    assert [
        any("'a' is a program" in message for message in words),
        any("component 'b' has checks in Python" in message for message in words),
    ] == [True, True], words


def test_drift_runs_only_the_recorded_versions(pushed: PushedLibrary) -> None:
    pushed.component("b", "1.1.0")
    pushed.component("new", "1.0.0")
    for name, model in product("ac", ALL):
        record = a_record({"one": [1.0]}, skill=name, model_id=model, run_id=f"1.0.0-{model}", seed=0)
        pushed.write(f"components/{name}/evals/records/{record.run_id}.json", record.model_dump_json())
    pushed.commit()
    plan = pushed.plan(None, drift=True)
    assert (plan.event.trigger, plan.event.base, plan.decisions.faults) == ("drift", None, [])
    assert jobs(plan) == {"a": ALL, "c": ALL}
    assert {entry.seed for entry in plan.runs} == {1}
    for options in ({"base": "HEAD"}, {"base": None, "pull_request": "HEAD"}):
        with pytest.raises(PlanError, match="--drift runs the recorded versions"):
            pushed.plan(**options, drift=True)


def test_not_applicable_cases_are_not_planned(pushed: PushedLibrary) -> None:
    pushed.write("fixtures/a/cases/two/document.md", "A second notice.\n")
    for case_id, models in (("one", ["m"]), ("two", ["m", "n"])):
        pushed.write(f"fixtures/a/cases/{case_id}/meta.json", json.dumps({"not_applicable": models}))
    plan = pushed.push(a="1.1.0")
    (entry,) = plan.runs
    assert (entry.model_id, list(entry.cases), list(entry.not_applicable)) == ("n", ["one"], ["two"])
    assert sorted((one.models, one.reason) for one in plan.decisions.skipped if "not applicable" in one.reason) == [
        (["m"], "2 of 2 cases not applicable: one (declared), two (declared)"),
        (["n"], "1 of 2 cases not applicable: two (declared)"),
    ]


def test_program_is_its_own_model(pushed: PushedLibrary) -> None:
    pushed.write("components/a/run.sh", "true\n")
    program = "program:\n  run: [sh, run.sh]\n  watch: [run.sh]"
    pushed.write("components/a/prompt.md", f"---\nname: a\nversion: 1.1.0\n{program}\n---\n")
    base = pushed.git("rev-parse", "HEAD")
    pushed.commit()
    assert jobs(pushed.plan(base)) == {"a": ["program"]}
    assert jobs(pushed.plan(None, models=("n",))) == {"b": ["n"], "c": ["n"]}


def test_seed_is_that_of_the_settings(pushed: PushedLibrary) -> None:
    pushed.settings(seed=4, policy={"design": "recorded"})
    pushed.commit()
    assert {run.seed for run in pushed.plan(None).runs} == {4}


def test_cap_of_the_command_overrides_the_settings(pushed: PushedLibrary) -> None:
    priced = {"id": "p", "provider": "openai", "base_url": "http://127.0.0.1:9", "price": {"input": 1, "output": 1e6}}
    pushed.models(priced)
    pushed.settings(jobs={"max_cost": 3.0})
    pushed.commit()
    for cap, most in ((None, 3.0), (1.5, 1.5)):
        parts = [run.max_cost_usd or 0.0 for run in pushed.plan(None, max_cost=cap).runs]
        assert (len(parts), sum(parts)) == (3, pytest.approx(most, abs=1e-5))


def test_library_without_a_component_is_an_error(tmp_path: Path) -> None:
    library = PushedLibrary(tmp_path / "library")
    (library.root / "components").mkdir()
    library.commit()
    with pytest.raises(PlanError, match="holds no component; name its folder with --components DIR"):
        library.plan(None)

"""What is wrong with a push: marked on its file and line, not run, and in nobody else's way."""

import json
import shutil

import pytest
from skill_evaluator.errors import NotEvaluatedError

from tests.support.pushed import PushedLibrary, faults, jobs, reasons

ALL = ["m", "n"]


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
    assert (place, "'a' is not evaluated yet: it has no cases: " in words) == ("components/a/prompt.md:1", True)
    assert reasons(plan)["new"].startswith("'new' is not evaluated yet: it has no cases: ")
    with pytest.raises(NotEvaluatedError):
        pushed.plan(None, names=("a",))


def test_deleted_case_without_a_new_version_is_named(pushed: PushedLibrary) -> None:
    pushed.write("fixtures/a/cases/two/document.md", "A second notice.\n")
    base = pushed.commit()
    shutil.rmtree(pushed.root / "fixtures" / "a" / "cases" / "two")
    pushed.commit()
    plan = pushed.plan(base)
    assert (jobs(plan), [skipped.models for skipped in plan.skipped]) == ({}, [ALL])
    assert reasons(plan)["a"] == (
        "cases changed without a new version: 1 file deleted, as fixtures/a/cases/two/document.md"
    )


def test_empty_submodule_with_the_cases_is_named(pushed: PushedLibrary) -> None:
    shutil.rmtree(pushed.root / "fixtures" / "a")
    pushed.write(".gitmodules", '[submodule "data"]\n\tpath = fixtures/new\n\turl = ../data.git\n')
    pushed.component("new", "1.0.0")
    shutil.rmtree(pushed.root / "fixtures" / "new")
    (pushed.root / "fixtures" / "new").mkdir()
    pushed.commit()
    ((_, words),) = faults(pushed.plan("0" * 40, names=()))
    assert words.endswith("; the submodule fixtures/new is empty")


def test_a_name_that_no_component_may_have_is_an_error_and_hides_no_other(pushed: PushedLibrary) -> None:
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


def test_a_name_that_a_component_may_have_is_planned(pushed: PushedLibrary) -> None:
    names = ("A.b_c-9", "0", "x" * 100)
    assert jobs(pushed.push(**dict.fromkeys(names, "1.0.0"))) == dict.fromkeys(names, ALL)


@pytest.fixture
def capped(pushed: PushedLibrary) -> PushedLibrary:
    pushed.settings(jobs={"max_cost": 1})
    pushed.commit()
    return pushed


def test_pull_request_is_planned_as_drafts_up_to_the_cap(capped: PushedLibrary) -> None:
    capped.push(a="1.1.0")
    plan = capped.plan(None, pull_request="HEAD", max_cost=5.0)
    assert (jobs(plan), plan.draft, plan.trigger, plan.base) == (
        {"a": ALL},
        True,
        "push",
        capped.git("rev-parse", "HEAD^1"),
    )
    capped.settings()
    capped.commit()
    plan = capped.plan(None, pull_request="HEAD^")
    assert (plan.runs, len(plan.faults)) == ([], 1)
    assert "set jobs: {max_cost: USD}" in plan.faults[0].message


@pytest.mark.parametrize(
    "path",
    [".evaluator/settings.yaml", ".github/workflows/x.yml", "tools/x", "components/a/evals/checks.py", ".gitmodules"],
)
def test_pull_request_that_changes_what_runs_is_refused(path: str, capped: PushedLibrary) -> None:
    capped.write(path, "{}\n")
    capped.push(a="1.1.0")
    plan = capped.plan(None, pull_request="HEAD")
    assert (plan.runs, plan.faults[0].file) == ([], path)
    assert plan.faults[0].message.startswith(f"the pull request changes {path}: ")


def test_programs_and_python_checks_of_a_pull_request_are_not_run(capped: PushedLibrary) -> None:
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
        any("'b' has checks in Python" in message for message in words),
    ] == [True, True], words

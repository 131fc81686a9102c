"""What is wrong with a push: marked on its file and line, not run, and in nobody else's way."""

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

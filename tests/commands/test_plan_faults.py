"""What is wrong with a push: marked on its file and line, not run, and in nobody else's way."""

import shutil

import pytest
from skill_evaluator.errors import NotEvaluatedError

from tests.support.pushed import PushedLibrary, faults, jobs, reasons

ALL = ["m", "n"]


def test_a_component_without_cases_is_skipped_with_the_reason_and_hides_no_other(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.component("a", "1.1.0")
    pushed.component("b", "1.1.0")
    shutil.rmtree(pushed.root / "fixtures" / "a")
    pushed.commit()
    plan = pushed.plan(base)
    assert jobs(plan) == {"b": ALL}
    assert faults(plan) == []
    assert reasons(plan)["a"].startswith("'a' is not evaluated yet: it has no cases: ")
    assert [skipped.models for skipped in plan.skipped] == [ALL]
    with pytest.raises(NotEvaluatedError):
        pushed.plan(None, names=("a",))


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

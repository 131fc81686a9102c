"""What a push asks for, over real repositories: every way a branch moves, and what is wrong or lost on the way."""

import shutil
from pathlib import Path

import pytest
from skill_evaluator.errors import GitError

from tests.support.git import bare_copy
from tests.support.pushed import NONE, PushedLibrary, faults, jobs, reasons

ALL = ["m", "n"]


def test_minor_major_and_new_run_on_every_model_and_a_patch_does_not(pushed: PushedLibrary) -> None:
    plan = pushed.push(a="1.1.0", b="1.0.1", c="2.0.0", d="0.1.0")
    assert jobs(plan) == {"a": ALL, "c": ALL, "d": ALL}
    assert reasons(plan) == {
        "a": "MINOR 1.0.0 → 1.1.0",
        "b": "PATCH since the recorded 1.0.0",
        "c": "MAJOR 1.0.0 → 2.0.0",
        "d": "new component at 0.1.0",
    }
    assert (plan.trigger, plan.head, plan.faults) == ("push", pushed.git("rev-parse", "HEAD"), [])
    assert {entry.skill_version for entry in plan.runs if entry.skill == "a"} == {"1.1.0"}


def test_a_push_of_other_files_only_asks_for_nothing(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.write("README.md", "read me")
    pushed.write("components/a/README.md", "read me")
    pushed.commit()
    plan = pushed.plan(base)
    assert (plan.runs, plan.untouched, plan.skipped) == ([], 3, [])


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


def test_a_reverted_bump_is_an_error_and_a_new_version_with_the_old_prompt_is_not(pushed: PushedLibrary) -> None:
    pushed.component("a", "1.1.0")
    pushed.record("a", "1.1.0")
    base = pushed.commit()
    pushed.git("revert", "--no-edit", "HEAD")
    plan = pushed.plan(base)
    assert plan.runs == []
    assert "lowered from 1.1.0 to 1.0.0" in faults(plan)[0][1]
    pushed.git("reset", "-q", "--hard", base)
    pushed.component("a", "1.2.0", prompt="Read as in 1.0.0.")
    pushed.commit()
    assert jobs(pushed.plan(base)) == {"a": ALL}


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
    assert (plan.runs, plan.chosen) == ([], [])
    assert faults(plan)[0][0] == "components/z/prompt.md:1"


def test_a_deleted_component_is_forgotten(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    shutil.rmtree(pushed.root / "components" / "a")
    pushed.commit()
    plan = pushed.plan(base)
    assert (plan.runs, plan.faults, plan.untouched) == ([], [], 2)


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
    assert (plan.runs, reasons(plan)["a"]) == ([], "1.1.0 is recorded")


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


def test_outside_of_a_clone_and_before_a_commit_it_is_said(tmp_path: Path) -> None:
    library = PushedLibrary(tmp_path / "library")
    library.component("a", "1.0.0")
    with pytest.raises(GitError, match="has no commit yet"):
        library.plan("HEAD")
    shutil.rmtree(library.root / ".git")
    with pytest.raises(GitError, match="not in a git repository"):
        library.plan("HEAD")

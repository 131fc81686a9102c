"""Commits found, read, made and pushed without a work tree, in real repositories."""

from pathlib import Path

import pytest
from skill_evaluator.errors import GitError
from skill_evaluator.repository import Repository, within

from tests.support.git import GitRepository, bare_copy


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "library")


def test_a_commit_is_found_by_any_name_it_has(repository: GitRepository) -> None:
    repository.write("a/prompt.md")
    first = repository.commit()
    repository.git("tag", "v1", "-m", "annotated")
    opened = Repository(repository.root / "a")
    assert opened.root == repository.root
    assert {opened.commit(name) for name in ("HEAD", "main", "v1", first, first[:10])} == {first}


def test_a_commit_that_is_not_here_is_none(repository: GitRepository) -> None:
    assert Repository(repository.root).commit("HEAD") is None
    repository.write("a/prompt.md")
    repository.commit()
    opened = Repository(repository.root)
    for name in ("", "0" * 40, "0" * 64, "f" * 40, "origin/none", "no such", "--all", "-h", "HEAD~7"):
        assert opened.commit(name) is None, name


def test_a_repository_that_git_refuses_is_said_to_be_refused(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("a/prompt.md")
    repository.commit()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(GitError, match="dubious ownership"):
        Repository(repository.root).commit("HEAD")


def test_only_a_clone_can_be_opened(repository: GitRepository, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="not in a git repository; run this in a clone"):
        Repository(tmp_path)
    repository.write("a")
    repository.commit()
    bare_copy(repository.root, tmp_path / "bare")
    with pytest.raises(GitError, match="is a bare repository"):
        Repository(tmp_path / "bare")


def test_files_are_listed_below_a_folder_whatever_their_names(repository: GitRepository, tmp_path: Path) -> None:
    names = ["c/a b/ü\n1", "c/[x]*/y", 'c/"quoted"', "c/-n", "c2/not", "top"]
    for name in names:
        repository.write(name, name)
    (repository.root / "c" / "link").symlink_to("a b")
    commit = repository.commit()
    opened = Repository(repository.root)
    files = opened.files(commit, "c")
    assert {path for path in files if path != "c/link"} == set(names[:4])
    assert {path: raw.decode() for path, raw in zip(files, opened.contents(files.values()).values(), strict=True)} == {
        **{name: name for name in names[:4]},
        "c/link": "a b",
    }
    assert opened.files(commit, "c/[x]*").keys() == {"c/[x]*/y"}
    assert opened.files(commit, ".").keys() == {*names, "c/link"}
    assert opened.files(commit, "none") == {}
    assert opened.place(repository.root / "c" / "a b") == "c/a b"
    with pytest.raises(GitError, match="outside of the repository"):
        opened.place(tmp_path)


def test_contents_may_be_anything(repository: GitRepository) -> None:
    raw = {"a": b"", "b": b"\n", "c": b"\x00\xff\n\n", "d": b"x" * 200_000, "e": b""}
    for name, content in raw.items():
        repository.write(name).write_bytes(content)
    commit = repository.commit()
    opened = Repository(repository.root)
    files = opened.files(commit, ".")
    contents = opened.contents(files.values())
    assert {name: contents[blob] for name, blob in files.items()} == raw
    assert opened.contents([]) == {}


def test_a_commit_is_added_without_touching_work_tree_index_or_branch(repository: GitRepository) -> None:
    repository.write("a/old", "old")
    repository.write("b", "b")
    parent = repository.commit()
    repository.write("staged", "not to be lost")
    repository.git("add", "staged")
    repository.write("b", "edited")
    before = repository.git("status", "--porcelain")
    opened = Repository(repository.root)
    commit = opened.add([parent], {"a/old": b"new", "c/ü d": b"\x00"}, "subject\n\nbody; `$(id)`")
    assert commit is not None
    assert repository.git("status", "--porcelain") == before
    assert repository.git("rev-parse", "HEAD") == parent
    assert repository.git("rev-parse", f"{commit}^") == parent
    assert repository.git("log", "-1", "--format=%an|%cn|%B", commit) == (
        "github-actions[bot]|github-actions[bot]|subject\n\nbody; `$(id)`"
    )
    files = opened.files(commit, ".")
    assert {path: opened.contents([blob])[blob] for path, blob in files.items()} == {
        "a/old": b"new",
        "b": b"b",
        "c/ü d": b"\x00",
    }


def test_adding_what_is_there_adds_no_commit(repository: GitRepository) -> None:
    repository.write("a", "a")
    parent = repository.commit()
    opened = Repository(repository.root)
    assert opened.add([parent], {"a": b"a"}, "again") is None
    assert opened.add([parent], {}, "nothing") is None


def test_a_first_commit_has_no_parent_and_a_joining_one_the_tree_of_its_last(repository: GitRepository) -> None:
    repository.write("a", "a")
    first = repository.commit()
    opened = Repository(repository.root)
    alone = opened.add([], {"r": b"r"}, "first")
    assert alone is not None
    assert opened.files(alone, ".").keys() == {"r"}
    joined = opened.add([alone, first], {"s": b"s"}, "join")
    assert joined is not None
    assert opened.files(joined, ".").keys() == {"a", "s"}
    assert opened.is_ancestor(alone, joined)
    assert opened.is_ancestor(first, joined)
    assert not opened.is_ancestor(first, alone)
    with pytest.raises(GitError):
        opened.is_ancestor("f" * 40, alone)


@pytest.fixture
def cloned(repository: GitRepository, tmp_path: Path) -> GitRepository:
    """A clone of a bare origin with one commit."""
    repository.write("a", "a")
    repository.commit()
    bare_copy(repository.root, tmp_path / "origin.git")
    return repository


def test_a_push_that_somebody_was_before_is_false_and_changes_nothing(cloned: GitRepository, tmp_path: Path) -> None:
    opened = Repository(cloned.root)
    tip = opened.fetch("origin", "main")
    assert tip is not None
    mine, theirs = (opened.add([tip], {"a": text}, "change") for text in (b"mine", b"theirs"))
    assert mine is not None
    assert theirs is not None
    assert opened.push("origin", theirs, "main")
    assert not opened.push("origin", mine, "main")
    assert opened.fetch("origin", "main") == theirs
    assert opened.push("origin", theirs, "main")  # it is there: nothing is to be moved


def test_a_branch_that_a_remote_has_not_is_made_by_a_push(cloned: GitRepository) -> None:
    opened = Repository(cloned.root)
    assert opened.fetch("origin", "records/main") is None
    commit = opened.add([], {"r": b"r"}, "first")
    assert commit is not None
    assert opened.push("origin", commit, "records/main")
    assert opened.fetch("origin", "records/main") == commit


def test_a_refusal_is_no_race(cloned: GitRepository, tmp_path: Path) -> None:
    hook = tmp_path / "origin.git" / "hooks" / "update"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    opened = Repository(cloned.root)
    tip = opened.fetch("origin", "main")
    commit = opened.add([tip or ""], {"a": b"b"}, "change")
    assert commit is not None
    with pytest.raises(GitError, match="cannot push to main of origin: hook declined; see docs"):
        opened.push("origin", commit, "main")


def test_a_remote_that_does_not_answer_is_an_error_without_credentials(cloned: GitRepository) -> None:
    cloned.git("remote", "set-url", "origin", "http://x-access-token:ghs_secret@127.0.0.1:1/a.git")
    with pytest.raises(GitError, match="failed") as caught:
        Repository(cloned.root).fetch("origin", "main")
    assert "ghs_secret" not in str(caught.value)


def test_a_name_within_a_folder() -> None:
    assert (within("components", "a/b"), within(".", "a/b"), within("", "a")) == ("components/a/b", "a/b", "a")

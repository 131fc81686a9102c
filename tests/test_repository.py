"""Commits of files; commits read, added and pushed without a work tree, in real repositories."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from skill_evaluator import repository as module
from skill_evaluator.errors import GitError
from skill_evaluator.repository import Repository, author_at, commit_of

from tests.support.git import GitRepository, bare_copy

TOOLS = Path(module.__file__).parents[1]


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "library")


def test_commit_of_is_none_outside_git(tmp_path: Path) -> None:
    assert commit_of(tmp_path) is None
    assert commit_of(tmp_path / "none" / "none") is None


def test_commit_of_is_none_before_the_first_commit(
    repository: GitRepository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    assert commit_of(repository.write("a/prompt.md")) is None
    assert capsys.readouterr().err == ""


def test_git_command_that_fails_is_a_warning_and_an_error_in_ci(
    repository: GitRepository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = repository.write("a/prompt.md")
    repository.commit()
    repository.write(".git/config", "[core\n")
    monkeypatch.delenv("CI", raising=False)
    assert (commit_of(prompt), commit_of(prompt)) == (None, None)
    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(r"warning: git failed: fatal: bad config line 1 in file .*\.git/config", line)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(GitError, match="bad config line 1"):
        commit_of(prompt)


def test_commit_of_is_the_last_commit_that_changed_the_path(repository: GitRepository) -> None:
    prompt = repository.write("a/prompt.md")
    first = repository.commit()
    assert commit_of(prompt) == commit_of(prompt.parent) == commit_of(repository.root) == first
    other = repository.write("b/prompt.md")
    second = repository.commit()
    assert second != first
    assert (commit_of(prompt), commit_of(prompt.parent)) == (first, first)
    assert commit_of(other) == commit_of(repository.root) == second


def test_uncommitted_change_is_dirty(repository: GitRepository) -> None:
    prompt = repository.write("a/prompt.md")
    other = repository.write("b/prompt.md")
    commit = repository.commit()
    repository.write("a/prompt.md", "changed")
    assert commit_of(prompt) == commit_of(prompt.parent) == f"{commit}-dirty"
    assert commit_of(other) == commit
    repository.git("add", "-A")
    assert commit_of(prompt) == f"{commit}-dirty"
    repository.git("checkout", "-q", "HEAD", "--", "a")
    assert commit_of(prompt) == commit


def test_programs_of_the_repositorys_configuration_are_not_run(repository: GitRepository, tmp_path: Path) -> None:
    prompt = repository.write("a/prompt.md")
    repository.write(".gitattributes", "* filter=x\n")
    commit = repository.commit()
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {tmp_path}/ran\ncat\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.process"):
        repository.git("config", key, str(program))
    repository.git("config", "filter.x.required", "true")
    assert commit_of(prompt) == commit
    assert Repository(repository.root).is_clean
    repository.write("a/prompt.md", "changed")
    assert commit_of(prompt) == f"{commit}-dirty"
    assert not (tmp_path / "ran").exists()


def test_folder_name_may_be_a_pattern(repository: GitRepository) -> None:
    name = "a[b]* é"
    prompt = repository.write(f"{name}/prompt.md")
    repository.write("ab/prompt.md")
    commit = repository.commit()
    repository.write("ab/prompt.md", "changed")
    later = repository.commit()
    assert (commit_of(prompt), commit_of(prompt.parent)) == (commit, commit)
    assert commit_of(repository.root) == later


def test_commit_of_is_none_without_git(repository: GitRepository) -> None:
    prompt = repository.write("a/prompt.md")
    repository.commit()
    code = "import sys, pathlib, skill_evaluator.repository as v; print(v.commit_of(pathlib.Path(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(prompt)],
        env={"PATH": str(repository.root), "PYTHONPATH": str(TOOLS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("None\n", "")


def test_author_is_the_configured_one_or_none(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("GIT_AUTHOR_", "GIT_COMMITTER_"))] + ["EMAIL"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    assert author_at(repository.root) is None
    repository.git("config", "user.name", "A Name")
    assert author_at(repository.root) is None
    repository.git("config", "user.email", "a@example.org")
    assert author_at(repository.root) == "A Name <a@example.org>"
    assert author_at(tmp_path) is None
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Another")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "b@example.org")
    assert author_at(tmp_path) == author_at(repository.root) == "Another <b@example.org>"


def test_commit_is_found_by_branch_tag_and_id(repository: GitRepository) -> None:
    repository.write("a/prompt.md")
    first = repository.commit()
    repository.git("tag", "v1", "-m", "annotated")
    opened = Repository(repository.root / "a")
    assert opened.root == repository.root
    assert {opened.commit(name) for name in ("HEAD", "main", "v1", first, first[:10])} == {first}


def test_unknown_ref_has_no_commit(repository: GitRepository) -> None:
    assert Repository(repository.root).commit("HEAD") is None
    assert Repository(repository.root).commits_of("a.txt") == []
    repository.write("a/prompt.md")
    repository.commit()
    opened = Repository(repository.root)
    for name in ("", "0" * 40, "0" * 64, "f" * 40, "origin/none", "no such", "--all", "-h", "HEAD~7"):
        assert opened.commit(name) is None, name


def test_folder_without_a_clone_is_refused(repository: GitRepository, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="not in a git repository; run this in a clone"):
        Repository(tmp_path)
    repository.write("a")
    repository.commit()
    bare_copy(repository.root, tmp_path / "bare")
    with pytest.raises(GitError, match="is a bare repository"):
        Repository(tmp_path / "bare")


def test_files_below_a_folder_are_listed_with_any_name(repository: GitRepository, tmp_path: Path) -> None:
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
    assert opened.relative_path(repository.root / "c" / "a b") == "c/a b"
    with pytest.raises(GitError, match="outside the repository"):
        opened.relative_path(tmp_path)


def test_missing_object_is_an_error_with_its_remedy(repository: GitRepository) -> None:
    repository.write("a")
    repository.commit()
    with pytest.raises(GitError, match=f"this clone lacks the object {'f' * 40} of its history; run git fetch"):
        Repository(repository.root).contents(["f" * 40])


def test_contents_are_any_bytes(repository: GitRepository) -> None:
    raw = {"a": b"", "b": b"\n", "c": b"\x00\xff\n\n", "d": b"x" * 200_000, "e": b""}
    for name, content in raw.items():
        repository.write(name).write_bytes(content)
    commit = repository.commit()
    opened = Repository(repository.root)
    files = opened.files(commit, ".")
    contents = opened.contents(files.values())
    assert {name: contents[blob] for name, blob in files.items()} == raw
    assert opened.contents([]) == {}


def test_added_commit_changes_no_work_tree_index_or_branch(repository: GitRepository) -> None:
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


def test_unchanged_files_add_no_commit(repository: GitRepository) -> None:
    repository.write("a", "a")
    parent = repository.commit()
    opened = Repository(repository.root)
    assert opened.add([parent], {"a": b"a"}, "again") is None
    assert opened.add([parent], {}, "nothing") is None


def test_added_commit_has_the_tree_of_its_last_parent(repository: GitRepository) -> None:
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


def test_push_is_false_if_the_branch_moved(cloned: GitRepository, tmp_path: Path) -> None:
    opened = Repository(cloned.root)
    tip = opened.fetch("main")
    assert tip is not None
    mine, theirs = (opened.add([tip], {"a": text}, "change") for text in (b"mine", b"theirs"))
    assert mine is not None
    assert theirs is not None
    assert opened.push(theirs, "main")
    assert not opened.push(mine, "main")
    assert opened.fetch("main") == theirs
    assert opened.push(theirs, "main")  # it is there: nothing is to be moved


def test_push_creates_a_branch(cloned: GitRepository) -> None:
    opened = Repository(cloned.root)
    assert opened.fetch("records/main") is None
    commit = opened.add([], {"r": b"r"}, "first")
    assert commit is not None
    assert opened.push(commit, "records/main")
    assert opened.fetch("records/main") == commit


def test_refused_push_is_an_error(cloned: GitRepository, tmp_path: Path) -> None:
    hook = tmp_path / "origin.git" / "hooks" / "update"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    opened = Repository(cloned.root)
    tip = opened.fetch("main")
    commit = opened.add([tip or ""], {"a": b"b"}, "change")
    assert commit is not None
    with pytest.raises(GitError, match="cannot push to main of origin: hook declined; see docs"):
        opened.push(commit, "main")


def test_unreachable_remote_is_an_error_without_credentials(cloned: GitRepository) -> None:
    cloned.git("remote", "set-url", "origin", "http://x-access-token:ghs_secret@127.0.0.1:1/a.git")
    with pytest.raises(GitError, match="failed") as caught:
        Repository(cloned.root).fetch("main")
    assert "ghs_secret" not in str(caught.value)

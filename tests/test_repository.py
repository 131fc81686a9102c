"""Which commit something is of, in real repositories."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from skill_evaluator import repository as module
from skill_evaluator.repository import Repository, author_at, commit_of

from tests.support.git import GitRepository

TOOLS = Path(module.__file__).parents[1]


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "library")


def test_outside_git_there_is_no_commit(tmp_path: Path) -> None:
    assert commit_of(tmp_path) is None
    assert commit_of(tmp_path / "none" / "none") is None


def test_before_the_first_commit_there_is_none(repository: GitRepository) -> None:
    assert commit_of(repository.write("a/prompt.md")) is None


def test_a_file_or_folder_is_of_the_last_commit_that_touched_it(repository: GitRepository) -> None:
    prompt = repository.write("a/prompt.md")
    first = repository.commit()
    assert commit_of(prompt) == commit_of(prompt.parent) == commit_of(repository.root) == first
    other = repository.write("b/prompt.md")
    second = repository.commit()
    assert second != first
    assert (commit_of(prompt), commit_of(prompt.parent)) == (first, first)
    assert commit_of(other) == commit_of(repository.root) == second


def test_what_was_never_committed_has_no_commit(repository: GitRepository) -> None:
    repository.write("a/prompt.md")
    repository.commit()
    assert commit_of(repository.write("b/prompt.md")) is None
    assert commit_of(repository.root / "b") is None


def test_a_change_since_is_said(repository: GitRepository) -> None:
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


def test_no_program_runs_that_the_repository_itself_names(repository: GitRepository, tmp_path: Path) -> None:
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


def test_a_new_or_deleted_file_changes_its_folder(repository: GitRepository) -> None:
    repository.write("a/prompt.md")
    repository.write("a/schema.json")
    commit = repository.commit()
    new = repository.write("a/new.md")
    assert commit_of(new.parent) == f"{commit}-dirty"
    new.unlink()
    (repository.root / "a" / "schema.json").unlink()
    assert commit_of(repository.root / "a") == f"{commit}-dirty"


def test_ignored_files_change_nothing(repository: GitRepository) -> None:
    repository.write(".gitignore", "results/\n")
    prompt = repository.write("a/prompt.md")
    commit = repository.commit()
    repository.write("a/results/run/record.json")
    assert commit_of(prompt.parent) == commit


def test_a_checkout_within_another_is_of_its_own_repository(repository: GitRepository) -> None:
    repository.write("prompt.md")
    outer = repository.commit()
    fixtures = GitRepository(repository.root / "fixtures")
    case = fixtures.write("cases/a/document.md")
    inner = fixtures.commit()
    assert commit_of(case) == inner != outer


@pytest.mark.parametrize("name", ["mit Leerzeichen é", "a[b]*", "-n"])
def test_any_name_a_folder_may_have(repository: GitRepository, name: str) -> None:
    prompt = repository.write(f"{name}/prompt.md")
    repository.write("ab/prompt.md")
    commit = repository.commit()
    repository.write("ab/prompt.md", "changed")
    later = repository.commit()
    assert (commit_of(prompt), commit_of(prompt.parent)) == (commit, commit)
    assert commit_of(repository.root) == later


def test_through_a_link_it_is_the_commit_of_what_is_linked(repository: GitRepository, tmp_path: Path) -> None:
    prompt = repository.write("a/prompt.md")
    commit = repository.commit()
    link = tmp_path / "link"
    link.symlink_to(prompt.parent)
    assert commit_of(link) == commit


def test_a_worktree_is_of_its_own_branch(repository: GitRepository, tmp_path: Path) -> None:
    repository.write("a/prompt.md")
    first = repository.commit()
    repository.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    repository.write("a/prompt.md", "changed")
    second = repository.commit()
    assert commit_of(tmp_path / "tree" / "a") == first
    assert commit_of(repository.root / "a") == second


def test_a_repository_that_git_refuses_for_its_owner_has_no_commit(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = repository.write("a/prompt.md")
    repository.commit()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(subprocess.CalledProcessError, match="128"):
        repository.git("log", "-1")
    assert commit_of(prompt) is None


def test_where_git_is_not_installed_there_is_no_commit(repository: GitRepository) -> None:
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


def test_an_author_is_who_is_configured_and_nobody_is_guessed(
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

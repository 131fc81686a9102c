"""A component that was renamed with `formerly` in its front matter keeps its versions and records."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.git import IDENTITY, git
from tests.support.library import SKILL, Library

NEW = "notices"
PROMPT = f"components/{NEW}/prompt.md"


def commit(library: Library) -> None:
    git(library.root, "add", "-A")
    git(library.root, "commit", "-qm", "change")


def edit(library: Library, before: str, after: str) -> None:
    path = library.root / PROMPT
    path.write_text(path.read_text().replace(before, after))


@pytest.fixture(scope="module")
def once_renamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library whose component was measured at 1.0.0 and then renamed, in three commits."""
    library = Library(tmp_path_factory.mktemp("renamed"))
    library.write(".gitignore", "components/*/evals/results/\n")
    git(library.root, "init", "-qb", "main")
    commit(library)
    assert library.evaluate_here(env=IDENTITY).code == 0
    commit(library)
    for folder in ("components", "fixtures"):
        (library.root / folder / SKILL).rename(library.root / folder / NEW)
    edit(library, f"name: {SKILL}\n", f"name: {NEW}\nformerly: {SKILL}\n")
    commit(library)
    return library.root


@pytest.fixture
def renamed(once_renamed: Path, tmp_path: Path) -> Library:
    library = Library(tmp_path / "library")
    shutil.rmtree(library.root)
    shutil.copytree(once_renamed, library.root)
    return library


def test_rename_alone_runs_nothing_and_lint_accepts_it(renamed: Library) -> None:
    planned = renamed.call("ci", "plan", "--base", "HEAD~1")
    assert f"{NEW}    recorded  1.0.0 is recorded" in planned.out
    linted = renamed.call("lint", "--base", "HEAD~1")
    assert (linted.code, "problem" in linted.out + linted.err, "deleted" in linted.err) == (0, False, False)


def test_renamed_component_is_compared_with_its_former_name(renamed: Library) -> None:
    edit(renamed, "version: 1.0.0", "version: 1.1.0")
    edit(renamed, "Extract title", "Extract the title")
    commit(renamed)
    assert "MINOR 1.0.0 → 1.1.0" in renamed.call("ci", "plan", "--base", "HEAD~2").out
    evaluated = renamed.call("evaluate", NEW, "--with-baseline", env=IDENTITY)
    assert evaluated.code == 0, evaluated.err
    assert "1.0.0" in evaluated.out
    assert "1.0.0 → 1.1.0" in renamed.call("compare", NEW).out
    board = json.loads((renamed.root / f"components/{NEW}/leaderboard.json").read_text())
    assert (board["skill"], [row["skill"] for row in board["runs"]]) == (NEW, [NEW, SKILL])
    assert renamed.call("lint", "--base", "HEAD~2").code == 0


def test_record_that_is_lost_in_a_rename_is_named(renamed: Library) -> None:
    shutil.rmtree(renamed.root / f"components/{NEW}/evals/records")
    commit(renamed)
    linted = renamed.call("lint", "--base", "HEAD~2")
    assert linted.code == 2
    assert "this record was removed; records are only added" in linted.out


def test_former_name_of_an_existing_component_is_an_error(renamed: Library) -> None:
    renamed.write("components/other/prompt.md", "---\nversion: 1.0.0\n---\nRead.\n")
    edit(renamed, f"formerly: {SKILL}", "formerly: [notice-extraction, other]")
    assert (
        f"`formerly` in {PROMPT} names the folder 'other', which still exists in " in renamed.call("evaluate", NEW).err
    )


def test_renamed_folder_without_formerly_is_an_error_that_names_it(renamed: Library) -> None:
    edit(renamed, f"formerly: {SKILL}\n", "")
    assert f"add `formerly: {SKILL}` to prompt.md" in renamed.call("evaluate", NEW).err

"""The walk-throughs of docs/extending.md, done literally: their blocks are applied to a copy of the package.

A `diff` block names a file in its first line; its lines without a sign say where the added ones go.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.library import ROOT, SKILL, Ended, Library, ended

PAGE = ROOT / "docs" / "extending.md"
_DIFF = re.compile(r"```diff\n--- (?P<path>\S+)\n(?P<lines>.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The lines that a walk-through adds to a file, and the file's lines around them."""

    path: str
    lines: tuple[str, ...]

    @property
    def added(self) -> list[str]:
        """The new lines."""
        return [line[1:] for line in self.lines if line.startswith("+")]

    def apply(self, root: Path) -> None:
        """Add the lines; fail unless exactly one place in the file fits."""
        file = root / self.path
        before = "".join(f"{line[1:]}\n" for line in self.lines if line.startswith(" "))
        after = "".join(f"{line[1:]}\n" for line in self.lines)
        text = file.read_text()
        assert text.count(before) == 1, f"{PAGE.name} adds to {self.path} at lines that are not there once:\n{before}"
        file.write_text(text.replace(before, after))


def read_section(title: str) -> str:
    """Return the text below a heading of the page, up to the next one."""
    _, _, rest = PAGE.read_text().partition(f"\n## {title}\n")
    assert rest, f"{PAGE.name} has no section '{title}'"
    return rest.partition("\n## ")[0]


def read_changes(section: str) -> list[Change]:
    return [Change(path=found["path"], lines=tuple(found["lines"].splitlines())) for found in _DIFF.finditer(section)]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package in `tools/`."""
    shutil.copytree(ROOT / "tools", tmp_path / "copy" / "tools")
    return tmp_path / "copy"


def run(library: Library, copy: Path, *arguments: str) -> Ended:
    """Run `skill-evaluator ...` of the copy in a library."""
    with library.command("-m", "skill_evaluator", *arguments, env={"PYTHONPATH": str(copy / "tools")}) as process:
        return ended(process)


def read_record(library: Library, row: Mapping[str, Any]) -> str:
    return (library.component / "evals" / "records" / f"{row['run_id']}.json").read_text()


def test_a_leaderboard_column_is_one_line_in_each_of_two_files(tmp_path: Path, copy: Path) -> None:
    library = Library(tmp_path / "library")
    assert library.evaluate_here().code == 0
    (old,) = library.rows()

    changes = read_changes(read_section("A leaderboard column"))
    assert [len(change.added) for change in changes] == [1, 1]
    assert len({change.path for change in changes}) == 2
    for change in changes:
        change.apply(copy)

    assert run(library, copy, "evaluate", SKILL).code == 0
    new, kept = library.rows()
    assert new["slowest_s"] >= 0
    assert f'"slowest_s": {new["slowest_s"]}' in read_record(library, new)
    assert kept == old
    assert "slowest_s" not in read_record(library, old)
    lint = run(library, copy, "lint", SKILL)
    assert lint.code == 0, lint.out + lint.err

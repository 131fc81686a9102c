"""The walk-throughs of docs/extend.md, done literally: their blocks are applied to a copy of the package.

A `diff` block names a file in its first line; its lines without a sign say where the added ones go. A `python` block
that begins with a path in a comment is a new file.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import vendor_dialects
from tests.support.chat_server import notice
from tests.support.library import ROOT, SKILL, Ended, Library, ended, only_journal, read
from tests.support.vendor_dialects import DIALECTS, Answer, address_of
from tests.support.vendor_server import Status, vendor_server

pytestmark = pytest.mark.pages

PAGE = ROOT / "docs" / "extend.md"
_NEW_FILE = re.compile(r"`(?P<path>tools/\S+\.py)`:\n\n```python\n(?P<text>.*?)```", re.DOTALL)
_JSON = re.compile(r"```json\n(.*?)```", re.DOTALL)
_DIFF = re.compile(r"```diff\n--- (?P<path>\S+)\n(?P<lines>.*?)```", re.DOTALL)
_FILE = re.compile(r"```python\n# (?P<path>\S+\.py)\n(?P<text>.*?)```", re.DOTALL)
_YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


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
        before = "".join(f"{line[1:]}\n" for line in self.lines if not line.startswith("+"))
        after = "".join(f"{line[1:]}\n" for line in self.lines if not line.startswith("-"))
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


def run(library: Library, copy: Path, *arguments: str, **env: str) -> Ended:
    """Run `skill-evaluator ...` of the copy in a library."""
    env["PYTHONPATH"] = str(copy / "tools")
    with library.command("-m", "skill_evaluator", *arguments, env=env) as process:
        return ended(process)


def read_record(library: Library, row: Mapping[str, Any]) -> str:
    return (library.component / "evals" / "records" / f"{row['run_id']}.json").read_text()


def test_leaderboard_column_is_added_in_two_lines(tmp_path: Path, copy: Path) -> None:
    library = Library(tmp_path / "library")
    assert library.evaluate_here().code == 0
    (old,) = library.rows()

    changes = read_changes(read_section("A leaderboard column"))
    assert [len(change.added) for change in changes] == [1, 1, 1]
    assert len({change.path for change in changes}) == 2
    for change in changes:
        change.apply(copy)

    assert run(library, copy, "evaluate", SKILL).code == 0
    rows = {row["run_id"]: row for row in library.rows()}
    kept = rows.pop(old["run_id"])
    (new,) = rows.values()
    assert new["slowest_s"] >= 0
    assert f'"slowest_s": {new["slowest_s"]}' in read_record(library, new)
    assert kept == old
    assert "slowest_s" not in read_record(library, old)
    lint = run(library, copy, "lint", SKILL)
    assert lint.code == 0, lint.out + lint.err


def run_suite(copy: Path, folder: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a suite of the copy, on the package of the copy."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(copy)]
    return subprocess.run(
        [*command, "-W", "ignore::pytest.PytestUnknownMarkWarning", folder, *options],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "tools")},
        capture_output=True,
        text=True,
        check=False,
    )


def copy_tests(copy: Path, *folders: str) -> None:
    for folder in ("support", *folders):
        shutil.copytree(ROOT / "tests" / folder, copy / "tests" / folder)
    shutil.copy(ROOT / "tests" / "__init__.py", copy / "tests" / "__init__.py")


def test_provider_is_added_by_a_file_a_line_and_a_dialect(
    tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = read_section("A provider")
    (file,) = _FILE.finditer(section)
    imported, entry, dialect = read_changes(section)
    assert len(file["text"].splitlines()) <= 62
    assert [len(change.added) for change in (imported, entry)] == [1, 1]
    (copy / file["path"]).write_text(file["text"])
    imported.apply(copy)
    entry.apply(copy)

    copy_tests(copy, "providers")
    without = run_suite(copy, "tests/providers", "-k", "mistral")
    assert without.returncode == 1, without.stdout
    assert "provider 'mistral' has no dialect: add a class" in without.stdout
    dialect.apply(copy)
    held = run_suite(copy, "tests/providers", "-k", "mistral", "-m", "not slow")
    assert held.returncode == 0, held.stdout

    *lines, _, _ = dialect.added
    names = dict(vars(vendor_dialects))
    exec("\n".join(lines), names)
    monkeypatch.setitem(DIALECTS, "mistral", names["Mistral"]())
    library = Library(tmp_path / "library")
    (model,) = yaml.safe_load(_YAML.findall(section)[0])
    with vendor_server() as server:
        library.models({**model, "base_url": address_of(server.url, "mistral")})
        server.enqueue(
            Answer(notice("alpha")),
            Status(429, {"retry-after": "0"}, message="slow down"),
            Answer(notice("beta")),
            Status(401, message="who are you"),
        )
        arguments = ("--replicates", "1", "--concurrency", "1")
        keys = {"MISTRAL_API_KEY": "test-key-0123", "NO_PROXY": "127.0.0.1"}
        evaluated = run(library, copy, "evaluate", SKILL, *arguments, **keys)

    assert evaluated.code == 4, evaluated.out + evaluated.err
    assert [request.headers["authorization"] for request in server.received] == ["Bearer test-key-0123"] * 4
    assert [line["attempts"] for line in only_journal(library)] == [1, 2, 1]
    record = read(library.run_folder() / "record.json")
    assert (record["provider"], record["model_id"], record["complete"]) == ("mistral", model["id"], False)
    assert record["failures"] == {"no_credentials": 1}


def test_metric_is_added_by_one_file_and_one_line(tmp_path: Path, copy: Path) -> None:
    copy_tests(copy, "metrics")
    section = read_section("A metric")
    (new_file,) = _NEW_FILE.finditer(section)
    name = Path(new_file["path"]).stem
    changes = read_changes(section)
    imported, entry = (line for change in changes for line in change.added)
    assert imported.startswith("from ")
    assert entry.startswith(f'    "{name}": Metric(')
    (copy / new_file["path"]).write_text(new_file["text"])
    for change in changes:
        change.apply(copy)

    (declared,) = _JSON.findall(section)
    with_it, without = Library(tmp_path / "declared"), Library(tmp_path / "undeclared")
    with_it.write(f"components/{SKILL}/evals/datasets.json", declared)
    for library in (with_it, without):
        ran = run(library, copy, "evaluate", SKILL)
        assert ran.code == 0, ran.err
    (row,) = with_it.rows()
    assert row["accuracy"][name]["strict_mean"] == 1
    assert f'"{name}"' in read_record(with_it, row)
    (row,) = without.rows()
    assert name not in row["accuracy"]
    assert name not in read_record(without, row)

    held = run_suite(copy, "tests/metrics/test_common.py", "-k", name)
    assert held.returncode == 0, held.stdout
    metrics = copy / "tools" / "skill_evaluator" / "metrics" / "__init__.py"
    metrics.write_text(metrics.read_text().replace(entry, f'    "{name}": Metric(score={name}),'))
    undeclared = run_suite(copy, "tests/metrics/test_common.py", "-k", f"{name} and declares")
    assert undeclared.returncode == 1
    assert f"METRICS['{name}'] must declare symmetric=True or False" in undeclared.stdout

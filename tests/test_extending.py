"""The walk-throughs of docs/extending.md, done literally: their blocks are applied to a copy of the package.

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

from tests.support.chat_server import notice
from tests.support.library import ROOT, SKILL, Ended, Library, ended, only_journal, read
from tests.support.vendor_dialects import DIALECTS, Answer, Json, OpenAI, address_of
from tests.support.vendor_server import Status, vendor_server

pytestmark = pytest.mark.pages

PAGE = ROOT / "docs" / "extending.md"
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


def test_a_leaderboard_column_is_a_line_for_record_and_row_and_one_where_it_comes_from(
    tmp_path: Path, copy: Path
) -> None:
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


class Cohere(OpenAI):
    """`POST …/v2/chat`, as far as the walk-through needs it."""

    base_path = ""
    paths = re.compile("/v2/chat")

    def answer(self, answer: Answer) -> tuple[Json, dict[str, str]]:
        given, written = answer.usage or (0, 0)
        message = {"role": "assistant", "content": [{"type": "text", "text": answer.text}]}
        tokens = {"input_tokens": given, "output_tokens": written}
        return {"id": "chat-1", "finish_reason": "COMPLETE", "message": message, "usage": {"tokens": tokens}}, {}

    def error(self, status: int, message: str) -> Json:
        return {"id": "error-1", "message": message}


def test_a_provider_is_one_file_and_one_line(tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = read_section("A provider")
    (file,) = _FILE.finditer(section)
    changes = read_changes(section)
    assert len(file["text"].splitlines()) <= 60
    assert [len(change.added) for change in changes] == [1, 1]
    assert {change.path for change in changes} == {"tools/skill_evaluator/providers/__init__.py"}
    (copy / file["path"]).write_text(file["text"])
    for change in changes:
        change.apply(copy)

    monkeypatch.setitem(DIALECTS, "cohere", Cohere())
    library = Library(tmp_path / "library")
    (model,) = yaml.safe_load(_YAML.findall(section)[0])
    with vendor_server() as server:
        library.models({**model, "base_url": address_of(server.url, "cohere")})
        server.enqueue(
            Answer(notice("alpha")),
            Status(429, {"retry-after": "0"}, message="slow down"),
            Answer(notice("beta")),
            Status(401, message="who are you"),
        )
        arguments = ("--replicates", "1", "--concurrency", "1")
        evaluated = run(library, copy, "evaluate", SKILL, *arguments, CO_API_KEY="test-key-0123", NO_PROXY="127.0.0.1")

    assert evaluated.code == 4, evaluated.out + evaluated.err
    assert [request.headers["authorization"] for request in server.received] == ["Bearer test-key-0123"] * 4
    assert server.received[0].body["response_format"]["json_schema"]["required"] == ["title", "year"]
    alpha, beta, gamma = only_journal(library)
    assert [line["attempts"] for line in (alpha, beta, gamma)] == [1, 2, 1]
    assert beta["usage"] == {"input_tokens": 11, "output_tokens": 7}
    assert gamma["error"] == {
        "kind": "no_credentials",
        "reason": "wrong_key",
        "message": "who are you",
        "status": 401,
    }
    record = read(library.run_folder() / "record.json")
    assert (record["provider"], record["model_id"], record["complete"]) == ("cohere", model["id"], False)
    assert record["failures"] == {"no_credentials": 1}


def run_contract_suite(copy: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Run the contract suite of metrics on the copy, for one of them."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(copy)]
    return subprocess.run(
        [*command, "tests/metrics/test_common.py", "-k", name],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "tools")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_metric_is_one_file_and_one_line_and_enters_only_where_it_is_declared(tmp_path: Path, copy: Path) -> None:
    for part in ("__init__.py", "support", "metrics"):
        source, target = ROOT / "tests" / part, copy / "tests" / part
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            target.parent.mkdir()
            shutil.copy(source, target)
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

    held = run_contract_suite(copy, name)
    assert held.returncode == 0, held.stdout
    metrics = copy / "tools" / "skill_evaluator" / "metrics" / "__init__.py"
    metrics.write_text(metrics.read_text().replace(entry, f'    "{name}": Metric(score={name}),'))
    undeclared = run_contract_suite(copy, f"{name} and declares")
    assert undeclared.returncode == 1
    assert f"METRICS['{name}'] must declare symmetric=True or False" in undeclared.stdout

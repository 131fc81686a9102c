"""Many writers at once: forty evaluations on one leaderboard, twenty publishers on one branch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from skill_evaluator.records.archive import load_leaderboard

from tests.support.components import case, component, record, write_collected
from tests.support.git import IDENTITY, GitRepository, bare_copy, git
from tests.support.library import SCRIPT, SKILL, Library, ended

pytestmark = pytest.mark.faults

WRITERS = 40

# Forty processes that wait for each other and then each append their own row (the imports are paid for once).
_APPENDING = """
import os, sys
from pathlib import Path
from skill_evaluator.records.archive import append_rows
from skill_evaluator.records.record import read_record

board, record, skill, writers = Path(sys.argv[1]), read_record(Path(sys.argv[2])), sys.argv[3], int(sys.argv[4])
waiting, starting = os.pipe()
children = []
for number in range(writers):
    child = os.fork()
    if child == 0:
        os.close(starting)
        os.read(waiting, 1)
        row = record.row().model_copy(update={"run_id": f"{record.run_id}-{number:02d}"})
        append_rows(board, skill, [row])
        os._exit(0)
    children.append(child)
os.close(starting)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def test_forty_concurrent_writers_lose_no_row(library: Library) -> None:
    library.evaluate()
    (first,) = library.rows()
    arguments = [str(library.leaderboard), str(library.run_folder() / "record.json"), SKILL, str(WRITERS)]
    lengths = []
    env = {"PYTHONPATH": str(SCRIPT.parent)}
    with library.command("-c", _APPENDING, *arguments, env=env) as driver:
        while driver.poll() is None:
            lengths.append(len(json.loads(library.leaderboard.read_bytes())["runs"]))
        assert ended(driver).code == 0
    assert len({row["run_id"] for row in library.rows()}) == len(library.rows()) == WRITERS + 1
    assert first in library.rows()
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 2  # it did read while they wrote
    assert {path.name for path in library.component.iterdir() if path.is_file()} <= {
        "prompt.md",
        "schema.json",
        "leaderboard.json",
        ".leaderboard.json.lock",
    }


PUBLISHERS = 20
SKILLS = ("receipts", "invoices", "orders")
RUN = [(case("a", {"shop": "A", "total": 9}), ['{"shop": "A", "total": 9}'])]

# Twenty processes that wait for each other and then each publish from a clone of their own (one import for all).
_PUBLISHING = """
import os, sys
from skill_evaluator.cli import main
import skill_evaluator.commands.ci, skill_evaluator.records.record

waiting, starting = os.pipe()
children = []
for clone in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        os.close(starting)
        os.chdir(clone)
        os.read(waiting, 1)
        main(["ci", "publish", "../collected", "--to", "main"])
    children.append(child)
os.close(starting)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def test_twenty_concurrent_publishers_lose_no_row(tmp_path: Path) -> None:
    origin, first, clones = ready(tmp_path)
    env = {**os.environ, **IDENTITY, "PYTHONPATH": str(SCRIPT.parent)}
    command = [sys.executable, "-c", _PUBLISHING, *map(str, clones)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("1 record on main of origin by") == PUBLISHERS

    commits = git(origin, "rev-list", "--reverse", f"{first}..main").splitlines()
    assert git(origin, "rev-list", "--merges", "main") == ""
    assert len(commits) == PUBLISHERS
    for count, commit in enumerate(commits, 1):
        rows = [run_id for name in SKILLS for run_id in rows_at(origin, commit, name, tmp_path)]
        assert len(set(rows)) == len(rows) == count
    assert set(rows) == {run_id(number) for number in range(PUBLISHERS)}


def run_id(number: int) -> str:
    return f"20240101T0000{number:02d}Z-abc123-m"


def ready(root: Path) -> tuple[Path, str, list[Path]]:
    """A bare origin, its tip, and the clones, each with a record of its own collected beside it."""
    library = GitRepository(root / "library")
    prompt = "---\nversion: 1.2.0\n---\nRead.\n"
    skills = [component(library.root, name=name, prompt=prompt) for name in SKILLS]
    first = library.commit()
    address = bare_copy(library.root, root / "origin.git")
    clones = []
    for number in range(PUBLISHERS):
        home = root / f"{number:02d}"
        git(root, "clone", "-q", address, str(home / "clone"))
        made = record(skills[number % 3], RUN, run_id=run_id(number), created=f"2024-01-01T00:00:{number:02d}Z")
        write_collected(home / "collected", made)
        clones.append(home / "clone")
    return root / "origin.git", first, clones


def rows_at(origin: Path, commit: str, name: str, scratch: Path) -> list[str]:
    """The run ids on a leaderboard at a commit, read as the evaluator reads it; each has its record beside it."""
    place = f"components/{name}"
    files = git(origin, "ls-tree", "-r", "--name-only", commit, f"{place}/").splitlines()
    if f"{place}/leaderboard.json" not in files:
        return []
    board = scratch / "leaderboard.json"
    board.write_text(git(origin, "show", f"{commit}:{place}/leaderboard.json"))
    ids = [row.run_id for row in load_leaderboard(board, name).runs]
    assert ids == sorted(ids, reverse=True)
    assert {f"{place}/evals/records/{run_id}.json" for run_id in ids} == {file for file in files if "/records/" in file}
    assert json.loads(board.read_text())["skill"] == name
    return ids

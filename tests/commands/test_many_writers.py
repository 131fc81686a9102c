"""Many evaluations finish at once: the leaderboard loses no row, and whoever reads it meanwhile finds it whole."""

import json

import pytest

from tests.support.library import SCRIPT, SKILL, Library, ended

pytestmark = pytest.mark.faults

WRITERS = 40

# Forty processes that wait for each other and then each append their own row (the imports are paid for once).
_DRIVER = """
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


def test_forty_processes_appending_at_once_lose_no_row(library: Library) -> None:
    library.evaluate()
    (first,) = library.rows()
    arguments = [str(library.leaderboard), str(library.run_folder() / "record.json"), SKILL, str(WRITERS)]
    lengths = []
    env = {"PYTHONPATH": str(SCRIPT.parent)}
    with library.command("-c", _DRIVER, *arguments, env=env) as driver:
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

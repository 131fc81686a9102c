"""Pending files: which of them still wait."""

from pathlib import Path

import pytest
from skill_evaluator.ci.pending import read_pending
from skill_evaluator.repository import Repository
from skill_evaluator.runner.runs import run_id_of

from tests.support.git import GitRepository


@pytest.mark.parametrize(("recorded", "waits"), [("a", True), ("a-b", False)])
def test_a_record_takes_the_pending_file_of_its_own_component_alone(tmp_path: Path, recorded: str, waits: bool) -> None:
    invocation = "20260301T080000Z-abcdef"
    run_id = run_id_of(invocation, "a", "b-c")
    assert run_id == run_id_of(invocation, "a-b", "c")
    git = GitRepository(tmp_path)
    git.write(f"components/{recorded}/evals/records/{run_id}.json", "{}")
    path = f"components/a-b/evals/pending/{run_id}.json"
    git.write(path, "{}")
    git.commit()
    _, problems = read_pending(Repository(git.root), ["HEAD"], "components")
    assert [problem.file for problem in problems] == [path] * waits

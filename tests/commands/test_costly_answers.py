"""Outputs that take too long to score affect only their own case."""

import json
import time
from typing import Any

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.library import SKILL, Library, ended, only_journal, read, wait_until

pytestmark = pytest.mark.faults

LEVELS = 10
# A value that breaks the last of these is broken in 2^10 ways, an array of such in that many times its length, and the
# validator finds all of them.
TREE = {
    **{f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(LEVELS)},
    f"d{LEVELS}": {"type": "string"},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "year": {"type": "integer"},
        "trees": {"type": "array", "items": {"$ref": "#/$defs/d0"}},
    },
    "required": ["title", "year"],
    "$defs": TREE,
}


def _endless(asked: Asked) -> str:
    """Another text for each replicate, or it would be scored once."""
    return json.dumps({"title": asked.case_id, "year": asked.seed, "trees": [5] * 5_000})


def _first_is_endless(asked: Asked) -> Reply:
    return Reply(text=_endless(asked) if asked.case_id == "alpha" else notice(asked.case_id), delay_s=0.05)


@pytest.fixture
def tree(served: Library) -> Library:
    """A library with a schema that some answers break in more ways than can be listed."""
    served.write(f"components/{SKILL}/schema.json", SCHEMA)
    return served


def test_costly_outputs_of_one_case_cost_that_case_alone(tree: Library, server: ChatServer) -> None:
    for number in range(9):
        tree.case(f"more-{number}")
    tree.settings(replicates=10, limits={"score_seconds": 1.0})
    server.reply = _first_is_endless
    run = tree.evaluate("--format", "json")
    assert (run.code, run.err.count("\n") - run.err.count("scored outputs of")) == (0, 1), run.err  # without progress
    (row,) = tree.rows()
    assert (row["scored"], row["failures"]) == (110, {"unparseable": 10})
    record = read(tree.component / "evals" / "records" / f"{row['run_id']}.json")
    assert record["reasons"] == {"too_costly_to_score": 10}
    assert record["complete"] is True
    (alpha,) = [case for case in record["per_case"] if case["case_id"] == "alpha"]
    assert alpha["accuracy"]["exact_match"]["strict_mean"] == 0.0
    assert alpha["reproducibility"]["pairwise_exact_match"] == 0.0


def test_calls_go_on_while_an_output_is_scored(tree: Library, server: ChatServer) -> None:
    tree.settings(limits={"score_seconds": 8}, timeout_s=1.5, retry={"attempts": 1})

    def reply(asked: Asked) -> Reply:
        late = 30.0 if asked.case_id == "gamma" else 0.1
        return Reply(text=_endless(asked) if asked.case_id == "alpha" else notice(asked.case_id), delay_s=late)

    server.reply = reply
    with tree.start("--concurrency", "1") as process:
        wait_until(lambda: server.seeds("alpha") != set())
        begun = time.monotonic()
        wait_until(lambda: len(only_journal(tree)) == 6)
        assert time.monotonic() - begun < 7  # alpha's first answer is still being scored
        server.stopping.set()
        finished = ended(process)
    assert finished.code == 4, finished.err
    record = read(tree.run_folder() / "record.json")
    assert record["failures"] == {"timeout": 2, "unparseable": 2}
    assert record["reasons"]["too_costly_to_score"] == 2

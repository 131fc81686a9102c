"""A run that is ended at random moments and resumed loses no answer, and asks again at most what was in flight."""

import random
import signal
from pathlib import Path

import pytest

from tests.support.chat_server import ChatServer
from tests.support.killing import calls, kill_until_done, whole_lines
from tests.support.library import Library, comparable, read

pytestmark = pytest.mark.faults

KILLS = 5


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_no_answer_is_lost_and_no_more_than_the_calls_in_flight_are_asked_again(
    number: signal.Signals, served: Library, server: ChatServer, tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    killed = kill_until_done(served, server, KILLS, random.Random(seed), number)
    assert killed.held, (seed, killed)
    (record,) = served.results.glob("*/record.json")  # a run that was ended before it began may have left its folder
    lines = whole_lines(record.parent / "replicates.jsonl")
    assert len({(line["case_id"], line["replicate"]) for line in lines}) == len(lines) == calls(KILLS)
    (row,) = served.rows()
    assert (row["scored"], row["complete"]) == (calls(KILLS), True)

    whole = Library(tmp_path / "whole")
    whole.served_by(server.url)
    whole.evaluate_here("--replicates", str(row["replicates"]))
    assert comparable(read(record)) == comparable(read(whole.run_folder() / "record.json"))

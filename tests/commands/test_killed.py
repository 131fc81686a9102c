"""A run that is killed at random and resumed loses no output and repeats only calls in flight."""

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from subprocess import Popen
from threading import Event

import pytest

from tests.support.chat_server import Asked, ChatServer, Key, Reply
from tests.support.library import CASES, Library, comparable, ended, read, whole_lines

pytestmark = pytest.mark.faults

KILLS = 5
REPLICATES = 15
IN_FLIGHT = 3
EXIT_CODES = {signal.SIGKILL: (-signal.SIGKILL, 0), signal.SIGTERM: (-signal.SIGTERM, 130, 4, 0)}


def saved_outputs(library: Library) -> dict[Key, str]:
    """Return the output texts in the journal by the case and seed that each of them names."""
    texts = [line["text"] for path in library.results.glob("*/replicates.jsonl") for line in whole_lines(path)]
    return {(json.loads(text)["title"], json.loads(text)["year"]): text for text in texts}


def has_survivor(process: "Popen[str]") -> bool:
    """Whether a process of the group still runs five seconds after the command ended."""
    with suppress(ProcessLookupError):
        for _ in range(100):
            os.killpg(process.pid, 0)
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_killed_run_loses_no_output_and_repeats_only_calls_in_flight(
    number: signal.Signals, served: Library, server: ChatServer, tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    dice, saved, killed = random.Random(seed), dict[Key, str](), Event()
    limit = 0

    def reply(asked: Asked) -> Reply:
        if server.requests > limit:  # the last calls before a kill are still in flight
            killed.wait(60)
        return Reply(text=json.dumps({"title": asked.case_id, "year": asked.seed, "more": "x" * 5_000}), delay_s=0.02)

    server.reply = reply
    options = ("--replicates", str(REPLICATES), "--concurrency", str(IN_FLIGHT))
    for kill in range(KILLS + 1):
        earlier, limit = Counter(server.times), server.requests + 4 if kill < KILLS else 10**6
        killed.clear()
        resume = ("--resume",) if list(served.results.glob("*/manifest.json")) else ()
        with served.start(*options, *resume, start_new_session=True) as process:
            if kill % 3 == 0 and kill < KILLS:
                time.sleep(dice.uniform(0, 1.5))
            elif kill < KILLS:
                wanted = server.requests + dice.randint(1, 4)
                while server.requests < wanted and process.poll() is None:
                    time.sleep(0.002)
            if kill < KILLS:
                process.send_signal(number)
            killed.set()
            end = ended(process)
        assert end.code in (EXIT_CODES[number] if kill < KILLS else (0,)), (seed, end)
        assert not has_survivor(process), seed
        outputs = saved_outputs(served)
        assert outputs.items() >= saved.items(), seed
        assert not (Counter(server.times) - earlier).keys() & saved.keys(), (seed, "called again")
        assert len(server.times.keys() - outputs.keys()) <= IN_FLIGHT, seed
        saved = outputs
    assert len(saved) == len(CASES) * REPLICATES
    (record,) = served.results.glob("*/record.json")
    whole = Library(tmp_path / "whole")
    whole.served_by(server.url)
    whole.evaluate_here("--replicates", str(REPLICATES))
    assert comparable(read(record)) == comparable(read(whole.run_folder() / "record.json"))

"""End an evaluation by a signal at random moments and resume it, again and again, and count what that cost.

For tests with a few kills and for `benchmarks/faults.py` with many.
"""

import json
import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from threading import Event
from typing import Any

from tests.support.chat_server import Asked, ChatServer, Key, Reply
from tests.support.library import CASES, Ended, Library, ended, wait_until

IN_FLIGHT = 3
_REPLICATES = 3  # for each kill
_PER_KILL = 4  # calls that are answered before one at most; with those in flight fewer than are planned for it
_ENDS = {  # the exit codes that are right; a signal may come before the program hears it, or after the last answer
    signal.SIGKILL: (-signal.SIGKILL, 0),
    signal.SIGTERM: (-signal.SIGTERM, 4, 0),
}


@dataclass(slots=True, kw_only=True)
class Killed:
    """What the kills of one run came to; a call is named by its case and seed."""

    asked_again: list[int] = field(default_factory=list)  # after each kill, the calls asked of which nothing was kept
    lost: list[Key] = field(default_factory=list)  # calls whose answer was in the journal, and is there no more
    paid_twice: list[Key] = field(default_factory=list)  # calls asked again though their answer was in the journal
    left_running: int = 0  # kills that a process of the evaluation outlived
    wrong_ends: list[Ended] = field(default_factory=list)

    @property
    def held(self) -> bool:
        """Whether nothing was lost, paid for twice or left behind, and only calls in flight were asked again."""
        within = all(count <= IN_FLIGHT for count in self.asked_again)
        return within and not (self.lost or self.paid_twice or self.left_running or self.wrong_ends)


def _answer(server: ChatServer, most: float, signalled: Event, asked: Asked) -> Reply:
    """An answer that no other call gets, too long to be scored where it comes in; after `most` of them it waits."""
    if server.requests > most:
        signalled.wait(60)
    text = json.dumps({"title": asked.case_id, "year": asked.seed, "more": "x" * 5_000})
    return Reply(text=text, delay_s=0.02)


def kill_until_done(
    library: Library, server: ChatServer, kills: int, dice: random.Random, number: signal.Signals = signal.SIGKILL
) -> Killed:
    """Run the component's evaluation, end it `kills` times by a signal at another moment, then let it end.

    Every third moment is anywhere, before the first call, too; the others are while calls are in flight. The server
    keeps the last answers back until then. After that, while scores and records are written, it is ended now and then.
    """
    killed, kept = Killed(), dict[Key, str]()
    moments: list[Callable[[Popen[str]], None]] = [
        partial(_anywhere, dice) if kill % 3 == 0 else partial(_in_flight, server, dice) for kill in range(kills)
    ]
    moments += [partial(_anywhere, dice)] * (kills // 5) + [lambda process: None]
    for kill, wait in enumerate(moments):
        asked = Counter(server.times)
        most = server.requests + _PER_KILL if kill < kills else math.inf
        signalled = Event()
        server.reply = partial(_answer, server, most, signalled)
        resume = ("--resume",) if list(library.results.glob("*/manifest.json")) else ()
        words = ("--replicates", str(_REPLICATES * kills), "--concurrency", str(IN_FLIGHT), *resume)
        is_last = kill == len(moments) - 1
        with library.start(*words, start_new_session=True) as process:
            wait(process)
            if not is_last:
                process.send_signal(number)
            signalled.set()
            end = ended(process)
        killed.left_running += _outlived(process)
        now = _answers(library)
        killed.lost += [call for call, text in kept.items() if now.get(call) != text]
        killed.paid_twice += [call for call in Counter(server.times) - asked if call in kept]
        killed.asked_again.append(len(server.times.keys() - now.keys()))
        is_over = end.code == 0 or "no unfinished run" in end.err  # the last kill may come when all is kept
        killed.wrong_ends += [] if is_over or (end.code in _ENDS[number] and not is_last) else [end]
        kept = now
        if is_over:
            break
    return killed


def calls(kills: int) -> int:
    """How many calls the run of `kill_until_done` is planned to make."""
    return len(CASES) * _REPLICATES * kills


def _anywhere(dice: random.Random, process: "Popen[str]") -> None:
    with suppress(TimeoutExpired):
        process.wait(dice.uniform(0, 1.5))


def _in_flight(server: ChatServer, dice: random.Random, process: "Popen[str]") -> None:
    wanted = server.requests + dice.randint(1, _PER_KILL)
    wait_until(lambda: server.requests >= wanted or process.poll() is not None, 60)
    time.sleep(dice.uniform(0, 0.04))


def whole_lines(journal: Path) -> list[dict[str, Any]]:
    """The lines of a journal but those that a kill tore, which the next run has closed off."""
    values = []
    for line in journal.read_bytes().splitlines(keepends=True):
        with suppress(ValueError):
            values += [json.loads(line)] if line.endswith(b"\n") else []
    return values


def _answers(library: Library) -> dict[Key, str]:
    """The answers in the journal by the call that they say they are of."""
    texts = [line["text"] for path in library.results.glob("*/replicates.jsonl") for line in whole_lines(path)]
    values = [json.loads(text) for text in texts]
    return {(value["title"], value["year"]): text for value, text in zip(values, texts, strict=True)}


def _outlived(process: "Popen[str]") -> bool:
    """Whether a process of the group is still there some seconds after its first has ended; it is ended then."""
    with suppress(ProcessLookupError):
        for _ in range(100):
            os.killpg(process.pid, 0)
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        return True
    return False

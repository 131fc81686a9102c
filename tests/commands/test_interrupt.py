"""Ctrl-C: the first waits for calls in flight, the second abandons them."""

import shlex
import signal
import subprocess
import time
from unittest.mock import patch

import pytest
from skill_evaluator.evaluation import pipeline

from tests.commands.terminal import typed_on_terminal
from tests.support.chat_server import Asked, ChatServer, Reply, varied
from tests.support.library import SCRIPT, SKILL, Ended, Library, ended, only_journal, read, start, wait_until

pytestmark = pytest.mark.faults

LONG = 60.0
PYTHONPATH = {"PYTHONPATH": str(SCRIPT.parent)}


def _slow(asked: Asked) -> Reply:
    return Reply(text=varied(asked).text, delay_s=0.8)


def _interrupt(process: "subprocess.Popen[str]", number: int = signal.SIGINT) -> str:
    """Send a signal; what stderr says when it is heard."""
    process.send_signal(number)
    assert process.stderr is not None
    return next(line for line in process.stderr if "stopping" in line)


def _resume_words(stopped: Ended) -> list[str]:
    """The printed command's words after the script's name."""
    (line,) = [line for line in stopped.err.splitlines() if " --run " in line]
    words = shlex.split(line.partition(": ")[2])
    assert words[:2] == ["python", str(SCRIPT)]
    return words[2:]


def _run(library: Library, words: list[str]) -> Ended:
    with library.command(str(SCRIPT), *words) as process:
        return ended(process)


def test_interrupt_leaves_the_terminal_readable(served: Library, server: ChatServer) -> None:
    """The terminal writes `^C` where the cursor is: behind a full line it would move all that is drawn after it."""
    server.reply = _slow
    models = ("served", "one-with-a-longer-name")
    served.models(*({"id": name, "provider": "openai", "base_url": server.url} for name in models))
    shown = typed_on_terminal(served.root, 80, "evaluate", SKILL, interrupted_when=lambda: server.requests == 12)
    text, _, result = " ".join(" ".join(shown).split()).partition(SKILL)
    assert result
    assert text.startswith("stopping: waiting for the calls in flight (paid for already); once more to abandon them")
    for name in models:
        assert text.count(f"{name} ") == 1, shown
    assert text.count("failed, 0 retried,") == len(models)


def test_first_interrupt_waits_for_calls_in_flight(served: Library, server: ChatServer) -> None:
    server.reply = _slow
    with served.start() as process:
        wait_until(lambda: server.requests >= 3)
        _interrupt(process, signal.SIGTERM)
        stopped = ended(process)
    assert stopped.code == 4
    answered = len(only_journal(served))
    assert server.requests == answered < 6
    assert not served.leaderboard.exists()
    assert read(served.run_folder() / "record.json")["stopped"].startswith("interrupted")
    server.reply = varied
    assert _run(served, _resume_words(stopped)).code == 0
    assert (server.requests, server.repeated) == (6, [])
    assert served.rows()[0]["scored"] == 6


def test_second_interrupt_ends_at_once(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=varied(asked).text, delay_s=LONG if server.requests > 3 else 0)
    with served.start() as process:
        wait_until(lambda: server.requests >= 6 and len(only_journal(served)) == 3)
        _interrupt(process)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        stopped = ended(process)
    assert time.monotonic() - began < LONG / 2
    assert stopped.code == 4
    assert "Traceback" not in stopped.err
    assert len(only_journal(served)) == 3
    assert not served.leaderboard.exists()
    assert read(served.run_folder() / "record.json")["failures"] == {"not_run": 3}
    assert " --run " in stopped.err


def test_interrupt_of_the_scoring_prints_the_command_that_resumes(served: Library, server: ChatServer) -> None:
    with patch.object(pipeline, "score_outcomes", side_effect=KeyboardInterrupt):
        stopped = served.evaluate_here()
    assert (stopped.code, server.requests, served.rows()) == (130, 6, [])
    assert served.call(*stopped.to_go_on()).code == 0
    assert (server.requests, served.rows()[0]["scored"]) == (6, 6)


@pytest.mark.parametrize(("command", "hint"), [("evaluate", "to continue: "), ("mutate", "the same command resumes")])
def test_sigterm_while_scoring_prints_how_to_resume(command: str, hint: str, served: Library) -> None:
    prompt = served.component / "prompt.md"
    served.write(str(prompt.relative_to(served.root)), prompt.read_text() + "\n- Copy the title.\n")
    served.write(f"components/{SKILL}/evals/checks.py", "import time\ndef slow(text, context):\n    time.sleep(9)\n")
    served.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"checks": [{"python": "checks.py:slow"}]}]})
    with start(served.root, "-m", "skill_evaluator", command, SKILL, "-n", "2", env=PYTHONPATH) as process:
        assert process.stderr is not None
        assert any("answered, 0 failed" in line for line in process.stderr)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        stopped = ended(process)
    assert (stopped.code, stopped.err.startswith(hint)) == (130, True), stopped.err


@pytest.mark.local_model
def test_one_interrupt_ends_a_local_model(library: Library) -> None:
    """The model of this process answers for minutes; what it was at is asked again by the command that is printed."""
    library.models({"id": "m", "provider": "local", "params": {"max_output_tokens": 4000, "temperature": 0.9}})
    library.settings(timeout_s=0.01)  # which is for networks
    with library.start() as process:
        wait_until(lambda: only_journal(library), seconds=600)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        stopped = ended(process)
    assert time.monotonic() - began < LONG / 2
    assert stopped.code == 4
    assert "Traceback" not in stopped.err
    assert "waiting" not in stopped.err
    assert read(library.run_folder() / "record.json")["failures"].keys() == {"not_run"}
    assert " --run " in stopped.err

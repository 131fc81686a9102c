"""`try --watch`: a save asks again, the failed cases first, under one ceiling; Ctrl-C ends at once."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, notice, varied
from tests.support.git import git
from tests.support.library import SCRIPT, SKILL, Ended, Library, ended, wait_until

_SECONDS = 90.0  # the most that a try takes on a machine with other work
PROMPT = f"components/{SKILL}/prompt.md"


class Watching:
    """A process of `try --watch`, and how often it has said that it waits."""

    def __init__(self, process: subprocess.Popen[str], library: Library) -> None:
        self.process, self.library = process, library
        self.stdout, self.stderr = (library.root / name for name in ("out", "err"))

    @property
    def waits(self) -> int:
        return self.stderr.read_text().count("waiting for a save")

    def save(self, text: str, times: int = 1, path: str = PROMPT) -> None:
        """Save the prompt, and wait until what came of it is shown."""
        waits = self.waits
        for at in range(times):
            self.library.write(path, text.replace("#", str(at)))
            time.sleep(0.05)
        self.waits_for(waits + 1)

    def waits_for(self, times: int) -> None:
        wait_until(lambda: self.waits >= times or self.process.poll() is not None, _SECONDS)

    def interrupted(self) -> Ended:
        self.process.send_signal(signal.SIGINT)
        return ended(self.process, 10)


@contextmanager
def watching(library: Library, *words: str, name: str = SKILL) -> Iterator[Watching]:
    command = ("-m", "skill_evaluator", "try", name, "--watch", *words)
    with (library.root / "out").open("w") as out, (library.root / "err").open("w") as err:
        begun = library.command(*command, env={"PYTHONPATH": str(SCRIPT.parent)}, stdout=out, stderr=err)
        try:
            yield Watching(begun, library)
        finally:
            begun.kill()
            begun.wait()


def prompt(text: str) -> str:
    return f"---\nname: {SKILL}\nversion: 1.1.0\n---\n{text}\n"


@pytest.fixture
def recorded(served: Library, server: ChatServer) -> Library:
    """1.0.0 is recorded, every answer of which is right."""
    server.reply = lambda asked: Reply(text=notice(asked.case_id))
    assert served.evaluate_here().code == 0
    server.forget()
    return served


def test_each_save_asks_again_failed_and_changed_cases_first_and_says_what_changed(
    recorded: Library, server: ChatServer
) -> None:
    seen: list[str] = []

    def reply(asked: Asked) -> Reply:
        seen.append(asked.case_id)
        wrong = asked.case_id == "gamma" and "all" not in str(asked.body["messages"])
        return Reply(text=notice(asked.case_id, 1999 if wrong else 2024))

    server.reply = reply
    recorded.settings(concurrency=1)
    recorded.served_by(server.url, limits={"max_concurrency": 1})
    recorded.write(PROMPT, prompt("Extract."))
    with watching(recorded, "-n", "2", "--max-calls", "40") as begun:
        begun.waits_for(1)
        assert seen == ["alpha", "beta", "gamma"] * 2
        begun.save(prompt("Extract all #."), times=4)  # as an editor writes, in steps
        assert seen[6:] == ["gamma", "alpha", "beta"] * 2
        assert "served, since the last try: gamma 0.500 → 1.000\n" in begun.stderr.read_text()
        recorded.case("beta", {"title": "beta", "year": 2025})
        begun.waits_for(3)
        assert seen[12:] == ["beta", "alpha", "gamma"] * 2
        assert "served, since the last try: beta 1.000 → 0.500\n" in begun.stderr.read_text()
        assert "waiting for a save; 22 calls left, Ctrl-C ends" in begun.stderr.read_text()
        for path in ("README.md", "CHANGELOG.md", ".prompt.md.swp", "prompt.md~"):
            recorded.write(f"components/{SKILL}/{path}", "x")
        time.sleep(1.5)
        assert (begun.waits, len(seen)) == (3, 18)
        done = begun.interrupted()
    assert done.code == 130
    assert "Traceback" not in begun.stderr.read_text()
    assert begun.stdout.read_text().count("1.0.0 → 1.1.0 (draft)") == 3
    assert len(recorded.rows()) == 1


def test_an_error_while_editing_is_one_line_and_it_waits_on(recorded: Library, server: ChatServer) -> None:
    recorded.write(PROMPT, "---\nversion: [\n---\n")
    with watching(recorded, "-n", "1") as begun:
        begun.waits_for(1)
        assert server.requests == 0
        assert [line for line in begun.stderr.read_text().splitlines() if line.startswith("error: ")]
        begun.save("---\nname: x\n")
        begun.save(prompt("Extract both."))
        assert server.requests == 3
        case = recorded.root / f"fixtures/{SKILL}/cases/beta/ground_truth.json"
        whole = case.read_text()
        case.write_text(whole[:-2])
        begun.waits_for(4)
        case.write_text(whole)
        begun.waits_for(5)
        assert server.requests == 6
        assert begun.stderr.read_text().count("error: ") == 3
        assert "waiting for a save; 194 calls left" in begun.stderr.read_text()


@pytest.mark.parametrize(
    ("words", "most"), [(("--max-calls", "7"), 7), (("--max-calls", "6"), 6), (("--max-cost", "0.43"), 7)]
)
def test_all_tries_together_stay_under_the_ceiling(
    words: tuple[str, ...], most: int, recorded: Library, server: ChatServer
) -> None:
    price = {"input": 1000, "output": 1000}  # 0.06 USD an answer
    recorded.served_by(server.url, price=price, params={"max_output_tokens": 20})
    with watching(recorded, "-n", "1", *words) as begun:
        begun.waits_for(1)
        for at in range(3):
            if begun.process.poll() is None:
                begun.save(prompt(f"Extract {at}."))
        assert begun.process.wait(_SECONDS) in (0, 4)
    assert server.requests <= most


def test_ctrl_c_abandons_calls_in_flight_at_once(recorded: Library, server: ChatServer) -> None:
    server.reply = lambda asked: replace(varied(asked), delay_s=60)
    with watching(recorded) as begun:
        wait_until(lambda: server.requests == 3, _SECONDS)
        began = time.monotonic()
        done = begun.interrupted()
        assert (done.code in (4, 130), time.monotonic() - began < 5) == (True, True)
    assert server.requests == 3
    assert "Traceback" not in begun.stderr.read_text()


def test_a_skill_is_asked_again_when_its_own_file_is_saved_and_judged_as_newer(
    served: Library, server: ChatServer
) -> None:
    skill = "---\nname: pdf\ndescription: d\n---\nName a library.{}\n"
    served.write("skills/pdf/SKILL.md", skill.format(""))
    check = {"type": "contains", "value": "fine"}
    served.write("skills/pdf/evals/evals.json", [{"id": 1, "prompt": "Go.", "assertions": [check]}])
    served.settings(sources=[{"kind": "skills"}])
    git(served.root, "init", "-qb", "main")
    git(served.root, "add", "-A")
    git(served.root, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "start")
    server.reply = lambda asked: Reply(text="fine")
    assert served.call("evaluate", "pdf").code == 0
    with watching(served, "--max-calls", "40", name="pdf") as tried:
        tried.waits_for(1)
        tried.save(skill.format(" Or two."), path="skills/pdf/SKILL.md")
        done = tried.interrupted()
    assert server.requests == 2 + 3 + 3, done.err
    assert (
        "there is no complete record" not in tried.stderr.read_text().rpartition("waiting")[0].partition("waiting")[2]
    )

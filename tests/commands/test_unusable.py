"""A run in which fewer than half of the planned outputs could be parsed."""

import shutil

import pytest

from tests.support.chat_server import ChatServer, Reply, notice
from tests.support.library import SKILL, Ended, Library

PROSE = "The notice says nothing of it."


@pytest.fixture
def served(library: Library, server: ChatServer) -> Library:
    library.models({"id": "m", "provider": "openai", "base_url": server.url})
    for at in range(3):
        library.case(f"case-{at}")
    return library


def run(library: Library, command: str, *words: str) -> Ended:
    return library.call(command, SKILL, *words, env={"OPENAI_API_KEY": "key"})


def bump(library: Library, old: str, new: str) -> None:
    prompt = library.component / "prompt.md"
    prompt.write_text(prompt.read_text().replace(old, new).replace("Extract", f"Extract ({new})", 1))


def test_unreadable_new_version_is_regressed_and_ends_with_4(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=notice(asked.case_id))
    assert run(served, "evaluate", "-n", "2").code == 0
    bump(served, "1.0.0", "1.1.0")
    server.reply = lambda asked: Reply(text=PROSE if "(1.1.0)" in str(asked.body) else notice(asked.case_id))
    for command in ("try", "evaluate"):
        ended = run(served, command, "-n", "2")
        closing = ended.out[ended.out.index(f"\n▼ {SKILL} ") :].split("\n")
        verdict, lost = closing[1:3]
        assert (ended.code, ": regressed against 1.0.0 on these 6 cases" in verdict) == (4, True)
        assert lost.startswith("0 of 12 outputs are JSON: 12 × prose")
    assert [row["complete"] for row in served.rows()] == [False, True]
    assert "0% of the outputs of" in run(served, "accept", "1.1.0", "--reason", "x", "--by", "me").err
    assert "to ship: 1.0.0" in run(served, "history").out
    for folder in (served.component, served.root / "fixtures" / SKILL):
        shutil.copytree(folder, folder.with_name("other"), ignore=shutil.ignore_patterns("evals", "leaderboard.json"))
    prompt = served.component.with_name("other") / "prompt.md"
    prompt.write_text(prompt.read_text().replace(SKILL, "other", 1))
    out = served.call("evaluate", "-n", "2", "--yes", env={"OPENAI_API_KEY": "key"}).out
    assert (f"▼ {SKILL} 1.1.0: regressed" in out, "other 1.1.0: not measured on 6 cases" in out) == (True, True)

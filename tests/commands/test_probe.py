"""`doctor --probe`: whether a server's answers depend on its load; and what a run keeps of its server."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.library import SKILL, Library, read

ALONE = 10  # calls that are made one by one
SLOW_S = 0.4  # so that all calls that are made at once are in flight together


def question_of(asked: Asked) -> str:
    text: str = asked.body["messages"][1]["content"]
    return text


def loaded(server: ChatServer) -> Callable[[Asked], Reply]:
    """Answers to three of five questions are otherwise once calls came at the same time."""

    def reply(asked: Asked) -> Reply:
        moved = server.most_in_flight > 1 and "What" in question_of(asked)
        return Reply(
            text=f"{question_of(asked)} {'so' if moved else 'thus'}", delay_s=SLOW_S if server.requests > ALONE else 0.0
        )

    return reply


def test_answers_that_depend_on_load_are_said_to(served: Library, server: ChatServer) -> None:
    server.reply = loaded(server)
    ended = served.call("doctor", "--probe", "served")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "served: 42 of 42 calls answered, cost unknown",
        "answers depend on load: 3 of 5 questions get other answers with 32 in flight than one by one",
    ]
    assert (server.requests, len({seed for _, seed in server.times})) == (42, 1)


def test_answers_that_do_not_are_said_not_to(served: Library, server: ChatServer) -> None:
    served.served_by(server.url, price={"input": 1, "output": 10}, limits={"max_concurrency": 4})
    server.reply = lambda asked: Reply(text=question_of(asked), delay_s=0.02)
    ended = served.call("doctor", "--probe", "served", "--format", "json")
    assert ended.code == 0
    assert ended.json == {
        "model": "served",
        "calls": 42,
        "answered": 42,
        "cost_usd": pytest.approx(42 * (40 + 20 * 10) / 1e6),
        "verdict": "no answer depended on load: 0 of 5 questions get other answers with 4 in flight than one by one",
    }
    assert server.most_in_flight == 4


def test_what_differs_alone_says_nothing_of_load(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=str(server.requests))
    ended = served.call("doctor", "--probe", "served")
    assert ended.out.splitlines()[1].startswith("nothing is known of load: none was answered alike")
    server.reply = lambda asked: Reply(status=401, text=f"no such key: {asked.key}")
    key = {"SERVED_API_KEY": "sk-of-this-machine"}
    served.served_by(server.url, api_key_env="SERVED_API_KEY")
    ended = served.call("doctor", "--probe", "served", env=key)
    assert (ended.code, key["SERVED_API_KEY"] in ended.out) == (4, False)
    assert ended.out.splitlines()[0] == "served: 0 of 1 calls answered, cost $0.0000"
    assert served.call("doctor", "--probe", "serve").refuses("unknown model 'serve'")


def facts(library: Library) -> tuple[Any, Any]:
    """What the newest manifest and record keep of the server."""
    kept = [(library.results / record["run_id"], record) for record in library.records()]
    folder, record = max(kept, key=lambda run: run[1]["run_id"])
    manifest = read(folder / "manifest.json")
    return manifest.get("server"), record.get("server")


def test_what_a_server_tells_is_kept_and_a_change_is_remarked_upon(served: Library, server: ChatServer) -> None:
    def stated(name: str) -> Callable[[Asked], Reply]:
        return lambda asked: Reply(text=notice(asked.case_id), fields={"system_fingerprint": name})

    server.reply, server.version = stated("fp_a"), "0.10.0"
    assert served.evaluate_here("--replicates", "2").code == 0
    assert facts(served) == (before := {"concurrency": 3, "version": "0.10.0", "fingerprints": {"fp_a": 6}}, before)
    assert server.asked_version == 1
    server.reply, server.version = stated("fp_b"), "0.11.0"
    served.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.1.0\n---\nExtract both.\n")
    assert served.evaluate_here("--replicates", "2", "--concurrency", "2").code == 0
    assert facts(served) == (after := {"concurrency": 2, "version": "0.11.0", "fingerprints": {"fp_b": 6}}, after)
    reasons = served.call("compare", SKILL, "--format", "json").json["models"][0]["reasons"]
    (remark,) = (remark for remark in reasons if "server" in remark)
    assert remark.startswith(
        "the server's version: 0.10.0, then 0.11.0 and the server's fingerprints: fp_a, then fp_b "
        "and the server's concurrency: 3, then 2"
    )


def test_a_server_that_tells_nothing_is_no_change(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=notice(asked.case_id))
    assert served.evaluate_here().code == 0
    assert facts(served) == ({"concurrency": 3}, {"concurrency": 3})
    assert "fingerprint" not in (served.run_folder() / "replicates.jsonl").read_text()


def test_a_record_does_not_say_deterministic_of_what_is_not_set(served: Library, server: ChatServer) -> None:
    bodies: list[Any] = []
    server.reply = lambda asked: (bodies.append(asked.body), Reply(text=notice(asked.case_id)))[1]
    served.served_by(server.url, api_id="gemini-3.6-flash", params={"temperature": 0, "top_k": 1})
    assert served.evaluate_here().code == 0
    settings = served.records()[0]["settings"]
    assert (settings["profile"], settings["sent"], settings["params"]) == ("unset", {"seed": "per replicate"}, {})
    assert settings["unavailable"] == ["temperature", "top_p", "top_k"]
    assert [name for body in bodies for name in ("temperature", "top_p", "top_k") if name in body] == []
    assert len(bodies) == 6

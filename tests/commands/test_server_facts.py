"""What a run keeps of the server that answered."""

from typing import Any

from tests.support.chat_server import ChatServer, Reply, notice
from tests.support.library import Library, read


def facts(library: Library) -> tuple[Any, Any]:
    """What the newest manifest and record keep of the server."""
    kept = [(library.results / record["run_id"], record) for record in library.records()]
    folder, record = max(kept, key=lambda run: run[1]["run_id"])
    manifest = read(folder / "manifest.json")
    return manifest.get("server"), record.get("server")


def test_manifest_and_record_keep_what_the_server_told(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=notice(asked.case_id), fields={"system_fingerprint": "fp_a"})
    server.version = "0.10.0"
    assert served.evaluate_here("--replicates", "2").code == 0
    assert facts(served) == ({"concurrency": 3, "version": "0.10.0", "fingerprints": {"fp_a": 6}},) * 2
    assert server.asked_version == 1


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

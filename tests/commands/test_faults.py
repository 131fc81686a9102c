"""What failed: the reason, the place and the remedy, wherever a person looks."""

import socket
import time
from collections.abc import Iterator

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, chat_server, notice
from tests.support.library import Library, read

_TOO_LONG = "9,647 tokens exceed the context of 8,192"


@pytest.fixture
def server(library: Library) -> Iterator[ChatServer]:
    """A server whose context is too small for one of three documents."""

    def reply(asked: Asked) -> Reply:
        return Reply(status=400, text=_TOO_LONG) if asked.case_id == "beta" else Reply(text=notice(asked.case_id))

    with chat_server() as server:
        server.reply = reply
        library.served_by(server.url)
        yield server


def test_a_document_over_the_context_is_said_with_the_servers_words_and_what_to_do(
    library: Library, server: ChatServer
) -> None:
    done = library.evaluate_here()
    assert (done.code, server.requests) == (4, 6)  # asked once each: another attempt would not help
    sentence = f"2 × context_exceeded in beta: {_TOO_LONG} ({server.url}) → raise the context of the server"
    assert sentence in done.out
    folder = library.run_folder()
    report = (folder / "report.md").read_text()
    assert f"2 × context_exceeded in beta: {_TOO_LONG} ({server.url}) → raise the context" in report
    explained = library.call("explain", folder.name, "--case", "beta")
    assert f"message: {_TOO_LONG}" in explained.out
    assert "what to do: raise the context of the server" in explained.out
    (fault,) = read(folder / "record.json")["faults"]
    assert fault == {
        "kind": "provider_error",
        "reason": "context_exceeded",
        "count": 2,
        "n_cases": 1,
        "cases": ["beta"],
        "message": _TOO_LONG,
    }


def test_a_server_that_is_not_there_is_said_at_once(library: Library) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    library.served_by(f"http://127.0.0.1:{port}/v1")
    library.settings(retry={})  # as a user has it
    began = time.monotonic()
    done = library.evaluate_here()
    assert done.code == 4
    assert time.monotonic() - began < 6  # with six attempts it took 13 s
    assert "stopped by unreachable: no connection: 127.0.0.1 port" in done.out
    assert f"(http://127.0.0.1:{port}/v1) → start the server, then --resume; or correct base_url of" in done.out
    assert "to continue: " in done.err


def test_a_budget_says_what_did_not_fit_and_what_is_left(library: Library, server: ChatServer) -> None:
    library.served_by(server.url, price={"input": 0, "output": 1000}, params={"max_output_tokens": 100})
    done = library.evaluate_here("--max-cost", "0.13")
    assert done.code == 4
    assert "can cost $0.1000 (" in done.out
    assert "100 out by max_output_tokens), and $0.0" in done.out
    assert "max_cost" not in library.call(*done.to_go_on(capped=True)).out

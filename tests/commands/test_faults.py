"""A run that stops prints the reason and the next step."""

import socket

from tests.support.chat_server import ChatServer
from tests.support.library import Library, only_journal


def test_unreachable_server_stops_the_run_at_once(library: Library) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    library.served_by(f"http://127.0.0.1:{port}/v1")
    library.settings(retry={})  # as a user has it
    done = library.evaluate_here()
    assert done.code == 4
    assert {line["attempts"] for line in only_journal(library)} == {3}  # of six that settings.yaml allows
    assert "stopped by unreachable: no connection: 127.0.0.1 port" in done.out
    assert f"(http://127.0.0.1:{port}/v1) → start the server, then --resume; or correct base_url of" in done.out
    assert "to continue: " in done.err


def test_budget_names_the_call_that_did_not_fit(served: Library, server: ChatServer) -> None:
    served.served_by(server.url, price={"input": 0, "output": 1000}, params={"max_output_tokens": 100})
    done = served.evaluate_here("--max-cost", "0.13")
    assert done.code == 4
    assert "can cost $0.1000 (" in done.out
    assert "100 out by max_output_tokens), and $0.0" in done.out
    assert "max_cost" not in served.call(*done.to_go_on(capped=True)).out

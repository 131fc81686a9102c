"""Run as a program: `python -m tests.support.loopback WORLD COMMAND...` runs a command with three servers beside it.

One speaks chat completions, one the vendors' batches, one what is needed of GitHub's API. WORLD is a JSON file: their
ports and how they answer come out of it, what they were asked goes into it. Batches are kept beside it for the next
command. Meant for a network name space of its own, where it brings up the loopback.
"""

import fcntl
import json
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.batch_server import batch_server
from tests.support.chat_server import Asked, Reply, chat_server, notice, varied
from tests.support.http_server import serving

_SET_FLAGS, _UP = 0x8914, 1  # SIOCSIFFLAGS, IFF_UP


def main(world_file: Path, command: list[str]) -> int:
    """Serve while the command runs; returns its exit code."""
    world: dict[str, Any] = json.loads(world_file.read_text())
    with suppress(PermissionError):  # outside of a name space of its own it is up already
        _bring_up_the_loopback()

    def reply(asked: Asked) -> Reply:
        if refusal := world["refused"].get(asked.case_id):
            return Reply(status=400, text=refusal)
        if moved := world.get("moved"):
            return Reply(text=notice(asked.case_id, moved["year"]), served_model=moved["served_model"])
        return varied(asked)

    kept = world_file.with_name("batches.pickle")
    with (
        chat_server(world["chat_port"]) as chat,
        batch_server(world["batch_port"], kept) as batches,
        _github(world),
    ):
        chat.reply = reply
        batches.held, batches.lost_replies = world["batches_held"], world["batch_replies_lost"]
        code = subprocess.run(command, check=False).returncode
        world["asked"] = [[case_id, seed, times] for (case_id, seed), times in sorted(chat.times.items())]
        world["submitted"] = dict(batches.submitted)
    world_file.write_text(json.dumps(world))
    return code


def _bring_up_the_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


@contextmanager
def _github(world: dict[str, Any]) -> Iterator[None]:
    """Every commit is of the merged pull request 7; its comments, first those by people, are kept in the world."""
    http = ThreadingHTTPServer(("127.0.0.1", world["api_port"]), type("BoundHandler", (_GitHub,), {"world": world}))
    with serving(http):
        yield


class _GitHub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    world: dict[str, Any]

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.endswith("/pulls"):
            address = f"{self._here()}/repos/octo/library"
            issue = f"{address}/issues/7"
            self._send(
                [{"number": 7, "merged_at": "2026-11-21T00:00:00Z", "url": f"{address}/pulls/7", "issue_url": issue}]
            )
        elif path.endswith("/comments"):
            self._send([self._comment(index) for index in range(len(self.world["comments"]))])
        else:
            self._send({"sha": path.rpartition("/")[2], "url": f"{self._here()}{path}"})

    def do_POST(self) -> None:
        self.world["comments"].append(self._body())
        self._send(self._comment(len(self.world["comments"]) - 1), 201)

    def do_PATCH(self) -> None:
        index = int(self.path.rpartition("/")[2])
        self.world["comments"][index] = self._body()
        self._send(self._comment(index))

    def _here(self) -> str:
        return f"http://127.0.0.1:{self.world['api_port']}"

    def _body(self) -> str:
        content: dict[str, str] = json.loads(self.rfile.read(int(self.headers["content-length"])))
        return content["body"]

    def _comment(self, index: int) -> dict[str, Any]:
        address = f"{self._here()}/repos/octo/library/issues/comments/{index}"
        by_a_person = index < self.world["by_people"]
        return {
            "id": index,
            "body": self.world["comments"][index],
            "url": address,
            "html_url": f"https://github.example/7#{index}",
            "user": {"login": "someone", "type": "User" if by_a_person else "Bot"},
        }

    def _send(self, value: Any, status: int = 200) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))

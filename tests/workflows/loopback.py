"""Run as a program: `python -m tests.workflows.loopback WORLD COMMAND...` runs a command with two servers beside it.

One speaks chat completions, one what is needed of GitHub's API. WORLD is a JSON file: their ports and how they answer
come out of it, what they were asked goes into it. Meant for a network name space of its own, where it brings up the
loopback.
"""

import fcntl
import json
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.ci.github_api import GitHubApi
from tests.support.chat_server import Asked, Reply, chat_server, notice, varied
from tests.support.http_server import serve

_SET_FLAGS, _UP = 0x8914, 1  # SIOCSIFFLAGS, IFF_UP


def main(world_file: Path, command: list[str]) -> int:
    world: dict[str, Any] = json.loads(world_file.read_text())
    with suppress(PermissionError):  # outside of a name space of its own it is up already
        _bring_up_the_loopback()

    def reply(asked: Asked) -> Reply:
        if refusal := world["refused"].get(asked.case_id):
            return Reply(status=400, text=refusal)
        if moved := world.get("moved"):
            return Reply(text=notice(asked.case_id, moved["year"]), served_model=moved["served_model"])
        return varied(asked)

    with chat_server(world["chat_port"]) as chat, serve(_github(world), world["api_port"]) as github:
        chat.reply = reply
        code = subprocess.run(command, check=False).returncode
        world["asked"] = [[case_id, seed, times] for (case_id, seed), times in sorted(chat.times.items())]
        world["comments"] = [comment["body"] for comment in github.comments[7]]
    world_file.write_text(json.dumps(world))
    return code


def _bring_up_the_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


class _EveryCommit(dict[str, Any]):
    """The merged pull request 7 for any commit."""

    def __contains__(self, commit: object) -> bool:
        return True

    def __missing__(self, commit: str) -> Any:
        return self["7"]


def _github(world: dict[str, Any]) -> GitHubApi:
    """Return the API of a repository whose comments, first those by people, are kept in the world."""
    api = GitHubApi("octo/library", token=None)
    api.url = f"http://127.0.0.1:{world['api_port']}"
    api.merged("7", 7)
    api.pulls_of = _EveryCommit(api.pulls_of)
    for count, body in enumerate(world["comments"]):
        api.comment(7, body, "User" if count < world["by_people"] else "Bot")
    return api


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))

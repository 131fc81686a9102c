"""A key in the environment reaches no file, no terminal and no other program."""

import os
import shutil
from pathlib import Path

import pytest

from tests.providers.identity_server import REQUEST_TOKEN, identity_server
from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.git import GitRepository
from tests.support.library import Ended, Library, read
from tests.support.vendor_dialects import address_of

KEY = "lab-secret-0123456789abcdefghijklmnopqrstuvwxyz"
MIN_LEAK_LENGTH = 10  # characters in a row
OTHER = "sk-of-another-vendor-0123456789"
ENVIRONMENT = {"LAB_KEY": KEY, "OPENAI_API_KEY": OTHER}
_STAND_IN = """#!/bin/sh
env > "{folder}/environment.$$"
exec "{git}" "$@"
"""


def _places(library: Library, ended: Ended) -> dict[str, bytes]:
    """What every file and both streams hold."""
    files = {name: raw for name, raw in library.tree().items() if raw is not None}
    return files | {"stdout": ended.out.encode(), "stderr": ended.err.encode()}


def _giveaways(library: Library, ended: Ended, *keys: str) -> list[tuple[str, bytes]]:
    """(place, piece) wherever a piece of a key can be read."""
    pieces = {
        key[start : start + MIN_LEAK_LENGTH].encode()
        for key in keys or (KEY, OTHER)
        for start in range(len(key) - MIN_LEAK_LENGTH + 1)
    }
    return [(name, piece) for name, raw in _places(library, ended).items() for piece in pieces if piece in raw]


def _evaluate(library: Library, server: ChatServer, *arguments: str) -> Ended:
    library.served_by(server.url, api_key_env="LAB_KEY")
    server.forget()
    ended = library.evaluate_here(*arguments, env=ENVIRONMENT)
    assert server.requests
    return ended


def _journal(library: Library) -> str:
    return (library.run_folder() / "replicates.jsonl").read_text()


def test_key_is_sent_and_stored_nowhere(library: Library, server: ChatServer) -> None:
    received = []
    server.reply = lambda asked: received.append(asked.key) or Reply(text=notice(asked.case_id))
    library.served_by(server.url, api_key_env="LAB_KEY")
    ended = library.evaluate_here(env=ENVIRONMENT)
    assert set(received) == {KEY}
    assert not _giveaways(library, ended)


def test_key_is_removed_from_an_error_that_repeats_it(library: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(
        status=429, text=f"bad key: {asked.key}", headers={"x-request-id": asked.key, "retry-after": "0"}
    )
    ended = _evaluate(library, server)
    assert ended.code == 4
    assert "bad key: [redacted]" in _journal(library)
    assert not _giveaways(library, ended)


def test_key_is_removed_from_an_output_that_repeats_it(library: Library, server: ChatServer) -> None:
    def echo(asked: Asked) -> Reply:
        text = f"I was called with {asked.key}" if asked.case_id == "beta" else notice(asked.key)
        return Reply(text=text, headers={"x-request-id": asked.key}, served_model=f"model-for-{asked.key}")

    server.reply = echo
    ended = _evaluate(library, server)
    assert ended.code == 0
    assert "I was called with [redacted]" in _journal(library)
    assert read(library.run_folder() / "record.json")["served_model"] == "model-for-[redacted]"
    assert not _giveaways(library, ended)


def test_password_of_an_address_is_stored_nowhere(library: Library, server: ChatServer) -> None:
    library.served_by(server.url.replace("//", "//someone:lab-password@"))
    server.reply = lambda asked: Reply(text=f"you are {asked.key}", served_model="of lab-password")
    ended = library.evaluate_here()
    assert server.requests
    places = _places(library, ended)
    assert [name for name, raw in places.items() if b"lab-password" in raw] == [".evaluator/models.yaml"]
    assert read(library.run_folder() / "record.json")["settings"]["base_url"] == server.url


@pytest.mark.parametrize("refused", [False, True])
def test_tokens_of_a_keyless_job_are_stored_nowhere(refused: bool, library: Library) -> None:
    """Also when the answers repeat it, and when the exchange does."""
    with identity_server() as server:
        server.echoes, server.lives_s = True, 20  # so short that every call exchanges a new one
        if refused:
            server.refusal = (401, lambda body: {"error": "invalid_grant", "error_description": body["assertion"]})
        address = address_of(server.url, "anthropic")
        library.models({"id": "m", "provider": "anthropic", "auth": "oidc", "base_url": address})
        ended = library.evaluate_here(env=server.variables())
    assert ended.code == 4  # no output is JSON
    assert "[redacted]" in _journal(library)
    assert len(server.tokens) > 1 or refused
    assert not _giveaways(library, ended, *server.tokens, REQUEST_TOKEN)


def test_git_inherits_no_key(library: Library, server: ChatServer, tmp_path: Path) -> None:
    GitRepository(library.root).commit()
    folder = tmp_path / "bin"
    folder.mkdir()
    stand_in = folder / "git"
    stand_in.write_text(_STAND_IN.format(folder=folder, git=shutil.which("git")))
    stand_in.chmod(0o755)
    received = []
    server.reply = lambda asked: received.append(asked.key) or Reply(text=notice(asked.case_id))
    library.served_by(server.url, api_key_env="LAB_KEY")
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    ended = library.evaluate_here(env={**ENVIRONMENT, "PATH": path})
    assert (ended.code, set(received)) == (0, {KEY})
    environments = [file.read_text() for file in folder.glob("environment.*")]
    assert environments
    assert not [text for text in environments if KEY in text or OTHER in text]

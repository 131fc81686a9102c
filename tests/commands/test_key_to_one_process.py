"""A key is for the process that calls: what it starts on the way, such as git, sees none."""

import os
import shutil
from pathlib import Path

from tests.support.chat_server import ChatServer, Reply, notice
from tests.support.git import GitRepository
from tests.support.library import Library

KEY = "lab-secret-0123456789abcdefghijklmnopqrstuvwxyz"
OTHER = "sk-of-another-vendor-0123456789"
_STAND_IN = """#!/bin/sh
env > "{folder}/environment.$$"
exec "{git}" "$@"
"""


def test_git_inherits_no_key_of_an_evaluation(library: Library, server: ChatServer, tmp_path: Path) -> None:
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
    ended = library.evaluate(env={"LAB_KEY": KEY, "OPENAI_API_KEY": OTHER, "PATH": path})
    assert (ended.code, set(received)) == (0, {KEY})
    environments = [file.read_text() for file in folder.glob("environment.*")]
    assert environments
    assert not [text for text in environments if KEY in text or OTHER in text]

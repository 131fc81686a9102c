"""A real git repository in a folder, driven by the git command with nobody's configuration."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    # A new repository has no sample hooks, and no command begins to tidy up: a test copies and reads small folders.
    "GIT_TEMPLATE_DIR": "",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "gc.auto",
    "GIT_CONFIG_VALUE_0": "0",
    "GIT_CONFIG_KEY_1": "maintenance.auto",
    "GIT_CONFIG_VALUE_1": "false",
}


def git(folder: Path, *arguments: str) -> str:
    """What one git command printed; raises when it fails."""
    env: Mapping[str, str] = {**os.environ, **IDENTITY}
    done = subprocess.run(["git", *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def head(repository: Path) -> str:
    """The commit of the branch that is checked out and was just committed to, without a process."""
    folder = repository / ".git"
    return (folder / (folder / "HEAD").read_text().removeprefix("ref: ").strip()).read_text().strip()


class GitRepository:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        return git(self.root, *arguments)

    def write(self, path: str, content: str = "x") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def commit(self, message: str = "change") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return head(self.root)


def bare_copy(repository: Path, folder: Path) -> str:
    """A bare clone that stands for the remote; returns its address, and is `origin` of the repository from now on."""
    git(repository, "clone", "-q", "--bare", str(repository), str(folder))
    (folder / "hooks").mkdir()
    address = folder.as_uri()
    git(repository, "remote", "add", "origin", address)
    git(repository, "fetch", "-q", "origin")
    return address


def file_at(repository: Path, commit: str, path: str) -> str:
    return git(repository, "show", f"{commit}:{path}")

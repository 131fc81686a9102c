"""Lines that GitHub Actions takes for commands: ours are printed, all others are kept from being any.

Its own module because the command line needs it before anything else is imported. Source: «Workflow commands for GitHub
Actions», on stopping and starting them.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_banned_until: list[str] = []  # the word that lifts the ban; none outside of GitHub Actions


@contextmanager
def inert_output() -> Iterator[None]:
    """Whoever wrote what is printed inside, no line of it is a command. Elsewhere than in GitHub Actions: nothing."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    _banned_until.append(os.urandom(16).hex())
    _say(f"::stop-commands::{_banned_until[-1]}")
    try:
        yield
    finally:
        _say(f"::{_banned_until.pop()}::")


def print_command(name: str, message: str, properties: Mapping[str, str]) -> None:
    """Print one command in spite of the ban."""
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    command = f"::{name}{' ' if listed else ''}{listed}::{_escaped(message)}"
    if _banned_until:
        _say(f"::{_banned_until[-1]}::", command, f"::stop-commands::{_banned_until[-1]}")
    else:
        _say(command)


def _say(*lines: str) -> None:
    """On stderr, so that what stdout is piped into never sees them."""
    sys.stdout.flush()
    print("\n".join(lines), file=sys.stderr, flush=True)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")

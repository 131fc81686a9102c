"""Lines that GitHub Actions takes for commands: ours are printed, all others are kept from being any.

Its own module because the command line needs it before anything else is imported. Source: actions/runner, ActionCommand
(a command is `::name` after nothing but blanks on a line, or `##[name` anywhere in one) and ProcessInvoker (stdout and
stderr are read apart and reach it in no fixed order, so that `::stop-commands::` on one says nothing about the other).
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, cast

_COMMAND = re.compile(r"(?:\A|(?<=[\r\n]))[^\S\r\n]*:(?=:)|##(?=\[)")
_LINE_END = re.compile(r"[\r\n]")


class _Inert:
    """A stream on which nothing is a command: what would begin one is parted by a blank, whatever it was split into."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._line = ""

    def write(self, text: str) -> int:
        """Write text as it is but for the blanks."""
        parted = _COMMAND.sub(r"\g<0> ", self._line + text)
        self.stream.write(parted[len(self._line) :])
        self._line = _LINE_END.split(parted)[-1]
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def inert_output() -> Iterator[None]:
    """Whoever wrote what is printed inside, no line of it is a command. Elsewhere than in GitHub Actions: nothing."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, _Inert(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def print_command(name: str, message: str, properties: Mapping[str, str]) -> None:
    """Print one command, on stderr, so that what stdout is piped into never sees it."""
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    stream: Any = sys.stderr
    line = f"::{name}{' ' if listed else ''}{listed}::{_escaped(message)}"
    print(line, file=stream.stream if isinstance(stream, _Inert) else stream, flush=True)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")

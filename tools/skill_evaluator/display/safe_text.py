"""Text from outside as people may see it: whole, on one line where a table needs that, and never taken for mark-up.

What cannot be seen (control characters, bidirectional marks, zero-width spaces, lone surrogates) is written as JSON
would escape it, so that two values that look alike can be told apart.

Lines that GitHub Actions takes for commands: ours are printed, all others are kept from being any.

Its own module because the command line needs it before anything else is imported. Source: actions/runner, ActionCommand
(a command is `::name` after nothing but blanks on a line, or `##[name` anywhere in one) and ProcessInvoker (stdout and
stderr are read apart and reach it in no fixed order, so that `::stop-commands::` on one says nothing about the other).
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, cast

_SHORT = 60
_BEFORE_THE_DIFFERENCE = 15
_BACKTICKS = re.compile(r"`+")
_PLAIN = re.compile(
    r"""(?:[^\W_]|\$(?=\d))(?:[^\W_]|[ ,.;:+'"’%()/=>±≥≤×÷·–—…→«»?!-]|<(?=[\d ])|\$(?=\d)|(?<=\w)_(?=[^\W_]))*"""
)
_MEANT = re.compile(r"//|www\.|\bgh-\d|:\S+:|\$.*\$", re.IGNORECASE)  # GitHub makes links, emoji, formulas of bare text


def visible(text: str, keep: str = "") -> str:
    """The text with every character that does not print written as `\\uXXXX`, but those in `keep`.

    >>> visible("a\\x1b[31mb")
    'a\\\\u001b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() or mark in keep else json.dumps(mark)[1:-1] for mark in text)


def value_text(value: Any) -> str:
    """A JSON value on one line; null and absent, which are the same thing for a leaf, as a dash."""
    return "–" if value is None else visible(json.dumps(value, ensure_ascii=False))


def name_text(name: str) -> str:
    """A name or path from outside on one line, with its backslashes doubled, as in JSON."""
    return visible(name.replace("\\", "\\\\"))


def shortened(text: str, start: int = 0, limit: int = _SHORT) -> str:
    """At most so many characters of a text, from `start`; what is left out is said.

    >>> shortened("abcdefghij", start=4, limit=3)
    '…efg… (10 characters)'
    """
    if len(text) <= limit:
        return text
    start = min(start, len(text) - limit)
    end = start + limit
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''} ({len(text):,} characters)"


def abridged(text: str, limit: int = 2 * _SHORT) -> str:
    """Beginning and end of a text that is longer: a message quotes the value it is about.

    >>> abridged("abcdefghij", 4)
    'ab … ij'
    """
    return text if len(text) <= limit else f"{text[: limit // 2]} … {text[-(limit // 2) :]}"


def value_pair(left: Any, right: Any, limit: int | None = _SHORT) -> tuple[str, str]:
    """Two values shortened alike, to the place where they differ; whole if there is no limit."""
    first, second = value_text(left), value_text(right)
    if limit is None:
        return first, second
    marks = enumerate(zip(first, second, strict=False))
    same = next((place for place, (one, other) in marks if one != other), min(len(first), len(second)))
    differ = same < max(len(first), len(second)) and not (left is None or right is None)
    start = max(0, same - _BEFORE_THE_DIFFERENCE) if differ and same > limit - _BEFORE_THE_DIFFERENCE else 0
    return shortened(first, start, limit), shortened(second, start, limit)


def code_span(text: str) -> str:
    """Text as Markdown code on one line, also inside a table (where a pipe ends a cell even in code)."""
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return fence + room + visible(text).replace("|", "\\|") + room + fence


def prose(text: str) -> str:
    """A sentence for a page: as it is where nothing in it could be mark-up, else as code.

    >>> prose("p <0.001 with 4 models"), prose("<b> is *best*")
    ('p <0.001 with 4 models', '`<b> is *best*`')
    """
    harmless = _PLAIN.fullmatch(text) and not _MEANT.search(text)
    return text if harmless else code_span(text)


def code_block(text: str) -> str:
    """Text as a Markdown block of code, its lines as they are."""
    fence = "`" * max(3, max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    return "\n".join([fence, visible(text, keep="\n\t").rstrip("\n"), fence])


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

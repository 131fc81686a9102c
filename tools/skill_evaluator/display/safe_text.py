"""Make external text safe to show: visible, without mark-up and without commands to GitHub Actions.

Invisible characters (control characters, bidirectional marks, zero-width spaces, lone surrogates) are escaped as in
JSON, so that different values never look the same. The command line imports this module first.
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
_CODE = re.compile(r"`([^`]+)`")
_PLAIN = re.compile(
    r"(?:[^\W_]|[▲▼≠◆=?!✕–…]|\$(?=\d))"
    r"""(?:[^\W_]|[ ,.;:+'"’%()/=>±≥≤×÷·–—…→«»?!^▲▼≠◆✕-]|<(?=[\d ])|\$(?=\d)"""
    r"|(?<=\w)_(?=[^\W_])|(?<=\w)\[\](?![\[(]))*"
)
_MEANT = re.compile(  # GitHub makes links, emoji and formulas of bare text
    r"//|www\.|\bgh-\d|:\S+:|\$(?=\S)[^$]*(?<=\S)\$(?!\d)", re.IGNORECASE
)
# A command is `::name` after blanks at most, or `##[name` anywhere in a line (actions/runner, ActionCommand).
_COMMAND = re.compile(r"(?:\A|(?<=[\r\n]))[^\S\r\n]*:(?=:)|##(?=\[)")
_LINE_END = re.compile(r"[\r\n]")


def visible(text: str, keep: str = "") -> str:
    """Return a text in which characters that do not print are escaped as in JSON, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() or mark in keep else json.dumps(mark)[1:-1] for mark in text)


def value_text(value: Any) -> str:
    """Format a JSON value on one line; null and a missing value are a dash."""
    return "–" if value is None else visible(json.dumps(value, ensure_ascii=False))


def name_text(name: str) -> str:
    """Format a name or path on one line, with its backslashes doubled, as in JSON."""
    return visible(name.replace("\\", "\\\\"))


def shortened(text: str, start: int = 0, limit: int = _SHORT) -> str:
    """Cut a text to `limit` characters from index `start`, such as `…efg… (10 characters)`. Keep a shorter text."""
    if len(text) <= limit:
        return text
    start = min(start, len(text) - limit)
    end = start + limit
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''} ({len(text):,} characters)"


def abridged(text: str, limit: int = 2 * _SHORT) -> str:
    """Cut the middle out of a text of more than `limit` characters, such as `ab … ij`."""
    return text if len(text) <= limit else f"{text[: limit // 2]} … {text[-(limit // 2) :]}"


def value_pair(before: Any, after: Any, limit: int | None = _SHORT) -> tuple[str, str]:
    """Format two values, cut around their first difference if they exceed the limit; a limit of None cuts nothing."""
    first, second = value_text(before), value_text(after)
    if limit is None:
        return first, second
    marks = enumerate(zip(first, second, strict=False))
    same = next((place for place, (mark, other) in marks if mark != other), min(len(first), len(second)))
    differ = same < max(len(first), len(second)) and not (before is None or after is None)
    start = max(0, same - _BEFORE_THE_DIFFERENCE) if differ and same > limit - _BEFORE_THE_DIFFERENCE else 0
    return shortened(first, start, limit), shortened(second, start, limit)


def code_span(text: str) -> str:
    """Format text as Markdown code on one line. Pipes are escaped, because they end a table's cell even in code."""
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return fence + room + visible(text).replace("|", "\\|") + room + fence


def prose(text: str, inside: bool = False) -> str:
    """Format a sentence, or a part of a line (`inside`), as Markdown. A text that could be mark-up becomes code."""
    plain = _CODE.sub("x", text)
    harmless = _PLAIN.fullmatch(f"x{plain}" if inside else plain) and not _MEANT.search(plain)
    return _CODE.sub(lambda code: code_span(code[1]), text) if harmless else code_span(text)


def code_block(text: str) -> str:
    """Format text as a Markdown code block."""
    fence = "`" * max(3, max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    return "\n".join([fence, visible(text, keep="\n\t").rstrip("\n"), fence])


class _InertStream:
    """A stream without commands: a blank breaks up the beginning of a command, even one written in parts.

    `::stop-commands::` does not help: the runner reads stdout and stderr separately (actions/runner, ProcessInvoker).
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._line = ""

    def write(self, text: str) -> int:
        """Write a text without workflow commands, and return its length."""
        parted = _COMMAND.sub(r"\g<0> ", self._line + text)
        self.stream.write(parted[len(self._line) :])
        self._line = _LINE_END.split(parted)[-1]
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def inert_output() -> Iterator[None]:
    """Prevent printed text from being a command to GitHub Actions; do nothing elsewhere."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, _InertStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def print_command(name: str, message: str, properties: Mapping[str, str]) -> None:
    """Print a command of GitHub Actions on stderr, so that it is never part of a piped stdout."""
    listed = ",".join(
        f"{key}={_escaped(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items()
    )
    stream = sys.stderr.stream if isinstance(sys.stderr, _InertStream) else sys.stderr
    print(f"::{name}{' ' if listed else ''}{listed}::{_escaped(message)}", file=stream, flush=True)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

"""The display of results: numbers, durations and amounts as people read them, and external text made safe to show.

Invisible characters are escaped as in JSON, so that different values never look the same. No text becomes mark-up or a
command to GitHub Actions. Keys are removed from texts: verbatim, URL-quoted, JSON-escaped, or in base64 at any offset.
The command line imports this module first.
"""

import base64
import json
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar, cast
from urllib.parse import quote

from skill_evaluator.errors import InternalError

MIN_CASES_FOR_INTERVAL = 5
WHOLE = "(the whole output)"  # the name of the field whose path is empty
_SLOW_S = 2.0
_MASK = "[redacted]"
_MIN_KEY_LENGTH = 8  # shorter keys are placeholders, and removing them would damage other text
_TOKENS: set[str] = set()  # access tokens that the process has received
_key_variables: set[str] = set()
_T = TypeVar("_T")


@contextmanager
def notice_when_slow(notice: str) -> Iterator[None]:
    """Print a notice to stderr if the block takes longer than two seconds."""
    timer = threading.Timer(_SLOW_S, lambda: print(notice, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def with_progress(items: Iterable[_T], total: int, label: str) -> Iterator[_T]:
    """Yield the items. After about 2, 4, 8, … seconds, print the label, the count and the time left to stderr."""
    begun, due = time.monotonic(), _SLOW_S
    for count, item in enumerate(items, 1):
        yield item
        taken = time.monotonic() - begun
        if taken >= due and count < total:
            remaining = clock(taken / count * (total - count))
            print(f"{label}: {count} of {total}, {remaining} left", file=sys.stderr, flush=True)
            due = 2 * taken


def clock(seconds: float) -> str:
    """Format seconds as minutes and seconds, such as `1:02`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def number(value: float | None) -> str:
    """Format a share or score with three decimals, and None as a dash."""
    return "–" if value is None else f"{value:z.3f}"


def probability(value: float | None) -> str:
    """Format a p-value with three decimals, or as `<0.001` if they would be 0.000. None becomes a dash."""
    return "–" if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"


def arrow(before: float | None, after: float | None) -> str:
    """Format two scores as `0.500 → 1.000`; None is a dash."""
    return f"{number(before)} → {number(after)}"


def signed(value: float | None) -> str:
    """Format a difference of scores as `+0.050`. A difference that rounds to zero is `0.000`, and None is a dash."""
    return "–" if value is None else f"{value:+.3f}" if round(value, 3) else "0.000"


def amount(value: float | None) -> str:
    """Format an amount as `1,234.50`, an amount below 0.1 with 2 to 4 decimals, and None as a dash."""
    if value is None:
        return "–"
    if value >= 0.1:
        return f"{value:,.2f}"
    whole, _, decimals = f"{value:.4f}".partition(".")
    return f"{whole}.{decimals.rstrip('0'):<02}"


def times(ratio: float) -> str:
    """Format a factor as `× 2,346`. A factor below 100 has up to three significant digits, for example `× 1.23`."""
    return f"× {count(ratio) if ratio >= 100 else plain(ratio, 3)}"


def count(value: float | None) -> str:
    """Format a whole number as `1,234`, and None as a dash."""
    return "–" if value is None else f"{value:,.0f}"


def short_count(value: int) -> str:
    """Format a number as `999`, `5.2k` or `1.25M`."""
    return str(value) if value < 1000 else f"{value / 1000:.1f}k" if value < 1_000_000 else f"{value / 1_000_000:.2f}M"


def plain(value: float | None, digits: int = 6) -> str:
    """Format a number with at most `digits` significant digits and no trailing zeros, and None as a dash."""
    return "–" if value is None else f"{value:,.{digits}g}"


def percent(value: float | None) -> str:
    """Format a share from 0 to 1 as a whole percentage, and None as a dash."""
    return "–" if value is None else f"{value:.0%}"


def seconds(value: float | None) -> str:
    """Format seconds with two decimals and their unit, and None as a dash."""
    return "–" if value is None else f"{value:.2f} s"


def relative_change(before: float | None, after: float | None) -> str:
    """Format the change of an amount in percent, as `+50 %`. Return "" if an amount is unknown.

    A change that rounds to 0 is `=`. If the old amount is 0, format the new one instead.
    """
    if before is None or after is None:
        return ""
    share = round((after / before - 1) * 100) if before else None
    return "=" if before == after or share == 0 else f"{after:+.4g}" if share is None else f"{share:+} %"


def interval(ci95: tuple[float, float] | None, cases: int, write: Callable[[float | None], str] = number) -> str:
    """Format a 95 % confidence interval as `0.500 to 0.750`, or None as a dash. `write` formats each end.

    Return `too few` for one to four cases.
    """
    if 0 < cases < MIN_CASES_FOR_INTERVAL:
        return "too few"
    return "–" if ci95 is None else f"{write(ci95[0])} to {write(ci95[1])}"


def ends(ci95: tuple[float, float] | None, cases: int) -> tuple[float, float] | tuple[None, None]:
    """Return an interval for a chart, or (None, None) if there is none or there are fewer than five cases."""
    return (None, None) if ci95 is None or cases < MIN_CASES_FOR_INTERVAL else ci95


def cost_words(usd: float | None, hit_rate: float | None = None, *, digits: int = 4) -> str:
    """Format a cost as `$1.5000`, or as `unknown`. A `hit_rate` of the prompt cache adds ` (69% cached)`."""
    cost = "unknown" if usd is None else f"${usd:,.{digits}f}"
    return cost if hit_rate is None else f"{cost} ({hit_rate:.0%} cached)"


def stability_words(stability: str, replicates: int) -> str:
    """Return a stability without the prefix `stable_`. With one replicate, `unscored` becomes `answered once`."""
    return "answered once" if stability == "unscored" and replicates == 1 else stability.removeprefix("stable_")


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
    """Format a text as Markdown, or as code if it could be mark-up. If `inside`, the text continues a line."""
    plain = _CODE.sub("x", text)
    harmless = _PLAIN.fullmatch(f"x{plain}" if inside else plain) and not _MEANT.search(plain)
    return _CODE.sub(lambda code: code_span(code[1]), text) if harmless else code_span(text)


def code_block(text: str) -> str:
    """Format text as a Markdown code block."""
    fence = "`" * max(3, max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    return "\n".join([fence, visible(text, keep="\n\t").rstrip("\n"), fence])


class _InertStream:
    """A stream whose text contains no GitHub Actions command: `::` at the start of a line becomes `: :`.

    `::stop-commands::` is no remedy: the runner reads stdout and stderr separately (actions/runner, ProcessInvoker).
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._line = ""

    def write(self, text: str) -> int:
        """Write a text without workflow commands, and return the length of the text."""
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


def add_key_variables(variables: Iterable[str]) -> None:
    """Treat the values of these environment variables as keys: no child process inherits them."""
    _key_variables.update(variables)


def is_key_variable(variable: str) -> bool:
    """Return whether an environment variable is named `*_API_KEY` or was passed to `add_key_variables`."""
    return variable in _key_variables or variable.endswith("_API_KEY")


def remember_token(token: str) -> None:
    """Add an access token that every `Redactor` of this process removes."""
    _TOKENS.add(token)


class Redactor:
    """Removes keys from a text before it reaches a journal, a record or a screen."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = {key.strip() for key in keys}
        self._tokens: frozenset[str] = frozenset()
        self._pattern = _pattern_of(self._keys)

    def __call__(self, text: str) -> str:
        """Replace the keys and remembered tokens of 8 characters or more in a text by `[redacted]`."""
        if len(_TOKENS) > len(self._tokens):
            self._tokens = frozenset(_TOKENS)
            self._pattern = _pattern_of(self._keys | self._tokens)
        return self._pattern.sub(_MASK, text)


def environment_redactor() -> Redactor:
    """Return a redactor of the values of key variables and of variables named `*_KEY` or `*_TOKEN`."""
    variables = os.environ.items()
    return Redactor(value for name, value in variables if is_key_variable(name) or name.endswith(("_KEY", "_TOKEN")))


def internal_error(problem: Exception, component: str | None = None) -> InternalError:
    """Convert an unexpected exception to an InternalError, and print its traceback to stderr, both redacted."""
    redact = environment_redactor()
    print(redact("".join(traceback.format_exception(problem))), file=sys.stderr, end="", flush=True)
    where = "" if component is None else f" in {component}"
    return InternalError(redact(f"internal error{where}: {type(problem).__name__}: {problem}"))


def _pattern_of(keys: Iterable[str]) -> re.Pattern[str]:
    spellings = {spelling for key in keys if len(key) >= _MIN_KEY_LENGTH for spelling in _spellings(key)}
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")  # (?!) matches nothing


def _spellings(key: str) -> Iterator[str]:
    yield from (key, quote(key, safe="", errors="surrogatepass"), json.dumps(key)[1:-1], key.replace("/", r"\/"))
    for before, shared in ((0, 0), (1, 2), (2, 3)):  # bytes before the key, and code characters that depend on them
        raw = bytes(before) + key.encode("utf-8", "surrogatepass")
        code = base64.b64encode(raw).decode().rstrip("=")
        fragment = code[shared : len(code) - (len(raw) % 3 != 0)]
        yield from (fragment, fragment.translate(str.maketrans("+/", "-_")))

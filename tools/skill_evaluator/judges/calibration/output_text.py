"""What code must know of an output before it changes anything: is it prose, JSON or code, and where are its parts?"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

Span = tuple[int, int]

BULLET = re.compile(r"^[ \t]*(?:[-*•+–]|\d{1,3}[.)])[ \t]+(?=\S)", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<!\b\w)(?<!\b[DMS][rst])[.!?][\"')\]]*(?=\s|$)")  # not of «e.g.», «1.», «Dr.»
_NUMBERED = re.compile(r"^[ \t]*\d", re.MULTILINE)
_CODE = re.compile(
    r"`|^\s*(?:def|class|import|return|function|const|let|var|#include)\b|[;{}]\s*$|\w\(\w*\)", re.MULTILINE
)
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false")
_KEY_END = re.compile(r"\s*:")


@lru_cache(maxsize=8)  # every damage and every control looks at the same output
def kind_of(text: str) -> Literal["json", "code", "prose"]:
    """Return what an output is; JSON is an object or array and nothing around it."""
    if json_value(text) is not None:
        return "json"
    return "code" if _CODE.search(text) else "prose"


def json_value(text: str) -> Any:
    """Return the object or array that a text is, or None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def written_like(text: str, value: Any) -> str:
    """Write a JSON value with line breaks where the text has some."""
    return json.dumps(value, indent=2 if "\n" in text.strip() else None, ensure_ascii=False)


def value_spans(text: str) -> list[Span]:
    """Return where an output says something: all of a prose, the values of a JSON without quotation marks and keys."""
    if kind_of(text) == "prose":
        return [(0, len(text))]
    spans, place = [], 0
    for literal in _LITERAL.finditer(text):
        spans += [scalar.span() for scalar in _SCALAR.finditer(text, place, literal.start())]
        if not _KEY_END.match(text, literal.end()):
            spans.append((literal.start() + 1, literal.end() - 1))
        place = literal.end()
    return [*spans, *(scalar.span() for scalar in _SCALAR.finditer(text, place))]


def bullet_lines(text: str) -> list[Span]:
    """Return the lines of a list with their line breaks; a line that goes on with an item belongs to it."""
    starts = [match.start() for match in BULLET.finditer(text)]
    ends = []
    for place, start in enumerate(starts):
        following = starts[place + 1] if place + 1 < len(starts) else len(text)
        blank = re.search(r"\n[ \t]*\n", text[start:following])
        ends.append(start + blank.start() + 1 if blank else following)
    return list(zip(starts, ends, strict=True))


def is_numbered(text: str, lines: Sequence[Span]) -> bool:
    """Return whether a list gives its items numbers."""
    return any(_NUMBERED.match(text, start) for start, _ in lines)


def sentences(text: str) -> list[Span]:
    """Return the sentences of a prose, each with the white space behind it."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    ends = [end + len(text[end:]) - len(text[end:].lstrip()) for end in ends]
    return [span for span in zip([0, *ends], ends, strict=False) if text[slice(*span)].strip()]

"""Spoil a file as an accident or an attacker would: a value of another kind, a key less, odd characters, any bytes.

By a `random.Random`, which Hypothesis can draw and shrink, and which a benchmark can seed.
"""

import json
import random
from typing import Any

from tests.support.hostile_files import ODD_BYTES, ODD_PIECES, deep_json

_NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**63), 10**15, 10**400, 0.5, -0.0, 1e308, -1e308, 5e-324, 999999999)
_NO_JSON = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5_000, "-" + "9" * 400)
_TEXTS = (
    *("", " ", "\0", "a\nb", "\r::error::x", "\x1b[31m", "\u202e", "\ud800", "x" * 5_000, "é" * 300, "\u0301" * 300),
    *("..", "../../../etc/passwd", "/", "/proc/self/environ", "\\\\server\\share", "-rf", "--help", "*", "[", "(a+)+$"),
    *("null", "true", "1", "-1", "1e5", "NaN", "∞", "9/3", "0/0", "1/999999", "1.0", "9999999999.0.0", "1.0.0-a.a.b"),
    *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-13-45T99:99:99Z", "2026-02-30", "sha256:", "HEAD", "a@b"),
    *("{{ prompt }}", "%s%n", "$(id)", "${{ secrets.X }}", "<script>", "=1+1", "#" * 300),
)
_LIKELY = (
    *("2026-02-28T23:59:59Z", "9999-12-31T23:59:59Z", "9.9.9", "recorded", "vendor/other", "alpha", "replay", "openai"),
    *("sha256:" + "0" * 64, "0" * 40, "1/2", "exact_match", "field_level_f1", "scored", "Größe", "a" * 200),
)
_WHOLE = (b"", b"\n", b"null", b"[]", b"{}", b'""', b"0", *ODD_BYTES, deep_json(3_000).encode())


class _NoJson(str):
    """What is written without quotes, though JSON has no such value."""


def spoil(content: bytes, dice: random.Random) -> bytes:
    """Return the content of a file otherwise."""
    match dice.randrange(10):
        case 0:
            return dice.choice(_WHOLE)
        case 1:
            return dice.randbytes(dice.randrange(1, 200))
        case 2 | 3:
            return _with_odd_pieces(content, dice)
        case _:
            return _with_another_value(content, dice)


def _with_odd_pieces(content: bytes, dice: random.Random) -> bytes:
    pieces = (*(piece.encode("utf-8", "surrogatepass") for piece in ODD_PIECES), *ODD_BYTES)
    for _ in range(dice.randint(1, 3)):
        start = dice.randint(0, len(content))
        end = dice.choice((start, start + 1, start + 20, len(content)))
        content = content[:start] + dice.choice(pieces) + content[end:]
    return content


def _with_another_value(content: bytes, dice: random.Random) -> bytes:
    """Put another value into JSON, into a line that is JSON, or behind the key of a line of YAML."""
    whole = _spoilt_json(content, dice)
    if whole is not None:
        return whole
    lines = content.splitlines(keepends=True) or [b"\n"]
    at = dice.randrange(len(lines))
    key, colon, _ = lines[at].partition(b": ")
    line = _spoilt_json(lines[at], dice) or (key + colon + _written(_odd_value(dice), dice) if colon else None)
    if line is None:
        return _with_odd_pieces(content, dice)
    return b"".join([*lines[:at], line, b"\n", *lines[at + 1 :]])


def _spoilt_json(content: bytes, dice: random.Random) -> bytes | None:
    """Change one thing in a JSON object or array, or a few; None for what is none."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    if not isinstance(value, dict | list):
        return None
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        _change_a_part(value, dice)
    return _written(value, dice)


def _change_a_part(value: Any, dice: random.Random) -> None:
    waiting, places = [value], []
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        places += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    if not places:
        return
    holder, key = dice.choice(places)
    match dice.randrange(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[dice.choice(_TEXTS)] = holder.pop(key)
        case 1:
            holder.insert(0, holder[key])
        case 2 | 3 | 4 | 5:
            holder[key] = _like(holder[key], dice)
        case _:
            holder[key] = _odd_value(dice)


def _like(value: Any, dice: random.Random) -> Any:
    """Return another value of the same kind, which may pass as one that is meant."""
    match value:
        case bool():
            return not value
        case int():
            return dice.choice((0, 1, 2, 3, 7, -1, 10**6, 10**9, 2**63, value + 1, value * 1000))
        case float():
            return dice.choice((0.0, 1.0, 0.5, -1.0, 1.5, 1e308, 5e-324, value / 2, value * 1000))
        case str():
            return dice.choice((value + "x", value[:-1], value.upper(), *_LIKELY, value + dice.choice(_TEXTS)))
        case list():
            return dice.choice(([], value[:1], value * 2, value[::-1], [value]))
        case dict():
            return dice.choice(({}, dict(list(value.items())[:1]), {**value, "more": 1}, dict.fromkeys(value)))
    return dice.choice((0, 1, 0.5, "x", [], {}, True))


def _odd_value(dice: random.Random) -> Any:
    kinds = (None, True, False, [], {}, [[]], {"a": 1}, [1, "a", None], [dice.choice(_TEXTS)] * 300)
    return dice.choice((*kinds, dice.choice(_NUMBERS), dice.choice(_TEXTS), _NoJson(dice.choice(_NO_JSON))))


def _written(value: Any, dice: random.Random) -> bytes:
    """Write JSON, with characters as they are or in escapes, and what JSON has no value for as it stands."""
    raw: list[str] = []

    def marked(part: Any) -> Any:
        if isinstance(part, _NoJson):
            raw.append(part)
            return f"<no JSON {len(raw) - 1}>"
        if isinstance(part, dict):
            return {key: marked(inner) for key, inner in part.items()}
        return [marked(inner) for inner in part] if isinstance(part, list) else part

    text = json.dumps(marked(value), ensure_ascii=dice.random() < 0.5)
    for number, written in enumerate(raw):
        text = text.replace(f'"<no JSON {number}>"', written)
    return text.encode("utf-8", "surrogatepass")

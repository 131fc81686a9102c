"""Text in, text out: normalisation, tokens, digests and the nearest known name.

Its own module because scoring, configuration and error messages must agree on what «the same text» is.
"""

import difflib
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

_WORD = re.compile(r"\w+", re.UNICODE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def normalise(text: str) -> str:
    """NFC text with runs of white space folded to one space and none at the ends."""
    return " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())


def without_punctuation(text: str) -> str:
    """Drop every character of a Unicode punctuation category, then fold white space again."""
    return " ".join("".join(" " if unicodedata.category(mark).startswith("P") else mark for mark in text).split())


def words(text: str) -> list[str]:
    """Case-folded words of a text, in order: what token F1 and ROUGE-L count."""
    return _WORD.findall(normalise(text).casefold())


def printable(text: str) -> str:
    """Text without control characters, for a terminal or a log line."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def canonical_json(value: Any) -> str:
    """The one JSON text of equal values: keys sorted, null members dropped, whole floats as integers, text as NFC.

    >>> canonical_json({"b": 1.0, "a": None}) == canonical_json({"b": 1})
    True
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        return {_plain(key): _plain(child) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def digest(content: str | bytes) -> str:
    """Return `sha256:` and the hexadecimal SHA-256 of the content (text as UTF-8)."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return "sha256:" + hashlib.sha256(raw).hexdigest()


def nearest(name: str, known: Iterable[str]) -> str:
    """`(did you mean 'x'?)` when a known name is close, else the list of known names."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"(did you mean '{close[0]}'?)"
    return f"(known: {', '.join(names)})" if names else "(none is known)"

"""Removes keys from texts, in the four spellings in which a server may repeat them.

The spellings are the key as it is, URL-quoted, JSON-escaped, and in base64 at each of the three offsets of a byte.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, unquote, urlsplit

from skill_evaluator.library.config import Model

_MASK = "[redacted]"
_MIN_LENGTH = 8  # a shorter key is a placeholder; removing it would damage honest text
_TOKENS: set[str] = set()  # access tokens that the process received while it ran


def remember(token: str) -> None:
    """Make every `Redactor` of this process remove an access token that was received during a run."""
    _TOKENS.add(token)


class Redactor:
    """Removes keys from a text before it reaches a journal, a record or a screen."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = {key.strip() for key in keys}
        self._tokens: frozenset[str] = frozenset()
        self._pattern = _pattern_of(self._keys)

    def __call__(self, text: str) -> str:
        """Return the text with each key replaced by a mask."""
        if len(_TOKENS) > len(self._tokens):
            self._tokens = frozenset(_TOKENS)
            self._pattern = _pattern_of(self._keys | self._tokens)
        return self._pattern.sub(_MASK, text)


def redactor_of(keys: Mapping[str, str], models: Iterable[Model]) -> Redactor:
    """Build the redactor of the keys (by variable) and of the passwords in the addresses of models."""
    return Redactor([*keys.values(), *(secret for model in models for secret in _passwords(model.base_url or ""))])


def _passwords(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    if parts.password:
        password = unquote(parts.password)
        yield from (password, f"{unquote(parts.username or '')}:{password}")  # basic authentication encodes both


def _pattern_of(keys: Iterable[str]) -> re.Pattern[str]:
    spellings = {spelling for key in keys if len(key) >= _MIN_LENGTH for spelling in _spellings(key)}
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")  # (?!) matches nothing


def _spellings(key: str) -> Iterator[str]:
    yield from (key, quote(key, safe=""), json.dumps(key)[1:-1], key.replace("/", r"\/"))
    for before, shared in ((0, 0), (1, 2), (2, 3)):  # characters of the code that depend on the bytes before the key
        raw = bytes(before) + key.encode("utf-8", "surrogatepass")
        code = base64.b64encode(raw).decode().rstrip("=")
        own = code[shared : len(code) - (len(raw) % 3 != 0)]
        yield from (own, own.translate(str.maketrans("+/", "-_")))

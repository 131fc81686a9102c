"""Keys struck out of texts and tracebacks, in every spelling in which a server may repeat what it was sent.

Beside the key itself: other letter cases, percent-encoding, escapes of JSON, and base64 wherever in it the key begins.
"""

import base64
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from skill_evaluator.errors import InternalError, SkillEvaluatorError
from skill_evaluator.files import first_problem
from skill_evaluator.library.config import Model
from skill_evaluator.processes import child_environment

_MASK = "[redacted]"
_SHORTEST_KEY = 8  # a shorter «key» is a placeholder, and striking it out would damage honest text
_ESCAPE = r"\\{0,4}"  # of JSON, of JSON inside JSON; more would make a text of backslashes slow to search
_OF_BASE64 = {"+": r"(?:[+-]|%2[bB])", "/": rf"(?:{_ESCAPE}/|_|%2[fF])"}  # the second of each: the URL-safe alphabet
_FIRST_OF_ESCAPES = "%\\+-/_"
_PREFIX = re.compile(r"(?:[A-Za-z]{1,6}\d{0,2}[-_]){1,3}|AIza")  # which error messages name: `sk-ant-api03-`
_PART = 12  # characters of a key in a row that are struck out of failures and metadata
_PART_OF_ANSWER = 20  # an answer may hold short runs of a key's characters by chance
_START = 64  # characters by which a token that came later is known; the first ones of JSON Web Tokens are alike
ResultT = TypeVar("ResultT")
_REST = r"[\w.~+/%=\\-]*"
_LATER: set[str] = set()


def remember(token: str) -> None:
    """Have every Redactor of this process strike out a token that came while it ran, from its start to its end."""
    if len(token) >= _SHORTEST_KEY:
        _LATER.add(token[:_START])


class Redactor:
    """Strikes every key out of a text, before it reaches a journal, a record or a screen.

    Built once per run from the keys of all providers.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        values = {key.strip() for key in keys}
        longest_first = sorted((value for value in values if len(value) >= _SHORTEST_KEY), key=len, reverse=True)
        self._spellings = _any_of(longest_first) if longest_first else None
        bodies = [value[match.end() if (match := _PREFIX.match(value)) else 0 :] for value in longest_first]
        codes = [body.encode("utf-8", "surrogatepass").hex() for body in bodies]
        self._parts_of_answers = [(body, _PART_OF_ANSWER) for body in bodies]
        self._parts = [(text, _PART) for body in bodies for text in (body, body[::-1])]
        self._parts += [(text, 2 * _PART) for code in codes for text in (code, code.upper())]
        self._later: re.Pattern[str] | None = None
        self._remembered = 0

    def __call__(self, text: str) -> str:
        """Return a failure's message, or metadata, without keys, and without parts of keys, reversed or in hex, too."""
        return self._without(text, self._parts)

    def answer(self, text: str) -> str:
        """Return a model's answer without keys, and without long parts of them."""
        return self._without(text, self._parts_of_answers)

    def _without(self, text: str, parts: Iterable[tuple[str, int]]) -> str:
        if len(_LATER) != self._remembered:
            starts = tuple(_LATER)
            self._later, self._remembered = re.compile(_any_of(starts).pattern + _REST), len(starts)
        text = self._spellings.sub(_MASK, text) if self._spellings else text
        text = self._later.sub(_MASK, text) if self._later else text
        for spelling, least in parts:
            text = _without_parts(text, spelling, least)
        return text


def _without_parts(text: str, key: str, least: int) -> str:
    """Return the text without runs of at least `least` characters that stand in the key, too.

    >>> _without_parts("it begins with abcdefgh", "abcdefghijkl", 6)
    'it begins with [redacted]'
    """
    size = (least + 1) // 2  # such a run holds one whole block of the key, counted from the key's start
    runs: list[tuple[int, int]] = []
    for at in range(0, len(key) - size + 1, size):
        found = text.find(key[at : at + size])
        while found >= 0:
            before = _alike(reversed(text[max(found - at, 0) : found]), reversed(key[:at]))
            end = found + size + _alike(text[found + size : found + len(key)], key[at + size :])
            if end - found + before >= least:
                runs.append((found - before, end))
            found = text.find(key[at : at + size], end)
    kept, last = [], 0
    for start, end in sorted(runs):
        if start >= last:
            kept += [text[last:start], _MASK]
        last = max(last, end)
    return "".join([*kept, text[last:]])


def _alike(text: Iterable[str], key: Iterable[str]) -> int:
    """Return how many characters both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, key, strict=False)))


def redactor_of(keys: Mapping[str, str], models: Iterable[Model]) -> Redactor:
    """Return what strikes out keys (by variable), and the passwords that stand in the addresses of models."""
    return Redactor([*keys.values(), *(secret for model in models for secret in _passwords(model.base_url or ""))])


def error_of(problem: Exception, component: str | None = None) -> SkillEvaluatorError:
    """Return an unexpected exception as an error without keys: an InternalError, whose traceback is printed on stderr.

    A value that a pydantic model refuses is wrong input, not a bug: no traceback is printed.
    """
    shown = [name for name in child_environment() if not name.endswith(("_KEY", "_TOKEN"))]
    redact = Redactor(value for name, value in os.environ.items() if name not in shown)
    if isinstance(problem, ValidationError):
        return SkillEvaluatorError(redact(f"{first_problem(problem)} in what was read for {problem.title}"))
    print(redact("".join(traceback.format_exception(problem))), file=sys.stderr, end="", flush=True)
    where = "" if component is None else f" in {component}"
    return InternalError(redact(f"internal error{where}: {type(problem).__name__}: {problem}"))


def attempted(component: str, work: Callable[[], ResultT]) -> ResultT | SkillEvaluatorError:
    """Return the result of work on a component, or its error: a bug in one component does not stop the others."""
    try:
        return work()
    except SkillEvaluatorError as problem:
        return problem
    except Exception as problem:
        return error_of(problem, component)


def _passwords(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    if parts.password:
        password = unquote(parts.password)
        yield from (password, f"{unquote(parts.username or '')}:{password}")  # basic authentication encodes both


def _any_of(keys: Iterable[str]) -> re.Pattern[str]:
    """Compile one expression for all keys, the longest first.

    It looks at the first character before it tries the spellings one by one, which makes it ten times as fast.
    """
    firsts, spellings = set(_FIRST_OF_ESCAPES), []
    for key in keys:
        firsts |= _cases(key[0])
        spellings.append("".join(map(_character, key)))
        for code, ends_within in _base64_codes(key):
            firsts.add(code[0])
            rest = "[A-Za-z0-9+/_-]?" if ends_within else ""
            spellings.append("".join(_OF_BASE64.get(mark, mark) for mark in code) + rest + "(?:=|%3[dD]){0,2}")
    first = "".join(re.escape(mark) for mark in sorted(firsts))
    return re.compile(f"(?=[{first}])(?:{'|'.join(spellings)})")


def _cases(mark: str) -> set[str]:
    return {case for case in (mark, mark.lower(), mark.upper()) if len(case) == 1}


def _character(mark: str) -> str:
    """Return an expression for one character of a key: itself, `%41`, `%2541`, `\\u0041`, `\\/`, in either case."""
    cases = sorted(_cases(mark))
    as_bytes = ("".join(f"%(?:25)?{_hex(f'{byte:02x}')}" for byte in _utf8(case)) for case in cases)
    units = ("".join(rf"\\{{1,4}}u{_hex(unit)}" for unit in _utf16(case)) for case in cases)
    itself = f"{_ESCAPE}[{''.join(map(re.escape, cases))}]"
    return f"(?:{'|'.join((*units, *as_bytes, itself))})"  # itself last, for an escape of U begins with u


def _utf8(mark: str) -> bytes:
    return mark.encode("utf-8", "surrogatepass")


def _utf16(mark: str) -> list[str]:
    digits = mark.encode("utf-16-be", "surrogatepass").hex()
    return [digits[start : start + 4] for start in range(0, len(digits), 4)]


def _hex(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _base64_codes(key: str) -> Iterator[tuple[str, bool]]:
    """Yield what of the key's base64 depends on the key alone, for each place in three bytes where it may begin.

    With it goes whether the next character holds the key's last bits, too.
    """
    for before, shared in ((0, 0), (1, 2), (2, 3)):
        raw = bytes(before) + _utf8(key)
        code = base64.b64encode(raw).decode().rstrip("=")
        ends_within = len(raw) % 3 != 0
        yield code[shared : len(code) - ends_within], ends_within

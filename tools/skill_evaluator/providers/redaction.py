"""Remove keys from texts and tracebacks: verbatim, URL-quoted, JSON-escaped, or in base64 at any offset."""

import base64
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit

from pydantic import ValidationError

from skill_evaluator.errors import InternalError, SkillEvaluatorError
from skill_evaluator.files import first_problem
from skill_evaluator.processes import child_environment

_MASK = "[redacted]"
_MIN_LENGTH = 8  # shorter keys are placeholders, and removing them would damage other text
_TOKENS: set[str] = set()  # access tokens that the process has received
ResultT = TypeVar("ResultT")


def remember(token: str) -> None:
    """Add an access token that every `Redactor` of this process removes."""
    _TOKENS.add(token)


class Redactor:
    """Removes keys from a text before it reaches a journal, a record or a screen."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = {key.strip() for key in keys}
        self._tokens: frozenset[str] = frozenset()
        self._pattern = _pattern_of(self._keys)

    def __call__(self, text: str) -> str:
        """Replace each key and remembered token in a text by `[redacted]`, unless it has fewer than 8 characters."""
        if len(_TOKENS) > len(self._tokens):
            self._tokens = frozenset(_TOKENS)
            self._pattern = _pattern_of(self._keys | self._tokens)
        return self._pattern.sub(_MASK, text)


def error_of(problem: Exception, component: str | None = None) -> SkillEvaluatorError:
    """Convert an unexpected exception to an InternalError, and print its traceback to stderr, both redacted.

    A pydantic ValidationError means invalid input: return a SkillEvaluatorError and print nothing.
    """
    shown = [name for name in child_environment() if not name.endswith(("_KEY", "_TOKEN"))]
    redact = Redactor(value for name, value in os.environ.items() if name not in shown)
    if isinstance(problem, ValidationError):
        return SkillEvaluatorError(redact(f"{first_problem(problem)} in what was read for {problem.title}"))
    print(redact("".join(traceback.format_exception(problem))), file=sys.stderr, end="", flush=True)
    where = "" if component is None else f" in {component}"
    return InternalError(redact(f"internal error{where}: {type(problem).__name__}: {problem}"))


def result_or_error(component: str, work: Callable[[], ResultT]) -> ResultT | SkillEvaluatorError:
    """Return the result of `work`. If `work` raises an exception, return it as a SkillEvaluatorError."""
    try:
        return work()
    except SkillEvaluatorError as problem:
        return problem
    except Exception as problem:
        return error_of(problem, component)


def passwords_of(url: str) -> Iterator[str]:
    """Yield the password in an address, alone and as `user:password`. Yield nothing if there is none."""
    parts = urlsplit(url)
    if parts.password:
        password = unquote(parts.password)
        yield from (password, f"{unquote(parts.username or '')}:{password}")  # basic authentication encodes both


def _pattern_of(keys: Iterable[str]) -> re.Pattern[str]:
    spellings = {spelling for key in keys if len(key) >= _MIN_LENGTH for spelling in _spellings(key)}
    longest_first = sorted(spellings, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")  # (?!) matches nothing


def _spellings(key: str) -> Iterator[str]:
    yield from (key, quote(key, safe="", errors="surrogatepass"), json.dumps(key)[1:-1], key.replace("/", r"\/"))
    for before, shared in ((0, 0), (1, 2), (2, 3)):  # bytes before the key, and code characters that depend on them
        raw = bytes(before) + key.encode("utf-8", "surrogatepass")
        code = base64.b64encode(raw).decode().rstrip("=")
        fragment = code[shared : len(code) - (len(raw) % 3 != 0)]
        yield from (fragment, fragment.translate(str.maketrans("+/", "-_")))

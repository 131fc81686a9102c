"""Completion text → JSON value, option or text, with how it was found.

Strict first: the whole text. Models like to wrap JSON in a code fence or a sentence; that is forgiven, and said.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from skill_evaluator.parsing import Output, Parsed
from skill_evaluator.parsing.choice import read_choice
from skill_evaluator.text import finite_float, refuse_constant

__all__ = ["Parsed", "parse_output"]

_FENCE = re.compile(r"```(?:json|JSON)?[ \t\r]*\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_BRACKET_OR_STRING = re.compile(r'[{}\[\]]|"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_MOST_ATTEMPTS = 200
_DEEPEST = 64  # levels of nesting; a model in a loop writes thousands, and scoring walks values recursively


def parse_output(text: str, output: Output, options: Sequence[str] = ()) -> Parsed:
    """Parse one answer by the component's kind of output; never raises. `options` are those of the case's question.

    >>> parse_output('Here it is: {"total": 9}', "json").value
    {'total': 9}
    >>> parse_output("The capital is easy: the answer is (B).", "choice", ("Lyon", "Paris")).value
    'B'
    """
    stripped = text.strip()
    if not stripped:
        return Parsed(problem="empty")
    if output == "text":
        return Parsed(value=stripped, found="whole")
    if output == "choice":
        return read_choice(stripped, options)
    for found, candidate in _places(stripped):
        try:
            return Parsed(value=_decode(candidate), found=found)
        except ValueError:
            continue
    return _embedded(stripped) or Parsed(problem="not_json")


def _places(text: str) -> Iterator[tuple[Literal["whole", "fenced"], str]]:
    yield "whole", text
    for block in _FENCE.findall(text):
        yield "fenced", block.strip()


def _decode(text: str) -> Any:
    _refuse_depth(text)
    return _DECODER.decode(text)


def _refuse_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= _DEEPEST:
        return
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text):
        depth += _step(match[0])
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")


def _step(piece: str) -> int:
    return {"{": 1, "[": 1, "}": -1, "]": -1}.get(piece, 0)


_DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite_float)


def _embedded(text: str) -> Parsed | None:
    """The longest object or array in the text; never a part of one that is broken or cut off.

    Where decoding fails, the search goes on behind the bracket that closes the broken value, if there is one.
    """
    best: tuple[int, Any] | None = None
    position = 0
    for _ in range(_MOST_ATTEMPTS):
        opening = _OPENING.search(text, position)
        if opening is None:
            break
        position = _closing(text, opening.start())
        candidate = text[opening.start() : position]
        try:
            value = _decode(candidate)
        except ValueError:
            continue
        if best is None or len(candidate) > best[0]:
            best = (len(candidate), value)
    return Parsed(value=best[1], found="embedded") if best else None


def _closing(text: str, opening: int) -> int:
    """Where the value that opens there ends: behind its closing bracket, or at the end of a text that lacks one."""
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text, opening):
        depth += _step(match[0])
        if not depth:
            return match.end()
    return len(text)

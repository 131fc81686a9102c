"""Completion text → JSON value, option or text, with how it was found.

The whole text is tried first. Models like to wrap JSON in a code fence or a sentence; that is forgiven, with a remark.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from skill_evaluator.parsing import Output, Parsed
from skill_evaluator.text import finite_float, refuse_constant

__all__ = ["Parsed", "parse_output"]

_FENCE = re.compile(r"```(?:json|JSON)?[ \t\r]*\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_BRACKET_OR_STRING = re.compile(r'[{}\[\]]|"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_MOST_ATTEMPTS = 200
_DEEPEST = 64  # levels of nesting; a model in a loop writes thousands, and scoring walks values recursively
_DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite_float)


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
        from skill_evaluator.parsing.choice import read_choice  # compiles many expressions

        return read_choice(stripped, options)
    with suppress(ValueError):
        return Parsed(value=_decode(stripped), found="whole")
    for block in _FENCE.findall(stripped):
        with suppress(ValueError):
            return Parsed(value=_decode(block.strip()), found="fenced")
    longest = max(embedded_values(stripped), key=lambda embedded: len(embedded[0]), default=None)
    return Parsed(problem="not_json") if longest is None else Parsed(value=longest[1], found="embedded")


def _decode(text: str) -> Any:
    """Decode one JSON value; raise ValueError when it is broken or nested too deeply."""
    if text.count("[") + text.count("{") > _DEEPEST:
        depth = 0
        for match in _BRACKET_OR_STRING.finditer(text):
            depth += _STEPS.get(match[0], 0)
            if depth > _DEEPEST:
                raise ValueError("nested too deeply")
    return _DECODER.decode(text)


def embedded_values(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the outermost objects and arrays of a text in their order, each with its own text.

    A part of a value that is broken or cut off does not count: the search goes on behind the bracket that
    closes the broken value, if there is one.

    >>> [value for _, value in embedded_values('First {"a": 1}, then [2].')]
    [{'a': 1}, [2]]
    """
    position = 0
    for _ in range(_MOST_ATTEMPTS):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        depth, position = 0, len(text)  # the end of a value that is never closed
        for match in _BRACKET_OR_STRING.finditer(text, opening.start()):
            depth += _STEPS.get(match[0], 0)
            if not depth:
                position = match.end()
                break
        candidate = text[opening.start() : position]
        with suppress(ValueError):
            yield candidate, _decode(candidate)

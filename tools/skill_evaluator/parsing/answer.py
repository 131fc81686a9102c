"""Completion text → JSON value, option or text, with how it was found, or why it is missing.

Reasoning is removed first. If the rest is not JSON as a whole, the candidates in it are read: complete, outermost
objects and arrays, in a code fence or amid other text.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from skill_evaluator.parsing import ANY_VALUE, Expected, NotJson, Output, Parsed
from skill_evaluator.parsing.choice import read_choice  # compiles many expressions
from skill_evaluator.text import finite_float, refuse_constant

__all__ = ["Parsed", "parse_output", "split_reasoning"]

_FENCE = re.compile(r"```([\w+-]*)\s*(?=[{\[])")
_FENCE_END = re.compile(r"\s*(?:```|\Z)")
_OPENING = re.compile(r"[{\[]")
_STRING = re.compile(r'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_BRACKET_OR_STRING = re.compile(rf"[{{}}\[\]]|{_STRING.pattern}", re.DOTALL)
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_MOST_ATTEMPTS = 200
_DEEPEST = 64  # levels of nesting; a model in a loop writes thousands, and scoring walks values recursively
_DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite_float)

_TAG = re.compile(r"</?(?:think|thinking|reasoning)>", re.IGNORECASE)
_CLOSED = re.compile(r"(?is).*</think(?:ing)?>|(?:(?!<reasoning>).)*+<reasoning>.*</reasoning>")
_UNCLOSED = re.compile(r"(?im)^[ \t]*<(?:think|thinking|reasoning)>")
_PAIR = re.compile(r"(?is)<(?:think|thinking|reasoning)>.*?</(?:think|thinking|reasoning)>")
_BROKEN_JSON = re.compile(
    r"""\{(?=\s*(?:["'“{\[}]|[\w$]+\s*:|//|/\*|\Z))|\[(?=\s*(?:["'“{\[]|-?\d+\s*(?:,|\Z)|//|/\*|\Z))"""
)
_SYNTAX_ERRORS: tuple[tuple[NotJson, re.Pattern[str]], ...] = (  # looked for outside of strings, in this order
    ("quotes", re.compile(r"[{\[,:]\s*['“‘]|[{,]\s*[A-Za-z_$][\w$]*\s*:")),
    ("comment", re.compile(r"//|/\*|(?:^|\s)#", re.MULTILINE)),
    ("trailing_comma", re.compile(r",\s*[}\]]")),
    ("nan", re.compile(r"\b(?:NaN|Infinity)\b")),
)


def parse_output(text: str, output: Output, options: Sequence[str] = (), expected: Expected = ANY_VALUE) -> Parsed:
    """Parse one output by its kind; never raises. `options` are those of the case's question.

    `expected` says which values amid other text are candidates. The last one in a fence tagged `json` is the output,
    else the last one in any fence, else the last one.

    >>> parse_output('Here it is: {"total": 9}', "json").value
    {'total': 9}
    >>> parse_output('<think>{"total": 8}?</think> {"total": 9} (see [1])', "json", (), Expected((dict,))).value
    {'total': 9}
    >>> parse_output("The capital is easy: the answer is (B).", "choice", ("Lyon", "Paris")).value
    'B'
    """
    reasoning, rest = split_reasoning(text)
    stripped = rest.strip()
    if not stripped:
        return Parsed(problem="in_reasoning" if reasoning.strip() else "empty")
    if output == "text":
        return Parsed(value=stripped, found="whole")
    if output == "choice":
        return read_choice(stripped, options)
    with suppress(ValueError):
        return Parsed(value=_decode(stripped), found="whole")
    in_fences, anywhere = list(_fenced_values(stripped)), list(embedded_values(stripped))
    fenced = [(is_json, value) for is_json, value in in_fences if expected.allows(value)]
    bare = [value for _, value in anywhere if expected.allows(value)]
    if values := [value for is_json, value in fenced if is_json] or [value for _, value in fenced] or bare:
        several = max(len(fenced), len(bare)) > 1
        return Parsed(value=values[-1], found="fenced" if fenced else "embedded", several=several)
    if in_fences or any(isinstance(value, dict) for _, value in anywhere):
        return Parsed(problem="no_candidate")
    return Parsed(problem=_syntax_error(stripped))


def split_reasoning(text: str) -> tuple[str, str]:
    """Return the reasoning of a model, up to its last closing tag, and the output behind it.

    A tag inside a JSON value is not a tag. If a line begins with a tag that is never closed, there is no output.

    >>> split_reasoning("Is it A?</think>B"), split_reasoning("<think>Is it A?"), split_reasoning("B")
    (('Is it A?</think>', 'B'), ('<think>Is it A?', ''), ('', 'B'))
    """
    if _TAG.search(text) is None:
        return "", text
    outside = _without_values(text)
    closed = _CLOSED.match(outside)
    end = closed.end() if closed else 0
    if _UNCLOSED.search(outside[end:]):
        return text, ""
    if end and not text[end:].strip():  # reasoning behind the output, or no output
        before = _PAIR.sub("", text)
        return (text, "") if _TAG.search(before) else ("".join(_PAIR.findall(text)), before)
    return text[:end], text[end:]


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
        position = _end_of_value(text, opening.start()) or len(text)
        candidate = text[opening.start() : position]
        with suppress(ValueError):
            yield candidate, _decode(candidate)


def _without_values(text: str) -> str:
    for written, _ in embedded_values(text):
        text = text.replace(written, " " * len(written))
    return text


def _end_of_value(text: str, start: int) -> int | None:
    """Return the end of the object or array that begins at `start`, or None if it is never closed."""
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text, start):
        depth += _STEPS.get(match[0], 0)
        if not depth:
            return match.end()
    return None


def _fenced_values(text: str) -> Iterator[tuple[bool, Any]]:
    """Yield the objects and arrays that fill a code fence, each after whether the fence is tagged `json`."""
    position = 0
    for fence in islice(_FENCE.finditer(text), _MOST_ATTEMPTS):
        with suppress(ValueError, RecursionError):
            end = _DECODER.raw_decode(text, fence.end())[1]
            if fence.start() >= position and (closing := _FENCE_END.match(text, end)):
                position = closing.end()
                yield fence[1].lower() == "json", _decode(text[fence.end() : end])


def _syntax_error(text: str) -> NotJson:
    """Classify why a text without a JSON candidate is not JSON."""
    text = _without_values(text)
    beginning = _BROKEN_JSON.search(text)
    if beginning is None:
        return "prose"
    end = _end_of_value(text, beginning.start())
    source = text[beginning.start() : end]
    is_open_string = source.replace('\\"', "").count('"') % 2 == 1  # such as one that holds a quotation mark
    if end is None and not (is_open_string and source.rstrip("` \n").endswith(("}", "]"))):
        return "cut_off"
    plain = _STRING.sub('""', source)
    return next((kind for kind, pattern in _SYNTAX_ERRORS if pattern.search(plain)), "not_json")

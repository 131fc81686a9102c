"""Parse the text of an output to its JSON value, choice or text, or classify the problem.

If the text is not JSON as a whole, its candidates are complete, outermost objects and arrays.
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

_FENCE = re.compile(r"```([\w+-]*)\s*(?=[{\[])")
_FENCE_END = re.compile(r"\s*(?:```|\Z)")
_OPENING = re.compile(r"[{\[]")
_STRING = re.compile(r'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_BRACKET_OR_STRING = re.compile(rf"[{{}}\[\]]|{_STRING.pattern}", re.DOTALL)
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_MAX_ATTEMPTS = 200
_MAX_DEPTH = 64  # levels of nesting; models in a loop write thousands, and scoring is recursive
_DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite_float)

_TAG = re.compile(r"</?(?:think|thinking|reasoning)>", re.IGNORECASE)
_CLOSED = re.compile(r"(?is).*</think(?:ing)?>|(?:(?!<reasoning>).)*+<reasoning>.*</reasoning>")
_UNCLOSED = re.compile(r"(?im)^[ \t]*<(?:think|thinking|reasoning)>")
_PAIR = re.compile(r"(?is)<(?:think|thinking|reasoning)>.*?</(?:think|thinking|reasoning)>")
_BROKEN_JSON = re.compile(
    r"""\{(?=\s*(?:["'“{\[}]|[\w$]+\s*:|//|/\*|\Z))|\[(?=\s*(?:["'“{\[]|-?\d+\s*(?:,|\Z)|//|/\*|\Z))"""
)
_SYNTAX_ERRORS: tuple[tuple[NotJson, re.Pattern[str]], ...] = (  # searched outside strings, in this order
    ("quotes", re.compile(r"[{\[,:]\s*['“‘]|[{,]\s*[A-Za-z_$][\w$]*\s*:")),
    ("comment", re.compile(r"//|/\*|(?:^|\s)#", re.MULTILINE)),
    ("trailing_comma", re.compile(r",\s*[}\]]")),
    ("nan", re.compile(r"\b(?:NaN|Infinity)\b")),
)


def parse_output(text: str, output: Output, options: Sequence[str] = (), expected: Expected = ANY_VALUE) -> Parsed:
    """Parse one output as JSON, choice or text; never raises. `options` are the options of a multiple-choice case.

    If the text is not JSON as a whole, `expected` selects the candidates in it. The last in a fence tagged `json` is
    taken, else the last in any fence, else the last of all.

    >>> parse_output('Here it is: {"total": 9}', "json").value
    {'total': 9}
    >>> parse_output('<think>{"total": 8}?</think> {"total": 9} (see [1])', "json", (), Expected((dict,))).value
    {'total': 9}
    >>> parse_output("The capital is easy: the answer is (B).", "choice", ("Lyon", "Paris")).value
    'B'
    """
    reasoning, answer = split_reasoning(text)
    stripped = answer.strip()
    if not stripped:
        return Parsed(problem="in_reasoning" if reasoning.strip() else "empty")
    if output == "text":
        return Parsed(value=stripped, form="whole")
    if output == "choice":
        return read_choice(stripped, options)
    with suppress(ValueError):
        return Parsed(value=_decode(stripped), form="whole")
    in_fences, anywhere = list(_fenced_values(stripped)), list(embedded_values(stripped))
    fenced = [(is_json, value) for is_json, value in in_fences if expected.allows(value)]
    unfenced = [value for _, value in anywhere if expected.allows(value)]
    if values := [value for is_json, value in fenced if is_json] or [value for _, value in fenced] or unfenced:
        several = max(len(fenced), len(unfenced)) > 1
        return Parsed(value=values[-1], form="fenced" if fenced else "embedded", several=several)
    if in_fences or any(isinstance(value, dict) for _, value in anywhere):
        return Parsed(problem="no_candidate")
    return Parsed(problem=_syntax_error(stripped))


def split_reasoning(text: str) -> tuple[str, str]:
    """Return (reasoning, output) of a text. The output begins after the last closing tag of the reasoning.

    Tags inside JSON values do not count. If nothing follows the last tag, the output is the text outside the tags. If a
    line begins with a tag that is never closed, there is no output.

    >>> split_reasoning("Is it A?</think>B"), split_reasoning("<think>Is it A?"), split_reasoning("B")
    (('Is it A?</think>', 'B'), ('<think>Is it A?', ''), ('', 'B'))
    """
    if _TAG.search(text) is None:
        return "", text
    without_json = _without_values(text)
    closed = _CLOSED.match(without_json)
    end = closed.end() if closed else 0
    if _UNCLOSED.search(without_json[end:]):
        return text, ""
    if end and not text[end:].strip():  # reasoning after the output, or no output
        visible_text = _PAIR.sub("", text)
        return (text, "") if _TAG.search(visible_text) else ("".join(_PAIR.findall(text)), visible_text)
    return text[:end], text[end:]


def _decode(text: str) -> Any:
    if text.count("[") + text.count("{") > _MAX_DEPTH:
        depth = 0
        for match in _BRACKET_OR_STRING.finditer(text):
            depth += _STEPS.get(match[0], 0)
            if depth > _MAX_DEPTH:
                raise ValueError("nested too deeply")
    return _DECODER.decode(text)


def embedded_values(text: str) -> Iterator[tuple[str, Any]]:
    """Yield (source text, value) of each outermost object and array in a text. Parts of an invalid value do not count.

    >>> [value for _, value in embedded_values('First {"a": 1}, then [2].')]
    [{'a': 1}, [2]]
    """
    position = 0
    for _ in range(_MAX_ATTEMPTS):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        position = _end_of_value(text, opening.start()) or len(text)
        candidate = text[opening.start() : position]
        with suppress(ValueError):
            yield candidate, _decode(candidate)


def _without_values(text: str) -> str:
    for source, _ in embedded_values(text):
        text = text.replace(source, " " * len(source))
    return text


def _end_of_value(text: str, start: int) -> int | None:
    """Return the index after the object or array that begins at `start`. Return None if it is never closed."""
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text, start):
        depth += _STEPS.get(match[0], 0)
        if not depth:
            return match.end()
    return None


def _fenced_values(text: str) -> Iterator[tuple[bool, Any]]:
    """Yield (whether the fence is tagged `json`, value) of each object or array that fills a code fence."""
    position = 0
    for fence in islice(_FENCE.finditer(text), _MAX_ATTEMPTS):
        with suppress(ValueError, RecursionError):
            end = _DECODER.raw_decode(text, fence.end())[1]
            if fence.start() >= position and (closing := _FENCE_END.match(text, end)):
                position = closing.end()
                yield fence[1].lower() == "json", _decode(text[fence.end() : end])


def _syntax_error(text: str) -> NotJson:
    text = _without_values(text)
    beginning = _BROKEN_JSON.search(text)
    if beginning is None:
        return "prose"
    end = _end_of_value(text, beginning.start())
    source = text[beginning.start() : end]
    is_open_string = source.replace('\\"', "").count('"') % 2 == 1  # an unescaped quotation mark, for example
    if end is None and not (is_open_string and source.rstrip("` \n").endswith(("}", "]"))):
        return "cut_off"
    plain = _STRING.sub('""', source)
    return next((kind for kind, pattern in _SYNTAX_ERRORS if pattern.search(plain)), "not_json")

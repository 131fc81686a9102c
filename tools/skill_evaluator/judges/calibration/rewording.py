"""A good output → the same content written otherwise, as far as code can do it: controls that hold nothing to find."""

import json
import re
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

from skill_evaluator.judges.calibration.breaking import NoPlaceError
from skill_evaluator.judges.calibration.output_text import (
    bullet_lines,
    is_numbered,
    json_value,
    kind_of,
    written_like,
)

_ORDERED = re.compile(  # a prompt or a list in which the order says something
    r"\b(?:order\w*|rank\w*|sort\w*|alphabet\w*|chronolog\w*|steps?|first|second|then|next|finally|priorit\w*|"
    r"top|sequence|recipe|instructions|above|below|former|latter|also)\b",
    re.IGNORECASE,
)
_CONTRACTED = {
    "is not": "isn't",
    "are not": "aren't",
    "was not": "wasn't",
    "were not": "weren't",
    "do not": "don't",
    "does not": "doesn't",
    "did not": "didn't",
    "cannot": "can't",
    "will not": "won't",
    "should not": "shouldn't",
}
_SYNONYMS = {
    "for example": "for instance",
    "in order to": "so as to",
    "such as": "like",
    "begins": "starts",
    "began": "started",
    "nearly": "almost",
    "roughly": "approximately",
    "several": "a number of",
    "large": "big",
}
_OTHERWISE: Mapping[str, str] = {**{short: long for long, short in _CONTRACTED.items()}, **_CONTRACTED, **_SYNONYMS}
_WORDING = re.compile(rf"(?<![\w'’])(?:{'|'.join(sorted(_OTHERWISE, key=len, reverse=True))})(?=\s+\w)")


def _reorder(prompt: str, text: str, chance: Random) -> str:
    """Put the items of a list, or the keys of a JSON object, into another order where the order says nothing."""
    if _ORDERED.search(prompt):
        raise NoPlaceError("the prompt may ask for an order")
    if kind_of(text) == "json":
        value = json_value(text)
        return written_like(text, _turned_round(value))
    lines = bullet_lines(text)
    items = [text[start:end].rstrip("\n") for start, end in lines]
    if len(set(items)) < 2 or is_numbered(text, lines):
        raise NoPlaceError("it has no list without numbers")
    start, end = lines[0][0], lines[-1][1]
    written = "".join(text[slice(*line)] for line in lines)
    if _ORDERED.search(written) or written != text[start:end] or any("\n" in item for item in items):
        raise NoPlaceError("the order of its list may say something")
    moved = items
    while moved == items:
        moved = chance.sample(items, len(items))
    return text[:start] + "\n".join(moved) + written[len(written.rstrip("\n")) :] + text[end:]


def _set_otherwise(_: str, text: str, __: Random) -> str:
    """Change what is typography alone: quotation marks, the sign of a list, the white space of a JSON."""
    if kind_of(text) == "json":
        return json.dumps(json_value(text), ensure_ascii=False, indent=None if "\n" in text.strip() else 2)
    signs = re.sub(
        r"^([ \t]*)[-*•](?=[ \t])", lambda sign: f"{sign[1]}{'*' if '-' in sign[0] else '-'}", text, flags=re.M
    )
    return re.sub(r"(?<=\w)'(?=\w)", "’", re.sub(r'"([^"\n]*)"', r"“\1”", signs))


def _reword(_: str, text: str, __: Random) -> str:
    """Write contractions out, or the other way round, and put in words that mean the same."""
    if kind_of(text) == "json":
        raise NoPlaceError("other words in a JSON may be other values")
    return _WORDING.sub(lambda words: _OTHERWISE[words[0]], text)


def _turned_round(value: Any) -> Any:
    """Return a JSON value with the keys of every object in reverse."""
    if isinstance(value, dict):
        return {key: _turned_round(value[key]) for key in reversed(value)}
    return [_turned_round(inside) for inside in value] if isinstance(value, list) else value


REWORDINGS: Mapping[str, Callable[[str, str, Random], str]] = MappingProxyType(
    {"reordered": _reorder, "other_words": _reword, "typography": _set_otherwise}
)


def reword_output(name: str, prompt: str, output: str, chance: Random) -> str:
    """Write an output otherwise in the way that is named; raise NoPlaceError where it offers no place for that.

    >>> reword_output("other_words", "Does it open?", "It does not open before noon.", Random(1))
    "It doesn't open before noon."
    """
    if kind_of(output) == "code":
        raise NoPlaceError("it holds code, in which nobody knows what a change does")
    written = REWORDINGS[name](prompt, output, chance)
    if written == output:
        raise NoPlaceError("it has nothing that can be written otherwise")
    return written

"""Checks on a value: equality as JSON has it, and what a place in a parsed answer holds."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from skill_evaluator.text import canonical_json, refuse_constant

NOTHING: Any = object()
"""Stands for no value, as None is the value null."""


class Raw(str):
    """An answer as it came, which may itself be JSON; a text inside of a parsed answer is no more than a text."""

    __slots__ = ()


def _json_of(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return NOTHING


def is_json(text: str, _: object) -> bool:
    """Return whether a text is JSON from the first character to the last, without a fence or a word around it."""
    return _json_of(text) is not NOTHING


def equals(value: Any, expected: Any) -> bool:
    """Return whether a text is the expected one to the letter, or a value equal as JSON: 1 = 1.0, in any order of keys.

    A raw answer that is held against anything but a text must itself be JSON.
    """
    if isinstance(expected, str):
        return isinstance(value, str) and value == expected
    value = _json_of(value) if isinstance(value, Raw) else value
    return value is not NOTHING and canonical_json(value) == canonical_json(expected)


def _refuse_no_pointer(pointer: str) -> str:
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"'{pointer}' is no JSON pointer; write /total, or /lines/0/amount")
    return pointer


Pointer = Annotated[str, AfterValidator(_refuse_no_pointer), Field(max_length=1_000, description="such as /total")]


def value_at(value: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer (RFC 6901), or NOTHING if it does not exist.

    >>> value_at({"lines": [{"a/b": 7}]}, "/lines/0/a~1b")
    7
    """
    for escaped in pointer.split("/")[1:]:
        step = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step in map(str, range(len(value))):
            value = value[int(step)]
        else:
            return NOTHING
    return value

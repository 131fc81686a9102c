"""Checks on a value: JSON equality, and the value at a JSON pointer."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from skill_evaluator.text import canonical_json, refuse_constant

NO_VALUE: Any = object()
"""The absence of a value, in contrast to None for null."""


class Raw(str):
    """The raw text of an output, which may be JSON, in contrast to a text inside a parsed output."""

    __slots__ = ()


def _json_of(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return NO_VALUE


def is_json(text: str, _: object) -> bool:
    """Return whether a text is JSON as a whole, without a fence or words around it."""
    return _json_of(text) is not NO_VALUE


def equals(value: Any, expected: Any) -> bool:
    """Return whether a value equals the expected one: texts exactly, others as JSON (1 = 1.0, keys in any order).

    A raw output that is compared with a value other than a text must be JSON.
    """
    if isinstance(expected, str):
        return isinstance(value, str) and value == expected
    value = _json_of(value) if isinstance(value, Raw) else value
    return value is not NO_VALUE and canonical_json(value) == canonical_json(expected)


def _refuse_no_pointer(pointer: str) -> str:
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"'{pointer}' is not a JSON pointer; write /total, or /lines/0/amount")
    return pointer


Pointer = Annotated[str, AfterValidator(_refuse_no_pointer), Field(max_length=1_000, description="such as /total")]


def value_at(value: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer (RFC 6901). Return NO_VALUE if it does not exist.

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
            return NO_VALUE
    return value

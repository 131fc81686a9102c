"""Checks on a value: equality as JSON has it, and what a place in a parsed answer holds."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from skill_evaluator.checks.base import Subject
from skill_evaluator.text import canonical_json, refuse_constant, same_json

Values = Annotated[tuple[Any, ...], Field(min_length=1, max_length=1_000)]
_ABSENT = object()


def _json_of(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return _ABSENT


def is_json(subject: Subject, _: object, ignore_case: bool) -> bool:
    """Return whether a text is JSON from the first character to the last, without a fence or a word around it."""
    return _json_of(subject.text) is not _ABSENT


def equals(subject: Subject, expected: Any, ignore_case: bool) -> bool:
    """Return whether a text is the expected one to the letter, or a value equal as JSON: 1 = 1.0, in any order of keys.

    A raw answer that is held against anything but a text must itself be JSON.
    """
    value = subject.value
    if not subject.is_value:
        value = subject.text if isinstance(expected, str) else _json_of(subject.text)
    if isinstance(value, str) and isinstance(expected, str):
        return value.lower() == expected.lower() if ignore_case else value == expected
    return value is not _ABSENT and same_json(value, expected)


def one_of(subject: Subject, expected: tuple[Any, ...], ignore_case: bool) -> bool:
    """Return whether a text, or a value, equals one of several."""
    return any(equals(subject, value, ignore_case) for value in expected)


def _refuse_no_pointer(pointer: str) -> str:
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"'{pointer}' is no JSON pointer; write /total, or /lines/0/amount")
    return pointer


Pointer = Annotated[str, AfterValidator(_refuse_no_pointer), Field(max_length=1_000, description="such as /total")]


def subject_at(value: Any, pointer: str) -> Subject | None:
    """Return what stands at a JSON pointer (RFC 6901); None if nothing does.

    >>> subject_at({"lines": [{"a/b": 7}]}, "/lines/0/a~1b").value
    7
    """
    for step in _steps(pointer):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif (
            isinstance(value, list)
            and step.isdecimal()
            and step.isascii()
            and len(step) < 10
            and str(int(step)) == step
        ):
            if int(step) >= len(value):
                return None
            value = value[int(step)]
        else:
            return None
    return Subject(text=value if isinstance(value, str) else canonical_json(value), value=value, is_value=True)


def _steps(pointer: str) -> Iterator[str]:
    return (step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])

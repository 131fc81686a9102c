"""The kinds of checks: for each, the type of its argument in a declaration, and its test."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveInt, StringConstraints

from skill_evaluator.text import canonical_json, matches, re2_pattern, refuse_constant

_Readable = AfterValidator(lambda pattern: re2_pattern(pattern) and pattern)
_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=100_000), _Readable]

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
    """Return whether a value equals the expected text, or another expected value as JSON (1 = 1.0; parses `Raw`)."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckKind:
    """One kind of check: the type of its argument, and a pure function `passes(output, argument)`.

    The function gets a text; if `of_value`, it gets a JSON value or a `Raw` text. If `passes` is None, the kind needs a
    process or a judge. `negatable` kinds may be declared as `not_…`, kinds with `in_places` at a JSON pointer.
    """

    argument: Any
    passes: Callable[[Any, Any], bool] | None = None
    of_value: bool = False
    negatable: bool = True
    in_places: bool = True


_Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
_Texts = Annotated[tuple[_Text, ...], Field(min_length=1, max_length=1_000)]
_Values = Annotated[tuple[Any, ...], Field(min_length=1, max_length=1_000)]
_File = StringConstraints(max_length=300, pattern=r"^(\w[\w.-]*/)*\w[\w.-]*\.py:[A-Za-z_]\w*$")
_Function = Annotated[str, _File, Field(description="a function of a file: checks.py:total_is_sum")]
_Sentence = Annotated[_Text, Field(description="a sentence that a judge answers with yes or no")]

CHECKS: Mapping[str, CheckKind] = {
    "contains": CheckKind(argument=_Text, passes=lambda text, part: part in text),
    "contains_any": CheckKind(argument=_Texts, passes=lambda text, parts: any(part in text for part in parts)),
    "contains_all": CheckKind(argument=_Texts, passes=lambda text, parts: all(part in text for part in parts)),
    "equals": CheckKind(argument=Any, passes=equals, of_value=True),
    "one_of": CheckKind(
        argument=_Values, passes=lambda value, values: any(equals(value, each) for each in values), of_value=True
    ),
    "starts_with": CheckKind(argument=_Text, passes=str.startswith),
    "ends_with": CheckKind(argument=_Text, passes=str.endswith),
    "regex": CheckKind(argument=_Pattern, passes=matches),
    "is_json": CheckKind(argument=Literal[True], passes=is_json, in_places=False),
    "max_words": CheckKind(
        argument=PositiveInt, passes=lambda text, limit: len(text.split()) <= limit, negatable=False
    ),
    "python": CheckKind(argument=_Function, negatable=False, in_places=False),
    "expect": CheckKind(argument=_Sentence, negatable=False, in_places=False),
}

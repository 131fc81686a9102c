"""The kinds of checks: for each, the type of its argument in a declaration, and its test."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveInt, StringConstraints

from skill_evaluator.checks.values import equals, is_json
from skill_evaluator.text import matches, re2_pattern

_Readable = AfterValidator(lambda pattern: re2_pattern(pattern) and pattern)
_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=100_000), _Readable]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckKind:
    """One kind of check: the type of its argument, and a pure function `passes(output, argument)`.

    The function reads the text, or if `of_value` a JSON value or raw text. Kinds without `passes` need a process or a
    judge. `negatable` kinds may be declared as `not_…`, and kinds `in_places` at a JSON pointer (`json: {at: …}`).
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

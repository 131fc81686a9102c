"""The kinds of checks, one line each: what people write behind the name, and what passes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveInt, StringConstraints

from skill_evaluator.checks.values import equals, is_json
from skill_evaluator.text import matches, re2_pattern

_Readable = AfterValidator(lambda pattern: re2_pattern(pattern) and pattern)
_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=100_000), _Readable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind: the type of its argument, and a pure function of what it looks at and the argument to pass or fail.

    It looks at a text, or with `of_value` at a value, which may be a raw text. Without `passes` it takes more than the
    answer: a process, or a judge. `negatable` kinds have a `not_…` twin; `in_places`: `json: {at: …}` takes the kind.
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
_Sentence = Annotated[_Text, Field(description="a sentence that a judge says yes or no to")]

CHECKS: Mapping[str, Kind] = {
    "contains": Kind(argument=_Text, passes=lambda text, part: part in text),
    "contains_any": Kind(argument=_Texts, passes=lambda text, parts: any(part in text for part in parts)),
    "contains_all": Kind(argument=_Texts, passes=lambda text, parts: all(part in text for part in parts)),
    "equals": Kind(argument=Any, passes=equals, of_value=True),
    "one_of": Kind(argument=_Values, passes=lambda value, all_: any(equals(value, one) for one in all_), of_value=True),
    "starts_with": Kind(argument=_Text, passes=str.startswith),
    "ends_with": Kind(argument=_Text, passes=str.endswith),
    "regex": Kind(argument=_Pattern, passes=matches),
    "is_json": Kind(argument=Literal[True], passes=is_json, in_places=False),
    "max_words": Kind(argument=PositiveInt, passes=lambda text, most: len(text.split()) <= most, negatable=False),
    "python": Kind(argument=_Function, negatable=False, in_places=False),
    "expect": Kind(argument=_Sentence, negatable=False, in_places=False),
}

"""The kinds of checks, one line each, and how an answer is held against one."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, StringConstraints

from skill_evaluator.checks.base import Kind
from skill_evaluator.checks.patterns import Pattern, regex
from skill_evaluator.checks.texts import (
    Text,
    Texts,
    contains,
    contains_all,
    contains_any,
    ends_with,
    max_words,
    starts_with,
)
from skill_evaluator.checks.values import Values, equals, is_json, one_of

Function = Annotated[str, StringConstraints(max_length=300, pattern=r"^(\w[\w.-]*/)*\w[\w.-]*\.py:[A-Za-z_]\w*$")]

CHECKS: Mapping[str, Kind] = {
    "contains": Kind(argument=Text, passes=contains),
    "contains_any": Kind(argument=Texts, passes=contains_any),
    "contains_all": Kind(argument=Texts, passes=contains_all),
    "equals": Kind(argument=Any, passes=equals),
    "one_of": Kind(argument=Values, passes=one_of),
    "starts_with": Kind(argument=Text, passes=starts_with),
    "ends_with": Kind(argument=Text, passes=ends_with),
    "regex": Kind(argument=Pattern, passes=regex),
    "is_json": Kind(argument=Literal[True], passes=is_json, of_values=False),
    "max_words": Kind(argument=PositiveInt, passes=max_words, negatable=False),
    "python": Kind(
        argument=Annotated[Function, Field(description="a function of a file: checks.py:total_is_sum")],
        negatable=False,
        of_values=False,
    ),
    "expect": Kind(
        argument=Annotated[Text, Field(description="a sentence that a judge says yes or no to")],
        negatable=False,
        of_values=False,
    ),
}

"""Completion text → JSON value, choice or text; here what every way of reading an answer gives."""

from dataclasses import dataclass
from typing import Any, Literal

Output = Literal["json", "choice", "text"]
FoundBy = Literal["whole", "fenced", "embedded", "stated", "line", "option_text"]
NotJson = Literal["trailing_comma", "comment", "quotes", "cut_off", "nan", "prose", "no_candidate", "not_json"]
ParseProblem = Literal["empty", "in_reasoning", NotJson, "ambiguous", "no_option"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A value and how it was found in the text, or why it is missing; `several` if the text has other candidates."""

    value: Any = None
    found: FoundBy | None = None
    problem: ParseProblem | None = None
    several: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """What a candidate amid other text is: of a type that the schema allows at its root, and not the schema sent."""

    types: tuple[type, ...] = (dict, list)
    schema: Any = None  # without `$schema`

    def allows(self, value: Any) -> bool:
        """Return whether a value is a candidate."""
        is_schema = isinstance(value, dict) and {key: value[key] for key in value if key != "$schema"} == self.schema
        return isinstance(value, self.types) and not is_schema

    def or_type_of(self, truth: Any) -> "Expected":
        """Return this, or the type of a ground truth if no schema says which types are expected."""
        return Expected((type(truth),)) if self == ANY_VALUE and isinstance(truth, dict | list) else self


ANY_VALUE = Expected()

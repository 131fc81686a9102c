"""The parsed form of an output: a JSON value, a choice or a text, or the reason why it is missing."""

from dataclasses import dataclass
from typing import Any, Literal

Output = Literal["json", "choice", "text"]
OutputForm = Literal["whole", "fenced", "embedded", "stated", "line", "option_text"]
NotJson = Literal["trailing_comma", "comment", "quotes", "cut_off", "nan", "prose", "no_candidate", "not_json"]
ParseProblem = Literal["empty", "in_reasoning", NotJson, "ambiguous", "no_option"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The parsed value of an output, and where in the text it was found (`form`).

    If there is no value, `form` is None and `problem` is the reason. `several`: the text has further candidates.
    """

    value: Any = None
    form: OutputForm | None = None
    problem: ParseProblem | None = None
    several: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """The values that count as the output in a longer text: values of these `types` that do not equal `schema`."""

    types: tuple[type, ...] = (dict, list)
    schema: Any = None  # has no `$schema`

    def allows(self, value: Any) -> bool:
        """Return whether a value counts as an output."""
        is_schema = isinstance(value, dict) and {key: value[key] for key in value if key != "$schema"} == self.schema
        return isinstance(value, self.types) and not is_schema

    def or_type_of(self, truth: Any) -> "Expected":
        """Return an `Expected` of the truth's type if self is ANY_VALUE and the truth a dict or list, else self."""
        return Expected((type(truth),)) if self == ANY_VALUE and isinstance(truth, dict | list) else self


ANY_VALUE = Expected()

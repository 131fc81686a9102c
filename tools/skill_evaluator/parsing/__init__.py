"""Completion text → JSON value, choice or text; here what every way of reading an answer gives."""

from dataclasses import dataclass
from typing import Any, Literal

Output = Literal["json", "choice", "text"]
FoundBy = Literal["whole", "fenced", "embedded", "stated", "line", "option_text"]
ParseProblem = Literal["empty", "not_json", "ambiguous", "no_option"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A value and how it was found in the text, or why it is missing."""

    value: Any = None
    found: FoundBy | None = None
    problem: ParseProblem | None = None

"""What an answer is read as: its kinds of output, a value with where it stood, or the word for why there is none.

Its own module because every way of reading an answer gives the same result.
"""

from dataclasses import dataclass
from typing import Any, Literal

Output = Literal["json", "choice", "text"]
Found = Literal["whole", "fenced", "embedded", "boxed", "stated", "line", "option_text"]
Problem = Literal["empty", "not_json", "ambiguous", "no_option"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A value and where in the text it stood, or why there is none."""

    value: Any = None
    found: Found | None = None
    problem: Problem | None = None

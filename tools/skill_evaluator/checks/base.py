"""What a kind of check declares, and what it looks at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a check looks at: the raw text of an answer, or (`is_value`) the value at a place in the parsed answer.

    `text` of a value is the string itself, or the value as JSON.
    """

    text: str
    value: Any = None
    is_value: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind: the type of its argument, and a pure function of (subject, argument, ignore_case) to pass or fail.

    Without `passes` it takes more than the answer: a process, or a judge. `negatable` kinds have a `not_…` twin;
    `of_values` says whether `json: {at: …}` takes the kind.
    """

    argument: Any
    passes: Callable[[Subject, Any, bool], bool] | None = None
    negatable: bool = True
    of_values: bool = True

"""Completion text → JSON value or text, with how it was found.

Strict first: the whole text. Models like to wrap JSON in a code fence or a sentence; that is forgiven, and said.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_MOST_ATTEMPTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A value and where in the text it stood, or (`empty`, `not_json`) why there is none."""

    value: Any = None
    found: Literal["whole", "fenced", "embedded"] | None = None
    problem: Literal["empty", "not_json"] | None = None


def parse_output(text: str, output: Literal["json", "text"]) -> Parsed:
    """Parse one answer by the component's kind of output; never raises.

    >>> parse_output('Here it is: {"total": 9}', "json").value
    {'total': 9}
    """
    stripped = text.strip()
    if not stripped:
        return Parsed(problem="empty")
    if output == "text":
        return Parsed(value=stripped, found="whole")
    places: list[tuple[Literal["whole", "fenced"], str]] = [("whole", stripped)]
    places += [("fenced", block.strip()) for block in _FENCE.findall(stripped)]
    for found, candidate in places:
        try:
            return Parsed(value=_decode(candidate), found=found)
        except ValueError:
            continue
    return _embedded(stripped) or Parsed(problem="not_json")


def _decode(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _embedded(text: str) -> Parsed | None:
    """The longest object or array in the text; never a part of one that is broken or cut off.

    Where decoding fails, the search goes on from the place of the failure: what lies before belongs to the broken
    value.
    """
    best: tuple[int, Any] | None = None
    position = 0
    for _ in range(_MOST_ATTEMPTS):
        opening = _OPENING.search(text, position)
        if opening is None:
            break
        try:
            value, position = _DECODER.raw_decode(text, opening.start())
        except json.JSONDecodeError as problem:
            position = max(problem.pos, opening.end())
            continue
        except (ValueError, RecursionError):
            break
        if best is None or position - opening.start() > best[0]:
            best = (position - opening.start(), value)
    return Parsed(value=best[1], found="embedded") if best else None

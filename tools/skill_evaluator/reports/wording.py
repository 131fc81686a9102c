"""How a field is compared and an array aligned, in words: the same ones in every report."""

from collections.abc import Callable, Mapping
from typing import Any

from skill_evaluator.metrics.fieldplan import FieldRule

_FORMATS_SHOWN = 3
_SIMPLE = {"exact": "exact value", "ignore": "not looked at"}
_ALIGNED = {"best": "by best assignment", "ordered": "in order", "set": "as a set"}


def compared_as(rule: FieldRule) -> str:
    """A leaf's comparison with its options.

    >>> compared_as(FieldRule(compare="number", tolerance=0.005, from_string=True))
    'number, ± 0.005, also written as text'
    >>> compared_as(FieldRule(compare="text", similarity="embedding", threshold=0.8))
    'text, from embedding similarity 0.8'
    """
    kind = rule.compare or "exact"
    if kind == "text":
        return _text_as(rule)
    options = rule.options.items()
    words = [_OPTIONS[name](value) if name in _OPTIONS else f"{name} {value}" for name, value in options]
    return ", ".join([_SIMPLE.get(kind, kind), *words])


def _text_as(rule: FieldRule) -> str:
    similarity = "embedding similarity" if rule.similarity == "embedding" else "token F1"
    if rule.threshold is not None:
        return f"text, from {similarity} {rule.threshold:g}"
    return "text, embedding similarity reported only" if rule.similarity == "embedding" else "text, reported only"


def aligned_by(rule: FieldRule) -> str:
    """How the items of an array find each other.

    >>> aligned_by(FieldRule(align="key", key=("category", "period")))
    'by key category + period'
    """
    if rule.align == "key":
        return f"by key {' + '.join(rule.key)}"
    return _ALIGNED[rule.align] if rule.align else "by what its items are"


def number(value: float | None) -> str:
    """A share or score to three places; a dash for what was not measured.

    >>> number(0.5), number(None)
    ('0.500', '–')
    """
    return "–" if value is None else f"{value:.3f}"


def _formats(formats: tuple[str, ...]) -> str:
    more = len(formats) - _FORMATS_SHOWN
    return f"written {', '.join(formats[:_FORMATS_SHOWN])}{f' and {more} more ways' if more > 0 else ''}"


_OPTIONS: Mapping[str, Callable[[Any], str]] = {
    "tolerance": lambda value: f"± {value:g}",
    "relative_tolerance": lambda value: f"± {value * 100:g} %",
    "from_string": lambda value: "also written as text",
    "casefold": lambda value: "case folded",
    "ignore_punctuation": lambda value: "punctuation ignored",
    "threshold": lambda value: f"from {value:g} edit similarity",
    "formats": _formats,
    "tolerance_days": lambda value: f"± {value:g} days",
}

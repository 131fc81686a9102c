"""Checks on a text: what it holds, what it begins or ends with, how long it is. Nothing is trimmed."""

from typing import Annotated

from pydantic import Field, StringConstraints

from skill_evaluator.checks.base import Subject

Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Texts = Annotated[tuple[Text, ...], Field(min_length=1, max_length=1_000)]


def _folded(text: str, ignore_case: bool) -> str:
    return text.lower() if ignore_case else text


def contains(subject: Subject, part: str, ignore_case: bool) -> bool:
    """Return whether a text holds a part, character by character."""
    return _folded(part, ignore_case) in _folded(subject.text, ignore_case)


def contains_any(subject: Subject, parts: tuple[str, ...], ignore_case: bool) -> bool:
    """Return whether a text holds one of several."""
    return any(contains(subject, part, ignore_case) for part in parts)


def contains_all(subject: Subject, parts: tuple[str, ...], ignore_case: bool) -> bool:
    """Return whether a text holds each of several, in any order."""
    return all(contains(subject, part, ignore_case) for part in parts)


def starts_with(subject: Subject, start: str, ignore_case: bool) -> bool:
    """Return whether a text begins so."""
    return _folded(subject.text, ignore_case).startswith(_folded(start, ignore_case))


def ends_with(subject: Subject, end: str, ignore_case: bool) -> bool:
    """Return whether a text ends so."""
    return _folded(subject.text, ignore_case).endswith(_folded(end, ignore_case))


def max_words(subject: Subject, most: int, ignore_case: bool) -> bool:
    """Return whether a text has no more words than that, which white space separates."""
    return len(subject.text.split()) <= most

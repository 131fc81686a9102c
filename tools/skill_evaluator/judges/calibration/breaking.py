"""A good output and the prompt it answers → ways in which code can break it, each with what it does to a reader.

Dimension and impact of every damage are known, so that a judge who looks for regressions can be measured. Nothing but
the planted place changes.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Any

from skill_evaluator.judges.calibration.output_text import (
    BULLET,
    bullet_lines,
    json_value,
    kind_of,
    sentences,
    value_spans,
    written_like,
)
from skill_evaluator.judges.modes.form import broken_rules
from skill_evaluator.judges.modes.ship_rules import Impact

_MUCH, _SOME = 3, 6  # a third of the words or more is a loss of high impact, a sixth of medium, less of low
_FEWEST_SENTENCES = 3  # of which one can be dropped
_FEWEST_WORDS = 12  # of a text whose end can be cut
_WORDS_OF_PROSE = 4  # of a JSON text that an invented sentence can be added to

_YEAR = r"(?:1[5-9]|20)\d\d"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DAY = r"\d\d?(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"(?<![\w.,/-])(?:{_YEAR}-\d\d-\d\d|(?:{_DAY}\s+)?{_MONTH}(?:\s+{_DAY},?)?\s+{_YEAR}"
    rf"|(?:[Ii]n|[Ss]ince|[Uu]ntil|[Bb]y|[Ff]rom|[Oo]f)\s+{_YEAR})(?!\w|[.,/-]\d)"
)
_NUMBER = re.compile(r"(?<![\w.,/:#-])\d+(?:[.,]\d+)*(?!\w|[.,:/-]\d)")
_TURNED = (
    ("increase", "decrease"),
    ("increased", "decreased"),
    ("increases", "decreases"),
    ("rose", "fell"),
    ("rises", "falls"),
    ("higher", "lower"),
    ("more", "less"),
    ("always", "never"),
    ("before", "after"),
    ("with", "without"),
    ("allowed", "forbidden"),
    ("possible", "impossible"),
    ("true", "false"),
    ("best", "worst"),
    ("opened", "closed"),
    ("cheaper", "dearer"),
)
_OPPOSITES: Mapping[str, str] = {word: other for pair in _TURNED for word, other in (pair, pair[::-1])}
_AUXILIARY = r"is|are|was|were|will|can|must|should"
_CLAIM = re.compile(rf"\b(?:(?:{_AUXILIARY})\b(?:\s+not\b|(?!['’]))|(?:{'|'.join(_OPPOSITES)})\b)")
_NEGATION = re.compile(r"\s+not$")
_INVENTED = (
    "A review by an outside panel came to the same result in {year}.",
    "This was first reported by a local newspaper in {year}.",
    "About {share} percent of those who were asked agreed.",
    "It took {count} people nearly {months} months.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A broken output, and how much that harms a reader who relies on it."""

    text: str
    impact: Impact


class NoPlaceError(ValueError):
    """An output that offers no place for a damage, or for another wording; the argument says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A way to break an output; `apply` takes prompt, output and chance, and raises NoPlaceError."""

    name: str
    dimension: str
    apply: Callable[[str, str, Random], Broken]


def _drop_item(_: str, text: str, chance: Random) -> Broken:
    """Leave out one item of a list, one entry of a JSON, or one sentence."""
    if kind_of(text) == "json":
        value = json_value(text)
        holders = [held for held in _containers(value) if len(held) > 1]
        if not holders:
            raise NoPlaceError("no list or object of it has two entries")
        held = chance.choice(holders)
        if isinstance(held, dict):
            del held[chance.choice(list(held))]
        else:
            del held[chance.randrange(len(held))]
        return _lost(text, written_like(text, value))
    parts = bullet_lines(text) if len(bullet_lines(text)) > 1 else sentences(text)
    written = [text[start:end].strip() for start, end in parts]
    single = [part for part, mine in zip(parts, written, strict=True) if written.count(mine) == 1]
    if len(parts) < (2 if BULLET.search(text) else _FEWEST_SENTENCES) or not single:
        raise NoPlaceError("it has neither two list items nor three sentences")
    start, end = chance.choice(single)
    return _lost(text, text[:start] + text[end:])


def _change_number(_: str, text: str, chance: Random) -> Broken:
    """Give one number another first digit."""
    elsewhere = [(start, start + len(date)) for start, date in _within(text, _DATE)]
    elsewhere += [marker.span() for marker in BULLET.finditer(text)]
    places = [place for place, _ in _within(text, _NUMBER) if not any(start <= place < end for start, end in elsewhere)]
    if not places:
        raise NoPlaceError("it has no number")
    place = chance.choice(places)
    digit = (int(text[place]) + chance.randint(1, 8) - 1) % 9 + 1  # never the same, and never a leading zero
    return Broken(text=f"{text[:place]}{digit}{text[place + 1 :]}", impact="high")


def _change_date(_: str, text: str, chance: Random) -> Broken:
    """Move one date by four or eight years, so that a leap day stays one."""
    years = [place + date.start() for place, written in _within(text, _DATE) for date in re.finditer(_YEAR, written)]
    if not years:
        raise NoPlaceError("it has no date with a year")
    place = chance.choice(years)
    year = int(text[place : place + 4]) + chance.choice((-8, -4, 4, 8))
    return Broken(text=f"{text[:place]}{year}{text[place + 4 :]}", impact="high")


def _invert_claim(_: str, text: str, chance: Random) -> Broken:
    """Turn one claim into its contrary: a negation put in or taken out, or a word replaced by its opposite."""
    claims = _within(text, _CLAIM)
    if not claims:
        raise NoPlaceError("it has no claim that a word can turn")
    place, claim = chance.choice(claims)
    turned = _NEGATION.sub("", claim) if _NEGATION.search(claim) else _OPPOSITES.get(claim, f"{claim} not")
    return Broken(text=text[:place] + turned + text[place + len(claim) :], impact="high")


def _break_format(prompt: str, text: str, _: Random) -> Broken:
    """Write a list as running text, or a JSON as lines; nothing of what it says changes."""
    if kind_of(text) == "json":
        broken = "\n".join(f"{path} is {value}" for path, value in _leaves(json_value(text)))
    elif len(bullet_lines(text)) > 1:
        broken = " ".join(line.strip() for line in BULLET.sub("", text).splitlines() if line.strip())
    else:
        raise NoPlaceError("it is neither a list nor JSON")
    if not broken_rules(prompt, text, broken):
        raise NoPlaceError("its prompt demands no form that code can check")
    return Broken(text=broken, impact="high")


def _invent_fact(_: str, text: str, chance: Random) -> Broken:
    """Add one sentence that nothing supports behind another one."""
    if kind_of(text) == "json":
        ends = [end for start, end in value_spans(text) if len(text[start:end].split()) >= _WORDS_OF_PROSE]
    else:
        ends = [end for _, end in bullet_lines(text) or sentences(text)]
    places = [len(text[:end].rstrip()) for end in ends]
    if not places:
        raise NoPlaceError("it has no sentence that another one could follow")
    place = chance.choice(places)
    sentence = chance.choice(_INVENTED).format(
        year=chance.randint(1985, 2019),
        share=chance.randint(11, 89),
        count=chance.randint(13, 97),
        months=chance.randint(3, 19),
    )
    stop = "" if text[place - 1] in ".!?\"')]" else "."
    return Broken(text=f"{text[:place]}{stop} {sentence}{text[place:]}", impact="medium")


def _cut_end(_: str, text: str, chance: Random) -> Broken:
    """Break off in the middle of a sentence, with half to four fifths of the words written."""
    words = list(re.finditer(r"\S+", text))
    if len(words) < _FEWEST_WORDS:
        raise NoPlaceError(f"it has fewer than {_FEWEST_WORDS} words")
    first, last = len(words) // 2, len(words) * 4 // 5
    places = [word.end() for word in words[first:last] if word[0][-1].isalnum()]
    if not places:
        raise NoPlaceError("no sentence of its second half can be broken off")
    return _lost(text, text[: chance.choice(places)])


DAMAGES: Mapping[str, Damage] = MappingProxyType(
    {
        damage.name: damage
        for damage in (
            Damage(name="item_dropped", dimension="completeness", apply=_drop_item),
            Damage(name="number_changed", dimension="factuality", apply=_change_number),
            Damage(name="format_broken", dimension="format_adherence", apply=_break_format),
            Damage(name="end_cut", dimension="completeness", apply=_cut_end),
            Damage(name="claim_inverted", dimension="factuality", apply=_invert_claim),
            Damage(name="date_changed", dimension="factuality", apply=_change_date),
            Damage(name="fact_invented", dimension="factuality", apply=_invent_fact),
        )
    }
)


def break_output(name: str, prompt: str, output: str, chance: Random) -> Broken:
    """Break an output in the way that is named; raise NoPlaceError where it offers no place for that.

    >>> break_output("date_changed", "Who?", "Ada was born in 1815.", Random(1)).text
    'Ada was born in 1807.'
    """
    if kind_of(output) == "code":
        raise NoPlaceError("it holds code, in which nobody knows what a change does")
    return DAMAGES[name].apply(prompt, output, chance)


def _lost(whole: str, rest: str) -> Broken:
    """Return what is left; the impact goes by the share of the words that is lost."""
    words = len(whole.split())
    lost = words - len(rest.split())
    return Broken(text=rest, impact="high" if lost * _MUCH >= words else "medium" if lost * _SOME >= words else "low")


def _within(text: str, pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """Return place and text of all that a pattern finds in what an output says; a JSON value by itself."""
    return [
        (start + match.start(), match[0])
        for start, end in value_spans(text)
        for match in pattern.finditer(text[start:end])
    ]


def _containers(value: Any) -> Iterator[list[Any] | dict[str, Any]]:
    if isinstance(value, list | dict):
        yield value
        for inside in value.values() if isinstance(value, dict) else value:
            yield from _containers(inside)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from _leaves(inside, f"{path} {key}".strip())
    elif isinstance(value, list):
        for place, inside in enumerate(value, 1):
            yield from _leaves(inside, f"{path} {place}".strip())
    else:
        yield path, value

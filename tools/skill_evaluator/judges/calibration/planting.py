"""Good outputs → pairs of which code knows what a regression judge must find: broken outputs, and controls.

Dimension and impact of every damage are known, so that a judge who looks for regressions can be measured. Nothing but
the planted place changes. The same outputs and the same seed give the same pairs.
"""

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from random import Random
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import Field

from skill_evaluator.judges.asking.items import JudgedItem, JudgedText
from skill_evaluator.judges.modes.ship_rules import Impact
from skill_evaluator.stats import by_key

Span = tuple[int, int]
PlaceT = TypeVar("PlaceT")
BULLET = re.compile(r"^[ \t]*(?:[-*•+–]|\d{1,3}[.)])[ \t]+(?=\S)", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<!\b\w)(?<!\b[DMS][rst])[.!?][\"')\]]*(?=\s|$)")  # not of «e.g.», «1.», «Dr.»
_NUMBERED = re.compile(r"^[ \t]*\d", re.MULTILINE)
_CODE = re.compile(
    r"`|^\s*(?:def|class|import|return|function|const|let|var|#include)\b|[;{}]\s*$|\w\(\w*\)", re.MULTILINE
)
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false")
_KEY_END = re.compile(r"\s*:")
_FORM_WORDS = re.compile(r"\b(?:bullets?|lists?|JSON)\b", re.IGNORECASE)  # of a prompt that demands a form


@lru_cache(maxsize=8)  # every damage and every control looks at the same output
def kind_of(text: str) -> Literal["json", "code", "prose"]:
    """Return what an output is; JSON is an object or array and nothing around it."""
    return "json" if json_value(text) is not None else "code" if _CODE.search(text) else "prose"


def json_value(text: str) -> Any:
    """Return the object or array that a text is, or None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def written_like(text: str, value: Any) -> str:
    """Write a JSON value with line breaks where the text has some."""
    return json.dumps(value, indent=2 if "\n" in text.strip() else None, ensure_ascii=False)


def value_spans(text: str) -> list[Span]:
    """Return where an output says something: all of a prose, the values of a JSON without quotation marks and keys."""
    if kind_of(text) == "prose":
        return [(0, len(text))]
    spans, place = [], 0
    for literal in _LITERAL.finditer(text):
        spans += [scalar.span() for scalar in _SCALAR.finditer(text, place, literal.start())]
        if not _KEY_END.match(text, literal.end()):
            spans.append((literal.start() + 1, literal.end() - 1))
        place = literal.end()
    return [*spans, *(scalar.span() for scalar in _SCALAR.finditer(text, place))]


def bullet_lines(text: str) -> list[Span]:
    """Return the lines of a list with their line breaks; a line that goes on with an item belongs to it."""
    starts = [match.start() for match in BULLET.finditer(text)]
    ends = []
    for place, start in enumerate(starts):
        following = starts[place + 1] if place + 1 < len(starts) else len(text)
        blank = re.search(r"\n[ \t]*\n", text[start:following])
        ends.append(start + blank.start() + 1 if blank else following)
    return list(zip(starts, ends, strict=True))


def sentences(text: str) -> list[Span]:
    """Return the sentences of a prose, each with the white space behind it."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    ends = [end + len(text[end:]) - len(text[end:].lstrip()) for end in ends]
    return [span for span in zip([0, *ends], ends, strict=False) if text[slice(*span)].strip()]


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


def _pairs(listed: str) -> dict[str, str]:
    return dict(pair.split("/") for pair in listed.split(", "))


_TURNED = _pairs(
    "increase/decrease, increased/decreased, increases/decreases, rose/fell, rises/falls, higher/lower, more/less, "
    "always/never, before/after, with/without, allowed/forbidden, possible/impossible, true/false, best/worst, "
    "opened/closed, cheaper/dearer"
)
_OPPOSITES = {**_TURNED, **{other: word for word, other in _TURNED.items()}}
_AUXILIARY = r"is|are|was|were|will|can|must|should"
_CLAIM = re.compile(rf"\b(?:(?:{_AUXILIARY})\b(?:\s+not\b|(?!['’]))|(?:{'|'.join(_OPPOSITES)})\b)")
_NEGATION = re.compile(r"\s+not$")
_INVENTED = (
    "A review by an outside panel came to the same result in {year}.",
    "This was first reported by a local newspaper in {year}.",
    "About {share} percent of those who were asked agreed.",
    "It took {count} people nearly {months} months.",
)


class Broken(NamedTuple):
    """A broken output, and how much that harms a reader who relies on it."""

    text: str
    impact: Impact


class NoPlaceError(ValueError):
    """An output that offers no place for a damage or a rewording; the argument says why."""


class Damage(NamedTuple):
    """A way to break an output; `apply` takes prompt, output and chance, and raises NoPlaceError."""

    dimension: str
    apply: Callable[[str, str, Random], Broken]


def _one_of(places: Sequence[PlaceT], chance: Random, without: str) -> PlaceT:
    if not places:
        raise NoPlaceError(without)
    return chance.choice(places)


def _drop_item(_: str, text: str, chance: Random) -> Broken:
    """Leave out one item of a list, one entry of a JSON, or one sentence."""
    if kind_of(text) == "json":
        value = json_value(text)
        holders = [held for held in _containers(value) if len(held) > 1]
        held = _one_of(holders, chance, "no list or object of it has two entries")
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
    """Change the first digit of one number."""
    elsewhere = [(start, start + len(date)) for start, date in _within(text, _DATE)]
    elsewhere += [marker.span() for marker in BULLET.finditer(text)]
    places = [place for place, _ in _within(text, _NUMBER) if not any(start <= place < end for start, end in elsewhere)]
    place = _one_of(places, chance, "it has no number")
    digit = (int(text[place]) + chance.randint(1, 8) - 1) % 9 + 1  # never the same, and never a leading zero
    return Broken(f"{text[:place]}{digit}{text[place + 1 :]}", "high")


def _change_date(_: str, text: str, chance: Random) -> Broken:
    """Move one date by four or eight years, so that a leap day stays one."""
    years = [place + date.start() for place, written in _within(text, _DATE) for date in re.finditer(_YEAR, written)]
    place = _one_of(years, chance, "it has no date with a year")
    year = int(text[place : place + 4]) + chance.choice((-8, -4, 4, 8))
    return Broken(f"{text[:place]}{year}{text[place + 4 :]}", "high")


def _invert_claim(_: str, text: str, chance: Random) -> Broken:
    """Turn one claim into its contrary: a negation put in or taken out, or a word replaced by its opposite."""
    place, claim = _one_of(_within(text, _CLAIM), chance, "it has no claim that a word can turn")
    turned = _NEGATION.sub("", claim) if _NEGATION.search(claim) else _OPPOSITES.get(claim, f"{claim} not")
    return Broken(text[:place] + turned + text[place + len(claim) :], "high")


def _break_format(prompt: str, text: str, _: Random) -> Broken:
    """Write a list as running text, or a JSON as lines; nothing of what it says changes."""
    if kind_of(text) == "json":
        broken = "\n".join(f"{path} is {value}" for path, value in _leaves(json_value(text)))
    elif len(bullet_lines(text)) > 1:
        broken = " ".join(line.strip() for line in BULLET.sub("", text).splitlines() if line.strip())
    else:
        raise NoPlaceError("it is neither a list nor JSON")
    if not _FORM_WORDS.search(prompt):
        raise NoPlaceError("its prompt demands no form")
    return Broken(broken, "high")


def _invent_fact(_: str, text: str, chance: Random) -> Broken:
    """Add an unsupported sentence behind an existing one."""
    if kind_of(text) == "json":
        ends = [end for start, end in value_spans(text) if len(text[start:end].split()) >= _WORDS_OF_PROSE]
    else:
        ends = [end for _, end in bullet_lines(text) or sentences(text)]
    places = [len(text[:end].rstrip()) for end in ends]
    place = _one_of(places, chance, "it has no sentence that another one could follow")
    sentence = chance.choice(_INVENTED).format(
        year=chance.randint(1985, 2019),
        share=chance.randint(11, 89),
        count=chance.randint(13, 97),
        months=chance.randint(3, 19),
    )
    stop = "" if text[place - 1] in ".!?\"')]" else "."
    return Broken(f"{text[:place]}{stop} {sentence}{text[place:]}", "medium")


def _cut_end(_: str, text: str, chance: Random) -> Broken:
    """Break off in the middle of a sentence, with half to four fifths of the words written."""
    words = list(re.finditer(r"\S+", text))
    if len(words) < _FEWEST_WORDS:
        raise NoPlaceError(f"it has fewer than {_FEWEST_WORDS} words")
    first, last = len(words) // 2, len(words) * 4 // 5
    places = [word.end() for word in words[first:last] if word[0][-1].isalnum()]
    return _lost(text, text[: _one_of(places, chance, "no sentence of its second half can be broken off")])


DAMAGES: Mapping[str, Damage] = MappingProxyType(
    {
        "item_dropped": Damage("completeness", _drop_item),
        "number_changed": Damage("factuality", _change_number),
        "format_broken": Damage("format_adherence", _break_format),
        "end_cut": Damage("completeness", _cut_end),
        "claim_inverted": Damage("factuality", _invert_claim),
        "date_changed": Damage("factuality", _change_date),
        "fact_invented": Damage("factuality", _invent_fact),
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
    return Broken(rest, "high" if lost * _MUCH >= words else "medium" if lost * _SOME >= words else "low")


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


_ORDERED = re.compile(  # a prompt or a list in which the order says something
    r"\b(?:order\w*|rank\w*|sort\w*|alphabet\w*|chronolog\w*|steps?|first|second|then|next|finally|priorit\w*|"
    r"top|sequence|recipe|instructions|above|below|former|latter|also)\b",
    re.IGNORECASE,
)
_CONTRACTED = _pairs(
    "is not/isn't, are not/aren't, was not/wasn't, were not/weren't, do not/don't, does not/doesn't, did not/didn't, "
    "cannot/can't, will not/won't, should not/shouldn't"
)
_SYNONYMS = _pairs(
    "for example/for instance, in order to/so as to, such as/like, begins/starts, began/started, nearly/almost, "
    "roughly/approximately, several/a number of, large/big"
)
_OTHERWISE = {**{short: long for long, short in _CONTRACTED.items()}, **_CONTRACTED, **_SYNONYMS}
_WORDING = re.compile(rf"(?<![\w'’])(?:{'|'.join(sorted(_OTHERWISE, key=len, reverse=True))})(?=\s+\w)")


def _reorder(prompt: str, text: str, chance: Random) -> str:
    """Put the items of a list, or the keys of a JSON object, into a new order if the order has no meaning."""
    if _ORDERED.search(prompt):
        raise NoPlaceError("the prompt may ask for an order")
    if kind_of(text) == "json":
        return written_like(text, _turned_round(json_value(text)))
    lines = bullet_lines(text)
    items = [text[start:end].rstrip("\n") for start, end in lines]
    if len(set(items)) < 2 or any(_NUMBERED.match(text, start) for start, _ in lines):
        raise NoPlaceError("it has no list without numbers")
    start, end = lines[0][0], lines[-1][1]
    written = "".join(text[slice(*line)] for line in lines)
    if _ORDERED.search(written) or written != text[start:end] or any("\n" in item for item in items):
        raise NoPlaceError("the order of its list may say something")
    moved = items
    while moved == items:
        moved = chance.sample(items, len(items))
    return text[:start] + "\n".join(moved) + written[len(written.rstrip("\n")) :] + text[end:]


def _set_otherwise(_: str, text: str, __: Random) -> str:
    """Change what is typography alone: quotation marks, the sign of a list, the white space of a JSON."""
    if kind_of(text) == "json":
        return json.dumps(json_value(text), ensure_ascii=False, indent=None if "\n" in text.strip() else 2)
    signs = re.sub(
        r"^([ \t]*)[-*•](?=[ \t])", lambda sign: f"{sign[1]}{'*' if '-' in sign[0] else '-'}", text, flags=re.M
    )
    return re.sub(r"(?<=\w)'(?=\w)", "’", re.sub(r'"([^"\n]*)"', r"“\1”", signs))


def _reword(_: str, text: str, __: Random) -> str:
    """Write contractions out, or the other way round, and put in words that mean the same."""
    if kind_of(text) == "json":
        raise NoPlaceError("other words in a JSON may be other values")
    return _WORDING.sub(lambda words: _OTHERWISE[words[0]], text)


def _turned_round(value: Any) -> Any:
    """Return a JSON value with the keys of every object in reverse."""
    if isinstance(value, dict):
        return {key: _turned_round(value[key]) for key in reversed(value)}
    return [_turned_round(inside) for inside in value] if isinstance(value, list) else value


REWORDINGS: Mapping[str, Callable[[str, str, Random], str]] = MappingProxyType(
    {"reordered": _reorder, "other_words": _reword, "typography": _set_otherwise}
)


def reword_output(name: str, prompt: str, output: str, chance: Random) -> str:
    """Write an output otherwise in the way that is named; raise NoPlaceError where it offers no place for that.

    >>> reword_output("other_words", "Does it open?", "It does not open before noon.", Random(1))
    "It doesn't open before noon."
    """
    if kind_of(output) == "code":
        raise NoPlaceError("it holds code, in which nobody knows what a change does")
    written = REWORDINGS[name](prompt, output, chance)
    if written == output:
        raise NoPlaceError("it has nothing that can be written otherwise")
    return written


SAME_TEXT, REPLICATE = "same_text", "replicate"
CONTROLS = (SAME_TEXT, REPLICATE, *REWORDINGS)


class GoodOutput(JudgedItem):
    """An output to be broken; `replicate_output` is a second answer to the same request, if there is one."""

    input: JudgedText = Field(min_length=1)
    output: JudgedText = Field(min_length=1)
    replicate_output: JudgedText = ""


class PlantedPair(JudgedItem):
    """A pair for `judge regression` with what code knows of it; of a control `dimension` and `impact` are null.

    `planted` is a way to break an output, or a kind of control. `source` is the item that the baseline is of.
    """

    input: JudgedText = Field(min_length=1)
    baseline_output: JudgedText
    candidate_output: JudgedText
    source: str
    planted: str
    dimension: str | None = None
    impact: Impact | None = None

    @property
    def is_control(self) -> bool:
        """Whether there is nothing to find."""
        return self.dimension is None


class PlantedSet(NamedTuple):
    """`pairs` to be judged. `without_place`: by way, how many outputs were tried and offered no place, by reason."""

    pairs: tuple[PlantedPair, ...]
    without_place: Mapping[str, Mapping[str, int]]


def plant(outputs: Sequence[GoodOutput], broken: int, controls: int, seed: int) -> PlantedSet:
    """Return up to `broken` broken pairs and `controls` controls, in turns by dimension and way."""
    refused: dict[str, Counter[str]] = {}
    ways = by_key((damage.dimension, _each(name, outputs, seed, refused)) for name, damage in DAMAGES.items())
    written = (_each(name, outputs, seed, refused) for name in CONTROLS)
    pairs = [
        *islice(_in_turns(_in_turns(mine) for mine in ways.values()), broken),
        *islice(_in_turns(written), controls),
    ]
    return PlantedSet(pairs=tuple(pairs), without_place={name: dict(counts) for name, counts in refused.items()})


def _in_turns(sources: Iterable[Iterator[PlantedPair]]) -> Iterator[PlantedPair]:
    """Yield from each source in turns until all are empty."""
    waiting = deque(sources)
    while waiting:
        source = waiting.popleft()
        pair = next(source, None)
        if pair is not None:
            yield pair
            waiting.append(source)


def _each(
    name: str, outputs: Sequence[GoodOutput], seed: int, refused: dict[str, Counter[str]]
) -> Iterator[PlantedPair]:
    """Yield the pairs of one way, from every output that has a place for it."""
    for item in Random(f"{seed}/{name}").sample(list(outputs), len(outputs)):  # noqa: S311 (no secret)
        try:
            candidate, impact = _candidate(name, item, Random(f"{seed}/{name}/{item.id}"))  # noqa: S311
        except NoPlaceError as problem:
            refused.setdefault(name, Counter())[str(problem)] += 1
            continue
        yield PlantedPair(
            id=f"{item.id}/{name}",
            stratum=item.stratum,
            input=item.input,
            baseline_output=item.output,
            candidate_output=candidate,
            source=item.id,
            planted=name,
            dimension=DAMAGES[name].dimension if name in DAMAGES else None,
            impact=impact,
        )


def _candidate(name: str, item: GoodOutput, chance: Random) -> tuple[str, Impact | None]:
    if name in DAMAGES:
        return break_output(name, item.input, item.output, chance)
    if name in REWORDINGS:
        return reword_output(name, item.input, item.output, chance), None
    if name == SAME_TEXT:
        return item.output, None
    if not item.replicate_output:
        raise NoPlaceError("it has no replicate_output")
    return item.replicate_output, None

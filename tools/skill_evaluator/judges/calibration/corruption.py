"""Corruption tests: good outputs → pairs with a known defect, and harmless changes as controls.

The same outputs and the same seed give the same pairs.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from skill_evaluator.judges.modes.regression import RegressionItem
from skill_evaluator.judges.modes.ship_rules import Impact
from skill_evaluator.judges.prompting.items import OutputItem

CONTROL = "control"
CONTROLS_PER_CORRUPTION = 2  # most pairs of a batch hold no regression, so that specificity needs the larger sample
_BULLET = re.compile(r"^[ \t]*(?:[-*•+–]|\d{1,3}[.)])[ \t]+(?=\S)", re.MULTILINE)
_SENTENCE = re.compile(r"\S.*?[.!?][\"')\]]*(?=\s|$)", re.DOTALL)
_CODE = re.compile(r"```|^\s*(?:def|class|import|return|function|const|let|var|#include)\b|[;{}]\s*$", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.,/:#-])\d+(?:[.,]\d+)*(?!\w|[.,:/-]\d)")
_CLAIM = re.compile(r"\b(is|are|was|were|will|can|must|should)\b(?! not\b|['’])")
_FORM = re.compile(r"\b(?:bullets?|lists?|items?|points?|json|numbered|schema)\b", re.IGNORECASE)
_MIN_SENTENCES = 3  # fewer sentences lose none
_HIGH, _MEDIUM = 3, 6  # a third of the words lost has high impact, a sixth medium
_SIGNS = {"-": "*", "*": "-", "•": "-"}  # a control changes the signs of bullets
_CLAIMS = (
    "A review by an outside panel came to the same result in {year}.",
    "This was first reported by a local newspaper in {year}.",
    "About {share} percent of those who were asked agreed.",
)


class CorruptedPair(RegressionItem):
    """An item of `judge regression` with its known defect; a `control` has no dimension. `source`: the output's id."""

    source: str
    corruption: str
    dimension: str | None = None
    impact: Impact | None = None


Corrupted = tuple[str, Impact]
"""A corrupted output and the impact of its defect."""


class Corruption(NamedTuple):
    """A kind of corruption. `apply` takes prompt, output and random numbers; it returns None if it does not apply."""

    dimension: str
    apply: Callable[[str, str, Random], Corrupted | None]


def corrupt(outputs: Sequence[OutputItem], count: int, seed: int) -> list[CorruptedPair]:
    """Return up to `count` corrupted pairs, the kinds in turns, and up to twice as many controls."""
    kinds = [_pairs(name, outputs, seed) for name in CORRUPTIONS]
    in_turns = (pair for pairs in zip_longest(*kinds) for pair in pairs if pair is not None)
    corrupted = list(islice(in_turns, count))
    return [*corrupted, *islice(_pairs(CONTROL, outputs, seed), CONTROLS_PER_CORRUPTION * len(corrupted))]


def _pairs(kind: str, outputs: Sequence[OutputItem], seed: int) -> Iterator[CorruptedPair]:
    """Yield the pairs of one kind, in random order, from every output to which it applies."""
    for item in Random(f"{seed}/{kind}").sample(list(outputs), len(outputs)):  # noqa: S311 (no secret)
        if _CODE.search(item.output) and json_value(item.output) is None:
            continue  # nobody knows what a change does to code
        corruption = CORRUPTIONS.get(kind)
        random = Random(f"{seed}/{kind}/{item.id}")  # noqa: S311
        made = corruption.apply(item.input, item.output, random) if corruption else (reformatted(item.output), None)
        if made is not None and made[0] != item.output:
            yield CorruptedPair(
                id=f"{item.id}/{kind}",
                stratum=item.stratum,
                input=item.input,
                baseline_output=item.output,
                candidate_output=made[0],
                source=item.id,
                corruption=kind,
                dimension=corruption.dimension if corruption else None,
                impact=made[1],
            )


def json_value(text: str) -> Any:
    """Return the object or array that a text is. Return None for other texts."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def change_fact(_: str, text: str, random: Random) -> Corrupted | None:
    """Change the first digit of a number, or negate a claim.

    >>> change_fact("Who?", "Ada was born in 1815.", Random(1))
    ('Ada was born in 3815.', 'high')
    """
    bullets = [match.span() for match in _BULLET.finditer(text)]
    numbers = [match for match in _NUMBER.finditer(text) if not any(a <= match.start() < b for a, b in bullets)]
    if numbers:
        place = random.choice(numbers).start()
        digit = (int(text[place]) + random.randint(1, 8) - 1) % 9 + 1  # another digit, and no leading zero
        return f"{text[:place]}{digit}{text[place + 1 :]}", "high"
    claims = [] if json_value(text) is not None else list(_CLAIM.finditer(text))
    if not claims:
        return None
    place = random.choice(claims).end()
    return f"{text[:place]} not{text[place:]}", "high"


def remove_part(_: str, text: str, random: Random) -> Corrupted | None:
    """Remove an entry of a JSON value, an item of a list or a sentence; the impact is by the share of words lost."""
    value = json_value(text)
    starts = [match.start() for match in _BULLET.finditer(text)]
    sentences = [match.span() for match in _SENTENCE.finditer(text)]
    if value is not None and len(value) > 1:
        del value[random.choice(list(value) if isinstance(value, dict) else range(len(value)))]
        rest = json.dumps(value, indent=2 if "\n" in text.strip() else None, ensure_ascii=False)
    elif value is None and (len(starts) > 1 or len(sentences) >= _MIN_SENTENCES):
        items = zip(starts, [*starts[1:], len(text)], strict=True) if len(starts) > 1 else sentences
        start, end = random.choice(list(items))
        rest = text[:start] + text[end:].lstrip(" ")
    else:
        return None
    words = len(text.split())
    lost = words - len(rest.split())
    return rest, "high" if lost * _HIGH >= words else "medium" if lost * _MEDIUM >= words else "low"


def break_format(prompt: str, text: str, _: Random) -> Corrupted | None:
    """Write a list as running text or a JSON value as lines, if the prompt asks for a list or JSON."""
    value = json_value(text)
    if not _FORM.search(prompt) or (value is None and len(_BULLET.findall(text)) < 2):
        return None
    if value is None:
        return " ".join(line.strip() for line in _BULLET.sub("", text).splitlines() if line.strip()), "high"
    members = value.items() if isinstance(value, dict) else enumerate(value, 1)
    return "\n".join(f"{name} is {member}" for name, member in members), "high"


def invent_claim(_: str, text: str, random: Random) -> Corrupted | None:
    """Add a sentence that nothing supports behind a sentence of the text."""
    ends = [] if json_value(text) is not None else [match.end() for match in _SENTENCE.finditer(text)]
    if not ends:
        return None
    end = random.choice(ends)
    claim = random.choice(_CLAIMS).format(year=random.randint(1985, 2019), share=random.randint(11, 89))
    return f"{text[:end]} {claim}{text[end:]}", "medium"


CORRUPTIONS: Mapping[str, Corruption] = MappingProxyType(
    {
        "fact_changed": Corruption("factuality", change_fact),
        "part_removed": Corruption("completeness", remove_part),
        "format_broken": Corruption("format_adherence", break_format),
        "claim_invented": Corruption("factuality", invent_claim),
    }
)


def reformatted(text: str) -> str:
    """Return a text with other typography and the same content: JSON spacing, bullet signs, quotation marks or lines.

    >>> reformatted('- It says "yes".')
    '* It says “yes”.'
    """
    value = json_value(text)
    if value is not None:
        return json.dumps(value, ensure_ascii=False, indent=None if "\n" in text.strip() else 2)
    signs = re.sub(r"^([ \t]*)([-*•])(?=[ \t])", lambda sign: sign[1] + _SIGNS[sign[2]], text, flags=re.MULTILINE)
    quoted = re.sub(r'"([^"\n]*)"', r"“\1”", signs)
    return quoted if quoted != text else re.sub(r"(?<=[.!?]) (?=\S)", "\n", text, count=1)

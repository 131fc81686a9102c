"""Corruption tests: create pairs with a known defect from good outputs, and harmless changes as controls."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from skill_evaluator.judges.modes.regression import RegressionItem
from skill_evaluator.judges.modes.ship_rules import Impact
from skill_evaluator.judges.prompting.questions import OutputItem

CONTROL = "control"
CONTROLS_PER_CORRUPTION = 2  # most pairs of a batch have no regression, so specificity needs the larger sample
_BULLET = re.compile(r"^[ \t]*(?:[-*•+–]|\d{1,3}[.)])[ \t]+(?=\S)", re.MULTILINE)
_SENTENCE = re.compile(r"\S.*?[.!?][\"')\]]*(?=\s|$)", re.DOTALL)
_CODE = re.compile(r"```|^\s*(?:def|class|import|return|function|const|let|var|#include)\b|[;{}]\s*$", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.,/:#-])\d+(?:[.,]\d+)*(?!\w|[.,:/-]\d)")
_CLAIM = re.compile(r"\b(is|are|was|were|will|can|must|should)\b(?! not\b|['’])")
_STRUCTURED_FORM = re.compile(r"\b(?:bullets?|lists?|items?|points?|json|numbered|schema)\b", re.IGNORECASE)
_MIN_SENTENCES = 3  # shorter texts keep all sentences
_HIGH_DIVISOR, _MEDIUM_DIVISOR = 3, 6  # removing 1/3 of the words has high impact, 1/6 medium
_BULLETS = {"-": "*", "*": "-", "•": "-"}  # replacements in a control
_CLAIMS = (
    "A review by an outside panel came to the same result in {year}.",
    "This was first reported by a local newspaper in {year}.",
    "About {share} percent of those who were asked agreed.",
)


class CorruptedPair(RegressionItem):
    """A pair with a known defect, or a control (no dimension, no impact). `source`: id of the original output."""

    source: str
    corruption: str
    dimension: str | None = None
    impact: Impact | None = None


Corrupted = tuple[str, Impact]
"""A corrupted output and the impact of its defect."""


class Corruption(NamedTuple):
    """A kind of corruption. `apply(prompt, output, random)` corrupts an output, or returns None if it cannot."""

    dimension: str
    apply: Callable[[str, str, Random], Corrupted | None]


def corrupt(outputs: Sequence[OutputItem], count: int, seed: int) -> list[CorruptedPair]:
    """Return up to `count` corrupted pairs of alternating kinds, then up to twice as many controls."""
    kinds = [_pairs_of_kind(name, outputs, seed) for name in CORRUPTIONS]
    in_turns = (pair for pairs in zip_longest(*kinds) for pair in pairs if pair is not None)
    corrupted = list(islice(in_turns, count))
    return [*corrupted, *islice(_pairs_of_kind(CONTROL, outputs, seed), CONTROLS_PER_CORRUPTION * len(corrupted))]


def _pairs_of_kind(kind: str, outputs: Sequence[OutputItem], seed: int) -> Iterator[CorruptedPair]:
    """Yield a pair for each output to which this kind of corruption applies, in random order."""
    for item in Random(f"{seed}/{kind}").sample(list(outputs), len(outputs)):  # noqa: S311 (no secret)
        if _CODE.search(item.output) and json_value(item.output) is None:
            continue  # the effect of a change in code is unknown
        corruption = CORRUPTIONS.get(kind)
        random = Random(f"{seed}/{kind}/{item.id}")  # noqa: S311
        output = corruption.apply(item.input, item.output, random) if corruption else (reformatted(item.output), None)
        if output is not None and output[0] != item.output:
            yield CorruptedPair(
                id=f"{item.id}/{kind}",
                stratum=item.stratum,
                input=item.input,
                baseline_output=item.output,
                candidate_output=output[0],
                source=item.id,
                corruption=kind,
                dimension=corruption.dimension if corruption else None,
                impact=output[1],
            )


def json_value(text: str) -> Any:
    """Parse a text that is a JSON object or array. Return None for other texts."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def change_fact(_: str, text: str, random: Random) -> Corrupted | None:
    """Change the first digit of a number or negate a claim. Return None if the text has neither.

    >>> change_fact("Who?", "Ada was born in 1815.", Random(1))
    ('Ada was born in 3815.', 'high')
    """
    bullets = [match.span() for match in _BULLET.finditer(text)]
    numbers = [match for match in _NUMBER.finditer(text) if not any(a <= match.start() < b for a, b in bullets)]
    if numbers:
        position = random.choice(numbers).start()
        digit = (int(text[position]) + random.randint(1, 8) - 1) % 9 + 1  # differs, and is not a leading zero
        return f"{text[:position]}{digit}{text[position + 1 :]}", "high"
    claims = [] if json_value(text) is not None else list(_CLAIM.finditer(text))
    if not claims:
        return None
    position = random.choice(claims).end()
    return f"{text[:position]} not{text[position:]}", "high"


def remove_part(_: str, text: str, random: Random) -> Corrupted | None:
    """Remove a JSON entry, a list item or a sentence. Return None if the text has too few of them."""
    value = json_value(text)
    starts = [match.start() for match in _BULLET.finditer(text)]
    sentences = [match.span() for match in _SENTENCE.finditer(text)]
    if value is not None and len(value) > 1:
        del value[random.choice(list(value) if isinstance(value, dict) else range(len(value)))]
        shortened = json.dumps(value, indent=2 if "\n" in text.strip() else None, ensure_ascii=False)
    elif value is None and (len(starts) > 1 or len(sentences) >= _MIN_SENTENCES):
        items = zip(starts, [*starts[1:], len(text)], strict=True) if len(starts) > 1 else sentences
        start, end = random.choice(list(items))
        shortened = text[:start] + text[end:].lstrip(" ")
    else:
        return None
    word_count = len(text.split())
    words_removed = word_count - len(shortened.split())
    if words_removed * _HIGH_DIVISOR >= word_count:
        return shortened, "high"
    return shortened, "medium" if words_removed * _MEDIUM_DIVISOR >= word_count else "low"


def break_format(prompt: str, text: str, _: Random) -> Corrupted | None:
    """Write a list or JSON value as running text. Return None for other texts, or if the prompt requests neither."""
    value = json_value(text)
    if not _STRUCTURED_FORM.search(prompt) or (value is None and len(_BULLET.findall(text)) < 2):
        return None
    if value is None:
        return " ".join(line.strip() for line in _BULLET.sub("", text).splitlines() if line.strip()), "high"
    members = value.items() if isinstance(value, dict) else enumerate(value, 1)
    return "\n".join(f"{name} is {member}" for name, member in members), "high"


def invent_claim(_: str, text: str, random: Random) -> Corrupted | None:
    """Insert an unsupported claim after a sentence. Return None for JSON and for a text without a sentence."""
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
    """Return a text with the same content and other JSON spacing, bullet signs, quotation marks or line breaks."""
    value = json_value(text)
    if value is not None:
        return json.dumps(value, ensure_ascii=False, indent=None if "\n" in text.strip() else 2)
    signs = re.sub(r"^([ \t]*)([-*•])(?=[ \t])", lambda sign: sign[1] + _BULLETS[sign[2]], text, flags=re.MULTILINE)
    quoted = re.sub(r'"([^"\n]*)"', r"“\1”", signs)
    return quoted if quoted != text else re.sub(r"(?<=[.!?]) (?=\S)", "\n", text, count=1)

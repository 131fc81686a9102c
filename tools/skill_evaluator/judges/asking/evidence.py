"""A piece of evidence and the outputs it is about → a quote that is there, or an observation.

A judge can describe what it did not see, so code looks.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal

from skill_evaluator.files import FrozenModel
from skill_evaluator.text import normalise

NEAR = 90.0
"""The least partial ratio of a near quote, of 100: about one wrong character in ten."""
NEAR_FROM = 20
"""The fewest characters of a near quote; a shorter one must be there exactly."""

_LONGEST_NEAR = 2_000  # characters; a longer quote must be there exactly
_MOST_MARKED = 12  # quotations that are looked for in one piece of evidence
_MARKED = re.compile(r'"([^"]+)"|(?<!\w)\'([^\']+)\'(?!\w)')
_AROUND_WORDS = re.compile(r"(?<!\w)[\"']|[\"'](?!\w)")  # a quotation mark, and no apostrophe inside of a word
_GAP = re.compile(r"\[?(?:\.\.\.|…)\]?")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NEGATIONS = frozenset({"not", "no", "never", "without", "none", "cannot", "nor"})
_STRAIGHT = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})
_NOTHING = frozenset({"", "-", "n/a", "na", "none", "null", "nothing"})


class Evidence(FrozenModel):
    """What a judge names of one output; `similarity` is a quote's, of 100.

    `not_found` has what stands in quotation marks and is neither in that output nor in the texts beside it.
    """

    text: str
    kind: Literal["none", "quote", "observation"]
    similarity: float | None = None
    not_found: tuple[str, ...] = ()


def read_evidence(text: str, output: str, beside: Sequence[str] = ()) -> Evidence:
    """Tell a quote from an observation: a quote, whole or in quotation marks, is found in its output.

    `beside` are the texts that an observation may quote, too: the prompt and the other output.

    >>> read_evidence("in 1999", "It opened in 1999.").kind, read_evidence("It gives no year.", "It opened.").kind
    ('quote', 'observation')
    """
    if text.strip().casefold().rstrip(".") in _NOTHING:
        return Evidence(text=text, kind="none")
    whole = quote_similarity(text, output)
    if whole is not None:
        return Evidence(text=text, kind="quote", similarity=whole)
    marks = islice(_MARKED.finditer(text.translate(_STRAIGHT)), _MOST_MARKED)
    marked = [mark[1] or mark[2] for mark in marks]
    similarities = {quote: quote_similarity(quote, output) for quote in marked}
    found = [similarity for similarity in similarities.values() if similarity is not None]
    return Evidence(
        text=text,
        kind="quote" if found else "observation",
        similarity=min(found) if found else None,
        not_found=tuple(
            quote
            for quote, similarity in similarities.items()
            if similarity is None and all(quote_similarity(quote, other) is None for other in beside)
        ),
    )


def quote_similarity(quote: str, text: str) -> float | None:
    """Return how well a quote is found in a text: 100 exactly, at least NEAR nearly; None where it is not.

    Case, white space, quotation marks and a gap (`…`) do not count. A near quote must have the numbers and
    negations of its place: one digit changed makes a different statement.
    """
    place = _plain(text)
    parts = [part for part in (_plain(part).strip(" .,;:!?-") for part in _GAP.split(quote)) if part]
    similarities = [_part_similarity(part, place) for part in parts]
    if not parts or None in similarities or not any(len(part) > 2 or part.isdigit() for part in parts):
        return None
    return min(similarity for similarity in similarities if similarity is not None)


def _part_similarity(part: str, place: str) -> float | None:
    if re.search(rf"(?<!\w){re.escape(part)}(?!\w)", place):
        return 100.0
    if not NEAR_FROM <= len(part) <= _LONGEST_NEAR or len(part) > len(place):
        return None
    from rapidfuzz import fuzz

    best = fuzz.partial_ratio_alignment(part, place, score_cutoff=NEAR)
    if best is None:
        return None
    start = place.rfind(" ", 0, best.dest_start + 1) + 1  # the window may begin and end inside a word
    end = place.find(" ", best.dest_end)
    window = place[start : end if end >= 0 else len(place)]
    same = Counter(_NUMBER.findall(part)) <= Counter(_NUMBER.findall(window)) and _negated(part) == _negated(window)
    return round(best.score, 1) if same else None


def _negated(text: str) -> bool:
    return "n't" in text or bool(_NEGATIONS & set(text.split()))


@lru_cache(maxsize=8)  # the same few outputs are looked into for each piece of evidence
def _plain(text: str) -> str:
    straight = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    return normalise(_AROUND_WORDS.sub("", straight)).casefold()

"""Quotations in a judge's evidence, looked up in the texts that it judges."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from skill_evaluator.text import normalise

_MAX_QUOTATIONS = 12  # looked up in one piece of evidence
_MIN_LETTERS = 4  # a shorter word without a digit proves nothing
_QUOTED = re.compile(r'"([^"]+)"|(?<!\w)\'([^\']+)\'(?!\w)')
_AROUND_WORDS = re.compile(r"(?<!\w)[\"']|[\"'](?!\w)")  # a quotation mark, not an apostrophe inside a word
_GAP = re.compile(r"\[?(?:\.\.\.|…)\]?")
_STRAIGHT = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})


def contains_quotation(text: str, quotation: str) -> bool:
    """Return whether a text contains a quotation, word for word.

    Case, white space, quotation marks and gaps (`…`) do not count.

    >>> contains_quotation("It opened in 1999.", "opened … 1999"), contains_quotation("It opened.", "It closed")
    (True, False)
    """
    plain = _plain(text)
    parts = [part for part in (_plain(part).strip(" .,;:!?-") for part in _GAP.split(quotation)) if part]
    proves = any(len(part) >= _MIN_LETTERS or any(mark.isdigit() for mark in part) for part in parts)
    return proves and all(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", plain) for part in parts)


def has_quotation(evidence: str, text: str) -> bool:
    """Return whether a piece of evidence is a quotation from a text, or has one between quotation marks."""
    return any(contains_quotation(text, quotation) for quotation in (evidence, *_marked(evidence)))


def invented_quotations(evidence: str, texts: Sequence[str]) -> list[str]:
    """Return the passages between quotation marks that are in none of the texts."""
    if any(contains_quotation(text, evidence) for text in texts):
        return []
    return [marked for marked in _marked(evidence) if not any(contains_quotation(text, marked) for text in texts)]


def shows_difference(evidence: Sequence[str], left: str, right: str) -> bool:
    """Return whether some quotation of the evidence is in one of two texts and not in the other.

    >>> shows_difference(["opened in 1999"], "It opened in 1999.", "It opened in 1998.")
    True
    >>> shows_difference(["It opened"], "It opened in 1999.", "It opened in 1998.")
    False
    """
    quotations = (quotation for text in evidence for quotation in (text, *_marked(text)))
    return any(contains_quotation(left, one) != contains_quotation(right, one) for one in quotations)


def _marked(evidence: str) -> list[str]:
    marks = islice(_QUOTED.finditer(evidence.translate(_STRAIGHT)), _MAX_QUOTATIONS)
    return [mark[1] or mark[2] for mark in marks]


@lru_cache(maxsize=8)  # the same few outputs are searched for each piece of evidence
def _plain(text: str) -> str:
    straight = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    return normalise(_AROUND_WORDS.sub("", straight)).casefold()

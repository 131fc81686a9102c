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
from skill_evaluator.text import normalise, words

NEAR = 90.0
"""The least partial ratio of a near quote, of 100: about one wrong character in ten."""
NEAR_FROM = 20
"""The fewest characters of a near quote; a shorter one must be there exactly."""
LEFT_OUT_FROM = 2
"""The fewest words of the evidence that must be in the baseline and not in the candidate for an omission."""

_LONGEST_NEAR = 2_000  # characters; a longer quote must be there exactly
_MOST_MARKED = 12  # quotations that are looked for in one piece of evidence
_MARKED = re.compile(r'"([^"]+)"|(?<!\w)\'([^\']+)\'(?!\w)')
_AROUND_WORDS = re.compile(r"(?<!\w)[\"']|[\"'](?!\w)")  # a quotation mark, and no apostrophe inside of a word
_GAP = re.compile(r"\[?(?:\.\.\.|…)\]?")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NEGATIONS = frozenset({"not", "no", "never", "without", "none", "cannot", "nor"})
_STRAIGHT = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})
_NOTHING = frozenset({"", "-", "n/a", "na", "none", "null", "nothing"})
_OF_EVERY_OUTPUT = frozenset(
    words("""
        about answer answers also although and are baseline because been between both bullet bullets but candidate
        clearly contains correct could covers does each every first following form from gives good have hence here
        includes into item items just leaves less like list lists mentions misses missing more most much names never
        none only other output outputs over point points prompt reason requested required response same second
        sentence should since some states still substantive such summary text than that their them then there these
        they third this those three through under very well were what when where which while whose will with within
        without words would your
    """)
)
_STYLE = frozenset(
    words("""
        academic brevity brief briefer casual chatty choppy colloquial concise conciseness dry elegant elegance
        engaging flat flow flows flowery fluency fluent formal formality informal length lengthier lively long longer
        phrased phrasing polished prose punchy readability register short shorter smooth smoother stiff stilted style
        styled stylistic stylistically succinct terse tone verbose verbosity vivid voice wordier wording wordy worded
    """)
)
_AROUND_STYLE = frozenset(
    words("""
        a an and as at be bit but by does for feel feels has in is it its little makes of on or quite rather reads
        slightly somewhat sounds the to too use uses used writes written less more much than that this very was were
        baseline candidate answer output response text version sentence sentences word words overall in general
    """)
)


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
    negations of its place: one digit changed is another statement.
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


def left_out(evidence: Sequence[str], baseline: str, candidate: str) -> list[str]:
    """Return the words of the evidence that are in the baseline and not in the candidate, in any of their forms.

    Words that every output has, or that speak of outputs, do not count. An omission is checked when there are at least
    LEFT_OUT_FROM of them.
    """
    before, after = ({_stem(word) for word in words(text)} for text in (baseline, candidate))
    named = dict.fromkeys(
        _stem(word)
        for text in evidence
        for word in words(text)
        if word.isdigit() or (len(word) > 3 and word not in _OF_EVERY_OUTPUT)
    )
    return [stem for stem in named if stem in before and stem not in after]


def _stem(word: str) -> str:
    """Cut the commonest endings off an English word, so that *instruments* and *instrument* are one."""
    for ending in ("ings", "ing", "ies", "ied", "es", "ed", "e", "s", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def names_only_style(evidence: Sequence[str]) -> bool:
    """Return whether observations speak of style and of nothing else.

    >>> names_only_style(["", "The wording is less formal."]), names_only_style(["Formal.", "Omits the price."])
    (True, False)
    """
    named = {word for text in evidence for word in words(text)} - _AROUND_STYLE
    return bool(named) and named <= _STYLE

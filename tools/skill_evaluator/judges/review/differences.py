"""Where two texts differ, word by word: each as pieces that are common or its own, which joined are the text."""

import re
from collections.abc import Sequence
from itertools import groupby

Piece = tuple[str, bool]
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_TOKENS = 20_000  # of both; the time grows with the square, and nobody reads that


def differences(left: str, right: str) -> tuple[list[Piece], list[Piece]]:
    """Return both texts in pieces, each with whether the other text lacks it; very long texts as one common piece.

    >>> differences("It opens at 8", "It opens at nine")
    ([('It opens at ', False), ('8', True)], [('It opens at ', False), ('nine', True)])
    """
    from rapidfuzz.distance import LCSseq

    first, second = _TOKEN.findall(left), _TOKEN.findall(right)
    if len(first) + len(second) > _MOST_TOKENS:
        return [(left, False)], [(right, False)]
    own_left, own_right = [False] * len(first), [False] * len(second)
    for step in LCSseq.editops(first, second):
        if step.tag == "delete":
            own_left[step.src_pos] = True
        else:
            own_right[step.dest_pos] = True
    return _pieces(first, own_left), _pieces(second, own_right)


def _pieces(tokens: Sequence[str], own: list[bool]) -> list[Piece]:
    """Join tokens of a kind; a blank between two words of one's own is one's own, too."""
    for place in range(1, len(tokens) - 1):
        if tokens[place].isspace() and own[place - 1] and own[place + 1]:
            own[place] = True
    return [
        ("".join(token for token, _ in run), kind)
        for kind, run in groupby(zip(tokens, own, strict=True), key=lambda pair: pair[1])
    ]

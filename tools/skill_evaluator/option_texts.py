"""An answer and the options in one spelling, and which options' own words stand in a text.

Text in, letters out. Its own module because letters and words of options are read by different rules.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skill_evaluator.text import letters_of

_UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_EMPHASIS = re.compile(r"_{1,3}(?![A-Za-z0-9])|(?<![A-Za-z0-9])_{1,3}")
_LATEX = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|it|rm|sf|tt)|mbox|emph)\{([^{}]*)\}")
_LATEX_MARKS = re.compile(r"\\[()\[\],;! ]")
_TOKEN = re.compile(r"<\|[^|<>]{1,30}\|>")
_ANSWER_TAG = re.compile(r"<(?:final_)?answer>", re.IGNORECASE)
_INLINE_TAG = re.compile(r"</?(?:b|i|u|em|strong|span|code|mark|font|sub|sup)\b[^<>]{0,200}>", re.IGNORECASE)
_BLOCK_TAG = re.compile(r"</?(?:p|br|hr|div|li|ul|ol|pre|h[1-6]|(?:final_)?answer)\b[^<>]{0,200}>", re.IGNORECASE)
_GLUED_BEFORE = re.compile(r"\w[-'’]?\Z|\d[.,/^:]\Z")
_GLUED_AFTER = re.compile(r"\w|-\w|[.,/^:]\d")
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_THOUSANDS = re.compile(r"(?<![\d,.])(\d{1,3}(?:,\d{3})+)(?![\d,])")
_END_MARKS = ".,;:!"


def plain(text: str) -> str:
    """One spelling: NFKC, no mark-up, no empty lines, one space where there is white space within a line.

    >>> plain("**Answer:**\\n\\n\\t<b>\\uff23</b>")
    'Answer:\\nC'
    """
    if not text.isascii():
        text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
        text = text.replace("\u2212", "-")
    for mark in "*`$":
        text = text.replace(mark, "")
    if "_" in text:
        text = _EMPHASIS.sub("", text)
    if "\\" in text:
        text = _FRACTION.sub(r"\1/\2", text.replace("\\%", "%"))
        text = _LATEX_MARKS.sub(" ", _LATEX.sub(r"\1", _LATEX.sub(r"\1", text))).replace("~", " ")
    if "," in text:
        text = _THOUSANDS.sub(lambda match: match[1].replace(",", ""), text)
    if "<" in text:
        text = _TOKEN.sub("", text)
        text = _BLOCK_TAG.sub("\n", _INLINE_TAG.sub("", _ANSWER_TAG.sub("\nAnswer: ", text)))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(filter(None, lines))


def folded(text: str) -> str:
    """A plain text as options are looked for in it."""
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTexts:
    """The letters of the options, and the letter of each folded text, the longest text first.

    A text that is another option's letter is that letter, and two texts in one spelling tell nothing: neither is here.
    """

    letters: str
    by_text: Mapping[str, str]

    @classmethod
    def of(cls, options: Sequence[str]) -> "OptionTexts":
        """Those of a question."""
        letters = letters_of(options)
        texts = [_without_end_marks(folded(plain(option))) for option in options]
        known = {
            text: letter
            for text, letter in zip(texts, letters, strict=False)
            if text and texts.count(text) == 1 and text.upper() not in tuple(letters)
        }
        return cls(letters=letters, by_text={text: known[text] for text in sorted(known, key=len, reverse=True)})

    @property
    def longest(self) -> int:
        """Characters of the longest text."""
        return max(map(len, self.by_text), default=0)

    def exactly(self, text: str) -> str | None:
        """The option whose text this is, whatever stands around it."""
        found = folded(text)
        return self.by_text.get(found) or self.by_text.get(_without_end_marks(found.strip("\"'“”‘’()[]{} ")))

    def at_start(self, text: str) -> tuple[str, int] | None:
        """The option whose text a folded text begins with, and where that ends."""
        for known, letter in self.by_text.items():
            if text.startswith(known) and stands_alone(text, 0, len(known)):
                return letter, len(known)
        return None

    def within(self, text: str) -> set[str]:
        """The options whose text stands in a folded text as whole words, up to two of them.

        One that stands only inside a longer one of them does not count, nor does a text of one letter.
        """
        found: set[str] = set()
        for known, letter in self.by_text.items():
            if known not in text or (len(known) == 1 and known.isalpha()):
                continue
            if _occurs(known, text):
                found.add(letter)
                text = text.replace(known, "\0")
            if len(found) > 1:
                break
        return found


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a part of a text is no part of a longer word or number.

    >>> stands_alone("in Paris.", 3, 8), stands_alone("Parisian", 0, 5), stands_alone("1.5", 0, 1)
    (True, False, False)
    """
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    if text[start:end][:1].isdigit() and before.endswith(("-", "−")):
        return False
    if text[start:end][-1:].isdigit() and after.startswith("%"):
        return False
    return not _GLUED_BEFORE.search(before) and not _GLUED_AFTER.match(after)


def _occurs(known: str, text: str) -> bool:
    at = text.find(known)
    while at >= 0:
        if stands_alone(text, at, at + len(known)):
            return True
        at = text.find(known, at + 1)
    return False


def _without_end_marks(text: str) -> str:
    return text.rstrip(_END_MARKS + " ") or text

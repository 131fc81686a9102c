"""How a text names options: by their letters, as people write them, or by their own words.

A plain text and a place in it in, the letters of the options named there out. Its own module because every rule of
`choice` reads options in the same way.
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
    """Bring a text into one spelling: NFKC, no mark-up, no empty lines, single spaces within a line.

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
    """Fold case and white space of a plain text, to look for options in it."""
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTexts:
    """The letters of the options, and the letter of each folded text, the longest text first.

    A text that is another option's letter is left out, and so are two texts that are alike: they tell nothing.
    """

    letters: str
    by_text: Mapping[str, str]

    @classmethod
    def of(cls, options: Sequence[str]) -> "OptionTexts":
        """Fold the options of a question."""
        letters = letters_of(options)
        texts = [_without_end_marks(folded(plain(option))) for option in options]
        by_text = {
            text: letter
            for text, letter in zip(texts, letters, strict=False)
            if text and texts.count(text) == 1 and text.upper() not in tuple(letters)
        }
        return cls(letters=letters, by_text={text: by_text[text] for text in sorted(by_text, key=len, reverse=True)})

    @property
    def longest(self) -> int:
        """Characters of the longest text."""
        return max(map(len, self.by_text), default=0)

    def exactly(self, text: str) -> str | None:
        """Return the option whose text this is, in whatever quotes and brackets."""
        words = folded(text)
        return self.by_text.get(words) or self.by_text.get(_without_end_marks(words.strip("\"'“”‘’()[]{} ")))

    def at_start(self, text: str) -> tuple[str, int] | None:
        """Return the option that a folded text begins with, and where its words end."""
        for option, letter in self.by_text.items():
            if text.startswith(option) and stands_alone(text, 0, len(option)):
                return letter, len(option)
        return None

    def within(self, text: str) -> set[str]:
        """Return the options whose text stands in a folded text as whole words, up to two of them.

        A text of one letter does not count, nor one that stands only inside a longer one.
        """
        letters: set[str] = set()
        for option, letter in self.by_text.items():
            if len(option) == 1 and option.isalpha():
                continue
            start = text.find(option)
            while start >= 0 and not stands_alone(text, start, start + len(option)):
                start = text.find(option, start + 1)
            if start >= 0:
                letters.add(letter)
                text = text.replace(option, "\0")
            if len(letters) > 1:
                break
        return letters


def stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text is not part of a longer word or number.

    >>> stands_alone("in Paris.", 3, 8), stands_alone("Parisian", 0, 5), stands_alone("1.5", 0, 1)
    (True, False, False)
    """
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    if text[start:end][:1].isdigit() and before.endswith(("-", "−")):
        return False
    if text[start:end][-1:].isdigit() and after.startswith("%"):
        return False
    return not _GLUED_BEFORE.search(before) and not _GLUED_AFTER.match(after)


def _without_end_marks(text: str) -> str:
    return text.rstrip(_END_MARKS + " ") or text


_CLOSING = "\"'”’)\\]}»"
_LETTER = re.compile(f"([A-Za-z])([{_CLOSING}]*)")
# What makes a letter a part of something else: a word, an abbreviation, a formula.
_GLUED = re.compile(r"[\w+#%°]|[-/]\w\w|-\w|\.[a-z]|\.[A-Z]\.| ?[=^<>×·≠≤≥≈]")
_MARK = r"[\s:(\"'“‘\[{«>→]|(?<=\n)[-•#]+ "
_FILLERS = re.compile(
    rf"(?:(?:{_MARK}|[,-])*\b(?:clearly|certainly|obviously|definitely|therefore|thus|hence|likely|probably|most|indeed"
    rf"|simply|only|either|both|the|option|options|choice|choices|letter|letters|answer)\b){{0,5}}(?:{_MARK})*",
    re.IGNORECASE,
)
_OPENING = re.compile(f"(?:{_MARK})*")
_ASKED = re.compile(rf"[.{_CLOSING}]* ?\?")
_DENIED = re.compile(r" (?:is|was|are)(?:n['’]t| not| wrong| incorrect| false)\b")
_ENDS = re.compile(r"[.!]?(?:\n|\Z)|[.!:)] ")
_NO_WORD_FOLLOWS = re.compile(r"\Z|[^\w ]|\n| [^\w ]")
# No noun phrase goes on with these: a letter before one is no article, nor a name such as «B vitamins».
_OTHER_WORD_FOLLOWS = re.compile(
    r" (?:because|since|as|and|or|but|due|based|given|according|which|that|rather|not|when|where|while|whereas|although"
    r"|though|if|so|in|on|by|for|from|with|here|is|was|are|does|has|would|can|I|we|it|this|the|these|there)\b"
)
_CLAUSE_FOLLOWS = re.compile(
    r" (?:is|isn['’]t|was|are|does|do|has|have|had|would|can|cannot|could|may|might|seems?|looks?|refers?|describes?"
    r"|says?|states?|means?|think|thought|believe|will|must|should|contradicts?|fails?)\b"
)
_LINK = re.compile(r"( ?[,/&+] ?(?:and |or )?| and/or | and | or | )(?:(?:option|choice) )?[(\"'“‘\[{«]*")
_TEXT_LINK = re.compile(r"(?: ?[,/&+]| and| or) (?:the |an? )?")
_GIVEN = re.compile(r" ?[(\[](?:option )?([a-z])[)\]]")
_BEFORE_TEXT = re.compile(r"[).:,–— -]*")
_AHEAD = 80


def letters_at(text: str, start: int, options: OptionTexts) -> tuple[set[str], int]:
    """Return the options named by letter from a place on, and where the last letter ends.

    A letter beyond those of the options is returned too: it chooses an option that does not exist.

    >>> letters_at("C) or D, I think", 0, OptionTexts.of("wxyz"))[0] == {"C", "D"}
    True
    >>> letters_at("A dog", 0, OptionTexts.of("wxyz"))
    (set(), 0)
    """
    first = _LETTER.match(text, start)
    if first is None or not _names_an_option(text, first, options):
        return set(), start
    letters, end = {first[1].upper()}, first.end()
    while first[1].isupper():
        link = _LINK.match(text, end)
        further = link and _LETTER.match(text, link.end())
        if not link or not further or not _continues_a_list(text, further, link[1], options):
            break
        letters.add(further[1])
        end = further.end()
    if len(letters) == 1:  # the words of an option, and no more, may stand behind the letter on its line
        limit = end + options.longest + _AHEAD
        line_end = text.find("\n", end, limit)
        rest = text[end : line_end if line_end >= 0 else limit]
        behind = options.exactly(rest[_BEFORE_TEXT.match(rest).end() :])  # type: ignore[union-attr]
        letters |= {behind} if behind else set()
    return letters, end


def named_at(text: str, start: int, options: OptionTexts) -> set[str]:
    """Return the options that a statement names from a place on, by their words or their letters."""
    after_marks, after_fillers = (pattern.match(text, start) for pattern in (_OPENING, _FILLERS))
    ends = dict.fromkeys(match.end() for match in (after_marks, after_fillers) if match)
    for end in ends:
        letters = _words_at(text, end, options)
        if letters:
            return letters
    for end in ends:
        letters = letters_at(text, end, options)[0]
        if letters:
            return letters
    return set()


def _words_at(text: str, start: int, options: OptionTexts) -> set[str]:
    """Return the options named by their words from a place on, with letters in brackets behind; a question has none."""
    rest = folded(text[start : start + 2 * options.longest + _AHEAD])
    letters: set[str] = set()
    while option := options.at_start(rest):
        letter, end = option
        rest = rest[end:]
        if _ASKED.match(rest):
            return set()
        letters.add(letter)
        given = _GIVEN.match(rest)
        if given and given[1].upper() in options.letters:
            letters.add(given[1].upper())
        link = _TEXT_LINK.match(rest)
        if not link:
            break
        rest = rest[link.end() :]
    return letters


def _names_an_option(text: str, match: re.Match[str], options: OptionTexts) -> bool:
    """Return whether a letter names an option: not an article, a part of a formula, nor one that is asked or denied."""
    letter, closed = match[1], match[2]
    rest = text[match.end() : match.end() + _AHEAD]
    if _is_glued(rest, closed) or _ASKED.match(rest) or _DENIED.match(rest):
        return False
    if letter.islower():
        return letter.upper() in options.letters and (bool(closed) or _ENDS.match(rest) is not None)
    if closed or _NO_WORD_FOLLOWS.match(rest):
        return True
    own = options.at_start(folded(text[match.end() : match.end() + options.longest + _AHEAD]))
    if own is not None and own[0] == letter:
        return True
    return letter != "I" and _OTHER_WORD_FOLLOWS.match(rest) is not None


def _is_glued(rest: str, closed: str) -> bool:
    """Return whether a letter goes on as something else; behind a bracket anything may stand."""
    if not closed:
        return _GLUED.match(rest) is not None
    return closed[-1] in "\"'”’" and rest[:1].isalnum()


def _continues_a_list(text: str, match: re.Match[str], link: str, options: OptionTexts) -> bool:
    """Return whether a letter behind a comma, an «and» or an «or» is one more of a list."""
    rest = text[match.end() : match.end() + _AHEAD]
    if match[1] not in options.letters or _is_glued(rest, match[2]):
        return False
    if match[1] == "I" and _CLAUSE_FOLLOWS.match(rest):
        return False
    if "or" in link:
        return True
    if "and" in link:
        return _CLAUSE_FOLLOWS.match(rest) is None
    return re.match(r" (?!and\b|or\b)\w", rest) is None

"""An answer and the options in one spelling, and which options' own words stand in a text.

Text in, letters out. Its own module because letters and words of options are read by different rules.

Letters of options as people write them: in brackets, with their text, several of them; and never the article «A».

A plain text and a place in it in, the options named there out. Its own module because every rung of the ladder in
`choices` reads letters by these rules.
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
    """The options named by letter from a place on, and where the last letter ends; none if there is no letter.

    A letter beyond those of the options is among them: somebody chose what there is not.

    >>> letters_at("C) or D, I think", 0, OptionTexts.of("wxyz"))[0] == {"C", "D"}
    True
    >>> letters_at("A dog", 0, OptionTexts.of("wxyz"))
    (set(), 0)
    """
    first = _LETTER.match(text, start)
    if first is None or not _names_an_option(text, first, options):
        return set(), start
    named, end = {first[1].upper()}, first.end()
    while first[1].isupper():
        link = _LINK.match(text, end)
        further = link and _LETTER.match(text, link.end())
        if not link or not further or not _goes_on(text, further, link[1], options):
            break
        named.add(further[1])
        end = further.end()
    if len(named) == 1:
        named |= _contradicted(text, end, named, options)
    return named, end


def named_at(text: str, start: int, options: OptionTexts) -> set[str]:
    """The options a statement names from a place on, by their words or their letters."""
    after_marks, after_fillers = (pattern.match(text, start) for pattern in (_OPENING, _FILLERS))
    ends = dict.fromkeys(match.end() for match in (after_marks, after_fillers) if match)
    for end in ends:
        named = _texts_at(text, end, options)
        if named:
            return named
    for end in ends:
        named = letters_at(text, end, options)[0]
        if named:
            return named
    return set()


def _texts_at(text: str, start: int, options: OptionTexts) -> set[str]:
    rest = folded(text[start : start + 2 * options.longest + _AHEAD])
    named: set[str] = set()
    while found := options.at_start(rest):
        letter, end = found
        rest = rest[end:]
        if _ASKED.match(rest):
            return set()
        named.add(letter)
        given = _GIVEN.match(rest)
        if given and given[1].upper() in options.letters:
            named.add(given[1].upper())
        link = _TEXT_LINK.match(rest)
        if not link:
            break
        rest = rest[link.end() :]
    return named


def _names_an_option(text: str, match: re.Match[str], options: OptionTexts) -> bool:
    letter, closed = match[1], match[2]
    rest = text[match.end() : match.end() + _AHEAD]
    if _is_glued(rest, closed) or _ASKED.match(rest) or _DENIED.match(rest):
        return False
    if letter.islower():
        return letter.upper() in options.letters and (bool(closed) or _ENDS.match(rest) is not None)
    if closed or _stands_without_a_word(text, match, options):
        return True
    return letter != "I" and _OTHER_WORD_FOLLOWS.match(rest) is not None


def _is_glued(rest: str, closed: str) -> bool:
    """Whether a letter goes on as something else; behind a bracket anything may stand."""
    if not closed:
        return _GLUED.match(rest) is not None
    return closed[-1] in "\"'”’" and rest[:1].isalnum()


def _stands_without_a_word(text: str, match: re.Match[str], options: OptionTexts) -> bool:
    """Whether no word follows that would make an article of the letter, or only the option's own."""
    rest = text[match.end() : match.end() + options.longest + _AHEAD]
    if _NO_WORD_FOLLOWS.match(rest):
        return True
    found = options.at_start(folded(rest))
    return found is not None and found[0] == match[1]


def _goes_on(text: str, match: re.Match[str], link: str, options: OptionTexts) -> bool:
    """Whether a letter behind a comma, an «and» or an «or» is one more of a list."""
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


def _contradicted(text: str, end: int, named: set[str], options: OptionTexts) -> set[str]:
    """The other option whose words, and no more, stand behind a letter on its line."""
    line_end = text.find("\n", end, end + options.longest + _AHEAD)
    rest = text[end : line_end if line_end >= 0 else end + options.longest + _AHEAD]
    other = options.exactly(rest[_BEFORE_TEXT.match(rest).end() :])  # type: ignore[union-attr]
    return {other} - named if other else set()

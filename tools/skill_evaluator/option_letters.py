"""Letters of options as people write them: in brackets, with their text, several of them; and never the article «A».

A plain text and a place in it in, the options named there out. Its own module because every rung of the ladder in
`choices` reads letters by these rules.
"""

import re

from skill_evaluator.option_texts import OptionTexts, folded

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

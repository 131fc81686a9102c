"""What an answer says in so many words: «The answer is C», «I choose C», «C is the best option», and weaker, «so C.».

A plain text in, the options it settles on out. Questions, conditions and denials state nothing.
"""

import re
from collections.abc import Iterator

from skill_evaluator.option_letters import letters_at, named_at
from skill_evaluator.option_texts import OptionTexts

_MOST_STATEMENTS = 200
_BEST = (
    "final|correct|right|best|chosen|selected|(?:most )?(?:appropriate|likely|accurate|suitable|plausible|reasonable)"
)
_ANSWER_IS = re.compile(
    r"(?<![A-Za-z])(?:(?:answers?|solution)(?:[ _](?:choice|option|letter))?"
    rf"|(?:{_BEST}|my)[ _](?:options?|choices?|letter|response)"
    r"|(?:choice|option|letter|ans|final|verdict|correct|correction)(?=[\"'”’]? ?[:=]))"
    r"[\"'”’]?(?: (?:to|for) (?:the|this|that|your)(?: \w{1,30}){1,2}| here| (?:among|out of) [^\n.:]{1,60}?(?= is))?"
    r"(?: ?\([^()\n]{0,60}\)(?= ?[:=]))?"
    r"(?:\s?(?:[:=]{1,3}>?|→)| ?[-–—]{1,3}>? | (?=\()"
    r"|['’]s | (?:is|are|was|(?:would|should|must|will|has to|might|may|could) be)\b(?: ?[:=])?)",
    re.IGNORECASE,
)
_I_CHOOSE = re.compile(
    r"\bI(?:['’](?:d|ll)| would| will| must| shall)?(?: therefore| thus| then)?"
    r" (?:choose|select|pick|go with|answer|opt for|vote for)\b:?",
    re.IGNORECASE,
)
_IS_THE_ANSWER = re.compile(
    r"(?<![\w'’])(?=[(\"'“‘\[{]{0,2}([A-Z])[)\"'”’\]}.:]{0,2} (?:is|would be|must be|has to be)(?: \w{2,20}ly)? the "
    rf"(?:(?:(?:only|single|{_BEST}) ){{1,3}}(?:answer|option|choice)|answer)\b(?! ?\?))"
)
_SHOULD_BE = re.compile(r"\b(?:it|that|this) should (?:instead |actually |rather )?be\b:?", re.IGNORECASE)
_MODAL = re.compile(r"\b(?:would|might|may|could)\b", re.IGNORECASE)
_IF = re.compile(r"\bif\b", re.IGNORECASE)
_SUPPOSED = re.compile(
    r"\b(?:(?:if|whether|unless|doubt|suppose|supposing|assuming|why)(?: that)?(?: (?:the|my|your|our|this))?"
    rf"(?: (?:{_BEST}))*|not(?: the)?|wrong|incorrect|false|tempting|common|other|another"
    r"|alternative|alternate|second(?:[ -]best)?|runner-up|initial|previous|earlier|original)[ _]\Z",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(
    r"\b(?:so|thus|hence|therefore|but|it['’]s|it is|it must be|must be|that leaves|leaving|which leaves)"
    r"(?: (?:it is|it['’]s|it must be|only|just|rather|us with|with|option|choice|clearly|definitely|probably|likely))*"
    r",?:? [(\"'“‘\[{]*(?=[A-Z])",
    re.IGNORECASE,
)
_IS_CORRECT = re.compile(
    r"(?<![\w'’])(?=([A-Z])[)\"'”’\]}]{0,2} is (?:\w{2,20}ly )?(?:correct|right|true)"
    r"(?:[.,;:!]|\n|\Z| (?:because|since|as)\b))"
)
_CLAUSE_BEGINS = re.compile(
    r"(?:\A|[^\w ] ?|\b(?:so|thus|hence|therefore|but|and|that|think|believe|say|conclude|option|choice|answer|letter"
    r"|because|since|then|only|clearly) )\Z",
    re.IGNORECASE,
)
_LIST = re.compile(r" ?\n\(?([A-Z])[).:] [^\n]*\n\(?(?!\1)[A-Z][).:] ")
_SENTENCE_ENDS = re.compile(r"[)\"'”’\]}]*(?:[.!](?:\s|\Z)|\n|\Z)")
_BEFORE = 60


def last_statement(text: str, options: OptionTexts) -> set[str]:
    """The options named by the last statement that names any; of a text with very many, by one of the last."""
    places = sorted(_places(text))[-_MOST_STATEMENTS:]
    for start, value in reversed(places):
        if _is_supposed(text, start) or _depends(text, start, value) or _LIST.match(text, value):
            continue
        named = named_at(text, value, options)
        if named:
            return named
    return set()


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Where each statement begins, and where what it states does."""
    for pattern in (_ANSWER_IS, _I_CHOOSE, _SHOULD_BE):
        yield from ((match.start(), match.end()) for match in pattern.finditer(text))
    for match in _IS_THE_ANSWER.finditer(text):
        if _begins_a_clause(text, match.start()):
            yield match.start(), match.start(1)


def conclusions(text: str, options: OptionTexts) -> set[str]:
    """The options that sentences end on («…, so C.») or call correct."""
    named: set[str] = set()
    for match in _CONCLUSION.finditer(text):
        letters, end = letters_at(text, match.end(), options)
        if letters and _SENTENCE_ENDS.match(text, end):
            named |= letters
    for match in _IS_CORRECT.finditer(text):
        start = match.start()
        if match[1] in options.letters and _begins_a_clause(text, start) and not _is_supposed(text, start):
            named.add(match[1])
    return named


def _is_supposed(text: str, start: int) -> bool:
    """Whether a condition, a doubt or a denial comes before."""
    return _SUPPOSED.search(text[max(start - _BEFORE, 0) : start]) is not None


def _depends(text: str, start: int, value: int) -> bool:
    """Whether a sentence says what the answer would be if something else were so."""
    if not _MODAL.search(text, start, value):
        return False
    before = re.split(r"[.!?\n]", text[max(start - 3 * _BEFORE, 0) : start])[-1]
    after = re.split(r"[.!?\n]", text[value : value + 3 * _BEFORE])[0]
    return _IF.search(before) is not None or _IF.search(after) is not None


def _begins_a_clause(text: str, start: int) -> bool:
    """Whether a letter is a subject by itself, unlike that of «Vitamin C is correct»."""
    return _CLAUSE_BEGINS.search(text[max(start - _BEFORE, 0) : start]) is not None

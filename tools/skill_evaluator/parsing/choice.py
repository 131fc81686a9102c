"""What an answer says in so many words: «The answer is C», «I choose C», «C is the best option», and weaker, «so C.».

A plain text in, the options it settles on out. Questions, conditions and denials state nothing.

Free text → the letter of one option: a ladder from the strongest evidence to the weakest.

The first rung that names an option decides; if it names two, the answer is ambiguous. docs/metrics.md has the rungs
with an example each.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence

from skill_evaluator.parsing import Found, Parsed
from skill_evaluator.parsing.options import OptionTexts, folded, letters_at, named_at, plain

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
_CONTEXT = 60


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
    return _SUPPOSED.search(text[max(start - _CONTEXT, 0) : start]) is not None


def _depends(text: str, start: int, value: int) -> bool:
    """Whether a sentence says what the answer would be if something else were so."""
    if not _MODAL.search(text, start, value):
        return False
    before = re.split(r"[.!?\n]", text[max(start - 3 * _CONTEXT, 0) : start])[-1]
    after = re.split(r"[.!?\n]", text[value : value + 3 * _CONTEXT])[0]
    return _IF.search(before) is not None or _IF.search(after) is not None


def _begins_a_clause(text: str, start: int) -> bool:
    """Whether a letter is a subject by itself, unlike that of «Vitamin C is correct»."""
    return _CLAUSE_BEGINS.search(text[max(start - _CONTEXT, 0) : start]) is not None


_BOX = "\\boxed"
_LONGEST_BOX = 1000
_END = 12_000
_NEAR = 20
_BEFORE = r"[\s(\"'“‘\[{«>#–—→•✓✔✅👉-]*"
_AFTER = r"[\s.,:;!?)\"'”’\]}»✓✔✅–—-]*"
_MARKS_BEFORE = re.compile(rf"{_BEFORE}(?:(?:option|choice|letter)\b[\s:(\"'“‘\[{{«-]*)?", re.IGNORECASE)
_MARKS_AFTER = re.compile(rf"{_AFTER}\Z")
_TEXT_FOLLOWS = re.compile(r"[\s.,:;)–—-]+")
_ALONE = re.compile(rf"{_BEFORE}(?:(?i:option|choice|letter|answer)\b[\s:(\"'“‘\[{{«-]*)?([A-Za-z]){_AFTER}")
_LETTERED = re.compile(
    r"[>#•\s-]*(?:(?i:option|choice) )?[(\[]?"
    r"(?:([A-Z])(?:[)\].:,]| [–—-]|(?= (?:because|since|as)\b))|([a-z])[)\]]) ?(.*)"
)
_NO_ANSWER = re.compile(r"\b(?:wrong|incorrect|false|not|tempting)\b|n['’]t\b", re.IGNORECASE)
_DENIAL = re.compile(r"\b(?:not|never|wrong|incorrect|untrue|cannot)\b|n['’]t\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s")
_OTHER_LETTER = re.compile(r"(?<![\w'’.-])(?:[B-HJ-Z](?![\w'’+#-])|A[).:])")


def read_choice(text: str, options: Sequence[str]) -> Parsed:
    """The option that an answer settles on; never raises.

    >>> read_choice("A is tempting. Final answer: **C**", ("Lyon", "Nice", "Paris"))
    Parsed(value='C', found='stated', problem=None)
    """
    if "</think>" in text:
        text = text.rpartition("</think>")[2].strip() or text
    known, answer = _texts_of(tuple(options)), plain(_ends_of(text))
    for found, rung in _LADDER:
        named = rung(answer, known)
        if named:
            return _settled(named, found, known)
    return Parsed(problem="no_option")


@functools.lru_cache(maxsize=1024)  # a question is answered many times
def _texts_of(options: tuple[str, ...]) -> OptionTexts:
    return OptionTexts.of(options)


def _ends_of(text: str) -> str:
    """A text without the middle of what a model in a loop writes: a choice is made at one of its ends."""
    return text if len(text) <= 2 * _END else f"{text[:_END]} … {text[-_END:]}"


def _settled(named: set[str], found: Found, options: OptionTexts) -> Parsed:
    if len(named) > 1:
        return Parsed(problem="ambiguous")
    (letter,) = named
    if letter not in options.letters:
        return Parsed(problem="no_option")
    return Parsed(value=letter, found=found)


def _whole(text: str, options: OptionTexts) -> set[str]:
    """The options that a text names and says nothing else."""
    if len(text) > options.longest + 100:
        return set()
    own = options.exactly(text)
    if own:
        return {own}
    before = _MARKS_BEFORE.match(text)
    start = before.end() if before else 0
    named, end = letters_at(text, start, options)
    if not named and len(text) > start and _MARKS_AFTER.match(text, start + 1):
        named, end = {text[start].upper()} & set(options.letters), start + 1
    if not named or _MARKS_AFTER.match(text, end):
        return named
    follows = _TEXT_FOLLOWS.match(text, end)
    return named if follows and options.exactly(text[follows.end() :]) in named else set()


def _boxed(text: str, options: OptionTexts) -> set[str]:
    """What the last box holds."""
    _, box, content = text.rpartition(_BOX)
    depth = 0
    for place, mark in enumerate(content[:_LONGEST_BOX] if box else ""):
        depth += {"{": 1, "}": -1}.get(mark, 0)
        if place and depth < 1:
            return _whole(content[:place].strip(" {"), options)
    return set()


def _on_a_line(text: str, options: OptionTexts) -> set[str]:
    """A letter that is the last to have a line to itself, else that of the only line that begins with one."""
    lines = text.split("\n")
    for place in range(len(lines) - 1, -1, -1):
        if _alone(lines[place], options):
            return _listed(lines, place, options)
    return _lettered(lines, options)


def _alone(line: str, options: OptionTexts) -> str | None:
    match = _ALONE.fullmatch(line)
    return match[1].upper() if match and match[1].upper() in options.letters else None


def _listed(lines: Sequence[str], last: int, options: OptionTexts) -> set[str]:
    """The letters on the lines up to this one that each hold nothing else; all options make a list, no answer."""
    letters: set[str] = set()
    for line in reversed(lines[: last + 1]):
        letter = _alone(line, options)
        if letter is None or letter in letters:
            break
        letters.add(letter)
    return set() if letters == set(options.letters) else letters


def _lettered(lines: Sequence[str], options: OptionTexts) -> set[str]:
    found: dict[str, str] = {}
    for match in filter(None, map(_LETTERED.match, lines)):
        letter = (match[1] or match[2]).upper()
        if letter in options.letters:
            found[letter] = match[3]
        if len(found) > 1:
            return set()
    return {letter for letter, rest in found.items() if _may_explain(letter, rest, options)}


def _may_explain(letter: str, rest: str, options: OptionTexts) -> bool:
    """Whether what stands behind the letter is its option, or says nothing of another or against it."""
    words = folded(rest)
    start = options.at_start(words)
    if start and start[0] == letter and not _NO_ANSWER.search(words, start[1], start[1] + _NEAR):
        return True
    return not (_NO_ANSWER.search(rest) or _OTHER_LETTER.search(rest) or options.within(words) - {letter})


def _by_words(text: str, options: OptionTexts) -> set[str]:
    """The options whose words stand in the text; a sentence that denies something names none, unless an option does."""
    words = folded(text)
    if not _DENIAL.search(words) or any(_DENIAL.search(option) for option in options.by_text):
        return options.within(words)
    sentences = _SENTENCE.split(words)
    return options.within("\0".join(sentence for sentence in sentences if not _DENIAL.search(sentence)))


_LADDER: Sequence[tuple[Found, Callable[[str, OptionTexts], set[str]]]] = (
    ("whole", _whole),
    ("boxed", _boxed),
    ("stated", last_statement),
    ("line", _on_a_line),
    ("stated", conclusions),
    ("option_text", _by_words),
)

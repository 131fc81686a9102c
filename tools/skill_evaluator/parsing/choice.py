"""Free text → the letter of one option, by a ladder of rules from the strongest evidence to the weakest.

`read_choice` holds the ladder, and the rules stand below it in its order. A rule takes a plain text and the options and
returns the letters it names; docs/metrics.md has an example of each.
"""

import functools
import re
from collections.abc import Callable, Sequence

from skill_evaluator.parsing import FoundBy, Parsed
from skill_evaluator.parsing.options import OptionTexts, folded, letters_at, named_at, plain

_END = 12_000


def read_choice(text: str, options: Sequence[str]) -> Parsed:
    """Return the option that an answer settles on; never raises.

    The first rule that names any option decides; if it names two, the answer is ambiguous.

    >>> read_choice("A is tempting. Final answer: **C**", ("Lyon", "Nice", "Paris"))
    Parsed(value='C', found='stated', problem=None)
    """
    ladder: Sequence[tuple[FoundBy, Callable[[str, OptionTexts], set[str]]]] = (
        ("whole", _whole_answer),  # «C», «(c)», «C) Paris», «Paris»
        ("boxed", _last_box),  # «\boxed{C}»
        ("stated", _last_statement),  # «The answer is C», «I choose C», «C is the best option»
        ("line", _letter_on_a_line),  # a line that is «(C)», or the only one that begins «C. »
        ("stated", _conclusions),  # «A is tempting, but C.», «C is correct.»
        ("option_text", _option_words),  # «It is Paris, of course.»
    )
    if "</think>" in text:
        text = text.rpartition("</think>")[2].strip() or text
    if len(text) > 2 * _END:  # a model in a loop writes for ever; a choice is made at one of the ends
        text = f"{text[:_END]} … {text[-_END:]}"
    answer, option_texts = plain(text), _fold_options(tuple(options))
    for found_by, rule in ladder:
        letters = rule(answer, option_texts)
        if len(letters) > 1:
            return Parsed(problem="ambiguous")
        if letters:
            (letter,) = letters
            if letter not in option_texts.letters:
                break
            return Parsed(value=letter, found=found_by)
    return Parsed(problem="no_option")


@functools.lru_cache(maxsize=1024)  # a question is answered many times
def _fold_options(options: tuple[str, ...]) -> OptionTexts:
    return OptionTexts.of(options)


_BEFORE = r"[\s(\"'“‘\[{«>#–—→•✓✔✅👉-]*"
_AFTER = r"[\s.,:;!?)\"'”’\]}»✓✔✅–—-]*"
_MARKS_BEFORE = re.compile(rf"{_BEFORE}(?:(?:option|choice|letter)\b[\s:(\"'“‘\[{{«-]*)?", re.IGNORECASE)
_MARKS_AFTER = re.compile(rf"{_AFTER}\Z")
_TEXT_FOLLOWS = re.compile(r"[\s.,:;)–—-]+")


def _whole_answer(text: str, options: OptionTexts) -> set[str]:
    """Return the options that a text names, if it says nothing else."""
    if len(text) > options.longest + 100:
        return set()
    option = options.exactly(text)
    if option:
        return {option}
    before = _MARKS_BEFORE.match(text)
    start = before.end() if before else 0
    letters, end = letters_at(text, start, options)
    if not letters and len(text) > start and _MARKS_AFTER.match(text, start + 1):
        letters, end = {text[start].upper()} & set(options.letters), start + 1
    if not letters or _MARKS_AFTER.match(text, end):
        return letters
    follows = _TEXT_FOLLOWS.match(text, end)
    return letters if follows and options.exactly(text[follows.end() :]) in letters else set()


_BOX = "\\boxed"
_LONGEST_BOX = 1000


def _last_box(text: str, options: OptionTexts) -> set[str]:
    """Return the options that the last LaTeX box holds."""
    _, box, content = text.rpartition(_BOX)
    depth = 0
    for place, mark in enumerate(content[:_LONGEST_BOX] if box else ""):
        depth += {"{": 1, "}": -1}.get(mark, 0)
        if place and depth < 1:
            return _whole_answer(content[:place].strip(" {"), options)
    return set()


_MOST_STATEMENTS = 200
_CONTEXT = 60
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
_LIST = re.compile(r" ?\n\(?([A-Z])[).:] [^\n]*\n\(?(?!\1)[A-Z][).:] ")
_CLAUSE_BEGINS = re.compile(
    r"(?:\A|[^\w ] ?|\b(?:so|thus|hence|therefore|but|and|that|think|believe|say|conclude|option|choice|answer|letter"
    r"|because|since|then|only|clearly) )\Z",
    re.IGNORECASE,
)


def _last_statement(text: str, options: OptionTexts) -> set[str]:
    """Return the options of the last statement that names any; questions, conditions and denials state nothing."""
    stating = [match for pattern in (_ANSWER_IS, _I_CHOOSE, _SHOULD_BE) for match in pattern.finditer(text)]
    subjects = [match for match in _IS_THE_ANSWER.finditer(text) if _begins_a_clause(text, match.start())]
    # where each statement begins, and where the option that it states does
    places = [(match.start(), match.end()) for match in stating]
    places += [(match.start(), match.start(1)) for match in subjects]
    for start, value in reversed(sorted(places)[-_MOST_STATEMENTS:]):
        if _is_supposed(text, start) or _is_conditional(text, start, value) or _LIST.match(text, value):
            continue
        letters = named_at(text, value, options)
        if letters:
            return letters
    return set()


def _is_supposed(text: str, start: int) -> bool:
    """Return whether a condition, a doubt or a denial stands right before a statement."""
    return _SUPPOSED.search(text[max(start - _CONTEXT, 0) : start]) is not None


def _is_conditional(text: str, start: int, value: int) -> bool:
    """Return whether a sentence says what the answer would be if something else were so."""
    if not _MODAL.search(text, start, value):
        return False
    before = re.split(r"[.!?\n]", text[max(start - 3 * _CONTEXT, 0) : start])[-1]
    after = re.split(r"[.!?\n]", text[value : value + 3 * _CONTEXT])[0]
    return _IF.search(before) is not None or _IF.search(after) is not None


def _begins_a_clause(text: str, start: int) -> bool:
    """Return whether a letter is a subject by itself, unlike that of «Vitamin C is correct»."""
    return _CLAUSE_BEGINS.search(text[max(start - _CONTEXT, 0) : start]) is not None


_NEAR = 20
_ALONE = re.compile(rf"{_BEFORE}(?:(?i:option|choice|letter|answer)\b[\s:(\"'“‘\[{{«-]*)?([A-Za-z]){_AFTER}")
_LETTERED = re.compile(
    r"[>#•\s-]*(?:(?i:option|choice) )?[(\[]?"
    r"(?:([A-Z])(?:[)\].:,]| [–—-]|(?= (?:because|since|as)\b))|([a-z])[)\]]) ?(.*)"
)
_NO_ANSWER = re.compile(r"\b(?:wrong|incorrect|false|not|tempting)\b|n['’]t\b", re.IGNORECASE)
_OTHER_LETTER = re.compile(r"(?<![\w'’.-])(?:[B-HJ-Z](?![\w'’+#-])|A[).:])")


def _letter_on_a_line(text: str, options: OptionTexts) -> set[str]:
    """Return the last letter with a line to itself, else the letter of the only line that begins with one.

    Lines with a letter each that follow upon each other are a list; one of all options is no answer.
    """
    lines = text.split("\n")
    letters: set[str] = set()
    for line in reversed(lines):
        match = _ALONE.fullmatch(line)
        letter = match[1].upper() if match and match[1].upper() in options.letters else None
        if letters and (letter is None or letter in letters):
            break
        if letter:
            letters.add(letter)
    if letters:
        return set() if letters == set(options.letters) else letters
    return _lettered_line(lines, options)


def _lettered_line(lines: Sequence[str], options: OptionTexts) -> set[str]:
    """Return the letter that the only lettered line begins with, unless the line speaks of another or against it.

    A line that goes on with the letter's own option may name others, too.
    """
    rests: dict[str, str] = {}
    for match in filter(None, map(_LETTERED.match, lines)):
        letter = (match[1] or match[2]).upper()
        if letter in options.letters:
            rests[letter] = match[3]
        if len(rests) > 1:
            return set()
    for letter, rest in rests.items():
        words = folded(rest)
        own = options.at_start(words)
        if own and own[0] == letter and not _NO_ANSWER.search(words, own[1], own[1] + _NEAR):
            return {letter}
        if _NO_ANSWER.search(rest) or _OTHER_LETTER.search(rest) or options.within(words) - {letter}:
            return set()
    return set(rests)


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
_SENTENCE_ENDS = re.compile(r"[)\"'”’\]}]*(?:[.!](?:\s|\Z)|\n|\Z)")


def _conclusions(text: str, options: OptionTexts) -> set[str]:
    """Return the options that sentences end on («…, so C.») or call correct."""
    letters: set[str] = set()
    for match in _CONCLUSION.finditer(text):
        concluded, end = letters_at(text, match.end(), options)
        if concluded and _SENTENCE_ENDS.match(text, end):
            letters |= concluded
    for match in _IS_CORRECT.finditer(text):
        start = match.start()
        if match[1] in options.letters and _begins_a_clause(text, start) and not _is_supposed(text, start):
            letters.add(match[1])
    return letters


_DENIAL = re.compile(r"\b(?:not|never|wrong|incorrect|untrue|cannot)\b|n['’]t\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s")


def _option_words(text: str, options: OptionTexts) -> set[str]:
    """Return the options whose words stand in the text, but for sentences that deny, unless an option denies too."""
    words = folded(text)
    if not _DENIAL.search(words) or any(_DENIAL.search(option) for option in options.by_text):
        return options.within(words)
    sentences = _SENTENCE.split(words)
    return options.within("\0".join(sentence for sentence in sentences if not _DENIAL.search(sentence)))

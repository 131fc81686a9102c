r"""Free text → the letter of one option, by four rules from the strongest evidence to the weakest.

`whole`: the answer is a letter («(c)», «C) Paris») or an option's text. `stated`: it says so («The answer is C», «I
choose C», «\boxed{C}», `"answer": "C"`); the last statement counts. `line`: the last line that is a letter alone, or
the only letter that a line begins with. `option_text`: it has the words of one option.
"""

import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from skill_evaluator.parsing import FoundBy, Parsed
from skill_evaluator.text import letters_of

_END = 12_000
_UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]|<\\|[^|<>]{1,30}\\|>")
_ANSWER_TAG = re.compile(r"<(?:final_)?answer>|\\boxed ?(?=\{)", re.IGNORECASE)
_LATEX = re.compile(r"\\(?:text|math|mbox|emph)(?:bf|it|rm|sf|tt)?(?=\{)|\\[()\[\],;! ]")
_TAG = re.compile(r"</?[A-Za-z]\w{0,12}\b[^<>]{0,200}>")
_OPEN, _CLOSE = r"[\s(\"'“‘\[{«>#•-]*", r"[)\"'”’\]}»]*"
_LETTER = rf"{_OPEN}(?:(?:option|choice|letter)\b[\s:]*)?{_OPEN}(?P<letter>[A-Za-z]){_CLOSE}"
_LONE = re.compile(rf"{_LETTER}[\s.,:;!?–—-]*(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_BEST = "(?:final|correct|right|best|my)"
_STATED = re.compile(
    rf"(?<![A-Za-z])(?:answers?(?: (?:to|for|among) [^\n.:]{{1,60}}?(?= is))?|{_BEST} (?:option|choice)|ans)"
    r"[\"'”’]?(?: is| are|['’]s| ?[-:=]+>?)(?![a-z])(?! ?\n\(?([A-Z])[).:] [^\n]*\n\(?(?!\1)[A-Z][).:] )[\s:]*"
    r"|\bI(?:['’]d|['’]ll| would| will)? (?:choose|select|pick|go with)\b:?",
    re.IGNORECASE,
)
_IS_THE_ANSWER = re.compile(
    rf"(?:\A|[^\w ] ?|\b(?:so|option|choice|therefore) )[(\"']?(?P<letter>[A-Z])[)\"'”’\]]*"
    rf" is (?:clearly )?the (?:{_BEST} )?(?:answer|option|choice)\b"
)
_SUPPOSED = re.compile(
    r"\b(?:if|whether|unless|not|wrong|incorrect|other|alternative|initial|original|previous|first)"
    rf"(?: (?:the|my|option))?(?: {_BEST})? ?\(?\Z",
    re.IGNORECASE,
)
_FILLERS = re.compile(
    rf"{_OPEN}(?:(?:the|option|choice|letter|either|clearly|definitely|therefore|probably)\b{_OPEN}){{0,3}}",
    re.IGNORECASE,
)
# Behind the letter of an option: no word, formula or abbreviation. «A» and «I» are words before most words.
_NAMED = re.compile(
    rf"(?P<letter>[A-Za-z])(?P<closed>{_CLOSE})(?![\w+#%°^]|[-/.][\w]| ?=)"
    r"(?P<word> (?!(?:because|since|as|and|or|but|due|which|not)\b)\w)?"
)
_FURTHER = re.compile(r"(?:\s?[,/&]|\sand\b|\sor\b)+\s?\(?(?P<letter>[A-Z])\)?(?=[.,;!}\]]|\s?\Z|\n| (?:and|or)\b)")
_BEGINS = re.compile(rf"{_LETTER}(?:[).:,]| because\b| since\b)(?P<rest>.*)", re.IGNORECASE)
_DENIAL = re.compile(r"\b(?:not|never|wrong|incorrect|untrue|cannot)\b|n['’]t\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n")
_END_MARKS = ".,;:! \"'“”‘’()[]{}"


class _Options(NamedTuple):
    """The letters of the options, and the letter of each folded text, the longest first; alike texts tell nothing."""

    letters: str
    by_text: Mapping[str, str]


def read_choice(text: str, options: Sequence[str]) -> Parsed:
    """Return the option that an answer settles on; never raises.

    The first rule that names any option decides; if it names two, the answer is ambiguous.

    >>> read_choice("A is tempting. Final answer: **C**", ("Lyon", "Nice", "Paris"))
    Parsed(value='C', found='stated', problem=None, several=False)
    """
    if len(text) > 2 * _END:  # a model in a loop writes for ever; a choice is made at one of the ends
        text = f"{text[:_END]} … {text[-_END:]}"
    answer, known = _plain(text), _fold_options(tuple(options))
    found: FoundBy
    for found, rule in (
        ("whole", _whole),
        ("stated", _last_statement),
        ("line", _letter_on_a_line),
        ("option_text", _option_words),
    ):
        letters = rule(answer, known)
        if len(letters) > 1:
            return Parsed(problem="ambiguous")
        if letters:
            (letter,) = letters
            return Parsed(value=letter, found=found) if letter in known.letters else Parsed(problem="no_option")
    return Parsed(problem="no_option")


@functools.lru_cache(maxsize=1024)  # a question is answered many times
def _fold_options(options: tuple[str, ...]) -> _Options:
    letters = letters_of(options)
    texts = [_folded(_plain(option)) for option in options]
    pairs = sorted(zip(texts, letters, strict=False), key=lambda pair: -len(pair[0]))
    return _Options(
        letters,
        {text: letter for text, letter in pairs if texts.count(text) == 1 and text.upper() not in tuple(letters)},
    )


def _plain(text: str) -> str:
    """Bring a text into one spelling: NFKC, no mark-up, no empty lines, single spaces within a line."""
    text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text).replace("\u2212", "-"))
    text = _TAG.sub("\n", _LATEX.sub(" ", _ANSWER_TAG.sub("\nAnswer: ", text)))
    for mark in ("*", "`", "$", "__"):
        text = text.replace(mark, "")
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def _folded(text: str) -> str:
    words = " ".join(text.casefold().split())
    return words.strip(_END_MARKS) or words


def _whole(text: str, options: _Options) -> set[str]:
    """Return the option that a text names, if it says nothing else: by letter, by its words, or by both."""
    if len(text) > max(map(len, options.by_text), default=0) + 100:
        return set()
    if by_text := options.by_text.get(_folded(text)):
        return {by_text}
    lone = _LONE.fullmatch(text)
    rest = _folded(lone["rest"]) if lone else ""
    behind = options.by_text.get(rest)
    if not lone or (rest and not behind):
        return set()
    return {lone["letter"].upper(), behind or lone["letter"].upper()}


def _last_statement(text: str, options: _Options) -> set[str]:
    """Return the options that the last statement names: «The answer is A or C» names two."""
    statements: list[tuple[int, set[str]]] = []
    for match in (*_STATED.finditer(text), *_IS_THE_ANSWER.finditer(text)):
        letters = {match["letter"]} if match.re is _IS_THE_ANSWER else _named_at(text, match.end(), options)
        if letters and not _SUPPOSED.search(text, max(0, match.start() - 40), match.start()):
            statements.append((match.start(), letters))
    return max(statements, key=lambda statement: statement[0], default=(0, set()))[1]


def _named_at(text: str, start: int, options: _Options) -> set[str]:
    """Return the options named from a place on, by their words or by letters."""
    for begin in dict.fromkeys((start, _FILLERS.match(text, start).end())):  # type: ignore[union-attr]
        words = text[begin : begin + 1000].casefold().lstrip(_END_MARKS)
        letters = {letter for option, letter in options.by_text.items() if re.match(_as_words(option), words)}
        if letters:
            other = _within(words.partition("\n")[0].partition(".")[0], options)
            return other if " or " in words.partition(".")[0] else letters
    named = _NAMED.match(text, begin)
    if not named or (named["word"] and not named["closed"] and named["letter"] not in "BCDEFGHJKLMNOPQRSTUVWXYZ"):
        return set()
    letters, end = {named["letter"].upper()}, named.end("letter")
    line = text[end:].partition("\n")[0]
    if line.lstrip(_END_MARKS).startswith("?"):
        return set()
    behind = options.by_text.get(_folded(line))
    while further := _FURTHER.match(text, end):
        letters.add(further["letter"])
        end = further.end("letter")
    return letters | ({behind} if behind else set())


def _letter_on_a_line(text: str, options: _Options) -> set[str]:
    """Return the letter of the last line that is nothing else, or the only letter that lines begin with."""
    lines = text.split("\n")
    alone = [letter for line in lines for letter in _whole(line, options) if letter in options.letters]
    if alone:
        return set(alone) if len(set(alone)) == len(options.letters) else {alone[-1]}
    begun: set[str] = set()
    for match in filter(None, map(_BEGINS.match, lines)):
        others = set(re.findall(r"\b[A-Z]\b", match["rest"])) & set(options.letters)
        if match["letter"] in options.letters and not others and not _DENIAL.search(match["rest"]):
            begun.add(match["letter"])
    return begun if len(begun) == 1 else set()


def _option_words(text: str, options: _Options) -> set[str]:
    """Return the options whose words stand in the text, but for sentences that deny, unless an option denies too."""
    sentences = _SENTENCE.split(text.casefold())
    if not any(map(_DENIAL.search, options.by_text)):
        sentences = [sentence for sentence in sentences if not _DENIAL.search(sentence)]
    return _within("\0".join(sentences), options)


def _within(text: str, options: _Options) -> set[str]:
    """Return the options whose text stands in a folded text as whole words, and not only inside a longer one."""
    letters: set[str] = set()
    for option, letter in options.by_text.items():
        if len(option) > 1 or not option.isalpha():
            text, times = re.subn(_as_words(option), "\0", text)
            letters |= {letter} if times else set()
    return letters


def _as_words(option: str) -> str:
    return rf"(?<![\w-])(?<!\d[.,/]){re.escape(option)}(?![\w%]|-\w|[.,/^]\d)"

r"""Read the letter of one option from free text, by four rules from the strongest evidence to the weakest.

`whole`: the answer is a letter («(c)», «C) Paris») or an option's text. `stated`: the answer has a statement («The
answer is C», «I choose C», «\boxed{C}», `"answer": "C"`); the last statement counts. `line`: the last line that is only
a letter, or the only letter that lines begin with. `option_text`: the answer contains the text of one option.
"""

import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from skill_evaluator.parsing import OutputForm, Parsed
from skill_evaluator.text import letters_of

_MAX_END_CHARACTERS = 12_000
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]|<\\|[^|<>]{1,30}\\|>")
_ANSWER_TAG = re.compile(r"<(?:final_)?answer>|\\boxed ?(?=\{)", re.IGNORECASE)
_LATEX = re.compile(r"\\(?:text|math|mbox|emph)(?:bf|it|rm|sf|tt)?(?=\{)|\\[()\[\],;! ]")
_TAG = re.compile(r"</?[A-Za-z]\w{0,12}\b[^<>]{0,200}>")
_OPEN, _CLOSE = r"[\s(\"'“‘\[{«>#•-]*", r"[)\"'”’\]}»]*"
_LETTER = rf"{_OPEN}(?:(?:option|choice|letter)\b[\s:]*)?{_OPEN}(?P<letter>[A-Za-z]){_CLOSE}"
_SINGLE_LETTER = re.compile(rf"{_LETTER}[\s.,:;!?–—-]*(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
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
_HYPOTHETICAL = re.compile(
    r"\b(?:if|whether|unless|not|wrong|incorrect|other|alternative|initial|original|previous|first)"
    rf"(?: (?:the|my|option))?(?: {_BEST})? ?\(?\Z",
    re.IGNORECASE,
)
_FILLERS = re.compile(
    rf"{_OPEN}(?:(?:the|option|choice|letter|either|clearly|definitely|therefore|probably)\b{_OPEN}){{0,3}}",
    re.IGNORECASE,
)
# No word, formula or abbreviation may follow the letter. «A» and «I» before another word are words.
_LETTER_IN_SENTENCE = re.compile(
    rf"(?P<letter>[A-Za-z])(?P<closed>{_CLOSE})(?![\w+#%°^]|[-/.][\w]| ?=)"
    r"(?P<word> (?!(?:because|since|as|and|or|but|due|which|not)\b)\w)?"
)
_NEXT_LETTER = re.compile(r"(?:\s?[,/&]|\sand\b|\sor\b)+\s?\(?(?P<letter>[A-Z])\)?(?=[.,;!}\]]|\s?\Z|\n| (?:and|or)\b)")
_LETTER_AT_LINE_START = re.compile(rf"{_LETTER}(?:[).:,]| because\b| since\b)(?P<rest>.*)", re.IGNORECASE)
_DENIAL = re.compile(r"\b(?:not|never|wrong|incorrect|untrue|cannot)\b|n['’]t\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n")
_END_MARKS = ".,;:! \"'“”‘’()[]{}"


class _Options(NamedTuple):
    """The letters of the options, and the letter of each unambiguous option text (normalized), longest text first."""

    letters: str
    by_text: Mapping[str, str]


def read_choice(text: str, options: Sequence[str]) -> Parsed:
    """Parse the letter of the option that an answer chooses, or classify the problem; never raises.

    The first rule that finds a letter decides. Two letters are `ambiguous`; no letter of an option is `no_option`.

    >>> read_choice("A is tempting. Final answer: **C**", ("Lyon", "Nice", "Paris"))
    Parsed(value='C', form='stated', problem=None, several=False)
    """
    if len(text) > 2 * _MAX_END_CHARACTERS:  # a model in a loop; its choice is near the beginning or the end
        text = f"{text[:_MAX_END_CHARACTERS]} … {text[-_MAX_END_CHARACTERS:]}"
    answer, choices = _plain(text), _fold_options(tuple(options))
    form: OutputForm
    for form, rule in (
        ("whole", _only_option),
        ("stated", _last_statement),
        ("line", _letter_of_line),
        ("option_text", _options_by_words),
    ):
        letters = rule(answer, choices)
        if len(letters) > 1:
            return Parsed(problem="ambiguous")
        if letters:
            (letter,) = letters
            return Parsed(value=letter, form=form) if letter in choices.letters else Parsed(problem="no_option")
    return Parsed(problem="no_option")


@functools.lru_cache(maxsize=1024)  # each question has many answers
def _fold_options(options: tuple[str, ...]) -> _Options:
    letters = letters_of(options)
    texts = [_folded(_plain(option)) for option in options]
    pairs = sorted(zip(texts, letters, strict=False), key=lambda pair: -len(pair[0]))
    return _Options(
        letters,
        {text: letter for text, letter in pairs if texts.count(text) == 1 and text.upper() not in tuple(letters)},
    )


def _plain(text: str) -> str:
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).replace("\u2212", "-"))
    text = _TAG.sub("\n", _LATEX.sub(" ", _ANSWER_TAG.sub("\nAnswer: ", text)))
    for mark in ("*", "`", "$", "__"):
        text = text.replace(mark, "")
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def _folded(text: str) -> str:
    folded = " ".join(text.casefold().split())
    return folded.strip(_END_MARKS) or folded


def _only_option(text: str, options: _Options) -> set[str]:
    """Return the letters of a text that is only a letter, an option's text or both; empty for any other text."""
    if len(text) > max(map(len, options.by_text), default=0) + 100:
        return set()
    if by_text := options.by_text.get(_folded(text)):
        return {by_text}
    letter_match = _SINGLE_LETTER.fullmatch(text)
    text_after_letter = _folded(letter_match["rest"]) if letter_match else ""
    option_letter = options.by_text.get(text_after_letter)
    if not letter_match or (text_after_letter and not option_letter):
        return set()
    return {letter_match["letter"].upper(), option_letter or letter_match["letter"].upper()}


def _last_statement(text: str, options: _Options) -> set[str]:
    statements: list[tuple[int, set[str]]] = []
    for match in (*_STATED.finditer(text), *_IS_THE_ANSWER.finditer(text)):
        letters = {match["letter"]} if match.re is _IS_THE_ANSWER else _options_after(text, match.end(), options)
        if letters and not _HYPOTHETICAL.search(text, max(0, match.start() - 40), match.start()):
            statements.append((match.start(), letters))
    return max(statements, key=lambda statement: statement[0], default=(0, set()))[1]


def _options_after(text: str, start: int, options: _Options) -> set[str]:
    for begin in dict.fromkeys((start, _FILLERS.match(text, start).end())):  # type: ignore[union-attr]
        statement = text[begin : begin + 1000].casefold().lstrip(_END_MARKS)
        letters = {letter for option, letter in options.by_text.items() if re.match(_as_words(option), statement)}
        if letters:
            letters_in_sentence = _options_in_text(statement.partition("\n")[0].partition(".")[0], options)
            return letters_in_sentence if " or " in statement.partition(".")[0] else letters
    letter_match = _LETTER_IN_SENTENCE.match(text, begin)
    if not letter_match or (
        letter_match["word"] and not letter_match["closed"] and letter_match["letter"] not in "BCDEFGHJKLMNOPQRSTUVWXYZ"
    ):
        return set()
    letters, end = {letter_match["letter"].upper()}, letter_match.end("letter")
    line = text[end:].partition("\n")[0]
    if line.lstrip(_END_MARKS).startswith("?"):
        return set()
    option_letter = options.by_text.get(_folded(line))
    while further := _NEXT_LETTER.match(text, end):
        letters.add(further["letter"])
        end = further.end("letter")
    return letters | ({option_letter} if option_letter else set())


def _letter_of_line(text: str, options: _Options) -> set[str]:
    lines = text.split("\n")
    line_letters = [letter for line in lines for letter in _only_option(line, options) if letter in options.letters]
    if line_letters:
        return set(line_letters) if len(set(line_letters)) == len(options.letters) else {line_letters[-1]}
    first_letters: set[str] = set()
    for match in filter(None, map(_LETTER_AT_LINE_START.match, lines)):
        other_letters = set(re.findall(r"\b[A-Z]\b", match["rest"])) & set(options.letters)
        if match["letter"] in options.letters and not other_letters and not _DENIAL.search(match["rest"]):
            first_letters.add(match["letter"])
    return first_letters if len(first_letters) == 1 else set()


def _options_by_words(text: str, options: _Options) -> set[str]:
    sentences = _SENTENCE.split(text.casefold())
    if not any(map(_DENIAL.search, options.by_text)):
        sentences = [sentence for sentence in sentences if not _DENIAL.search(sentence)]
    return _options_in_text("\0".join(sentences), options)


def _options_in_text(text: str, options: _Options) -> set[str]:
    """Return the letters of the options whose texts occur as whole words, and not only inside a longer option."""
    letters: set[str] = set()
    for option, letter in options.by_text.items():
        if len(option) > 1 or not option.isalpha():
            text, times = re.subn(_as_words(option), "\0", text)
            letters |= {letter} if times else set()
    return letters


def _as_words(option: str) -> str:
    return rf"(?<![\w-])(?<!\d[.,/]){re.escape(option)}(?![\w%]|-\w|[.,/^]\d)"

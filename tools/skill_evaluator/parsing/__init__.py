"""Parse the text of an output to its JSON value, choice or text, or classify the problem."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, NamedTuple

from skill_evaluator.text import finite_float, letters_of, refuse_constant

Output = Literal["json", "choice", "text"]
OutputForm = Literal["whole", "fenced", "embedded", "stated", "line", "option_text"]
NotJson = Literal["trailing_comma", "comment", "quotes", "cut_off", "nan", "prose", "no_candidate", "not_json"]
ParseProblem = Literal["empty", "in_reasoning", NotJson, "ambiguous", "no_option"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The parsed value of an output, and where in the text it was found (`form`).

    If there is no value, `form` is None and `problem` is the reason. `several`: the text has further candidates.
    """

    value: Any = None
    form: OutputForm | None = None
    problem: ParseProblem | None = None
    several: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """The rule for JSON inside prose: a value of `types` counts as the output, unless it is a copy of `schema`."""

    types: tuple[type, ...] = (dict, list)
    schema: Any = None  # has no `$schema`

    def allows(self, value: Any) -> bool:
        """Return whether a value counts as the output."""
        is_schema = isinstance(value, dict) and {key: value[key] for key in value if key != "$schema"} == self.schema
        return isinstance(value, self.types) and not is_schema

    def or_type_of(self, truth: Any) -> "Expected":
        """Narrow ANY_VALUE to the type of `truth` if that is a dict or list. Return any other `Expected` unchanged."""
        return Expected((type(truth),)) if self == ANY_VALUE and isinstance(truth, dict | list) else self


ANY_VALUE = Expected()

_FENCE = re.compile(r"```([\w+-]*)\s*(?=[{\[])")
_FENCE_END = re.compile(r"\s*(?:```|\Z)")
_OPENING = re.compile(r"[{\[]")
_STRING = re.compile(r'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_BRACKET_OR_STRING = re.compile(rf"[{{}}\[\]]|{_STRING.pattern}", re.DOTALL)
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_MAX_ATTEMPTS = 200
_MAX_DEPTH = 64  # levels of nesting; models in a loop write thousands, and scoring is recursive
_DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite_float)

_TAG = re.compile(r"</?(?:think|thinking|reasoning)>", re.IGNORECASE)
_CLOSED = re.compile(r"(?is).*</think(?:ing)?>|(?:(?!<reasoning>).)*+<reasoning>.*</reasoning>")
_UNCLOSED = re.compile(r"(?im)^[ \t]*<(?:think|thinking|reasoning)>")
_PAIR = re.compile(r"(?is)<(?:think|thinking|reasoning)>.*?</(?:think|thinking|reasoning)>")
_BROKEN_JSON = re.compile(
    r"""\{(?=\s*(?:["'“{\[}]|[\w$]+\s*:|//|/\*|\Z))|\[(?=\s*(?:["'“{\[]|-?\d+\s*(?:,|\Z)|//|/\*|\Z))"""
)
_SYNTAX_ERRORS: tuple[tuple[NotJson, re.Pattern[str]], ...] = (  # searched outside strings, in this order
    ("quotes", re.compile(r"[{\[,:]\s*['“‘]|[{,]\s*[A-Za-z_$][\w$]*\s*:")),
    ("comment", re.compile(r"//|/\*|(?:^|\s)#", re.MULTILINE)),
    ("trailing_comma", re.compile(r",\s*[}\]]")),
    ("nan", re.compile(r"\b(?:NaN|Infinity)\b")),
)


def parse_output(text: str, output: Output, options: Sequence[str] = (), expected: Expected = ANY_VALUE) -> Parsed:
    """Parse one output as JSON, choice or text; never raises. `options` are the options of a multiple-choice case.

    If the text is not JSON as a whole, return the last outermost object or array in it that `expected` allows. Objects
    and arrays in code fences take precedence, most of all in fences with the tag `json`.

    >>> parse_output('Here it is: {"total": 9}', "json").value
    {'total': 9}
    >>> parse_output('<think>{"total": 8}?</think> {"total": 9} (see [1])', "json", (), Expected((dict,))).value
    {'total': 9}
    >>> parse_output("The capital is easy: the answer is (B).", "choice", ("Lyon", "Paris")).value
    'B'
    """
    reasoning, answer = split_reasoning(text)
    stripped = answer.strip()
    if not stripped:
        return Parsed(problem="in_reasoning" if reasoning.strip() else "empty")
    if output == "text":
        return Parsed(value=stripped, form="whole")
    if output == "choice":
        return read_choice(stripped, options)
    with suppress(ValueError):
        return Parsed(value=_decode(stripped), form="whole")
    in_fences, anywhere = list(_fenced_values(stripped)), list(embedded_values(stripped))
    fenced = [(is_json, value) for is_json, value in in_fences if expected.allows(value)]
    unfenced = [value for _, value in anywhere if expected.allows(value)]
    if values := [value for is_json, value in fenced if is_json] or [value for _, value in fenced] or unfenced:
        several = max(len(fenced), len(unfenced)) > 1
        return Parsed(value=values[-1], form="fenced" if fenced else "embedded", several=several)
    if in_fences or any(isinstance(value, dict) for _, value in anywhere):
        return Parsed(problem="no_candidate")
    return Parsed(problem=_syntax_error(stripped))


def split_reasoning(text: str) -> tuple[str, str]:
    """Return (reasoning, output) of a text. The output begins after the last closing tag of the reasoning.

    Tags inside JSON values do not count. If nothing follows the last tag, the output is the text outside the tags. If a
    line begins with a tag that is never closed, there is no output.

    >>> split_reasoning("Is it A?</think>B"), split_reasoning("<think>Is it A?"), split_reasoning("B")
    (('Is it A?</think>', 'B'), ('<think>Is it A?', ''), ('', 'B'))
    """
    if _TAG.search(text) is None:
        return "", text
    without_json = _without_values(text)
    closed = _CLOSED.match(without_json)
    end = closed.end() if closed else 0
    if _UNCLOSED.search(without_json[end:]):
        return text, ""
    if end and not text[end:].strip():  # reasoning after the output, or no output
        visible_text = _PAIR.sub("", text)
        return (text, "") if _TAG.search(visible_text) else ("".join(_PAIR.findall(text)), visible_text)
    return text[:end], text[end:]


def _decode(text: str) -> Any:
    if text.count("[") + text.count("{") > _MAX_DEPTH:
        depth = 0
        for match in _BRACKET_OR_STRING.finditer(text):
            depth += _STEPS.get(match[0], 0)
            if depth > _MAX_DEPTH:
                raise ValueError("nested too deeply")
    return _DECODER.decode(text)


def embedded_values(text: str) -> Iterator[tuple[str, Any]]:
    """Yield (source text, value) of each JSON object or array in a text that is not inside another bracket.

    Only the first 200 outer brackets are tried. An unclosed bracket reaches to the end of the text.

    >>> [value for _, value in embedded_values('First {"a": 1}, then [2].')]
    [{'a': 1}, [2]]
    """
    position = 0
    for _ in range(_MAX_ATTEMPTS):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        position = _end_of_value(text, opening.start()) or len(text)
        candidate = text[opening.start() : position]
        with suppress(ValueError):
            yield candidate, _decode(candidate)


def _without_values(text: str) -> str:
    for source, _ in embedded_values(text):
        text = text.replace(source, " " * len(source))
    return text


def _end_of_value(text: str, start: int) -> int | None:
    """Return the index after the object or array that begins at `start`. Return None if it is never closed."""
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text, start):
        depth += _STEPS.get(match[0], 0)
        if not depth:
            return match.end()
    return None


def _fenced_values(text: str) -> Iterator[tuple[bool, Any]]:
    """Yield (whether the fence is tagged `json`, value) of each object or array that fills a code fence."""
    position = 0
    for fence in islice(_FENCE.finditer(text), _MAX_ATTEMPTS):
        with suppress(ValueError, RecursionError):
            end = _DECODER.raw_decode(text, fence.end())[1]
            if fence.start() >= position and (closing := _FENCE_END.match(text, end)):
                position = closing.end()
                yield fence[1].lower() == "json", _decode(text[fence.end() : end])


def _syntax_error(text: str) -> NotJson:
    text = _without_values(text)
    beginning = _BROKEN_JSON.search(text)
    if beginning is None:
        return "prose"
    end = _end_of_value(text, beginning.start())
    source = text[beginning.start() : end]
    is_open_string = source.replace('\\"', "").count('"') % 2 == 1  # an unescaped quotation mark, for example
    if end is None and not (is_open_string and source.rstrip("` \n").endswith(("}", "]"))):
        return "cut_off"
    plain = _STRING.sub('""', source)
    return next((kind for kind, pattern in _SYNTAX_ERRORS if pattern.search(plain)), "not_json")


_MAX_END_CHARACTERS = 12_000
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]|<\\|[^|<>]{1,30}\\|>")
_ANSWER_TAG = re.compile(r"<(?:final_)?answer>|\\boxed ?(?=\{)", re.IGNORECASE)
_LATEX = re.compile(r"\\(?:text|math|mbox|emph)(?:bf|it|rm|sf|tt)?(?=\{)|\\[()\[\],;! ]")
_MARKUP = re.compile(r"</?[A-Za-z]\w{0,12}\b[^<>]{0,200}>")
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
    """The letters of a question's options, and each letter by the normalized text of its option, longest text first."""

    letters: str
    by_text: Mapping[str, str]


def read_choice(text: str, options: Sequence[str]) -> Parsed:
    """Parse the letter of the option that an answer chooses, or classify the problem. Never raise an error.

    These rules are tried from the strongest evidence to the weakest, until one of them finds a letter:

    - `whole`: The answer is only a letter («(c)»), an option's text or both («C) Paris»).
    - `stated`: The last statement of a choice («The answer is C», «I choose C», «\\boxed{C}», `"answer": "C"`).
    - `line`: The last line that is only a letter, an option's text or both, or else the only letter that begins a line.
    - `option_text`: The answer contains an option's text.

    If the rule finds several letters, the problem is `ambiguous`. If no rule finds a letter, or if no option has the
    letter, the problem is `no_option`.

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


@lru_cache(maxsize=1024)  # each question has many answers
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
    text = _MARKUP.sub("\n", _LATEX.sub(" ", _ANSWER_TAG.sub("\nAnswer: ", text)))
    for mark in ("*", "`", "$", "__"):
        text = text.replace(mark, "")
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def _folded(text: str) -> str:
    folded = " ".join(text.casefold().split())
    return folded.strip(_END_MARKS) or folded


def _only_option(text: str, options: _Options) -> set[str]:
    """Return the letter in a text that is only a letter, an option's text or both. Otherwise return an empty set.

    If the text has a letter and the text of a different option, return both letters.
    """
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

"""A prompt and its schema → mutants: copies that are damaged in one known place each.

Pure functions over text, in a fixed order: a prompt in Markdown is read into passages, and operators damage them.
Mutation testing is from DeMillo, Lipton and Sayward 1978 (doi:10.1109/C-M.1978.218136).
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from skill_evaluator.comparing.schema_paths import DATA, NAMED_SCHEMAS
from skill_evaluator.library.messages import Message, Prompt
from skill_evaluator.text import canonical_json, digest

Kind = Literal["rule", "sentence", "example"]

_ITEM = re.compile(r"^(?P<indent>[ \t]*)(?:[-*+]|\d+[.)])[ \t]+\S")
_FENCE = re.compile(r"^[ \t]*(?P<mark>`{3,}|~{3,})")
_NO_PROSE = re.compile(r"^[ \t]*(?:#{1,6}[ \t]|\||>|[-*_]{3,}[ \t]*$|</?\w)")
_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s|$)|\Z)", re.DOTALL)
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|No|Dr|Mr|Ms)\.$")
_BINDING = re.compile(
    r"\b(?:must|never|not|only|always|except|without|cannot|don't|exactly|at most|at least|should|no|unless)\b", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A part of a prompt, `text` from `begin` to `end`; `line` counts from 1.

    A rule is a list's item, or a sentence that binds (must, never, not, only). A `rule` that is an item goes with all
    that is set below it, up to `whole_end`.
    """

    kind: Kind
    text: str
    line: int
    begin: int
    end: int
    whole_end: int


def passages_of(prompt: str) -> Iterator[Passage]:
    """Yield the passages of a prompt from top to bottom; headings, tables and quotations are none.

    >>> [(one.kind, one.text) for one in passages_of("Read. Never guess.\\n\\n1. Trim it.\\n\\n```\\n{}\\n```")]
    [('sentence', 'Read.'), ('rule', 'Never guess.'), ('rule', '1. Trim it.'), ('example', '```\\n{}\\n```')]
    """
    lines = list(re.finditer(r"(?m)^.*$", prompt))
    at = 0
    while at < len(lines):
        line = lines[at]
        if (fence := _FENCE.match(line[0])) is not None:  # an unclosed one goes to the end
            closed = (end + 1 for end in range(at + 1, len(lines)) if lines[end][0].strip().startswith(fence["mark"]))
            kind: Kind = "example"
            end = next(closed, len(lines))
            whole_end = end
        elif _ITEM.match(line[0]):
            kind, end = "rule", _end_of_text(lines, at)
            whole_end = _end_of_item(lines, at, end)
        elif not line[0].strip() or _NO_PROSE.match(line[0]):
            at += 1
            continue
        else:
            at = _end_of_text(lines, at)
            yield from _sentences(prompt, line.start(), lines[at - 1].end())
            continue
        yield Passage(
            kind=kind,
            text=prompt[line.start() : lines[end - 1].end()],
            line=at + 1,
            begin=line.start(),
            end=lines[end - 1].end(),
            whole_end=lines[whole_end - 1].end(),
        )
        at = end


def _end_of_text(lines: Sequence[re.Match[str]], at: int) -> int:
    for end in range(at + 1, len(lines)):
        text = lines[end][0]
        if not text.strip() or _ITEM.match(text) or _FENCE.match(text) or _NO_PROSE.match(text):
            return end
    return len(lines)


def _end_of_item(lines: Sequence[re.Match[str]], at: int, end: int) -> int:
    """Return the line after an item, whose own text ends at `end`, and all that is set further in below it."""

    def indent(line: re.Match[str]) -> int:
        return len(line[0]) - len(line[0].lstrip())

    last = end
    for below in range(end, len(lines)):
        if lines[below][0].strip():
            if indent(lines[below]) <= indent(lines[at]):
                break
            last = below + 1
    return last


def _sentences(prompt: str, begin: int, end: int) -> Iterator[Passage]:
    for found in _SENTENCE.finditer(prompt, begin, end):
        if _ABBREVIATED.search(prompt[begin : found.end()]) and found.end() < end:
            continue  # goes on behind the abbreviation
        text = prompt[begin : found.end()]
        begin += len(text) - len(text.lstrip())
        text = text.lstrip()
        yield Passage(
            kind="rule" if _BINDING.search(text) else "sentence",
            text=text,
            line=prompt.count("\n", 0, begin) + 1,
            begin=begin,
            end=found.end(),
            whole_end=found.end(),
        )
        begin = found.end()


Operator = Literal["rule-dropped", "negation-flipped", "format-loosened", "example-removed", "descriptions-removed"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)

# What turns a sentence into its opposite; the first that occurs in a passage is flipped.
_FLIPS = (
    (r"must not|must never", "must"),
    (r"must", "must not"),
    (r"never", "always"),
    (r"always", "never"),
    (r"do not|don't", "do"),
    (r"does not|doesn't", "does"),
    (r"cannot|can not", "can"),
    (r"(?P<verb>is|are|was|were|may|should|need) not", r"\g<verb>"),
    (r"should", "should not"),
    (r"except", "including"),
    (r"without", "with"),
    (r"not only", "not only"),  # is no negation
    (r"only", "also"),
    (r"not", ""),
)
_FLIP = re.compile("|".join(rf"(?P<f{at}>\b(?:{pattern})\b)" for at, (pattern, _) in enumerate(_FLIPS)), re.IGNORECASE)
# Words that pin down how a value is written, and their looser form.
_FORMATS = (
    (r"`?[YMDhms]{2,4}(?:[-/.:T][YMDhms]{2,4})+`?", "any form"),
    (r"ISO[ -]?\d+(?:-\d+)?", "any standard"),
    (r"as printed|as written|verbatim|word for word|character by character", "in your own words"),
    (r"(?:in )?(?:lower|upper|title|snake|camel)[ -]?case", "in any case"),
    (r"exactly (?=\w)", "about "),
    (r"at most (?=\w)|no more than (?=\w)", "about "),
    (r"(?:one|two|three|\d+) decimals?(?: places)?", "any number of decimals"),
    (r"plain numbers?", "numbers or text"),
)
_FORMAT = re.compile("|".join(rf"(?P<f{at}>(?<!\w)(?:{pattern}))" for at, (pattern, _) in enumerate(_FORMATS)))
_INLINE_EXAMPLE = re.compile(
    r"\s*\((?:e\.g\.|for example|such as)[^()]*\)|,? ?(?:\be\.g\.|\bfor example|\bsuch as),? [^.;:()\n]+", re.IGNORECASE
)
_ANNOTATIONS = ("description", "title", "examples", "$comment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One damaged copy. `line` is where in the prompt, from 1 (None: in the schema); `text` is what was damaged."""

    id: str
    operator: Operator
    line: int | None
    text: str
    prompt: Prompt
    schema: Mapping[str, Any] | None
    diff: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The digest of its prompt and schema."""
        return digest(canonical_json([self.prompt.text, self.schema]))


@dataclass(frozen=True, slots=True)
class _Edit:
    operator: Operator
    passage: Passage
    prompt: str
    change: str = ""  # in words, where it is only a part of the passage
    damaged: Prompt | None = None  # where messages are gone


def mutants_of(whole: Prompt, schema: Mapping[str, Any] | None, *, source: str = "") -> tuple[Mutant, ...]:
    """Return every mutant in the order of the lines, each once; the lines are those of `source`, which has the prompt.

    A mutant asks for the same inputs in messages of the same roles: it has lost no placeholder.

    >>> [mutant.id for mutant in mutants_of(Prompt.of("Read it.\\n\\n- Never guess.\\n- Dates: YYYY-MM-DD."), None)]
    ['rule-dropped-3', 'negation-flipped-3', 'rule-dropped-4', 'format-loosened-4']
    """
    prompt = whole.text
    edits = [edit for passage in passages_of(prompt) for edit in _edits(prompt, passage)]
    edits += _pairs_removed(whole)
    edits.sort(key=lambda edit: (edit.passage.line, edit.passage.begin, OPERATORS.index(edit.operator)))
    mutants, names, seen = [], Counter[str](), {prompt}
    for edit in edits:
        text = _tidied(edit.prompt)
        damaged = edit.damaged or whole.like(text)
        if damaged is None or text in seen:
            continue
        seen.add(text)
        line = _line_in(source or prompt, prompt, edit.passage)
        name = f"{edit.operator}-{line}"
        names[name] += 1
        mutants.append(
            Mutant(
                id=name if names[name] == 1 else f"{name}-{names[name]}",
                operator=edit.operator,
                line=line,
                text=f"{edit.change}{' '.join(edit.passage.text.split())}",
                prompt=damaged,
                schema=schema,
                diff=_diff(prompt, text),
            )
        )
    return (*mutants, *_without_descriptions(whole, schema))


def _pairs_removed(whole: Prompt) -> Iterator[_Edit]:
    """Yield the removal of each pair of user and assistant, the examples of a prompt in messages."""
    begin, messages = 0, whole.messages
    for at, message in enumerate(messages):
        if [one.role for one in messages[at : at + 2]] == ["user", "assistant"]:
            other = replace(whole, messages=(*messages[:at], *messages[at + 2 :]))
            if other.messages and all(whole.names_in(role) == other.names_in(role) for role in ("system", "user")):
                line = whole.text.count("\n", 0, begin) + 1
                passage = Passage(kind="example", text=message.text, line=line, begin=begin, end=begin, whole_end=begin)
                yield _Edit("example-removed", passage, other.text, damaged=other)
        begin += len(f"## {message.role}\n\n{message.text}\n\n")


def _line_in(source: str, prompt: str, passage: Passage) -> int:
    """Return the line of a passage in a text that has the prompt, perhaps with other gaps between its messages."""
    begin = source.find(prompt)
    return source.count("\n", 0, source.find(passage.text) if begin < 0 else begin + passage.begin) + 1


def capped(mutants: Sequence[Mutant], most: int) -> tuple[tuple[Mutant, ...], dict[Operator, int]]:
    """Return at most `most` mutants, taken from each operator in turn, and the number left out by operator."""
    by_operator = [[one for one in mutants if one.operator == operator] for operator in OPERATORS]
    ranked = sorted((rank, at, one.id) for at, own in enumerate(by_operator) for rank, one in enumerate(own))
    kept = {name for *_, name in ranked[:most]}
    left_out = Counter(one.operator for one in mutants if one.id not in kept)
    return tuple(one for one in mutants if one.id in kept), dict(left_out)


def neutrals(prompt: Prompt) -> tuple[Prompt, ...]:
    """Return the prompt with three changes that mean nothing: other list marks, wider gaps, or blank lines around it.

    Of several messages the first one changes.

    >>> [neutral.text for neutral in neutrals(Prompt.of("- a\\n- b"))]
    ['* a\\n* b', '\\n- a\\n- b', '- a\\n- b\\n']
    """
    first, *others = prompt.messages
    texts = _neutrals(first.text)
    return tuple(replace(prompt, messages=(Message(first.role, (text,)), *others)) for text in texts)


def _neutrals(prompt: str) -> tuple[str, str, str]:
    swapped = re.sub(r"(?m)^(\s*)([-*])(?=\s)", lambda mark: f"{mark[1]}{'*' if mark[2] == '-' else '-'}", prompt)
    wider = re.sub(r"(?<=[.!?]) (?=\S)", "  ", prompt.replace("\n\n", "\n\n\n"))
    around = (f"\n{prompt}", f"{prompt}\n", f"\n{prompt}\n")
    first, second, third, *_ = dict.fromkeys(text for text in (swapped, wider, *around) if text != prompt)
    return first, second, third


def _edits(prompt: str, passage: Passage) -> Iterator[_Edit]:

    def edit(operator: Operator, begin: int, end: int, new: str) -> _Edit:
        partly = end - begin < len(passage.text)
        change = f"«{prompt[begin:end].strip()}» → «{new.strip()}» in: " if partly else ""
        return _Edit(operator, passage, prompt[:begin] + new + prompt[end:], change)

    if passage.kind == "example":
        yield edit("example-removed", passage.begin, passage.end, "")
        return
    if passage.kind == "rule":
        gap = prompt[passage.whole_end : passage.whole_end + 1] == " "  # before the next sentence
        yield edit("rule-dropped", passage.begin, passage.whole_end + gap, "")
    text, begin = passage.text, passage.begin
    flip = next((at for at in _FLIP.finditer(text) if at[0].lower() != "not only"), None)
    if flip is not None:
        end = flip.end() + (text[flip.end() :].startswith(" ") and not _replaced(flip, _FLIPS))
        yield edit("negation-flipped", begin + flip.start(), begin + end, _replaced(flip, _FLIPS))
    if (form := _FORMAT.search(text)) is not None:
        yield edit("format-loosened", begin + form.start(), begin + form.end(), _replaced(form, _FORMATS))
    if (example := _INLINE_EXAMPLE.search(text)) is not None:
        yield edit("example-removed", begin + example.start(), begin + example.end(), "")


def _replaced(found: re.Match[str], table: Sequence[tuple[str, str]]) -> str:
    """Return what stands in the table for what was found, with its first letter as large."""
    number = next(at for at in range(len(table)) if found[f"f{at}"] is not None)
    new = found["verb"] if r"\g<verb>" in table[number][1] else table[number][1]
    return new[:1].upper() + new[1:] if found[0][:1].isupper() and found[0][1:2].islower() else new


def _tidied(prompt: str) -> str:
    """Return a prompt without the gaps that a removal leaves."""
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"(?m)[ \t]+$", "", prompt)).strip()


def _diff(before: str, after: str) -> tuple[str, ...]:
    """Return the lines that went, with `-`, and those that came, with `+`."""
    lines = difflib.unified_diff(_tidied(before).splitlines(), after.splitlines(), lineterm="", n=0)
    return tuple(
        line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---")) and line[1:].strip()
    )


def _without_descriptions(prompt: Prompt, schema: Mapping[str, Any] | None) -> Iterable[Mutant]:
    if schema is None:
        return
    removed: list[str] = []
    bare = _bare(schema, "schema.json", removed)
    if removed:
        yield Mutant(
            id="descriptions-removed",
            operator="descriptions-removed",
            line=None,
            text=f"the annotations of schema.json: {len(removed)}",
            prompt=prompt,
            schema=bare,
            diff=tuple(f"-{line}" for line in removed),
        )


def _bare(schema: Any, place: str, removed: list[str], *, names: bool = False) -> Any:
    """Return a schema without its annotations, which are `removed` with their places; a table's `names` are none."""
    if isinstance(schema, list):
        return [_bare(part, f"{place}[{at}]", removed) for at, part in enumerate(schema)]
    if not isinstance(schema, Mapping):
        return schema
    kept = {}
    for key, part in schema.items():
        if not names and key in _ANNOTATIONS:
            removed.append(f"{place}: {key}: {part if isinstance(part, str) else canonical_json(part)}")
        elif not names and key in DATA:
            kept[key] = part
        else:
            kept[key] = _bare(part, f"{place}.{key}", removed, names=not names and key in NAMED_SCHEMAS)
    return kept

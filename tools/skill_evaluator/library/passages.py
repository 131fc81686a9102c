"""A prompt in Markdown → its passages: the rules, sentences and examples that it is made of, each with its place.

Its own module because it only reads: what is done to a passage is a mutation's affair.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class _TextLine:
    number: int
    begin: int
    text: str

    @property
    def end(self) -> int:
        return self.begin + len(self.text)

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()


def passages_of(prompt: str) -> Iterator[Passage]:
    """Yield the passages of a prompt from top to bottom; headings, tables and quotations are none.

    >>> [(one.kind, one.text) for one in passages_of("Read. Never guess.\\n\\n1. Trim it.\\n\\n```\\n{}\\n```")]
    [('sentence', 'Read.'), ('rule', 'Never guess.'), ('rule', '1. Trim it.'), ('example', '```\\n{}\\n```')]
    """
    lines = _lines_of(prompt)
    at = 0
    while at < len(lines):
        line = lines[at]
        if (fence := _FENCE.match(line.text)) is not None:
            end = _end_of_fence(lines, at, fence["mark"])
            yield _passage(prompt, "example", lines, at, end, end)
            at = end
        elif _ITEM.match(line.text):
            end = _end_of_text(lines, at)
            yield _passage(prompt, "rule", lines, at, end, _end_of_item(lines, at))
            at = end
        elif line.is_blank or _NO_PROSE.match(line.text):
            at += 1
        else:
            end = _end_of_text(lines, at)
            yield from _sentences(prompt, line, lines[end - 1].end)
            at = end


def _lines_of(prompt: str) -> list[_TextLine]:
    lines, begin = [], 0
    for number, text in enumerate(prompt.split("\n"), 1):
        lines.append(_TextLine(number, begin, text))
        begin += len(text) + 1
    return lines


def _end_of_fence(lines: list[_TextLine], at: int, mark: str) -> int:
    """Return the line after a fenced block, which an unclosed one takes to the end."""
    for end in range(at + 1, len(lines)):
        if lines[end].text.strip().startswith(mark):
            return end + 1
    return len(lines)


def _end_of_text(lines: list[_TextLine], at: int) -> int:
    """Return the line after a paragraph or an item's own text."""
    end = at + 1
    while end < len(lines):
        line = lines[end]
        if line.is_blank or _ITEM.match(line.text) or _FENCE.match(line.text) or _NO_PROSE.match(line.text):
            break
        end += 1
    return end


def _end_of_item(lines: list[_TextLine], at: int) -> int:
    """Return the line after an item and all that is set further in below it."""
    end, last = _end_of_text(lines, at), _end_of_text(lines, at)
    while end < len(lines) and (lines[end].is_blank or lines[end].indent > lines[at].indent):
        end += 1
        if not lines[end - 1].is_blank:
            last = end
    return last


def _passage(prompt: str, kind: Kind, lines: list[_TextLine], at: int, end: int, whole_end: int) -> Passage:
    begin, stop = lines[at].begin, lines[end - 1].end
    return Passage(
        kind=kind,
        text=prompt[begin:stop],
        line=lines[at].number,
        begin=begin,
        end=stop,
        whole_end=lines[whole_end - 1].end,
    )


def _sentences(prompt: str, first: _TextLine, end: int) -> Iterator[Passage]:
    begin = first.begin
    for found in _SENTENCE.finditer(prompt, first.begin, end):
        if _ABBREVIATED.search(prompt[begin : found.end()]) and found.end() < end:
            continue  # goes on behind the abbreviation
        text = prompt[begin : found.end()]
        begin += len(text) - len(text.lstrip())
        text = text.lstrip()
        yield Passage(
            kind="rule" if _BINDING.search(text) else "sentence",
            text=text,
            line=first.number + prompt.count("\n", first.begin, begin),
            begin=begin,
            end=found.end(),
            whole_end=found.end(),
        )
        begin = found.end()

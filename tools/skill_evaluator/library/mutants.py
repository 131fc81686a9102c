"""Copies of a prompt without one of its parts: a sentence, a bullet or a section of its Markdown.

Mutation testing is from DeMillo, Lipton and Sayward 1978 (doi:10.1109/C-M.1978.218136).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from skill_evaluator.library.messages import Message, Prompt

_FENCE = re.compile(r"[ \t]*(`{3}|~{3})")
_HEADING = re.compile(r"(#{1,6})[ \t]")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+\S")
_NO_TEXT = re.compile(r"[ \t]*(?:\||>|[-*_]{3,}[ \t]*$|</?\w|$)")
_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s+[^\sa-z])|\Z)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A prompt without one part. `line` is that of the part in the prompt's file, from 1; `text` was removed."""

    id: str
    line: int
    text: str
    prompt: Prompt


def mutants_of(prompt: Prompt, source: str = "") -> tuple[Mutant, ...]:
    """Return the prompt without each of its parts, from top to bottom; lines are those of `source`, its file.

    A part that holds a placeholder or a whole message is not removed.

    >>> [(one.id, one.text) for one in mutants_of(Prompt.of("Read it. Trim it.\\n\\n- Never guess."))]
    [('sentence-1', 'Read it.'), ('sentence-1-2', 'Trim it.'), ('bullet-3', '- Never guess.')]
    """
    text, names, mutants = prompt.text, Counter[str](), []
    for kind, begin, end in parts_of(text):
        removed, rest = text[begin:end].strip(), text[:begin] + text[end:]
        rest = re.sub(r"\n{3,}", "\n\n", re.sub(r"(?m)[ \t]+$", "", rest)).strip()
        shorter = prompt.like(rest) if rest else None
        if shorter is None:
            continue
        prompt_begin = source.find(text)  # -1: the file has other gaps between the messages
        at = prompt_begin + begin if prompt_begin >= 0 else source.find(removed)
        line = (source or text).count("\n", 0, at if source else begin) + 1
        name = f"{kind}-{line}"
        names[name] += 1
        name = name if names[name] == 1 else f"{name}-{names[name]}"
        mutants.append(Mutant(id=name, line=line, text=" ".join(removed.split()), prompt=shorter))
    return tuple(mutants)


def parts_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, begin and end of each section, bullet and sentence of a Markdown text, from top to bottom.

    A section has all below its heading, and a bullet all that is indented below it. Code, tables, quotations and tags
    are parts of their section alone.
    """
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:at])) for at in range(len(lines) + 1)]
    kinds = _kinds_of(lines)
    for at, kind in enumerate(kinds):
        below = range(at + 1, len(lines))
        if kind == "section":
            end = next(
                (n for n in below if kinds[n] == "section" and _level(lines[n]) <= _level(lines[at])), len(lines)
            )
            yield kind, starts[at], starts[end]
        elif kind == "bullet":
            end = next((n for n in below if kinds[n] != "sentence"), len(lines))
            deeper = (n for n in range(end, len(lines)) if lines[n].strip() and _indent(lines[n]) <= _indent(lines[at]))
            yield kind, starts[at], starts[next(deeper, len(lines))]
        elif kind == "sentence" and (at == 0 or kinds[at - 1] not in ("sentence", "bullet")):
            end = next((n for n in below if kinds[n] != "sentence"), len(lines))
            for found in _SENTENCE.finditer(text, starts[at], len(text[: starts[end]].rstrip())):
                yield kind, found.start(), found.end()


def _kinds_of(lines: Sequence[str]) -> list[str]:
    """Return the kind of part that each line begins or continues; "none" for lines in code and without text."""
    kinds, fence = [], ""
    for line in lines:
        mark = _FENCE.match(line)
        if fence or mark:
            kinds.append("none")
            fence = fence if mark is None else "" if mark[1] == fence else fence or mark[1]
        elif _HEADING.match(line):
            kinds.append("section")
        else:
            kinds.append("none" if _NO_TEXT.match(line) else "bullet" if _BULLET.match(line) else "sentence")
    return kinds


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def controls_of(prompt: Prompt) -> tuple[Prompt, ...]:
    """Return three copies that mean the same: other list marks, wider gaps, or blank lines around the first message.

    >>> [control.text for control in controls_of(Prompt.of("- a\\n- b"))]
    ['* a\\n* b', '\\n- a\\n- b', '- a\\n- b\\n']
    """
    first, *others = prompt.messages
    text = first.text
    marks = re.sub(r"(?m)^(\s*)([-*])(?=\s)", lambda mark: f"{mark[1]}{'*' if mark[2] == '-' else '-'}", text)
    wider = re.sub(r"(?<=[.!?]) (?=\S)", "  ", text.replace("\n\n", "\n\n\n"))
    texts = dict.fromkeys((marks, wider, f"\n{text}", f"{text}\n", f"\n{text}\n"))
    copies = [replace(prompt, messages=(Message(first.role, (other,)), *others)) for other in texts if other != text]
    return tuple(copies[:3])

"""A page of Markdown as GitHub shows it: sections of open blocks, with details folded below them.

Every page of the evaluator is written here, so that each begins with its conclusion, has the same order and the same
blank lines, and can be made to fit: what has no room is left out whole, and said.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from skill_evaluator.display.safe_text import abridged, code_span
from skill_evaluator.display.sheets import Sheet, markdown_table
from skill_evaluator.text import counted

Block = str | Sheet  # a paragraph, a list, a table
_MOST_NAMED = 5  # sections that are said to be left out
_LONGEST_NAME = 100
_ROOM_FOR_NOTE = 1_200
_CUT = "*Cut here: the first part alone is longer than may be shown.*\n"


@dataclass(frozen=True, slots=True)
class Fold:
    """Details below a line that opens them; the line is ours, never text from outside."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section; `heading` is Markdown with its number of `#`, `name` the plain words for it where it is left out."""

    name: str
    heading: str = ""
    blocks: Sequence[Block] = ()
    folds: Sequence[Fold] = ()

    def without_folds(self) -> "Section":
        """Return what stands open."""
        return replace(self, folds=())


@dataclass(frozen=True, slots=True)
class Page:
    """A page; the first sections are the last to be left out."""

    sections: Sequence[Section] = field(default_factory=tuple)

    def markdown(self) -> str:
        """Return the whole page."""
        return _joined(map(section_markdown, self.sections))

    def within(self, most: int, size: Callable[[str], int] = len) -> str:
        """Return the page in at most so much, as `size` counts: whole sections, the first ones first, then their folds.

        What is left out is named below. Only a first section that is too long by itself is cut, after a line.
        """
        whole = self.markdown()
        if size(whole) <= most:
            return whole
        room = most - min(_ROOM_FOR_NOTE, most // 4)
        kept: dict[int, Section] = {}
        for at, section in enumerate(self.sections):
            bare = section.without_folds()
            needed = size(section_markdown(bare)) + 2
            if needed <= room:
                kept[at] = bare
                room -= needed
            elif not at:
                return _first_lines(section_markdown(bare), most, size)
        folded = [at for at in kept if self.sections[at].folds]
        unfolded = []
        for at in folded:
            needed = size(section_markdown(self.sections[at])) - size(section_markdown(kept[at]))
            if needed <= room:
                kept[at] = self.sections[at]
                room -= needed
            else:
                unfolded.append(self.sections[at])
        left_out = [section for at, section in enumerate(self.sections) if at not in kept]
        return _joined([*(section_markdown(kept[at]) for at in sorted(kept)), _note(left_out, unfolded)])


def section_markdown(section: Section) -> str:
    """Return one section."""
    blocks = [section.heading, *map(_block, section.blocks)]
    for fold in section.folds:
        inside = [text for text in map(_block, fold.blocks) if text]
        blocks += [f"<details><summary>{fold.summary}</summary>", *inside, "</details>"] if inside else []
    return _joined(blocks)


def bullets(lines: Sequence[str]) -> str:
    """Return a list with a line each, or nothing."""
    return "\n".join(f"- {line}" for line in lines)


def cut_table(sheet: Sheet, most: int) -> list[Block]:
    """Return a table of at most so many rows, and how many more there are."""
    more = len(sheet.rows) - most
    return [replace(sheet, rows=sheet.rows[:most]), f"… and {more} more."] if more > 0 else [sheet]


def _block(block: Block) -> str:
    return (markdown_table(block) if block.rows else "") if isinstance(block, Sheet) else block


def _joined(blocks: "Sequence[str] | Iterator[str]") -> str:
    texts = [text for text in (block.strip("\n") for block in blocks) if text]
    return "\n\n".join(texts) + "\n" if texts else ""


def _note(left_out: Sequence[Section], unfolded: Sequence[Section]) -> str:
    words = [f"{counted(len(left_out), 'section')} ({_names(left_out)})"] if left_out else []
    words += [f"the details of {counted(len(unfolded), 'section')} ({_names(unfolded)})"] if unfolded else []
    return f"*Left out here for want of room: {' and '.join(words)}. The run's artifacts have everything.*"


def _names(sections: Sequence[Section]) -> str:
    named = list(dict.fromkeys(code_span(abridged(section.name, _LONGEST_NAME)) for section in sections[:_MOST_NAMED]))
    more = len(sections) - _MOST_NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _first_lines(text: str, most: int, size: Callable[[str], int]) -> str:
    """Return as many whole lines as there is room for; half a line could leave a code span open."""
    room, lines = most - size(_CUT) - 2, []
    for line in text.splitlines():
        room -= size(line) + 1
        if room < 0:
            break
        lines.append(line)
    return _joined([*lines[:0], "\n".join(lines), _CUT])

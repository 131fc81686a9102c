"""A page: one list of blocks, drawn on a terminal, as Markdown and as HTML.

A report says each thing once, as a block. Words from outside are safe in every drawing: a `str` in a `Line` is never
mark-up. A page of Markdown can be made to fit: what has no room is left out whole, with a remark.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from skill_evaluator.display.addresses import linked
from skill_evaluator.display.safe_text import abridged, code_block, code_span, prose, shortened, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.text import counted, listed

if TYPE_CHECKING:
    from rich.text import Text

Medium = Literal["terminal", "markdown", "site"]
Words = str | Cell  # a Cell has a look: `code` for a name, a link, or a style, of which Markdown has bold and italic
MOST_ROWS = 200  # of a table on the site: the file of results has all
_MOODS = {"green": "improved", "red": "regressed", "yellow": "inconclusive"}  # also where they are bold
_MOST_NAMED = 5  # sections that are said to be left out
_LONGEST_NAME = 100
_LONGEST_WORD = 48  # characters of a name in a chart that is text
_MARKUP = re.compile(r"(?m)(?P<fence>`+)(?P<room> ?)(?P<code>.+?)(?P=room)(?P=fence)(?!`)|\*\*|^#+ |\\(?=[*|])")
_TWO_PERCENT = re.compile("%(?=%)")  # two begin a comment or a directive of Mermaid
_ROOM_FOR_NOTE = 1_200
_CUT = "*Cut here: the first part alone is longer than may be shown.*\n"


class Line:
    """A sentence of words and names; `style` is the terminal's, and bold in Markdown, too."""

    __slots__ = ("style", "words")

    def __init__(self, *words: Words, style: str = "") -> None:
        self.words, self.style = words, style


class Heading(Line):
    """The title of what follows; `level` counts Markdown's `#`."""

    __slots__ = ("level",)

    def __init__(self, *words: Words, level: int = 3) -> None:
        super().__init__(*words, style="bold")
        self.level = level


@dataclass(frozen=True, slots=True)
class Lines:
    """A list of sentences; without a mark a terminal does not indent them."""

    lines: Sequence[Line | str]
    mark: Literal["", "-", "[ ]", "1."] = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Text as it is, line for line."""

    text: str


@dataclass(frozen=True, slots=True)
class Captioned:
    """A table with a caption above and a note below."""

    sheet: Sheet
    caption: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart of altair's: `draw` makes it, `words` stand for it where it cannot be seen, `figures` are its table."""

    file: str
    words: str
    draw: Callable[[], Any]
    figures: Sheet
    label: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Drawings of which a site shows one at a time; `mermaid` stands for them where no file lies beside the page.

    With a `caption` the figures of the first stand below it, and alone on a terminal; else a later block has them.
    """

    name: str
    drawings: Sequence[Drawing]
    mermaid: str = ""
    caption: str = ""

    @property
    def table(self) -> list[Captioned]:
        """The figures, where this block is to show them."""
        return [Captioned(drawing.figures, self.caption) for drawing in self.drawings[:1] if self.caption]


@dataclass(frozen=True, slots=True)
class Fold:
    """Details below a line that opens them, which a terminal leaves out; the line is ours, never text from outside."""

    summary: str
    blocks: "Sequence[Block]"


@dataclass(frozen=True, slots=True)
class Only:
    """Blocks of some media alone."""

    media: Sequence[Medium]
    blocks: "Sequence[Block]"


# A bare `str` is Markdown of ours.
Block = str | Line | Lines | Code | Sheet | Captioned | Chart | Fold | Only


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section; `heading` is Markdown with its number of `#`, `name` the plain words for it where it is left out."""

    name: str
    heading: str = ""
    blocks: Sequence[Block] = ()

    @property
    def has_folds(self) -> bool:
        """Whether anything is folded."""
        return any(isinstance(block, Fold) for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Page:
    """A page; the first sections are the last to be left out."""

    sections: Sequence[Section] = field(default_factory=tuple)

    @property
    def blocks(self) -> list[Block]:
        """The blocks of all sections."""
        return [block for section in self.sections for block in (section.heading, *section.blocks)]

    def markdown(self, charts: str = "") -> str:
        """Return the whole page; `charts` is the folder beside it that holds the drawings."""
        return _joined(section_markdown(section, charts) for section in self.sections)

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
            bare = replace(section, blocks=[block for block in section.blocks if not isinstance(block, Fold)])
            needed = size(section_markdown(bare)) + 2
            if needed <= room:
                kept[at] = bare
                room -= needed
            elif not at:
                return _first_lines(section_markdown(bare), most, size)
        folded = [at for at in kept if self.sections[at].has_folds]
        unfolded = []
        for at in folded:
            needed = size(section_markdown(self.sections[at])) - size(section_markdown(kept[at]))
            if needed <= room:
                kept[at] = self.sections[at]
                room -= needed
            else:
                unfolded.append(self.sections[at])
        left_out = [section for at, section in enumerate(self.sections) if at not in kept]
        words = [f"{counted(len(left_out), 'section')} ({_names(left_out)})"] if left_out else []
        words += [f"the details of {counted(len(unfolded), 'section')} ({_names(unfolded)})"] if unfolded else []
        note = f"*Left out here for want of room: {' and '.join(words)}. The run's artifacts have everything.*"
        return _joined([*(section_markdown(kept[at]) for at in sorted(kept)), note])


def page_of(name: str, blocks: Iterable[Block]) -> Page:
    """Return a page of one section."""
    return Page([Section(name=name, blocks=list(blocks))])


def print_page(form: Format, *, json: Callable[[], Any], page: Callable[[], Page], full: bool = False) -> None:
    """Print a result to stdout in the form that was asked for; as text with what is folded away if `full`."""
    print_result(
        form, json=json, markdown=lambda: page().markdown(), text=lambda: terminal_pieces(page().blocks, full=full)
    )


def section_markdown(section: Section, charts: str = "") -> str:
    """Return one section."""
    return _joined([section.heading, *(_block(block, charts) for block in section.blocks)])


def bullets(lines: Sequence[str]) -> str:
    """Return a list with a line each, or nothing."""
    return "\n".join(f"- {line}" for line in lines)


def cut_table(sheet: Sheet, most: int) -> list[Block]:
    """Return a table of at most `most` rows, and how many more there are."""
    more = len(sheet.rows) - most
    return [replace(sheet, rows=sheet.rows[:most]), f"… and {more} more."] if more > 0 else [sheet]


def _block(block: Block, charts: str) -> str:
    """Return a block as Markdown; empty if the block is."""
    match block:
        case str():
            return block
        case Sheet():
            return markdown_table(block) if block.rows else ""
        case Code():
            return code_block(block.text)
        case Heading():
            return f"{'#' * block.level} {line_markdown(block)}"
        case Line():
            return line_markdown(block)
        case Lines():
            marks = {"[ ]": "- [ ]", "1.": "{}."}
            mark = marks.get(block.mark, "-")
            return "\n".join(f"{mark.format(at)} {line_markdown(line)}" for at, line in enumerate(block.lines, 1))
        case Captioned():
            table = _block(block.sheet, charts)
            words = (prose(text) if text else "" for text in (f"{block.caption}:" * bool(block.caption), block.note))
            caption, note = words
            return _joined([caption, table, note]) if table else ""
        case Chart():
            images = [f"![{prose(drawing.words)}]({charts}/{drawing.file})" for drawing in block.drawings]
            return _joined(
                [*(images if charts else [block.mermaid]), *(_block(table, charts) for table in block.table)]
            )
        case Fold():
            inside = [text for text in (_block(part, charts) for part in block.blocks) if text]
            opened = f"<details><summary>{block.summary}</summary>"
            return _joined([opened, *inside, "</details>"]) if inside else ""
        case Only():
            return _joined(_block(part, charts) for part in block.blocks) if "markdown" in block.media else ""
        case _:
            return ""


def line_markdown(line: Line | str) -> str:
    """Write a sentence; words that could be mark-up become code."""
    if isinstance(line, str):
        return prose(line)
    text = ""
    for word in line.words:
        cell = Cell(word) if isinstance(word, str) else word
        shown = linked(code_span(cell.text) if cell.code else prose(cell.text, bool(text)), cell.link)
        mark = "**" if "bold" in cell.style else "*" if "italic" in cell.style else ""
        text += f"{mark}{shown}{mark}" if shown else ""
    return f"**{text}**" if line.style.startswith("bold") and not isinstance(line, Heading) else text


def line_text(line: Line | str) -> str:
    """Return the words of a sentence without style, every character of them visible."""
    words = (line,) if isinstance(line, str) else line.words
    return "".join(visible(word if isinstance(word, str) else word.text) for word in words)


def terminal_pieces(blocks: Iterable[Block], *, full: bool = False) -> "Iterator[Sheet | Text | str]":
    """Yield what a terminal shows, what stands open or all if `full`; blank lines around tables and above headings."""
    from rich.text import Text

    before: Block | None = None
    for block in _flat(blocks, "terminal", opened=full):
        if isinstance(block, str) and block.startswith("#"):
            block = Heading(_unmarked(block))
        if isinstance(block, Fold) or not block or (isinstance(block, Lines) and not block.lines):
            continue
        sheet = block.sheet if isinstance(block, Captioned) else block
        if isinstance(sheet, Sheet) and not sheet.rows:
            continue
        near_table = isinstance(block, Captioned | Sheet) and not isinstance(before, Heading)
        if before and (near_table or isinstance(before, Captioned | Sheet) or isinstance(block, Heading)):
            yield Text()
        before = block
        if isinstance(block, Lines):
            for at, line in enumerate(block.lines, 1):
                mark = {"": "", "1.": f"  {at}. "}.get(block.mark, "  - ")
                yield Text(mark).append_text(_terminal_line(line, block.style))
        elif isinstance(sheet, Sheet):
            if isinstance(block, Captioned) and block.caption:
                yield Text(visible(block.caption), style="bold")
            yield sheet
            if isinstance(block, Captioned) and block.note:
                yield Text(visible(block.note), style="dim")
        elif isinstance(block, Code):
            yield visible(block.text.rstrip("\n"), keep="\n\t")
        elif isinstance(block, Line | str):
            yield from map(_terminal_line, _unmarked(block).splitlines() if isinstance(block, str) else [block])


def _unmarked(markdown: str) -> str:
    """Return the words of Markdown of ours."""
    return _MARKUP.sub(lambda mark: (mark["code"] or "").replace("\\|", "|"), markdown)


def _terminal_line(line: Line | str, style: str = "") -> "Text":
    from rich.text import Text

    text = Text(style=line.style if isinstance(line, Line) else style)
    for word in (line,) if isinstance(line, str) else line.words:
        cell = Cell(word) if isinstance(word, str) else word
        text.append(visible(cell.text), style=cell.style or None)
    return text


def _flat(blocks: Iterable[Block], medium: Medium, *, opened: bool = False) -> Iterator[Block]:
    for block in blocks:
        if medium == "terminal" and isinstance(block, Chart):
            yield from block.table
        elif isinstance(block, Fold) and opened:
            yield from (Heading(block.summary), *_flat(block.blocks, medium, opened=True))
        elif not isinstance(block, Only):
            yield block
        elif medium in block.media:
            yield from _flat(block.blocks, medium, opened=opened)


def sections_of(blocks: Iterable[Block]) -> list[tuple[str, list[Block]]]:
    """Return the blocks of an HTML page by section: the title of each heading with the blocks below it."""
    sections: list[tuple[str, list[Block]]] = []
    for block in _for_html(blocks):
        if isinstance(block, Heading):
            sections.append((line_text(block), []))
        elif not isinstance(block, str):
            sections[-1][1].append(block)
    return [(title, content) for title, content in sections if content]


def _for_html(blocks: Iterable[Block]) -> list[Block]:
    return [
        replace(block, blocks=_for_html(block.blocks)) if isinstance(block, Fold) else block
        for block in _flat(blocks, "site")
    ]


def mood_of(cell: Cell) -> str | None:
    """Return the verdict whose look a cell has on an HTML page, by its colour on a terminal; None if it has none."""
    return _MOODS.get(cell.style.removeprefix("bold "))


def html_columns(sheet: Sheet) -> list[int]:
    """Return the columns in their order on an HTML page: grade, quadrant and verdict follow the first."""
    places = list(range(len(sheet.columns)))
    ahead = [list(sheet.columns).index(name) for name in ("verdict", "quadrant", "grade") if name in sheet.columns[1:]]
    return [places[0], *ahead, *(at for at in places[1:] if at not in ahead)]


def draw_charts(blocks: Iterable[Block]) -> Mapping[str, str]:
    """Return every drawing of a page as SVG, by the name of its file; raise ImportError without the extra."""
    from skill_evaluator.display.chart_style import svg

    drawings: dict[str, str] = {}
    for block in blocks:
        if isinstance(block, Chart):
            drawings |= {drawing.file: svg(drawing.draw()) for drawing in block.drawings}
        elif isinstance(block, Fold | Only):
            drawings |= draw_charts(block.blocks)
    return drawings


def _joined(blocks: "Sequence[str] | Iterator[str]") -> str:
    texts = [text for text in (block.strip("\n") for block in blocks) if text]
    return "\n\n".join(texts) + "\n" if texts else ""


def _names(sections: Sequence[Section]) -> str:
    named = (code_span(abridged(section.name, _LONGEST_NAME)) for section in sections)
    return listed(list(dict.fromkeys(named)), _MOST_NAMED)


def _first_lines(text: str, most: int, size: Callable[[str], int]) -> str:
    """Return as many whole lines as there is room for; half a line could leave a code span open."""
    room, lines = most - size(_CUT) - 2, []
    for line in text.splitlines():
        room -= size(line) + 1
        if room < 0:
            break
        lines.append(line)
    return _joined(["\n".join(lines), _CUT])


def line_chart(title: str, axis: str, values: Mapping[str, float]) -> str:
    """Write a chart, for Mermaid, of shares from 0 to 1 as a line over their names."""
    return _mermaid(
        [
            "xychart-beta",
            f"    title {_quoted(title)}",
            f"    x-axis [{', '.join(map(_quoted, values))}]",
            f"    y-axis {_quoted(axis)} 0 --> 1",
            f"    line [{', '.join(f'{value:.3f}' for value in values.values())}]",
        ]
    )


def _quoted(text: str) -> str:
    """Make a name from outside a word that ends neither its quotes nor its line, without directive or entity."""
    plain = visible(shortened(text, limit=_LONGEST_WORD))
    plain = plain.replace('"', "'").replace("`", "'").replace("#", "＃")
    return f'"{_TWO_PERCENT.sub("% ", plain)}"'


def _mermaid(lines: Sequence[str]) -> str:
    return "\n".join(["```mermaid", *lines, "```"])

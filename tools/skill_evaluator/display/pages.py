"""A report: one list of blocks, rendered on a terminal, as Markdown and as HTML.

External text is never rendered as mark-up. A Markdown page can have a maximum size; it then names the omitted sections.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json import dumps
from typing import TYPE_CHECKING, Any, Literal

from skill_evaluator.display.addresses import linked
from skill_evaluator.display.safe_text import abridged, code_block, code_span, prose, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, show, write
from skill_evaluator.text import counted, listed

if TYPE_CHECKING:
    from rich.text import Text

Medium = Literal["terminal", "markdown", "site"]
LinePart = str | Cell  # a Cell may be code, a link or bold
MAX_ROWS = 200  # rows of a table on the site; the result files have all
_MOODS = {"green": "improved", "red": "regressed", "yellow": "inconclusive"}
_MAX_NAMED = 5
_MAX_NAME = 100
_ROOM_FOR_NOTE = 1_200
_CUT = "*Cut here: the first part alone exceeds the maximum length.*\n"


class Line:
    """A line of text and cells; a bold `style` is bold in Markdown, too."""

    __slots__ = ("parts", "style")

    def __init__(self, *parts: LinePart, style: str = "") -> None:
        self.parts, self.style = parts, style


class Heading(Line):
    """A heading; `level` is the number of `#` in Markdown."""

    __slots__ = ("level",)

    def __init__(self, *parts: LinePart, level: int = 3) -> None:
        super().__init__(*parts, style="bold")
        self.level = level


@dataclass(frozen=True, slots=True)
class Lines:
    """A list of sentences; a terminal indents them only if they have a mark."""

    lines: Sequence[Line | str]
    mark: Literal["", "-", "[ ]"] = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Text that is shown unchanged, line by line."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """An altair chart, made by `draw`; `file` is the name of its SVG file.

    `alt_text` replaces it where it cannot be shown; `figures` is its table; `label` names it among several.
    """

    file: str
    alt_text: str
    draw: Callable[[], Any]
    figures: Sheet
    label: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Drawings with one `name`; a site shows one at a time, and Markdown shows them if their files are in a folder."""

    name: str
    drawings: Sequence[Drawing]


@dataclass(frozen=True, slots=True)
class Fold:
    """Details collapsed below a summary; a terminal shows them only with `--full`, and otherwise `brief`.

    The summary is never external text.
    """

    summary: str
    blocks: "Sequence[Block]"
    brief: "Sequence[Block]" = ()


@dataclass(frozen=True, slots=True)
class Closing:
    """Blocks that a terminal shows last, where its reader looks first; other media show them in place."""

    blocks: "Sequence[Block]"


@dataclass(frozen=True, slots=True)
class ForMedia:
    """Blocks that only some media show."""

    media: Sequence[Medium]
    blocks: "Sequence[Block]"


# A bare `str` is a sentence.
Block = str | Line | Lines | Code | Sheet | Chart | Fold | Closing | ForMedia


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page that is shown or omitted as a whole; a remark names the omitted sections."""

    name: str
    blocks: Sequence[Block] = ()


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a Markdown page is read: the folder of its drawings, and the address of the site, to which links lead."""

    charts: str = ""
    site: str | None = None

    def absolute(self, link: str) -> str:
        return f"{self.site.rstrip('/')}/{link}" if self.site and link else ""


@dataclass(frozen=True, slots=True)
class Page:
    """A report; if it is too large, the last sections are omitted first.

    Its cells link to the pages of the site at the address `site`; without an address, Markdown has no links.
    """

    sections: Sequence[Section] = field(default_factory=tuple)
    site: str | None = None

    @property
    def blocks(self) -> list[Block]:
        """The blocks of all sections."""
        return [block for section in self.sections for block in section.blocks]

    def markdown(self, charts: str = "") -> str:
        """Render the page as Markdown; `charts` is the folder of its drawings."""
        return _blocks_markdown(self.blocks, _Target(charts, self.site))

    def within(self, limit: int, size: Callable[[str], int] = len) -> str:
        """Render the page as Markdown of at most `limit`, as measured by `size`, and name the omitted sections.

        The collapsed details are omitted first, from the last section to the first, then whole sections.
        """
        target = _Target(site=self.site)
        texts = [_blocks_markdown(section.blocks, target) for section in self.sections]
        if size(_joined(texts)) <= limit:
            return _joined(texts)
        room = limit - min(_ROOM_FOR_NOTE, limit // 4)
        needed = sum(size(text) + 2 for text in texts)
        bare = [
            _blocks_markdown([block for block in section.blocks if not isinstance(block, Fold)], target)
            for section in self.sections
        ]
        last_first = range(len(texts) - 1, -1, -1)
        without_details, left_out = list[str](), list[str]()
        for index, shorter in [*((at, bare[at]) for at in last_first), *((at, "") for at in last_first[:-1])]:
            if needed <= room:
                break
            if shorter != texts[index]:
                (without_details if shorter else left_out).insert(0, self.sections[index].name)
                needed -= size(texts[index]) - size(shorter)
                texts[index] = shorter
        if needed > room:
            return _first_lines(texts[0], limit, size)
        details = [name for name in without_details if name not in left_out]
        remarks = [f"{counted(len(left_out), 'section')} ({_names(left_out)})"] if left_out else []
        remarks += [f"the details of {counted(len(details), 'section')} ({_names(details)})"] if details else []
        note = f"*Omitted because of the maximum length: {' and '.join(remarks)}. The run's artifacts have everything.*"
        return _joined([*texts, note])


def page_of(name: str, blocks: Iterable[Block], site: str | None = None) -> Page:
    """Make a page of one section, whose links lead to the site at an address."""
    return Page([Section(name=name, blocks=list(blocks))], site)


def print_page(form: Format, *, json: Callable[[], Any], page: Callable[[], Page], full: bool | None = None) -> None:
    """Print a report to stdout in the requested form; `full` opens the collapsed details on a terminal.

    `full` is None for a command without the option `--full`.
    """
    if form == "json":
        write(dumps(json(), indent=2, default=lambda model: model.model_dump(mode="json")) + "\n")
    elif form == "markdown":
        write(page().markdown())
    else:
        show(terminal_pieces(page().blocks, full=full))


def cut_table(sheet: Sheet, limit: int) -> list[Block]:
    """Return the first `limit` rows of a table, and if there are more, a line with their number."""
    more = len(sheet.rows) - limit
    return [replace(sheet, rows=sheet.rows[:limit]), f"… and {more} more."] if more > 0 else [sheet]


def _blocks_markdown(blocks: Iterable[Block], target: _Target) -> str:
    return _joined(_markdown(block, target) for block in blocks)


def _markdown(block: Block, target: _Target) -> str:
    """Render a block as Markdown; return "" if it has no content."""
    match block:
        case Sheet():
            caption = prose(f"{block.caption}:") if block.caption else ""
            note = prose(block.note) if block.note else ""
            return _joined([caption, markdown_table(block, target.absolute), note]) if block.rows else ""
        case Code():
            return code_block(block.text)
        case Heading():
            return f"{'#' * block.level} {_line_markdown(block, target)}"
        case Line() | str():
            return _line_markdown(block, target) if block else ""
        case Lines():
            mark = "- [ ]" if block.mark == "[ ]" else "-"
            return "\n".join(f"{mark} {_line_markdown(line, target)}" for line in block.lines)
        case Chart():
            images = [f"![{prose(drawing.alt_text)}]({target.charts}/{drawing.file})" for drawing in block.drawings]
            return _joined(images) if target.charts else ""
        case Fold():
            inside = _blocks_markdown(block.blocks, target)
            fold = f"<details><summary>{block.summary}</summary>\n\n{inside}\n</details>" if inside else ""
            return _joined([_blocks_markdown(block.brief, target), fold])
        case Closing():
            return _blocks_markdown(block.blocks, target)
        case ForMedia():
            return _blocks_markdown(block.blocks, target) if "markdown" in block.media else ""


def _line_markdown(line: Line | str, target: _Target) -> str:
    """Render a line; parts that could be mark-up become code."""
    if isinstance(line, str):
        return prose(line)
    text = ""
    for word in line.parts:
        cell = Cell(word) if isinstance(word, str) else word
        shown = linked(code_span(cell.text) if cell.code else prose(cell.text, bool(text)), target.absolute(cell.link))
        mark = "**" if "bold" in cell.style else ""
        text += f"{mark}{shown}{mark}" if shown else ""
    return f"**{text}**" if line.style.startswith("bold") and not isinstance(line, Heading) else text


def terminal_pieces(blocks: Iterable[Block], *, full: bool | None = None) -> "Iterator[Sheet | Text | str]":
    """Yield the tables and texts that a terminal shows for blocks, with blank lines around tables and above headings.

    If `full` is false, a line names the option that shows the collapsed details.
    """
    from rich.text import Text

    before: Block | None = None
    for block in _terminal_blocks(list(blocks), full):
        if not block or (isinstance(block, Lines) and not block.lines) or (isinstance(block, Sheet) and not block.rows):
            continue
        is_blank = isinstance(block, Line) and not block.parts
        near_table = (isinstance(block, Sheet) and not isinstance(before, Heading)) or isinstance(before, Sheet)
        if before and (near_table or isinstance(block, Heading)):
            yield from () if is_blank else (Text(),)
        before = block
        if isinstance(block, Lines):
            for line in block.lines:
                yield Text("  - " if block.mark else "").append_text(_terminal_line(line, block.style))
        elif isinstance(block, Sheet):
            yield from [Text(visible(block.caption), style="bold")] if block.caption else []
            yield block
            yield from [Text(visible(block.note), style="dim")] if block.note else []
        elif isinstance(block, Code):
            yield visible(block.text.rstrip("\n"), keep="\n\t")
        elif isinstance(block, Line | str):
            yield _terminal_line(block)


def _terminal_line(line: Line | str, style: str = "") -> "Text":
    from rich.text import Text

    text = Text(style=line.style if isinstance(line, Line) else style)
    for word in (line,) if isinstance(line, str) else line.parts:
        cell = Cell(word) if isinstance(word, str) else word
        text.append(visible(cell.text), style=cell.style or None)
    return text


def _terminal_blocks(blocks: Sequence[Block], full: bool | None) -> Iterator[Block]:
    """Yield the blocks as a terminal shows them, with closing blocks last.

    If `full` is true, folds are opened. Otherwise their brief blocks are shown; if it is False, a line names --full.
    """
    shown = list(_flat(blocks, "terminal", full=bool(full)))
    yield from (block for block in shown if not isinstance(block, Closing))
    if full is False and any(isinstance(block, Fold) and block.blocks for block in blocks):
        yield Line("--full shows all", style="dim")
    for closing in shown:
        if isinstance(closing, Closing):
            yield from (Line(), *closing.blocks)


def _flat(blocks: Iterable[Block], medium: Medium, *, full: bool = False) -> Iterator[Block]:
    """Yield the blocks that a medium shows; on a terminal also those inside folds if `full`."""
    for block in blocks:
        if isinstance(block, Closing) and medium != "terminal":
            yield from block.blocks
        elif isinstance(block, ForMedia):
            yield from _flat(block.blocks if medium in block.media else (), medium, full=full)
        elif isinstance(block, Fold) and medium == "terminal":
            inside = (Heading(block.summary), *block.blocks) if full and block.blocks else block.brief
            yield from _flat(inside, medium, full=full)
        else:
            yield block


def sections_of(blocks: Iterable[Block]) -> list[tuple[str, list[Block]]]:
    """Return the sections of an HTML page: the title of each heading and the blocks below it."""
    sections: list[tuple[str, list[Block]]] = []
    for block in _for_html(blocks):
        if isinstance(block, Heading):
            sections.append(("".join(visible(w if isinstance(w, str) else w.text) for w in block.parts), []))
        elif not isinstance(block, str):
            sections[-1][1].append(block)
    return [(title, content) for title, content in sections if content]


def _for_html(blocks: Iterable[Block]) -> list[Block]:
    return [
        replace(block, blocks=_for_html(block.blocks)) if isinstance(block, Fold) else block
        for block in _flat(blocks, "site")
    ]


def mood_of(cell: Cell) -> str | None:
    """Return the verdict that has the colour of a cell on an HTML page. Return None if the cell has no colour."""
    return _MOODS.get(cell.style.removeprefix("bold "))


def html_columns(sheet: Sheet) -> list[int]:
    """Return the column indexes in the order of an HTML page: verdict, quadrant and grade follow the first column."""
    indexes = list(range(len(sheet.columns)))
    ahead = [list(sheet.columns).index(name) for name in ("verdict", "quadrant", "grade") if name in sheet.columns[1:]]
    return [indexes[0], *ahead, *(at for at in indexes[1:] if at not in ahead)]


def draw_charts(blocks: Iterable[Block]) -> Mapping[str, str]:
    """Draw all charts of a page as SVG, by file name. Raise ImportError if the extra is not installed."""
    from skill_evaluator.display.chart_style import svg

    drawings: dict[str, str] = {}
    for block in blocks:
        if isinstance(block, Chart):
            drawings |= {drawing.file: svg(drawing.draw()) for drawing in block.drawings}
        elif isinstance(block, Fold | ForMedia):
            drawings |= draw_charts(block.blocks)
    return drawings


def _joined(blocks: Iterable[str]) -> str:
    texts = [text for text in (block.strip("\n") for block in blocks) if text]
    return "\n\n".join(texts) + "\n" if texts else ""


def _names(names: Sequence[str]) -> str:
    return listed(list(dict.fromkeys(code_span(abridged(name, _MAX_NAME)) for name in names)), _MAX_NAMED)


def _first_lines(text: str, limit: int, size: Callable[[str], int]) -> str:
    """Return the lines that fit; no line is split, because that could leave a code span open."""
    room, lines = limit - size(_CUT) - 2, []
    for line in text.splitlines():
        room -= size(line) + 1
        if room < 0:
            break
        lines.append(line)
    return _joined(["\n".join(lines), _CUT])

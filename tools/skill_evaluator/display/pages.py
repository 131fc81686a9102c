"""A report as blocks that are rendered on a terminal, as Markdown and as HTML; the addresses of the site's pages.

External text is never rendered as mark-up. A Markdown page can have a maximum size; it then names the omitted sections.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json import dumps
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from skill_evaluator.display.safe_text import abridged, code_block, code_span, prose, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, linked, markdown_table, show, write
from skill_evaluator.text import counted, digest, listed

if TYPE_CHECKING:
    from rich.text import Text

Medium = Literal["terminal", "markdown", "site"]
LinePart = str | Cell  # a Cell may be code, a link or bold
MAX_ROWS = 200  # rows of a table on the site; the result files have all
_PLAIN = re.compile(r"[a-z0-9][a-z0-9._+-]{0,80}")
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

    @property
    def cells(self) -> list[Cell]:
        """The parts of the line, each as a cell."""
        return [Cell(part) if isinstance(part, str) else part for part in self.parts]


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
    """An altair chart, made by `draw`, whose SVG has the name `file`; `figures` has its numbers as a table.

    `alt_text` replaces the chart where it cannot be shown; `label` names it among several charts.
    """

    file: str
    alt_text: str
    draw: Callable[[], Any]
    figures: Sheet
    label: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Drawings of one chart. The site collapses all but the first. Markdown shows them if it knows their folder."""

    name: str
    drawings: Sequence[Drawing]


@dataclass(frozen=True, slots=True)
class Fold:
    """Collapsed details; a terminal shows `brief`, or with `--full` the details. The summary is never external text."""

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
class Page:
    """A report. Its cells link to pages of the site at the address `site`. Markdown has no links if it is None."""

    sections: Sequence[Section] = field(default_factory=tuple)
    site: str | None = None

    @property
    def blocks(self) -> list[Block]:
        """The blocks of all sections."""
        return [block for section in self.sections for block in section.blocks]

    def markdown(self, charts: str = "") -> str:
        """Render the page as Markdown; `charts` is the folder of its drawings."""
        return _Markdown(charts, self.site).text(self.blocks)

    def within(self, limit: int, size: Callable[[str], int] = len) -> str:
        """Render the page as Markdown of at most `limit`, as measured by `size`, and name the omitted sections.

        Collapsed details are omitted first, from the last section to the first, then whole sections. If the first one
        alone is too long, it is cut.
        """
        render = _Markdown("", self.site).text
        whole = [render(section.blocks) for section in self.sections]
        if size(_joined(whole)) <= limit:
            return _joined(whole)
        bare = [render(block for block in one.blocks if not isinstance(block, Fold)) for one in self.sections]
        room = limit - min(_ROOM_FOR_NOTE, limit // 4)
        texts, last_first = list(whole), range(len(whole) - 1, -1, -1)
        for index, text in [*((at, bare[at]) for at in last_first), *((at, "") for at in last_first[:-1])]:
            if sum(size(text) + 2 for text in texts) > room:
                texts[index] = text
        if sum(size(text) + 2 for text in texts) > room:
            return _first_lines(texts[0], limit, size)
        sections = zip(self.sections, texts, whole, strict=True)
        cut = [(section.name, text) for section, text, before in sections if text != before]
        omitted = [name for name, text in cut if not text]
        details = [name for name, text in cut if text and name not in omitted]
        remarks = [f"{counted(len(omitted), 'section')} ({_names(omitted)})"] if omitted else []
        remarks += [f"the details of {counted(len(details), 'section')} ({_names(details)})"] if details else []
        note = f"*Omitted because of the maximum length: {' and '.join(remarks)}. The run's artifacts have everything.*"
        return _joined([*texts, note])


def page_of(name: str, blocks: Iterable[Block], site: str | None = None) -> Page:
    """Make a page of one section; `site` is the address of the site that its links lead to."""
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
    """Return the first `limit` rows of a table. If there are more, add a line with the number of the others."""
    more = len(sheet.rows) - limit
    return [replace(sheet, rows=sheet.rows[:limit]), f"… and {more} more."] if more > 0 else [sheet]


@dataclass(frozen=True, slots=True)
class _Markdown:
    """A renderer of blocks as Markdown for a folder of drawings and the address of the site to which links lead."""

    charts: str
    site: str | None

    def text(self, blocks: Iterable[Block]) -> str:
        return _joined(map(self._block, blocks))

    def _block(self, block: Block) -> str:
        match block:
            case Sheet():
                caption = prose(f"{block.caption}:") if block.caption else ""
                note = prose(block.note) if block.note else ""
                return _joined([caption, markdown_table(block, self._address), note]) if block.rows else ""
            case Code():
                return code_block(block.text)
            case Heading():
                return f"{'#' * block.level} {self._line(block)}"
            case Line() | str():
                return self._line(block) if block else ""
            case Lines():
                mark = "- [ ]" if block.mark == "[ ]" else "-"
                return "\n".join(f"{mark} {self._line(line)}" for line in block.lines)
            case Chart():
                images = [f"![{prose(drawing.alt_text)}]({self.charts}/{drawing.file})" for drawing in block.drawings]
                return _joined(images) if self.charts else ""
            case Fold():
                inside = self.text(block.blocks)
                fold = f"<details><summary>{block.summary}</summary>\n\n{inside}\n</details>" if inside else ""
                return _joined([self.text(block.brief), fold])
            case Closing():
                return self.text(block.blocks)
            case ForMedia():
                return self.text(block.blocks) if "markdown" in block.media else ""

    def _line(self, line: Line | str) -> str:
        if isinstance(line, str):
            return prose(line)
        text = ""
        for cell in line.cells:
            markdown = code_span(cell.text) if cell.code else prose(cell.text, bool(text))
            shown = linked(markdown, self._address(cell.link))
            mark = "**" if "bold" in cell.style else ""
            text += f"{mark}{shown}{mark}" if shown else ""
        return f"**{text}**" if line.style.startswith("bold") and not isinstance(line, Heading) else text

    def _address(self, link: str) -> str:
        return f"{self.site.rstrip('/')}/{link}" if self.site and link else ""


def terminal_pieces(blocks: Iterable[Block], *, full: bool | None = None) -> "Iterator[Sheet | Text | str]":
    """Yield the tables and texts that a terminal shows for blocks, with blank lines around tables and above headings.

    If `full` is False and details are collapsed, a line names `--full`.
    """
    from rich.text import Text

    before: Block | None = None
    for block in _terminal_blocks(list(blocks), full):
        if not block or (isinstance(block, Lines) and not block.lines) or (isinstance(block, Sheet) and not block.rows):
            continue
        is_blank = isinstance(block, Line) and not block.parts
        near_table = (isinstance(block, Sheet) and not isinstance(before, Heading)) or isinstance(before, Sheet)
        if before and (near_table or isinstance(block, Heading)) and not is_blank:
            yield Text()
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

    line = Line(line, style=style) if isinstance(line, str) else line
    text = Text(style=line.style)
    for cell in line.cells:
        text.append(visible(cell.text), style=cell.style or None)
    return text


def _terminal_blocks(blocks: Sequence[Block], full: bool | None) -> Iterator[Block]:
    """Yield the blocks as a terminal shows them, closing blocks last. If `full` is False, a line may name --full."""
    shown = list(_flat(blocks, "terminal", full=bool(full)))
    yield from (block for block in shown if not isinstance(block, Closing))
    if full is False and any(isinstance(block, Fold) and block.blocks for block in blocks):
        yield Line("--full shows all", style="dim")
    for closing in shown:
        if isinstance(closing, Closing):
            yield from (Line(), *closing.blocks)


def _flat(blocks: Iterable[Block], medium: Medium, *, full: bool = False) -> Iterator[Block]:
    """Yield the blocks that a medium shows. On a terminal a fold is its `brief`, or if `full`, its whole content."""
    for block in blocks:
        if isinstance(block, Closing) and medium != "terminal":
            yield from block.blocks
        elif isinstance(block, ForMedia):
            yield from _flat(block.blocks if medium in block.media else (), medium, full=full)
        elif isinstance(block, Fold) and medium == "terminal":
            inside = (Heading(block.summary), *block.blocks) if full and block.blocks else block.brief
            yield from _flat(inside, medium, full=full)
        elif isinstance(block, Fold):
            yield replace(block, blocks=list(_flat(block.blocks, medium)))
        else:
            yield block


def sections_of(blocks: Iterable[Block]) -> list[tuple[str, list[Block]]]:
    """Return the title and blocks of each section of an HTML page, without empty sections and blocks of type `str`."""
    sections: list[tuple[str, list[Block]]] = []
    for block in _flat(blocks, "site"):
        if isinstance(block, Heading):
            sections.append(("".join(visible(cell.text) for cell in block.cells), []))
        elif not isinstance(block, str):
            sections[-1][1].append(block)
    return [(title, content) for title, content in sections if content]


def mood_of(cell: Cell) -> str | None:
    """Return the verdict that has the colour of a cell on an HTML page. Return None if the cell has no colour."""
    return _MOODS.get(cell.style.removeprefix("bold "))


def html_columns(sheet: Sheet) -> list[int]:
    """Return the column indexes in the order of an HTML page: verdict, quadrant and grade follow the first column."""
    indexes = list(range(len(sheet.columns)))
    ahead = [list(sheet.columns).index(name) for name in ("verdict", "quadrant", "grade") if name in sheet.columns[1:]]
    return [indexes[0], *ahead, *(at for at in indexes[1:] if at not in ahead)]


def draw_charts(blocks: Iterable[Block]) -> Mapping[str, str]:
    """Draw all charts of a page as SVG, by file name. Raise ImportError if altair is not installed."""
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
    """Return the first lines of a text that fit, and a remark. Lines stay whole, so that no code span is left open."""
    room, lines = limit - size(_CUT) - 2, []
    for line in text.splitlines():
        room -= size(line) + 1
        if room < 0:
            break
        lines.append(line)
    return _joined(["\n".join(lines), _CUT])


def file_name(name: str) -> str:
    """Return a safe file name for any name: the name itself if it is plain, or else a slug with a digest."""
    slug = re.sub(r"[^a-z0-9_-]", "-", name[:40])
    return name if _PLAIN.fullmatch(name) else f"{slug}-{digest(name)[-10:]}"


def _quoted(name: str) -> str:
    return quote(name, errors="replace")  # a lone surrogate has no encoding


def component_address(skill: str, field: str | None = None) -> str:
    """Return the address of a component's page or, if a field is given, of the field's cases on it."""
    return f"components/{_quoted(skill)}.html" + (f"#{field_anchor(field)}" if field is not None else "")


def field_anchor(path: str) -> str:
    """Return the id of the element on a component's page that lists the cases of a field."""
    return f"field-{file_name(path)}" if path else "field"


def page_address(folder: str, skill: str, *names: str) -> str:
    """Return the address of a page in the folder `cases`, `verdicts` or `compare` of the site.

    `names` is the id of a case, a version, or two models.
    """
    return f"{folder}/{_quoted(skill)}/{'--'.join(map(file_name, names))}.html"


def run_address(skill: str, run_id: str) -> str:
    """Return the address of the page with the outputs of a run."""
    return f"runs/{_quoted(skill)}/{run_id}.html"

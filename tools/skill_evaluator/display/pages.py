"""A report as blocks that are rendered on a terminal, as Markdown and as HTML; the addresses of the site's pages.

External text is never rendered as mark-up. A Markdown page can have a maximum size; it then names the omitted sections.
A terminal never cuts words or numbers: columns of words are wrapped, and columns that do not fit go below their row.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from json import dumps
from typing import Any, Literal
from urllib.parse import quote

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from skill_evaluator.display import abridged, code_block, code_span, prose, visible
from skill_evaluator.text import counted, digest, listed

Format = Literal["text", "json", "markdown"]
Medium = Literal["terminal", "markdown", "site"]
MAX_ROWS = 200  # rows of a table on the site; the result files have all
_PLAIN = re.compile(r"[a-z0-9][a-z0-9._+-]{0,80}")
_MOODS = {"green": "improved", "red": "regressed", "yellow": "inconclusive"}
_MAX_NAMED = 5
_MAX_NAME = 100
_ROOM_FOR_NOTE = 1_200
_CUT = "*Cut here: the first part alone exceeds the maximum length.*\n"
_UNLIMITED = 1_000_000  # cells: the width of a line through a pipe
_NARROW = 20  # cells: a narrower column of words goes below its row
_COMMAND = re.compile(r"`(?:git pull && )?(?:skill-evaluator|evaluate|compare|judge|policy|profile)\b[^`]*`")
_WORDS = re.compile(r"\s*\S+(?: → \S+)*")  # a change of scores is not broken
_UNBROKEN = "\ue000"  # replaces a blank at which rich must not break
_INSIDE_A_WORD = re.compile(r"(?<=[./_,:;=\]-])(?=[^\W\d])")  # long paths and ids may be broken here, numbers may not


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table; `code` marks external text, and `link` is the address of a page of the site."""

    text: str
    style: str = ""
    code: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table with a caption above and a note below.

    Columns in `numbers` are aligned right. Columns in `whole` are broken only if very long. The titles of columns in
    `named` are external text. If a terminal is too narrow for the table, some columns become a line below each row:
    first those in `below`, then the last columns.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    below: Sequence[str] = ()
    caption: str = ""
    note: str = ""

    def only(self, *columns: str, limit: int | None = None) -> "Sheet":
        """Return a table with these columns and at most `limit` rows."""
        indexes = [self.columns.index(name) for name in columns]
        return replace(self, columns=columns, rows=[[row[at] for at in indexes] for row in self.rows[:limit]])


def cells_of(names: Sequence[str], *values: Cell | str | int | None) -> list[Cell]:
    """Return the cells of a row: `names`, marked as code, and then `values`. A value of None becomes a dash."""
    shown = (value if isinstance(value, Cell) else Cell("–" if value is None else str(value)) for value in values)
    return [*(Cell(name, code=True) for name in names), *shown]


LinePart = str | Cell  # a Cell may be code, a link or bold


class Line:
    """A line of text and cells. A bold `style` is also bold in Markdown."""

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
    """A list of sentences. A terminal indents them if they have a mark."""

    lines: Sequence[Line | str]
    mark: Literal["", "-", "[ ]"] = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Text that is shown line by line, in Markdown as a code block."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """An altair chart, made by `draw`; `figures` has its numbers, and `alt_text` describes it."""

    name: str  # the SVG file is {name}.svg
    alt_text: str
    draw: Callable[[], Any]
    figures: Sheet


@dataclass(frozen=True, slots=True)
class Fold:
    """Collapsed blocks. A terminal shows the blocks in `brief` instead, unless the option `--full` is set."""

    summary: str  # not escaped, so it must not come from models or files
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
        """Render the page as Markdown. `charts` is the folder of the SVG files; if it is "", the charts are omitted."""
        return _Markdown(charts, self.site).text(self.blocks)

    def within(self, limit: int, size: Callable[[str], int] = len) -> str:
        """Render the page as Markdown whose length, measured by `size`, is at most `limit`.

        Collapsed details are omitted first, from the last section to the first, then whole sections. A note names the
        omitted sections. If the first section alone is too long, its end is cut off.
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
    """Make a page of one section. Its links lead to the site at the address `site`."""
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
        blocks = page().blocks
        if full:
            blocks = unfold(blocks)
        elif full is False and any(isinstance(block, Fold) and block.blocks for block in blocks):
            blocks = [*blocks, Line("--full shows all", style="dim")]
        show(terminal_pieces(blocks))


def unfold(blocks: Iterable[Block]) -> list[Block]:
    """Replace each `Fold` by its summary as a heading and its blocks; keep a `Fold` without blocks."""
    shown = list[Block]()
    for block in blocks:
        if isinstance(block, Fold) and block.blocks:
            shown += [Heading(block.summary), *unfold(block.blocks)]
        elif isinstance(block, ForMedia):
            shown.append(replace(block, blocks=unfold(block.blocks)))
        else:
            shown.append(block)
    return shown


def cut_table(sheet: Sheet, limit: int) -> list[Block]:
    """Return the first `limit` rows of a table. If there are more rows, add a line with the number of omitted rows."""
    more = len(sheet.rows) - limit
    return [replace(sheet, rows=sheet.rows[:limit]), f"… and {more} more."] if more > 0 else [sheet]


@dataclass(frozen=True, slots=True)
class _Markdown:
    """A renderer of Markdown. `charts` is the folder of the SVG files, and links begin with the address `site`."""

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
                return f"![{prose(block.alt_text)}]({self.charts}/{block.name}.svg)" if self.charts else ""
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
            shown = code_span(cell.text) if cell.code else prose(cell.text, bool(text))
            shown = _linked(shown, self._address(cell.link))
            mark = "**" if "bold" in cell.style else ""
            text += f"{mark}{shown}{mark}" if shown else ""
        return f"**{text}**" if line.style.startswith("bold") and not isinstance(line, Heading) else text

    def _address(self, link: str) -> str:
        return f"{self.site.rstrip('/')}/{link}" if self.site and link else ""


def terminal_pieces(blocks: Iterable[Block]) -> Iterator[Sheet | Text | str]:
    """Yield the tables and texts that a terminal shows for blocks, with blank lines around tables and above headings.

    The blocks of each `Closing` come last.
    """
    before: Block | None = None
    shown = list(_flat(blocks, "terminal"))
    closing = [part for block in shown if isinstance(block, Closing) for part in (Line(), *block.blocks)]
    for block in (*(block for block in shown if not isinstance(block, Closing)), *closing):
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


def _terminal_line(line: Line | str, style: str = "") -> Text:
    line = Line(line, style=style) if isinstance(line, str) else line
    text = Text(style=line.style)
    for cell in line.cells:
        text.append(visible(cell.text), style=cell.style or None)
    return text


def _flat(blocks: Iterable[Block], medium: Medium) -> Iterator[Block]:
    """Yield the blocks that a medium shows."""
    for block in blocks:
        if isinstance(block, Closing) and medium != "terminal":
            yield from block.blocks
        elif isinstance(block, ForMedia):
            yield from _flat(block.blocks if medium in block.media else (), medium)
        elif isinstance(block, Fold) and medium == "terminal":
            yield from _flat(block.brief, medium)
        elif isinstance(block, Fold):
            yield replace(block, blocks=list(_flat(block.blocks, medium)))
        else:
            yield block


def sections_of(blocks: Iterable[Block]) -> list[tuple[str, list[Block]]]:
    """Split the blocks of an HTML page at the headings into (title, blocks). Omit `str` blocks and empty sections."""
    sections: list[tuple[str, list[Block]]] = []
    for block in _flat(blocks, "site"):
        if isinstance(block, Heading):
            sections.append(("".join(visible(cell.text) for cell in block.cells), []))
        elif not isinstance(block, str):
            sections[-1][1].append(block)
    return [(title, content) for title, content in sections if content]


def mood_of(cell: Cell) -> str | None:
    """Return the verdict whose colour a cell has on an HTML page. Return None if the cell has no colour."""
    return _MOODS.get(cell.style.removeprefix("bold "))


def html_columns(sheet: Sheet) -> list[int]:
    """Return column indexes in the order of an HTML page: first column, verdict, quadrant, grade, other columns."""
    indexes = list(range(len(sheet.columns)))
    ahead = [list(sheet.columns).index(name) for name in ("verdict", "quadrant", "grade") if name in sheet.columns[1:]]
    return [indexes[0], *ahead, *(at for at in indexes[1:] if at not in ahead)]


def draw_charts(blocks: Iterable[Block]) -> Mapping[str, str]:
    """Draw all charts of a page as SVG, by file name. Raise ImportError if altair is not installed."""
    from skill_evaluator.display.chart_style import svg

    drawings: dict[str, str] = {}
    for block in blocks:
        if isinstance(block, Chart):
            drawings[f"{block.name}.svg"] = svg(block.draw())
        elif isinstance(block, Fold | ForMedia):
            drawings |= draw_charts(block.blocks)
    return drawings


def _joined(blocks: Iterable[str]) -> str:
    texts = [text for text in (block.strip("\n") for block in blocks) if text]
    return "\n\n".join(texts) + "\n" if texts else ""


def _names(names: Sequence[str]) -> str:
    return listed(list(dict.fromkeys(code_span(abridged(name, _MAX_NAME)) for name in names)), _MAX_NAMED)


def _first_lines(text: str, limit: int, size: Callable[[str], int]) -> str:
    """Return the first lines of a text that fit into `limit`, and a note that the text is cut."""
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

    `names` has the id of the case, the version, or the ids of the two compared models.
    """
    return f"{folder}/{_quoted(skill)}/{'--'.join(map(file_name, names))}.html"


def run_address(skill: str, run_id: str) -> str:
    """Return the address of the page with the outputs of a run."""
    return f"runs/{_quoted(skill)}/{run_id}.html"


def _linked(markdown: str, address: str) -> str:
    return f"[{markdown}]({address})" if address else markdown


def markdown_table(sheet: Sheet, absolute: Callable[[str], str] = str) -> str:
    """Render a table as GitHub's Markdown. `absolute` makes the address from the link of a cell."""
    titles = (code_span(name) if name in sheet.named else name for name in sheet.columns)
    lines = [" | ".join(titles), "|".join("---:" if name in sheet.numbers else "---" for name in sheet.columns)]
    for row in sheet.rows:
        cells = (_linked(code_span(cell.text) if cell.code else cell.text, absolute(cell.link)) for cell in row)
        lines.append(" | ".join(cells))
    return "".join(f"| {line} |\n" for line in lines)


def show(pieces: Iterable[Sheet | Text | str]) -> None:
    """Print tables and texts to stdout: wrapped and coloured on a terminal, otherwise plain with one line per row."""
    if sys.stdout.isatty():
        _replace_unencodable()
        print_pieces(pieces, Console(highlight=False))
        return
    for piece in pieces:
        lines = (line.plain for line in _fitted(piece, _UNLIMITED)) if isinstance(piece, Sheet) else [str(piece)]
        write("".join(f"{line.rstrip()}\n" for text in lines for line in text.splitlines() or [""]))


def print_pieces(pieces: Iterable[Sheet | Text | str], console: Console) -> None:
    """Print tables and texts to a console."""
    for piece in pieces:
        if isinstance(piece, Sheet):
            lines = _fitted(piece, console.width)
        else:
            lines = _lines_of(Text(piece) if isinstance(piece, str) else piece.copy(), console)
        for line in lines:
            console.print(line, soft_wrap=True)


def _lines_of(text: Text, console: Console) -> Iterator[Text]:
    """Yield the lines of a text. Commands and changes of scores (`0.500 → 1.000`) are not broken."""
    line = Text(style=text.style)
    for index, part in enumerate(text.split("`") if _COMMAND.search(text.plain) else [text]):
        part.plain = part.plain.replace(" → ", f"{_UNBROKEN}→{_UNBROKEN}")
        if index % 2:
            part.plain = part.plain.replace(" ", _UNBROKEN)
            part.stylize("bold")
        if index % 2 and cell_len(part.plain) > console.width:
            yield from _wrapped_lines(line, console)
            yield from _wrapped_lines(part, console, width=cell_len(part.plain))
            line = Text(style=text.style)
        else:
            line.append_text(part)
    if line.plain.strip() or not text.plain:
        yield from _wrapped_lines(line, console)


def _wrapped_lines(text: Text, console: Console, width: int | None = None) -> Iterator[Text]:
    for line in text.wrap(console, width or console.width):
        line.plain = line.plain.replace(_UNBROKEN, " ")
        yield line


def _fitted(sheet: Sheet, width: int) -> Iterator[Text]:
    head = [Cell(name, "bold") for name in sheet.columns]
    rows = [[Cell(visible(cell.text), cell.style) for cell in row] for row in (head, *sheet.rows)]
    widths = _column_widths(sheet, [[cell.text for cell in column] for column in zip(*rows, strict=True)], width)
    for number, row in enumerate(rows):
        cells = [wrapped(row[index].text, widths[index]) for index in widths]
        for texts in zip_longest(*cells, fillvalue=""):
            line = Text()
            for index, text in zip(widths, texts, strict=True):
                blanks = " " * (widths[index] - cell_len(text))
                ends_right = sheet.columns[index] in sheet.numbers
                line.append("  " * (index != min(widths)) + blanks * ends_right)
                line.append(text, row[index].style).append(blanks * (not ends_right))
            line.rstrip()
            yield line
        filled = [at for at, cell in enumerate(row) if number and at not in widths and cell.text not in ("", "–")]
        shown = [f"{visible(sheet.columns[at])} {row[at].text}" for at in filled]
        yield from (Text(f"    {line}") for line in wrapped(" · ".join(shown), width - 4) if shown)


def _column_widths(sheet: Sheet, columns: Sequence[Sequence[str]], width: int) -> dict[int, int]:
    """Return the width of each column that fits on a line, by its index. The other columns go below each row."""
    widest = [max(map(cell_len, column)) for column in columns]
    least = [
        widest[index] if name in sheet.numbers else _least_width(columns[index], width, name in sheet.whole)
        for index, name in enumerate(sheet.columns)
    ]
    beside = list(range(len(sheet.columns)))
    order = [*map(list(sheet.columns).index, sheet.below), *range(len(sheet.columns) - 1, 0, -1)]
    for index in dict.fromkeys(order):
        if sum(least[at] for at in beside) + 2 * (len(beside) - 1) > width:
            beside.remove(index)
    widths = {index: min(widest[index], width) for index in beside}
    while sum(widths.values()) > max(width - 2 * (len(beside) - 1), sum(least[at] for at in beside)):
        widths[max((at for at in beside if widths[at] > least[at]), key=widths.__getitem__)] -= 1
    return widths


def _least_width(column: Sequence[str], width: int, whole: bool) -> int:
    parts = column if whole else [word for text in column for word in text.split()]
    unbroken = max((cell_len(part) for word in parts for part in _INSIDE_A_WORD.split(word)), default=0)
    longest = max(map(cell_len, parts), default=0)
    if whole:
        return max(unbroken, min(longest, width * 3 // 8))
    return max(unbroken, min(longest, width // 4), min(max(map(cell_len, column)), _NARROW))


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text, broken between words. A longer word is broken after punctuation, or else anywhere."""
    lines, line = [], ""
    for word in _WORDS.findall(text):
        if line and cell_len(line + word) > width:
            lines.append(line)
            line, word = "", word.lstrip()
        while cell_len(word) > width:
            fits = [at.start() for at in _INSIDE_A_WORD.finditer(word) if cell_len(word[: at.start()]) <= width]
            end = fits[-1] if fits else len(chop_cells(word, width)[0])
            lines.append(word[:end])
            word = word[end:]
        line += word
    return [*lines, line]


def write(page: str) -> None:
    """Write a text to stdout. Escape the characters that the encoding of stdout lacks."""
    _replace_unencodable()
    sys.stdout.write(page)


def _replace_unencodable() -> None:
    reconfigure = getattr(sys.stdout, "reconfigure", None)  # a test's stream may lack it
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")

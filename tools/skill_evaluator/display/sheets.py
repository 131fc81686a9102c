"""Tables: fitted and coloured on a terminal, one line per row through a pipe, or as Markdown.

A terminal never cuts words or numbers: columns of words are wrapped, and columns that do not fit go below their row.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len, chop_cells

from skill_evaluator.display.safe_text import code_span, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Format = Literal["text", "json", "markdown"]

_UNLIMITED = 1_000_000  # cells: the width of a line through a pipe
_NARROW = 20  # cells: a narrower column of words goes below its row
_COMMAND = re.compile(r"`(?:git pull && )?(?:skill-evaluator|evaluate|compare|judge|policy|profile)\b[^`]*`")
_WORDS = re.compile(r"\s*\S+(?: → \S+)*")  # a change of scores is not broken
_UNBROKEN = "\ue000"  # replaces a blank at which rich must not break
_INSIDE_A_WORD = re.compile(r"(?<=[./_,:;=\]-])(?=[^\W\d])")  # long paths and ids may be broken here, numbers may not


def linked(text: str, address: str) -> str:
    """Format Markdown as a link to an address. Return it unchanged if the address is ""."""
    return f"[{text}]({address})" if address else text


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

    Columns in `numbers` are aligned right, columns in `whole` are broken only if very long, and the titles of columns
    in `named` are external text. If a terminal is too narrow, the columns in `below` go below their row in that order,
    then the other columns from the last.
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
    """Return the cells of a row: names, which are external text, and values; None becomes a dash."""
    shown = (value if isinstance(value, Cell) else Cell("–" if value is None else str(value)) for value in values)
    return [*(Cell(name, code=True) for name in names), *shown]


def markdown_table(sheet: Sheet, absolute: Callable[[str], str] = str) -> str:
    """Render a table as GitHub's Markdown; `absolute` returns the address that a link of a cell leads to."""
    titles = (code_span(name) if name in sheet.named else name for name in sheet.columns)
    lines = [" | ".join(titles), "|".join("---:" if name in sheet.numbers else "---" for name in sheet.columns)]
    for row in sheet.rows:
        cells = (linked(code_span(cell.text) if cell.code else cell.text, absolute(cell.link)) for cell in row)
        lines.append(" | ".join(cells))
    return "".join(f"| {line} |\n" for line in lines)


def show(pieces: "Iterable[Sheet | Text | str]") -> None:
    """Print tables and texts to stdout: wrapped and coloured on a terminal, otherwise plain with one line per row."""
    if sys.stdout.isatty():
        from rich.console import Console

        _replace_unencodable()
        print_pieces(pieces, Console(highlight=False))
        return
    for piece in pieces:
        lines = (line.plain for line in _fitted(piece, _UNLIMITED)) if isinstance(piece, Sheet) else [str(piece)]
        write("".join(f"{line.rstrip()}\n" for text in lines for line in text.splitlines() or [""]))


def print_pieces(pieces: "Iterable[Sheet | Text | str]", console: "Console") -> None:
    """Print tables and texts to a console."""
    from rich.text import Text

    for piece in pieces:
        if isinstance(piece, Sheet):
            lines = _fitted(piece, console.width)
        else:
            lines = _lines_of(Text(piece) if isinstance(piece, str) else piece.copy(), console)
        for line in lines:
            console.print(line, soft_wrap=True)


def _lines_of(text: "Text", console: "Console") -> "Iterator[Text]":
    """Yield the lines of a text; changes of scores, and commands, which people copy, are not broken."""
    from rich.text import Text

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


def _wrapped_lines(text: "Text", console: "Console", width: int | None = None) -> "Iterator[Text]":
    for line in text.wrap(console, width or console.width):
        line.plain = line.plain.replace(_UNBROKEN, " ")
        yield line


def _fitted(sheet: Sheet, width: int) -> "Iterator[Text]":
    from rich.text import Text

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
    """Return the width of each column that fits beside the others, by index. Other columns go below their row."""
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
    """Write a text to stdout. Escape characters that its encoding lacks."""
    _replace_unencodable()
    sys.stdout.write(page)


def _replace_unencodable() -> None:
    reconfigure = getattr(sys.stdout, "reconfigure", None)  # a test's stream may lack it
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")

"""Tables, shown fitted and coloured on a terminal, plainly through a pipe (a line for each row), or as Markdown."""

import io
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from skill_evaluator.display.safe_text import code_span, visible

Format = Literal["text", "json", "markdown"]
_NO_WRAP = 1_000_000  # columns


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; `code` is text from outside, which a page must not take for its own mark-up."""

    text: str
    style: str = ""
    code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table; columns in `numbers` are aligned right, those in `whole` are broken only if very long."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()


def markdown_table(sheet: Sheet) -> str:
    """Write a table as GitHub's Markdown."""
    lines = [" | ".join(sheet.columns), "|".join("---:" if name in sheet.numbers else "---" for name in sheet.columns)]
    lines += [" | ".join(code_span(cell.text) if cell.code else cell.text for cell in row) for row in sheet.rows]
    return "".join(f"| {line} |\n" for line in lines)


def print_result(
    form: Format,
    *,
    json: Callable[[], Any],
    markdown: Callable[[], str],
    text: Callable[[], Iterable[Sheet | Text]],
) -> None:
    """Print a result to stdout in the form that was asked for; the other two are not made."""
    if form == "json":
        write(dumps(json(), indent=2) + "\n")
    elif form == "markdown":
        write(markdown())
    else:
        show(text())


def show(pieces: Iterable[Sheet | Text]) -> None:
    """Print to stdout: wrapped and coloured on a terminal, else plain with every row on a line of its own."""
    if sys.stdout.isatty():
        _accept_everything()
        print_pieces(pieces, Console(highlight=False))
        return
    page = io.StringIO()
    print_pieces(pieces, Console(file=page, width=_NO_WRAP, highlight=False, color_system=None))
    write("".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines()))


def print_pieces(pieces: Iterable[Sheet | Text], console: Console) -> None:
    """Print tables and texts to a console."""
    for piece in pieces:
        if isinstance(piece, Sheet):
            table = Table(box=None, pad_edge=False, header_style="bold")
            for place, name in enumerate(piece.columns):
                longest = max(len(text) for text in (name, *(row[place].text for row in piece.rows)))
                table.add_column(
                    Text(visible(name)),
                    justify="right" if name in piece.numbers else "left",
                    overflow="fold",
                    width=min(longest, console.width * 3 // 8) if name in piece.whole else None,
                )
            for row in piece.rows:
                table.add_row(*(Text(visible(cell.text), style=cell.style) for cell in row))
            console.print(table)
        else:  # a text that must not be broken, such as a path, is left to the terminal
            console.print(piece, soft_wrap=bool(piece.no_wrap))


def write(page: str) -> None:
    """Write a page to stdout."""
    _accept_everything()
    sys.stdout.write(page)


def _accept_everything() -> None:
    """Print the escape of a character that stdout's encoding lacks."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)  # a test's stream may lack it
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")

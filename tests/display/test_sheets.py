"""A table through a pipe is laid out as rich lays it out on a terminal that is wide enough, a row on a line."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text
from skill_evaluator.display.sheets import Cell, Sheet, print_pieces, show

TEXTS = st.text(st.sampled_from("ab Zé漢🎓\n\x1b<&[b]"), max_size=8)


@given(rows=st.lists(st.lists(TEXTS, min_size=3, max_size=3), max_size=4), title=TEXTS)
def test_a_table_through_a_pipe_is_that_of_a_wide_terminal(rows: list[list[str]], title: str) -> None:
    cells = [[Cell(text, style="cyan") for text in row] for row in rows]
    pieces = [
        Text(f"> {title.strip()}"),
        Sheet(columns=("one", "two", "wide 漢"), rows=cells, numbers=frozenset({"two"})),
    ]
    terminal, pipe = io.StringIO(), io.StringIO()
    print_pieces(pieces, Console(file=terminal, width=1_000, highlight=False, color_system=None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", pipe)
        show(pieces)
    assert pipe.getvalue() == "".join(f"{line.rstrip()}\n" for line in terminal.getvalue().splitlines())

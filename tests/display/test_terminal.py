"""What people see most, as terminals of 80, 100 and 120 columns and a pipe show it; no table cuts a word at any width.

After a change that is meant, write the expected screens anew with `python -m tests.display.test_terminal`.
"""

import io
import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from skill_evaluator.display.sheets import Cell, Sheet, print_pieces

from tests.support.git import GitRepository
from tests.support.library import ROOT, Library

SCREENS = Path(__file__).parents[1] / "data" / "terminal"
WIDTHS = (80, 100, 120)
RUN = "20260102T090000Z-000002-example-large"
MODEL = ("--model", "example-large")
COMMANDS = (
    ("compare", "receipts", *MODEL, "--candidate", "1.1.0"),
    ("history", "receipts"),
    ("lint",),
    ("plan",),
    ("evaluate", "receipts", *MODEL, "--no-leaderboard", "-n", "2"),
    ("leaderboard", "receipts"),
    ("explain", RUN, "--case", "booking"),
    ("explain", RUN, "--field", "date"),
    ("accept", "receipts", "--list"),
    ("evaluate", "receipts", "--dry-run"),
    ("compare", "receipts", "--models", "example-large", "example-small"),
    ("cases", "audit", "receipts"),
    ("mutate", "receipts", "--model", "example-small", "--dry-run"),
    ("review", "add", "pairs.jsonl"),
    ("review", "status"),
    ("site", "build", "--out", "pages"),
    ("doctor",),
)
TOPS = (  # of these the first lines
    ("audit", "report", "--cube", str(ROOT / "tests/data/creditaudit_table2.csv"), "--questions", "100"),
    ("judge", "calibrate", *(f"--{name}={ROOT}/tests/data/judging/{name}.jsonl" for name in ("items", "verdicts"))),
)
_COLOUR = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3|4|9|10)\d(?:;[\d;]*)?m")
_STYLE = re.compile(r"\x1b\[[\d;]*m")
_MEASURED = re.compile(r"latency|p95 [\d.]+ s|median s|today|days? ago|95 % s|not looked at")
_RUNS = re.compile(r"^the runs .*?(?=\n\n)", re.MULTILINE | re.DOTALL)  # a column is as wide as what was measured
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")


def screen(demo: Library, width: int | None) -> str:
    """Return what the commands print on a terminal so wide, or into a pipe, without what differs every time."""
    shown = []
    for written in ("pages", ".evaluator/reviews"):  # by an earlier call
        shutil.rmtree(demo.root / written, ignore_errors=True)
    for command in (*COMMANDS, *TOPS):
        lines = _STYLE.sub("", demo.call(*command, columns=width).out).splitlines()
        if command in TOPS:
            lines = lines[:9]
        lines = [_RUN_ID.sub("20260101T000000Z-abcdef", line) for line in lines if not _MEASURED.search(line)]
        text = _RUNS.sub(lambda table: re.sub(" {2,}", "  ", table[0]), "\n".join(lines))
        shown += [f"$ skill-evaluator {' '.join(command[:2])}", text, ""]
    return "\n".join(shown)


def demonstration(folder: Path) -> Library:
    """Lay out the demonstration in a folder, as a repository with one commit."""
    library = Library(folder)
    library.call("demo", "demo")
    library.root /= "demo"
    pairs = ({"id": f"letter-{at}", "output_1": f"Dear customer {at}", "output_2": "Hi!"} for at in range(3))
    library.write("pairs.jsonl", "".join(json.dumps(pair) + "\n" for pair in pairs))
    repository = GitRepository(library.root)
    repository.commit()
    return library


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return demonstration(tmp_path_factory.mktemp("terminal"))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_tables_people_see_most_fit_the_terminal(width: int, demo: Library) -> None:
    shown = screen(demo, width)
    assert shown == (SCREENS / f"{width}.txt").read_text()
    assert all(cell_len(line) <= width for line in shown.splitlines() if "evals/results/" not in line)


def test_through_a_pipe_every_row_is_one_line_and_nothing_is_styled(demo: Library) -> None:
    shown = screen(demo, None)
    assert shown == (SCREENS / "pipe.txt").read_text()
    assert "\x1b" not in demo.call("history", "receipts").out


def test_without_colour_a_terminal_shows_the_same_words(demo: Library) -> None:
    coloured, plain = (demo.call("history", "receipts", columns=80, env=env).out for env in ({}, {"NO_COLOR": "1"}))
    assert _COLOUR.search(coloured)
    assert not _COLOUR.search(plain)
    assert _STYLE.sub("", plain) == _STYLE.sub("", coloured)


WORDS = st.lists(st.text("abc漢019", min_size=1, max_size=12), max_size=6).map(" ".join)


@given(
    rows=st.lists(st.lists(WORDS, min_size=5, max_size=5), min_size=1, max_size=3),
    names=st.lists(st.text("xyz", min_size=1, max_size=8), min_size=5, max_size=5, unique=True),
    width=st.integers(24, 100),
)
def test_no_word_is_cut_and_no_line_too_long_at_any_width(rows: list[list[str]], names: list[str], width: int) -> None:
    """Words of a column of numbers stay in a line, so they may be longer than it; here they never are."""
    out = io.StringIO()
    sheet = Sheet(
        columns=names, rows=[[Cell(text) for text in row] for row in rows], whole=frozenset(names[:1]), below=names[3:4]
    )
    print_pieces([sheet], Console(file=out, width=width, color_system=None))
    lines = out.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= width
    shown = [word for line in lines for word in line.split()]
    assert not {word for row in rows for text in row for word in text.split()} - set(shown)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        laid_out = demonstration(Path(folder))
        for columns in WIDTHS:
            (SCREENS / f"{columns}.txt").write_text(screen(laid_out, columns))
        (SCREENS / "pipe.txt").write_text(screen(laid_out, None))

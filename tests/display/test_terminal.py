"""The screens of the main commands at 80 columns; nothing is cut at 80, 100 or 120, and a pipe breaks no row.

After an intended change, write the expected screens again with `python -m tests.display.test_terminal`.
"""

import io
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from skill_evaluator.display import pages
from skill_evaluator.display.pages import Cell, Sheet, print_pieces, show

from tests.support.git import GitRepository
from tests.support.library import ROOT, Library

SCREEN = Path(__file__).parents[1] / "data" / "terminal" / "80.txt"
WIDTHS = (80, 100, 120)
RUN = "20260102T090000Z-000002-receipts-example-large"
MODEL = ("--model", "example-large")
COMMANDS = (
    ("compare", "receipts", *MODEL, "--candidate", "1.1.0"),
    ("history", "receipts"),
    ("lint",),
    ("ci", "plan"),
    ("evaluate", "receipts", *MODEL, "--no-leaderboard", "-n", "2"),
    ("leaderboard", "receipts"),
    ("explain", RUN, "--case", "booking"),
    ("explain", RUN, "--field", "date"),
    ("accept", "receipts", "--list"),
    ("evaluate", "receipts", "--dry-run"),
    ("compare", "receipts", "--models", "example-large", "example-small"),
    ("mutate", "receipts", "--model", "example-small", "--dry-run"),
    ("review", "add", "pairs.jsonl"),
    ("site", "build", "--out", "pages"),
    ("doctor",),
)
TOPS = (  # of these the first lines
    ("audit", "report", "--cube", str(ROOT / "tests/data/creditaudit_table2.csv"), "--questions", "100"),
    (
        *("judge", "calibrate", f"--labels={ROOT}/tests/data/judging/items.jsonl"),
        f"--verdicts={ROOT}/tests/data/judging/verdicts.jsonl",
    ),
)
_COLOUR = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3|4|9|10)\d(?:;[\d;]*)?m")
_STYLE = re.compile(r"\x1b\[[\d;]*m")
_MEASURED = re.compile(r"latency|p95 [\d.]+ s|median s|today|days? ago|95 % s")
_RUNS = re.compile(r"^the runs .*?(?=\n\n)", re.MULTILINE | re.DOTALL)  # a column is as wide as what was measured
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?![\w.])")

Piece = Sheet | Text | str
Pieces = Mapping[tuple[str, ...], list[Piece]]  # by command


def screen(demo: Library) -> tuple[str, Pieces]:
    """Return the output of the commands on a terminal, without changing values, and its pieces by command."""
    shown, printed = [], {}
    (programs := demo.root.parent / "programs").mkdir()
    (programs / "git").symlink_to(shutil.which("git") or os.devnull)  # and no other program, such as gh
    for command in (*COMMANDS, *TOPS):
        pieces = printed[command] = list[Piece]()

        def keep(new: Iterable[Piece], console: Console, pieces: list[Piece] = pieces) -> None:
            pieces += (new := list(new))
            print_pieces(new, console)

        with patch.object(pages, "print_pieces", keep):
            out = demo.call(*command, columns=WIDTHS[0], env={"PATH": str(programs)}).out
        lines = _STYLE.sub("", out).splitlines()[: 17 if command in TOPS else None]
        lines = [_RUN_ID.sub("20260101T000000Z-abcdef", line) for line in lines if not _MEASURED.search(line)]
        text = _RUNS.sub(lambda table: re.sub(" {2,}", "  ", table[0]), "\n".join(lines))
        shown += [f"$ skill-evaluator {' '.join(command[:2])}", text, ""]
    return "\n".join(shown), printed


def demonstration(folder: Path) -> Library:
    """Create the library of `demo` in a folder, as a repository with one commit."""
    library = Library(folder)
    library.call("demo", "demo")
    library.root /= "demo"
    pairs = ({"id": f"letter-{at}", "output_1": f"Dear customer {at}", "output_2": "Hi!"} for at in range(3))
    library.write("pairs.jsonl", "".join(json.dumps(pair) + "\n" for pair in pairs))
    GitRepository(library.root).commit()
    return library


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return demonstration(tmp_path_factory.mktemp("terminal"))


@pytest.fixture(scope="module")
def shown(demo: Library) -> tuple[str, Pieces]:
    return screen(demo)


def test_screens_equal_the_expected_file_and_a_pipe_has_no_colour(shown: tuple[str, Pieces], demo: Library) -> None:
    assert shown[0] == SCREEN.read_text()
    piped = demo.call("history", "receipts").out
    with patch("sys.stdout", io.StringIO()) as pipe:
        show(shown[1]["history", "receipts"])
    assert piped == pipe.getvalue()
    assert "\x1b" not in piped


FIVE = (  # by the first words of a command: which version is worse, where, how sure that is, which model, what to do
    (
        "compare",
        "receipts 1.0.0 → 1.1.0",
        "field date 1.000 → 0.275",
        "95 % confidence interval -0.235 to -0.077, adjusted p-value 0.001",
        "example-large",
        "look at field",
    ),
    (
        "evaluate",
        "receipts 1.2.0: improved against 1.1.0",
        "field date 0.275 → 1.000",
        "95 % confidence interval +0.081 to +0.257",
        "example-large",
        "accept it as the baseline of later versions: skill-evaluator accept receipts 1.2.0",
    ),
    (
        "history",
        "1.1.0 regressed against 1.0.0",
        "date",
        "(-0.235 to -0.077, q 0.001)",
        "example-small",
        "accept receipts 1.2.0",
    ),
    (
        "leaderboard",
        "improved against 1.1.0",
        "field_level_f1",
        "95 % confidence interval -0.203 to -0.035, adjusted p-value 0.011",
        "to ship: 1.2.0 with example-large",
        "skill-evaluator compare receipts --models",
    ),
    (
        "explain",
        "receipts 1.1.0: an earlier version; the newest is 1.2.0",
        "wrong date",
        "how sure: field_level_f1 +0.188 with example-large on 10 cases",
        "to ship: 1.2.0 with example-large (improved against 1.1.0",
        "compare 1.2.0 with the version before",
    ),
)


@pytest.mark.parametrize("answers", FIVE, ids=lambda answers: answers[0])
def test_last_24_lines_answer_the_five_questions_of_a_reader(
    answers: tuple[str, ...], shown: tuple[str, Pieces]
) -> None:
    command, *others, following = answers
    _, _, after = shown[0].partition(f"$ skill-evaluator {command} ")
    lines = after.partition("\n$ ")[0].splitlines()[1:]
    screen = " ".join(" ".join(lines[-24:]).split())
    assert [words for words in (*others, "next: ", following) if words not in screen] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_number_is_cut_and_no_line_exceeds_the_terminal(width: int, shown: tuple[str, Pieces]) -> None:
    numbers = 0
    for command, pieces in shown[1].items():
        out = io.StringIO()
        print_pieces(pieces, Console(file=out, width=width, color_system=None))
        lines = out.getvalue().splitlines()
        wide = [line for line in lines if cell_len(line) > width and not line.startswith("skill-evaluator ")]
        assert [line for line in wide if "evals/results/" not in line] == [], command
        cells = [cell.text for piece in pieces if isinstance(piece, Sheet) for row in piece.rows for cell in row]
        assert not [line for line in lines if line.rstrip().endswith("→") or line.lstrip().startswith("→ ")], command
        wanted = Counter(number for text in cells for number in _NUMBER.findall(text))
        assert wanted - Counter(number for line in lines for number in _NUMBER.findall(line)) == {}, command
        numbers += wanted.total()
    assert numbers > 600


def test_terminal_shows_the_same_words_without_colour(demo: Library) -> None:
    coloured, plain = (demo.call("history", "receipts", columns=80, env=env).out for env in ({}, {"NO_COLOR": "1"}))
    assert _COLOUR.search(coloured)
    assert not _COLOUR.search(plain)
    assert _STYLE.sub("", plain) == _STYLE.sub("", coloured)


TEXTS = st.text(st.sampled_from("ab Zé漢🎓\n\x1b<&[b]"), max_size=8)


@given(rows=st.lists(st.lists(TEXTS, min_size=3, max_size=3), max_size=4), title=TEXTS)
def test_table_in_a_pipe_equals_table_on_a_wide_terminal(rows: list[list[str]], title: str) -> None:
    cells = [[Cell(text, style="cyan") for text in row] for row in rows]
    pieces = [
        Text(f"> {title.strip()}"),
        Sheet(columns=("one", "two", "wide 漢"), rows=cells, numbers=frozenset({"two"})),
    ]
    terminal, pipe = io.StringIO(), io.StringIO()
    print_pieces(pieces, Console(file=terminal, width=1_000, highlight=False, color_system=None))
    with patch("sys.stdout", pipe):
        show(pieces)
    assert pipe.getvalue() == "".join(f"{line.rstrip()}\n" for line in terminal.getvalue().splitlines())


WORDS = st.lists(st.text("abc漢019", min_size=1, max_size=12), max_size=6).map(" ".join)


@given(
    rows=st.lists(st.lists(WORDS, min_size=5, max_size=5), min_size=1, max_size=3),
    names=st.lists(st.text("xyz", min_size=1, max_size=8), min_size=5, max_size=5, unique=True),
    width=st.integers(24, 100),
)
def test_table_cuts_no_word_and_fits_any_width(rows: list[list[str]], names: list[str], width: int) -> None:
    """Columns of numbers are never wrapped, so this table has none."""
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
    with tempfile.TemporaryDirectory() as temporary:
        SCREEN.write_text(screen(demonstration(Path(temporary)))[0])

"""Draw the pictures of the README from real runs: `python docs/picture.py`; name one to draw it alone.

Each command runs in a terminal and a folder of its own, so that it leaves nothing in the repository. The run of the
local model is made anew: it takes minutes and needs the extra `local`.
"""

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent
WIDTH = 112
_MOMENT = re.compile(r"\b\d{8}T\d{6}Z-[0-9a-f]{6}\b")
_LATENCY = re.compile(r"^latency,.*\n", re.MULTILINE)  # of a demonstration it tells nothing, and differs every time
_SAME_MOMENT = "20260301T080000Z-abcdef"


def demonstration(folder: Path) -> Path:
    """Lay out the demonstration, whose runs are recorded."""
    command = [sys.executable, "-m", "skill_evaluator", "demo", "demo"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603
    return folder / "demo"


def copied_library(folder: Path) -> Path:
    """Copy the prompt library of this repository, so that a run is recorded in the copy."""
    for name in (".evaluator", "components", "fixtures", "tools"):
        shutil.copytree(DOCS.parent / name, folder / name, ignore=shutil.ignore_patterns("results", "__pycache__"))
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One picture: the command that is shown, and what lays out the folder it runs in."""

    command: str
    lay_out: Callable[[Path], Path]


PICTURES: Mapping[str, Picture] = {
    "verdict.svg": Picture(
        command="skill-evaluator compare receipts --candidate 1.1.0 --model example-large", lay_out=demonstration
    ),
    "run.svg": Picture(
        command="python tools/evaluate_skill.py receipt-extraction --model smollm2-135m-instruct --replicates 2",
        lay_out=copied_library,
    ),
}


def drawn(picture: Picture) -> str:
    """Run the command in a terminal and return what it shows on stdout as SVG; every run has the same moment."""
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nowhere:
        shown = terminal_output(picture.command.split(), picture.lay_out(Path(folder)))
        shown = _LATENCY.sub("", _MOMENT.sub(_SAME_MOMENT, shown))
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True, highlight=False)
        console.print(Text.from_ansi(shown.strip("\n")))
        return console.export_svg(title=picture.command)


def terminal_output(command: list[str], folder: Path) -> str:
    """Run a command in a terminal of its own and return what it prints to stdout, colours included."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ.update(COLUMNS=str(WIDTH), TERM="xterm-256color")
        os.environ.pop("NO_COLOR", None)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # progress is no result
        os.execvp(command[0], command)  # noqa: S606
    printed = b""
    while chunk := read_or_end(terminal):
        printed += chunk
    os.waitpid(child, 0)
    return printed.decode().replace("\r\n", "\n")


def read_or_end(terminal: int) -> bytes:
    """Read from a terminal; its end is an error on Linux."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


if __name__ == "__main__":
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for name in sys.argv[1:] or PICTURES:
        (DOCS / name).write_text(drawn(PICTURES[name]), "utf-8")

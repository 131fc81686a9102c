"""Draw what a command shows on a terminal: `python docs/picture.py docs/run.svg skill-evaluator compare receipts`."""

import os
import pty
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 112


def terminal_output(command: list[str]) -> str:
    """Run a command in a terminal of its own and return what it prints, colours included."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(COLUMNS=str(WIDTH), TERM="xterm-256color")
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


def main(picture: Path, command: list[str]) -> None:
    """Run the command and save its output as an SVG."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True, highlight=False)
        console.print(Text.from_ansi(terminal_output(command).rstrip("\n")))
    console.save_svg(str(picture), title=" ".join(command))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

"""The command line on a pseudo-terminal of a given width, as somebody who presses Ctrl-C sees it in the end."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pyte

LINES = 120


def typed_on_terminal(folder: Path, columns: int, *arguments: str, interrupted_when: Callable[[], bool]) -> list[str]:
    """Run `skill-evaluator ...`, press Ctrl-C once that is so, and return the lines of the screen at the end."""
    terminal, command = pty.openpty()
    fcntl.ioctl(command, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
    screen = pyte.Screen(columns, LINES)
    stream = pyte.ByteStream(screen)
    unset = ("COLUMNS", "LINES", "FORCE_COLOR")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    with subprocess.Popen(
        # a terminal sends Ctrl-C to the session that it controls
        ["setsid", "--ctty", sys.executable, "-m", "skill_evaluator", *arguments],
        cwd=folder,
        env={**environment, "TERM": "xterm", "NO_PROXY": "127.0.0.1", "OPENAI_API_KEY": "key"},
        stdin=command,
        stdout=command,
        stderr=command,
    ):
        os.close(command)
        pressed = False
        while True:
            if select.select([terminal], [], [], 0.02)[0]:
                try:
                    stream.feed(os.read(terminal, 65_536))
                except OSError:  # how Linux says that the other side is closed
                    break
            if not pressed and interrupted_when():
                os.write(terminal, b"\x03")
                pressed = True
    os.close(terminal)
    return [line.rstrip() for line in screen.display if line.strip()]

"""Draw the pictures of the README from real runs: `python docs/picture.py`; name one to draw it alone.

Each command runs in a terminal and a folder of its own, so that it leaves nothing in the repository. The run of the
local model is made anew: it takes minutes and needs the extra `local`. The picture of the site needs Chromium.
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
VIEWPORT = {"width": 1280, "height": 900}
MARGIN = 12
_LATENCY = re.compile(r"^latency,.*\n", re.MULTILINE)  # of a demonstration it tells nothing, and differs every time


def demonstration(folder: Path) -> Path:
    """Lay out the demonstration, whose runs are recorded."""
    command = [sys.executable, "-m", "skill_evaluator", "demo", "demo"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603
    return folder / "demo"


def copied_library(folder: Path) -> Path:
    """Copy the prompt library of this repository, so that a run is recorded in the copy."""
    for name in (".evaluator", "components", "fixtures", "tools"):
        shutil.copytree(DOCS.parent / name, folder / name, ignore=shutil.ignore_patterns("results", "__pycache__"))
    settings = folder / ".evaluator" / "settings.yaml"  # a picture can wait for a busy machine
    settings.write_text(re.sub(r"(?m)^timeout_s: .*$", "timeout_s: 3600", settings.read_text("utf-8")), "utf-8")
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One picture: what lays out a folder, the command that runs in it, and what is shown of it.

    That is what the command prints, or the top of a page of the site that it builds, down to the end of an element.
    """

    command: str
    lay_out: Callable[[Path], Path]
    page: str = ""
    end: str = ""


PICTURES: Mapping[str, Picture] = {
    "verdict.svg": Picture(
        command="skill-evaluator compare receipts --candidate 1.1.0 --model example-large", lay_out=demonstration
    ),
    "run.svg": Picture(
        command="python tools/evaluate_skill.py receipt-extraction --model smollm2-135m-instruct --replicates 2",
        lay_out=copied_library,
    ),
    "site.png": Picture(
        command="skill-evaluator site build --out site",
        lay_out=demonstration,
        page="components/receipts.html",
        end="table",
    ),
}


def drawn(picture: Picture) -> bytes:
    """Run the command in a terminal and return the picture of what it leaves."""
    with tempfile.TemporaryDirectory() as folder:
        place = picture.lay_out(Path(folder))
        printed = terminal_output(picture.command.split(), place)
        if picture.page:
            return photographed(f"{(place / 'site').as_uri()}/{picture.page}", picture.end)
        return typeset(picture.command, printed)


def typeset(command: str, printed: str) -> bytes:
    """Return what a command printed as SVG, without the line on latency."""
    shown = _LATENCY.sub("", printed)
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True, highlight=False)
        console.print(Text.from_ansi(shown.strip("\n")))
        return console.export_svg(title=command).encode()


def photographed(address: str, end: str) -> bytes:
    """Return a page as PNG from its top to the end of the first element of a kind."""
    from playwright.sync_api import sync_playwright  # only the picture of the site needs a browser

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=VIEWPORT, color_scheme="light", reduced_motion="reduce")
        page.goto(address)
        element = page.locator(end).first
        element.scroll_into_view_if_needed()
        element.locator("svg").first.wait_for()
        page.evaluate("scrollTo(0, 0)")
        bottom = element.evaluate("element => element.getBoundingClientRect().bottom")
        clip = {"x": 0, "y": 0, "width": VIEWPORT["width"], "height": bottom + MARGIN}
        photograph = page.screenshot(full_page=True, clip=clip)
        browser.close()
    return photograph


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
        (DOCS / name).write_bytes(drawn(PICTURES[name]))

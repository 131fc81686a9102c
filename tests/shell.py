"""Commands as a page shows them, typed one after the other in a copy of what a clone has."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.library import call

ROOT = Path(__file__).parents[1]
FINE = (0, 3, 4)  # done, regressed, incomplete or inconclusive: what a command says, not that it failed

_LATENCY = re.compile(r"^(\S+: )?latency \S+ s → .*\n", re.MULTILINE)  # a busy machine adds this line
_VARIES = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}|\b[0-9a-f]{40}\b|\d+\.\d+ s\b")  # run ids, commits, latencies
_NEEDS_NO_SHELL = re.compile(r"skill-evaluator [^|;&<>$~*]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A command line, what the page shows below it, and what it printed."""

    command: str
    shown: tuple[str, ...]
    out: str
    err: str
    code: int


def blocks(page: Path, language: str = "bash") -> list[str]:
    """Return the code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def clone(folder: Path) -> Path:
    """Copy what a command reads, so that nothing is written into the repository."""
    for name in ("components", "fixtures", ".evaluator", "tools", "tests/data"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("results", "__pycache__"))
    return folder


def type_block(block: str, folder: Path) -> Iterator[Typed]:
    """Type the commands of a block; in one with prompts (`$ `) the other lines are what a command prints."""
    with_prompts = block.startswith("$ ")
    place = folder
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] if with_prompts else block.splitlines():
        command, *shown = part.splitlines() or [""]
        if command.startswith("cd "):
            place = (place / command.removeprefix("cd ")).resolve()
        elif command and not command.startswith(("source ", "#")):
            yield _type(command, tuple(shown), place, folder)


def is_excerpt(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed; `…` stands for what it leaves out, and what varies may differ."""
    shown, printed = (_VARIES.sub("*", _LATENCY.sub("", text).strip()) for text in (shown, printed))
    return re.fullmatch(re.escape(shown).replace("…", ".*?"), printed, flags=re.DOTALL) is not None


def _type(command: str, shown: tuple[str, ...], place: Path, folder: Path) -> Typed:
    """Run a command: in this process if it needs no shell, which saves a second of imports."""
    if _NEEDS_NO_SHELL.fullmatch(command):
        ended = call(place, *shlex.split(command)[1:], env=dict(os.environ))
        return Typed(command=command, shown=shown, out=ended.out, err=ended.err, code=ended.code)
    scripts = str(Path(sys.executable).parent)
    env = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(folder / "tools")}
    done = subprocess.run(
        ["bash", "-c", command], cwd=place, env=env, capture_output=True, text=True, timeout=400, check=False
    )
    return Typed(command=command, shown=shown, out=done.stdout, err=done.stderr, code=done.returncode)

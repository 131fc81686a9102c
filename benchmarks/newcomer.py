"""A newcomer's path once the installation is done: the demonstration's verdict, then an edit tried on the local model.

In a clone, as a newcomer has it. What pip and git fetch is not counted: that is the network's time.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.local_model import COMPONENT
from benchmarks.measure import ROOT, Figures, Measured, measure, spread

MODEL = "smollm2-135m-instruct-greedy"
CASES = ("clean-stationer-cash-sale", "compact-date-on-fuel-docket", "torn-off-below-subtotal")
EDIT = "\nCopy every amount exactly as it is printed.\n"
# A verdict is what is timed, whichever it is: exit code 3 says *worse*.
_VERDICT = "import subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; sys.exit(0 if code == 3 else code)"


def walk(folder: Path) -> tuple[Figures, Figures]:
    """Go the path in a new clone; return what the demonstration took, and the edit that was tried."""
    clone, evaluator = folder / "clone", [sys.executable, "-m", "skill_evaluator"]
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    demo = measure([*evaluator, "demo", str(folder / "demo")], folder)
    with (clone / "components" / COMPONENT / "prompt.md").open("a") as prompt:
        prompt.write(EDIT)
    cases = [f"--case={case}" for case in CASES]
    words = [*evaluator, "try", COMPONENT, f"--model={MODEL}", *cases]
    return demo, measure([sys.executable, "-c", _VERDICT, *words], clone)


def rows(quick: bool) -> Iterator[Measured]:
    walks = []
    for _ in range(1):
        with tempfile.TemporaryDirectory() as folder:
            walks.append(walk(Path(folder)))
    parts = [spread([part.wall_s for part in parts], ".1f") for parts in zip(*walks, strict=True)]
    yield Measured(
        name=f"a newcomer's first verdict and edit: `demo`, then `try` on {len(CASES)} cases with the local model",
        values=tuple(demo.wall_s + edit.wall_s for demo, edit in walks),
        most=180,
        unit="s",
        note=f"`demo` {parts[0]} s, `try` {parts[1]} s",
    )

"""The progress of a run on stderr, the question before calls that cost money, and the warning about a row left out."""

import asyncio
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Column

from skill_evaluator.display import clock, cost_words, short_count, visible
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.runner.session import Progress, Stop

_REDRAW_S = 0.25
_PLAIN_EVERY_S = 15.0
_BAR_CELLS = 12
_ECHO_CELLS = 5  # a terminal writes `^C^C` at the end of a line


async def watch(parts: Sequence[Progress], stop: Stop) -> None:
    """Show the progress of each model on stderr until this task is cancelled, then its last state."""
    announcing = asyncio.create_task(_announce(stop))
    try:
        await (_redraw(parts) if sys.stderr.isatty() else _print_regularly(parts))
    finally:
        announcing.cancel()


async def _announce(stop: Stop) -> None:
    await stop.wait()
    print("stopping: waiting for the calls in flight (paid for already); once more to abandon them", file=sys.stderr)


async def _redraw(parts: Sequence[Progress]) -> None:
    name = TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold"))
    text = TextColumn("{task.fields[words]}", markup=False, table_column=Column(overflow="fold"))
    console = Console(stderr=True)
    console.width -= _ECHO_CELLS
    with Bars(name, BarColumn(_BAR_CELLS), text, console=console, auto_refresh=False) as bars:
        tasks = [bars.add_task(part.model_id, total=part.planned, words="") for part in parts]

        def refresh() -> None:
            for task, part in zip(tasks, parts, strict=True):
                bars.update(task, completed=part.done, words=describe(part))
            bars.refresh()

        try:
            while True:
                refresh()
                await asyncio.sleep(_REDRAW_S)
        finally:
            refresh()


async def _print_regularly(parts: Sequence[Progress]) -> None:
    shown: list[str] = []
    try:
        while True:
            await asyncio.sleep(_PLAIN_EVERY_S)
            if any(any(part.waiting.values()) for part in parts) and _progress_lines(parts) == shown:
                continue  # the state of a batch may stay for a day
            shown = _progress_lines(parts)
            print("\n".join(shown), file=sys.stderr, flush=True)
    finally:
        print("\n".join(_progress_lines(parts)), file=sys.stderr, flush=True)


def _progress_lines(parts: Sequence[Progress]) -> list[str]:
    return [f"{part.model_id}: {describe(part)}" for part in parts]


def describe(part: Progress) -> str:
    """Format the progress of a model as `12/24 answered, 0 failed, 1 retried, 5.2k+1.1k tokens, $0.0123, 1:02 left`.

    A waiting batch shows its state at the vendor instead of the time left. An unknown time is omitted.
    """
    waiting = [state for state in part.waiting.values() if state]
    if not waiting and part.seconds_left is not None and part.done < part.planned:
        waiting = [f"{clock(part.seconds_left)} left"]
    return ", ".join(
        [
            f"{part.answered_before + part.answered}/{part.planned} answered",
            f"{part.failed} failed",
            f"{part.retried} retried",
            f"{short_count(part.input_tokens)}+{short_count(part.output_tokens)} tokens",
            "cost unknown" if part.cost_usd is None else cost_words(part.cost_usd),
            *waiting,
        ]
    )


def agreed(question: str, *, yes: bool) -> bool:
    """Return True if `yes`, or if the user answers y on a terminal. Otherwise return False."""
    if yes or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return yes
    print(f"{question} [y/N]: ", end="", flush=True)
    return input().strip().lower() in ("y", "yes")


def leave_out(problem: SkillEvaluatorError) -> None:
    """Print a warning that an invalid row is left out because of `problem`."""
    print(f"warning: {visible(str(problem))}; left out", file=sys.stderr)

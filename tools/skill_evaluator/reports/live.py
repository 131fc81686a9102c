"""The progress of a run on stderr: a live line a model on a terminal, elsewhere a plain line now and then."""

import asyncio
import sys
from collections.abc import Sequence

from skill_evaluator.display import clock
from skill_evaluator.runner.engine import Progress, Stop

_REDRAW_S = 0.25
_PLAIN_EVERY_S = 15.0
_BAR_CELLS = 12
_ECHO_CELLS = 5  # left free at the end of a line for `^C^C`, which a terminal writes there
_STOPPING = "stopping: waiting for the calls in flight (paid for already); once more to abandon them"


async def watch(parts: "Sequence[Progress]", stop: "Stop") -> None:
    """Show the progress of every model until cancelled, and its last state then."""

    async def announce_stop() -> None:
        await stop.event.wait()
        print(_STOPPING, file=sys.stderr, flush=True)

    announcing = asyncio.create_task(announce_stop())
    try:
        await (_redraw(parts) if sys.stderr.isatty() else _print_now_and_then(parts))
    finally:
        announcing.cancel()


async def _redraw(parts: "Sequence[Progress]") -> None:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    name = TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold"))
    words = TextColumn("{task.fields[words]}", markup=False, table_column=Column(overflow="fold"))
    console = Console(stderr=True)
    console.width -= _ECHO_CELLS
    with Bars(name, BarColumn(_BAR_CELLS), words, console=console, auto_refresh=False) as bars:
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


async def _print_now_and_then(parts: "Sequence[Progress]") -> None:
    shown: list[str] = []
    try:
        while True:
            await asyncio.sleep(_PLAIN_EVERY_S)
            if any(any(part.waiting.values()) for part in parts) and _plain(parts) == shown:
                continue  # a batch may take a day
            shown = _plain(parts)
            print("\n".join(shown), file=sys.stderr, flush=True)
    finally:
        print("\n".join(_plain(parts)), file=sys.stderr, flush=True)


def _plain(parts: "Sequence[Progress]") -> list[str]:
    return [f"{part.model_id}: {describe(part)}" for part in parts]


def describe(part: "Progress") -> str:
    """Return `12/24 answered, 0 failed, 1 retried, 5.2k+1.1k tokens, $0.0123, 1:02 left`.

    What lies with a vendor in batches stands in place of the time left, which nobody knows.
    """
    words = [f"{part.answered_before + part.answered}/{part.planned} answered"]
    words += [f"{part.failed} failed", f"{part.retried} retried"]
    words.append(f"{_short(part.input_tokens)}+{_short(part.output_tokens)} tokens")
    words.append("cost unknown" if part.cost_usd is None else f"${part.cost_usd:.4f}")
    words += [state for state in part.waiting.values() if state]
    left = part.seconds_left
    if left is not None and part.done < part.planned and not any(part.waiting.values()):
        words.append(f"{clock(left)} left")
    return ", ".join(words)


def _short(count: int) -> str:
    return str(count) if count < 1000 else f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.2f}M"

"""The progress of a run on stderr: a live line a model on a terminal, elsewhere a plain line now and then."""

import asyncio
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.live import Live
from rich.table import Table

from skill_evaluator.runner.engine import Progress, Stop

_REDRAW_S = 0.25
_PLAIN_EVERY_S = 15.0
_BAR_CELLS = 24
_STOPPING = "stopping: waiting for the calls in flight (paid for already); once more to abandon them"


async def watch(parts: Sequence[Progress], stop: Stop) -> None:
    """Show the progress of every model until cancelled, and its last state then."""
    if sys.stderr.isatty():
        with Live(console=Console(stderr=True), auto_refresh=False, transient=False) as live:
            try:
                while True:
                    live.update(_table(parts, stop), refresh=True)
                    await asyncio.sleep(_REDRAW_S)
            finally:
                live.update(_table(parts, stop), refresh=True)

    async def announce_stop() -> None:
        await stop.event.wait()
        print(_STOPPING, file=sys.stderr, flush=True)

    announcing = asyncio.create_task(announce_stop())
    try:
        while True:
            await asyncio.sleep(_PLAIN_EVERY_S)
            _print_plain(parts)
    finally:
        announcing.cancel()
        _print_plain(parts)


def _print_plain(parts: Sequence[Progress]) -> None:
    for part in parts:
        print(f"{part.model_id}: {describe(part)}", file=sys.stderr, flush=True)


def describe(part: Progress) -> str:
    """Return `12/24 answered, 0 failed, 1 retried, 5.2k+1.1k tokens, $0.0123, 1:02 left`."""
    words = [f"{part.answered_before + part.answered}/{part.planned} answered"]
    words += [f"{part.failed} failed", f"{part.retried} retried"]
    words.append(f"{_short(part.input_tokens)}+{_short(part.output_tokens)} tokens")
    words.append("cost unknown" if part.cost_usd is None else f"${part.cost_usd:.4f}")
    left = part.seconds_left
    if left is not None and part.done < part.planned:
        words.append(f"{int(left) // 60}:{int(left) % 60:02d} left")
    return ", ".join(words)


def _table(parts: Sequence[Progress], stop: Stop) -> Table:
    table = Table.grid(padding=(0, 2))
    for part in parts:
        filled = round(_BAR_CELLS * part.done / part.planned)
        bar = f"[green]{'━' * filled}[/][dim]{'━' * (_BAR_CELLS - filled)}[/]"
        table.add_row(f"[bold]{part.model_id}[/]", bar, describe(part))
    if stop.requested:
        table.add_row("", "", f"[yellow]{_STOPPING}[/]")
    return table


def _short(count: int) -> str:
    return str(count) if count < 1000 else f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.2f}M"

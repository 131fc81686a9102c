"""The progress of a run on stderr: a live line a model on a terminal, elsewhere a plain line now and then."""

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from skill_evaluator.display import clock
from skill_evaluator.display.sheets import wrapped

if TYPE_CHECKING:
    from rich.text import Text

    from skill_evaluator.runner.engine import Progress, Stop

_REDRAW_S = 0.25
_PLAIN_EVERY_S = 15.0
_BAR_CELLS = 24
_ECHO_CELLS = 5  # `^C^C`, and one over
_STOPPING = "stopping: waiting for the calls in flight (paid for already); once more to abandon them"


async def watch(parts: "Sequence[Progress]", stop: "Stop") -> None:
    """Show the progress of every model until cancelled, and its last state then."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(stderr=True), auto_refresh=False, transient=False) as live:
            try:
                while True:
                    live.update(_lines(parts, stop, live.console.width), refresh=True)
                    await asyncio.sleep(_REDRAW_S)
            finally:
                live.update(_lines(parts, stop, live.console.width), refresh=True)

    async def announce_stop() -> None:
        await stop.event.wait()
        print(_STOPPING, file=sys.stderr, flush=True)

    announcing = asyncio.create_task(announce_stop())
    shown: list[str] = []
    try:
        while True:
            await asyncio.sleep(_PLAIN_EVERY_S)
            if any(any(part.waiting.values()) for part in parts) and _plain(parts) == shown:
                continue  # a batch may take a day
            shown = _plain(parts)
            print("\n".join(shown), file=sys.stderr, flush=True)
    finally:
        announcing.cancel()
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


def _lines(parts: "Sequence[Progress]", stop: "Stop", width: int) -> "Text":
    """Return a line a model, or two where it has no room. The terminal writes `^C` behind the last, so none is full."""
    from rich.text import Text

    room = width - _ECHO_CELLS
    widest = max(cell_len(part.model_id) for part in parts)
    lines = []
    for part in parts:
        words, filled = describe(part), round(_BAR_CELLS * part.done / part.planned)
        bar = [("━" * filled, "green"), ("━" * (_BAR_CELLS - filled) + "  ", "dim")]
        name = set_cell_size(part.model_id, widest)
        if widest + 2 + _BAR_CELLS + 2 + len(words) <= room:
            lines.append(Text.assemble((f"{name}  ", "bold"), *bar, words))
        elif widest + 2 + len(words) <= room:
            lines.append(Text.assemble((f"{name}  ", "bold"), words))
        else:
            lines += [Text(part.model_id, style="bold"), *(Text(f"    {line}") for line in wrapped(words, room - 4))]
    if stop.requested:
        lines += [Text(line, style="yellow") for line in wrapped(_STOPPING, room)]
    return Text("\n").join(lines)


def _short(count: int) -> str:
    return str(count) if count < 1000 else f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.2f}M"

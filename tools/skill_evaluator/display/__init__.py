"""The display of results: pages, tables, safe text and charts; this module formats every number that people read."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

MIN_CASES_FOR_INTERVAL = 5
WHOLE = "(the whole output)"  # the name of the field whose path is empty
_SLOW_S = 2.0
_T = TypeVar("_T")


@contextmanager
def notice_when_slow(notice: str) -> Iterator[None]:
    """Print a notice to stderr if the block takes longer than two seconds."""
    timer = threading.Timer(_SLOW_S, lambda: print(notice, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def with_progress(items: Iterable[_T], total: int, label: str) -> Iterator[_T]:
    """Yield the items. After about 2, 4, 8, … seconds, print the label, the count and the time left to stderr."""
    begun, due = time.monotonic(), _SLOW_S
    for count, item in enumerate(items, 1):
        yield item
        taken = time.monotonic() - begun
        if taken >= due and count < total:
            remaining = clock(taken / count * (total - count))
            print(f"{label}: {count} of {total}, {remaining} left", file=sys.stderr, flush=True)
            due = 2 * taken


def clock(seconds: float) -> str:
    """Format seconds as minutes and seconds, such as `1:02`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def number(value: float | None) -> str:
    """Format a share or score with three decimals, and None as a dash."""
    return "–" if value is None else f"{value:z.3f}"


def probability(value: float | None) -> str:
    """Format a p-value with three decimals, or as `<0.001` if they would be 0.000. None becomes a dash."""
    return "–" if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"


def arrow(before: float | None, after: float | None) -> str:
    """Format two scores as `0.500 → 1.000`; None is a dash."""
    return f"{number(before)} → {number(after)}"


def signed(value: float | None) -> str:
    """Format a difference of scores as `+0.050`. A difference that rounds to zero is `0.000`, and None is a dash."""
    return "–" if value is None else f"{value:+.3f}" if round(value, 3) else "0.000"


def amount(value: float | None) -> str:
    """Format an amount, such as seconds or USD, as `1,234.50`, and None as a dash. Below 0.1 it has 2 to 4 decimals."""
    if value is None:
        return "–"
    if value >= 0.1:
        return f"{value:,.2f}"
    whole, _, decimals = f"{value:.4f}".partition(".")
    return f"{whole}.{decimals.rstrip('0'):<02}"


def times(ratio: float) -> str:
    """Format a ratio of two amounts, such as `× 1.23` or `× 2,346`: below 100 with at most three significant digits."""
    return f"× {count(ratio) if ratio >= 100 else plain(ratio, 3)}"


def count(value: float | None) -> str:
    """Format a whole number as `1,234`, and None as a dash."""
    return "–" if value is None else f"{value:,.0f}"


def short_count(value: int) -> str:
    """Format a number as `999`, `5.2k` or `1.25M`."""
    return str(value) if value < 1000 else f"{value / 1000:.1f}k" if value < 1_000_000 else f"{value / 1_000_000:.2f}M"


def plain(value: float | None, digits: int = 6) -> str:
    """Format a number with at most `digits` significant digits and no trailing zeros, and None as a dash."""
    return "–" if value is None else f"{value:,.{digits}g}"


def percent(value: float | None) -> str:
    """Format a share from 0 to 1 as a whole percentage, and None as a dash."""
    return "–" if value is None else f"{value:.0%}"


def seconds(value: float | None) -> str:
    """Format seconds with two decimals and their unit, and None as a dash."""
    return "–" if value is None else f"{value:.2f} s"


def relative_change(before: float | None, after: float | None) -> str:
    """Format the change of an amount in percent, as `+50 %`. Return "" if an amount is unknown.

    A change that rounds to 0 is `=`. If the old amount is 0, format the new one instead.
    """
    if before is None or after is None:
        return ""
    share = round((after / before - 1) * 100) if before else None
    return "=" if before == after or share == 0 else f"{after:+.4g}" if share is None else f"{share:+} %"


def interval(ci95: tuple[float, float] | None, cases: int, write: Callable[[float | None], str] = number) -> str:
    """Format a 95 % confidence interval as `0.500 to 0.750`, or None as a dash. `write` formats each end.

    Return `too few` for one to four cases.
    """
    if 0 < cases < MIN_CASES_FOR_INTERVAL:
        return "too few"
    return "–" if ci95 is None else f"{write(ci95[0])} to {write(ci95[1])}"


def ends(ci95: tuple[float, float] | None, cases: int) -> tuple[float, float] | tuple[None, None]:
    """Return an interval for a chart, or (None, None) if there is none or there are fewer than five cases."""
    return (None, None) if ci95 is None or cases < MIN_CASES_FOR_INTERVAL else ci95


def cost_words(usd: float | None, hit_rate: float | None = None, *, digits: int = 4) -> str:
    """Format a cost as `$1.5000 (69% cached)`, or `unknown`; `hit_rate` is the share of input from a prompt cache."""
    cost = "unknown" if usd is None else f"${usd:,.{digits}f}"
    return cost if hit_rate is None else f"{cost} ({hit_rate:.0%} cached)"


def stability_words(stability: str, replicates: int) -> str:
    """Format a stability: `right` for `stable_right`, or `answered once` for `unscored` with one replicate."""
    return "answered once" if stability == "unscored" and replicates == 1 else stability.removeprefix("stable_")

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
    """Yield items; print the label, the progress and the remaining time to stderr after 2, 4, 8, … seconds."""
    begun, due = time.monotonic(), _SLOW_S
    for count, item in enumerate(items, 1):
        yield item
        taken = time.monotonic() - begun
        if taken >= due and count < total:
            print(
                f"{label}: {count} of {total}, {clock(taken / count * (total - count))} left",
                file=sys.stderr,
                flush=True,
            )
            due = 2 * taken


def clock(seconds: float) -> str:
    """Format seconds as minutes and seconds.

    >>> clock(62.9)
    '1:02'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def number(value: float | None) -> str:
    """Format a share or score with three decimals, and None as a dash.

    >>> number(0.5), number(-0.0001), number(None)
    ('0.500', '0.000', '–')
    """
    return "–" if value is None else f"{value:z.3f}"


def probability(value: float | None) -> str:
    """Format a p-value with three decimals, a smaller one as `<0.001`, and None as a dash."""
    return "–" if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"


def arrow(before: float | None, after: float | None) -> str:
    """Format two scores as `0.500 → 1.000`; None is a dash."""
    return f"{number(before)} → {number(after)}"


def signed(value: float | None) -> str:
    """Format a difference of scores with its sign, a difference that rounds to zero as `0.000`, and None as a dash."""
    return "–" if value is None else f"{value:+.3f}" if round(value, 3) else "0.000"


def amount(value: float | None) -> str:
    """Format an amount, such as seconds or USD, with two decimals, or up to four below 0.1.

    >>> amount(1234.5), amount(0.0123), amount(0.0), amount(None)
    ('1,234.50', '0.0123', '0.00', '–')
    """
    if value is None:
        return "–"
    if value >= 0.1:
        return f"{value:,.2f}"
    whole, _, decimals = f"{value:.4f}".partition(".")
    return f"{whole}.{decimals.rstrip('0'):<02}"


def times(ratio: float) -> str:
    """Format a ratio of two amounts.

    >>> times(1.234), times(196.7), times(2000.0)
    ('× 1.23', '× 197', '× 2,000')
    """
    return f"× {count(ratio) if ratio >= 100 else plain(ratio, 3)}"


def count(value: float | None) -> str:
    """Format a whole number.

    >>> count(1234), count(None)
    ('1,234', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


def short_count(value: int) -> str:
    """Format a large number with a unit.

    >>> short_count(999), short_count(5_200), short_count(1_250_000)
    ('999', '5.2k', '1.25M')
    """
    return str(value) if value < 1000 else f"{value / 1000:.1f}k" if value < 1_000_000 else f"{value / 1_000_000:.2f}M"


def plain(value: float | None, digits: int = 6) -> str:
    """Format a number with at most `digits` significant digits and no trailing zeros.

    >>> plain(0.05), plain(1234.5678, 4), plain(None)
    ('0.05', '1,235', '–')
    """
    return "–" if value is None else f"{value:,.{digits}g}"


def percent(value: float | None) -> str:
    """Format a share from 0 to 1 as a whole percentage, and None as a dash."""
    return "–" if value is None else f"{value:.0%}"


def seconds(value: float | None) -> str:
    """Format seconds with two decimals and their unit, and None as a dash."""
    return "–" if value is None else f"{value:.2f} s"


def relative_change(before: float | None, after: float | None) -> str:
    """Format the change of an amount in percent: `=` if it rounds to 0, and the new amount if the old one is 0.

    Return "" if an amount is unknown.

    >>> relative_change(2.0, 3.0), relative_change(2.0, 2.0), relative_change(0.0, 3.0), relative_change(None, 3.0)
    ('+50 %', '=', '+3', '')
    """
    if before is None or after is None:
        return ""
    share = round((after / before - 1) * 100) if before else None
    return "=" if before == after or share == 0 else f"{after:+.4g}" if share is None else f"{share:+} %"


def interval(ci95: tuple[float, float] | None, cases: int, write: Callable[[float | None], str] = number) -> str:
    """Format a 95 % confidence interval, or `too few` for fewer than five cases; `write` formats each end.

    >>> interval((0.5, 0.75), 5), interval((0.307, 1.0), 3), interval(None, 0)
    ('0.500 to 0.750', 'too few', '–')
    """
    if 0 < cases < MIN_CASES_FOR_INTERVAL:
        return "too few"
    return "–" if ci95 is None else f"{write(ci95[0])} to {write(ci95[1])}"


def ends(ci95: tuple[float, float] | None, cases: int) -> tuple[float, float] | tuple[None, None]:
    """Return the two ends of an interval for a chart, or (None, None) for fewer than five cases."""
    return (None, None) if ci95 is None or cases < MIN_CASES_FOR_INTERVAL else ci95


def cost_words(usd: float | None, hit_rate: float | None = None, *, digits: int = 4) -> str:
    """Format a cost in USD, with the share of the input that was read from a prompt cache if it is known.

    >>> cost_words(1.5, 0.69), cost_words(1.5, digits=2), cost_words(None)
    ('$1.5000 (69% cached)', '$1.50', 'unknown')
    """
    cost = "unknown" if usd is None else f"${usd:,.{digits}f}"
    return cost if hit_rate is None else f"{cost} ({hit_rate:.0%} cached)"


def stability_words(stability: str, replicates: int) -> str:
    """Name the stability of a field in a case; with one replicate, agreement is unknown.

    >>> stability_words("stable_right", 3), stability_words("unscored", 1)
    ('right', 'answered once')
    """
    return "answered once" if stability == "unscored" and replicates == 1 else stability.removeprefix("stable_")

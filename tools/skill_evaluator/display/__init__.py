"""How anything is shown: text from outside made safe, tables, chart style, and here the wording of numbers."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

FEWEST_CASES = 5  # of which an interval is shown
WHOLE = "(the whole answer)"  # what a table calls the field without a path
_SLOW_S = 2.0  # after which a person wants to know what takes so long
_T = TypeVar("_T")


@contextmanager
def told_if_slow(words: str) -> Iterator[None]:
    """Say on stderr what is done here, if it takes longer than two seconds."""
    timer = threading.Timer(_SLOW_S, lambda: print(words, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def told(items: Iterable[_T], total: int, what: str) -> Iterator[_T]:
    """Yield items, and say on stderr after 2, 4, 8, … seconds how many of them are done and how long the rest takes."""
    begun, due = time.monotonic(), _SLOW_S
    for count, item in enumerate(items, 1):
        yield item
        taken = time.monotonic() - begun
        if taken >= due and count < total:
            print(
                f"{what}: {count} of {total}, {clock(taken / count * (total - count))} left",
                file=sys.stderr,
                flush=True,
            )
            due = 2 * taken


def clock(seconds: float) -> str:
    """Write minutes and seconds.

    >>> clock(62.9)
    '1:02'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def number(value: float | None) -> str:
    """Write a share or score to three places, and what was not measured as a dash.

    >>> number(0.5), number(-0.0001), number(None)
    ('0.500', '0.000', '–')
    """
    return "–" if value is None else f"{value:z.3f}"


def probability(value: float | None) -> str:
    """Write a p or q to three places; a small one is never written as zero."""
    return "–" if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"


def standing_word(standing: str, replicates: int) -> str:
    """Word how a field stands in a case; one answer cannot tell whether the next would be the same.

    >>> standing_word("stable_right", 3), standing_word("unscored", 1)
    ('right', 'answered once')
    """
    return "answered once" if standing == "unscored" and replicates == 1 else standing.removeprefix("stable_")


def arrow(before: float | None, after: float | None) -> str:
    """Write two scores, the earlier first."""
    return f"{number(before)} → {number(after)}"


def signed(value: float | None) -> str:
    """Write a difference of scores; without a sign if it rounds to zero."""
    return "–" if value is None else f"{value:+.3f}" if round(value, 3) else "0.000"


def amount(value: float | None) -> str:
    """Write an amount, such as seconds or USD, to two places; below 0.1 to four at most.

    >>> amount(1234.5), amount(0.0123), amount(0.0), amount(None)
    ('1,234.50', '0.0123', '0.00', '–')
    """
    if value is None:
        return "–"
    if value >= 0.1:
        return f"{value:,.2f}"
    whole, _, decimals = f"{value:.4f}".partition(".")
    return f"{whole}.{decimals.rstrip('0'):<02}"


def interval(ci95: tuple[float, float] | None, cases: int, write: Callable[[float | None], str] = number) -> str:
    """Write a 95 % interval; of fewer than five cases it would say more than they do.

    >>> interval((0.5, 0.75), 5), interval((0.307, 1.0), 3), interval(None, 0)
    ('0.500 to 0.750', 'too few', '–')
    """
    if 0 < cases < FEWEST_CASES:
        return "too few"
    return "–" if ci95 is None else f"{write(ci95[0])} to {write(ci95[1])}"


def ends(ci95: tuple[float, float] | None, cases: int) -> tuple[float, float] | tuple[None, None]:
    """Return the two ends of an interval that a chart draws; none of fewer than five cases."""
    return (None, None) if ci95 is None or cases < FEWEST_CASES else ci95


def cost_words(usd: float | None, hit_rate: float | None = None, *, digits: int = 4) -> str:
    """Write a cost in USD, and which share of the input was read from a prompt cache, where that is known.

    >>> cost_words(1.5, 0.69), cost_words(1.5, digits=2), cost_words(None)
    ('$1.5000 (69% cached)', '$1.50', 'unknown')
    """
    cost = "unknown" if usd is None else f"${usd:,.{digits}f}"
    return cost if hit_rate is None else f"{cost} ({hit_rate:.0%} cached)"

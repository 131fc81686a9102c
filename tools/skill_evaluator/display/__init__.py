"""How anything is shown: text from outside made safe, tables, chart style, and here the wording of numbers."""


def number(value: float | None) -> str:
    """Write a share or score to three places, and what was not measured as a dash.

    >>> number(0.5), number(None)
    ('0.500', '–')
    """
    return "–" if value is None else f"{value:.3f}"


def probability(value: float | None) -> str:
    """Write a p or q to three places; one that rounds to zero is not zero."""
    return "–" if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"


def arrow(before: float | None, after: float | None) -> str:
    """Write two scores, the earlier first."""
    return f"{number(before)} → {number(after)}"


def signed(value: float | None) -> str:
    """Write a difference of scores; one that rounds to zero has no sign."""
    return "–" if value is None else f"{value:+.3f}" if round(value, 3) else "0.000"

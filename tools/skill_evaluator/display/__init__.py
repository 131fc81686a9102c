"""How anything is shown: text from outside made safe, tables, chart style, and here the wording of numbers."""

WHOLE = "(the whole answer)"  # what a table calls the field without a path


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


def cost_words(usd: float | None, hit_rate: float | None = None) -> str:
    """Write a cost in USD, and which share of the input was read from a prompt cache, where that is known.

    >>> cost_words(1.5, 0.69), cost_words(None)
    ('$1.5000 (69% cached)', 'unknown')
    """
    cost = "unknown" if usd is None else f"${usd:,.4f}"
    return cost if hit_rate is None else f"{cost} ({hit_rate:.0%} cached)"

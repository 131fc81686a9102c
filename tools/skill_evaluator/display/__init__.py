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

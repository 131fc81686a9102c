"""The wording of numbers: the same in every report."""


def number(value: float | None) -> str:
    """A share or score to three places; a dash for what was not measured.

    >>> number(0.5), number(None)
    ('0.500', '–')
    """
    return "–" if value is None else f"{value:.3f}"


def probability(value: float | None) -> str:
    """A p or q; one that rounds to nothing is not nothing."""
    return "–" if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"

"""Do the answers to a document agree more than answers to different documents would by chance?"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping


def krippendorff_alpha(units: Iterable[Mapping[Hashable, int]]) -> float | None:
    """Return nominal α = 1 − observed ÷ expected disagreement; a unit counts how often it has each value.

    Values are the pairable ones: those of units that have two or more. With n of them, n_c of value c, and n_uc of
    value c in unit u with m_u values, α = [(n − 1) Σ_u Σ_c n_uc (n_uc − 1) ÷ (m_u − 1) − Σ_c n_c (n_c − 1)] ÷
    [n (n − 1) − Σ_c n_c (n_c − 1)]. Units may have different numbers of values (missing ones). Range −1 to 1, 1 is
    best, 0 is chance; undefined where no unit has two values, and where all values are the same: without variation
    there is no disagreement to be expected.
    Krippendorff 2011, https://repository.upenn.edu/asc_papers/43.

    >>> krippendorff_alpha([{"yes": 2}, {"no": 2}])
    1.0
    >>> round(krippendorff_alpha([{"yes": 2}, {"no": 1, "yes": 1}]), 3)
    0.0
    """
    totals: Counter[Hashable] = Counter()
    agreeing = 0.0
    for unit in units:
        given = sum(unit.values())
        if given > 1:
            agreeing += sum(count * (count - 1) for count in unit.values()) / (given - 1)
            totals.update(unit)
    n = totals.total()
    by_chance = sum(count * (count - 1) for count in totals.values())
    possible = n * (n - 1) - by_chance
    return ((n - 1) * agreeing - by_chance) / possible if possible else None

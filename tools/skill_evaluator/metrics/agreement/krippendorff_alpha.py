"""Agreement of the answers to a case, corrected for agreement by chance."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping


def krippendorff_alpha(units: Iterable[Mapping[Hashable, int]]) -> float | None:
    """Return nominal α = 1 − observed ÷ expected disagreement. A unit maps each value to its count.

    Only units with two or more values count. With n values, n_c of value c, and n_uc of value c in unit u with m_u
    values, α = [(n − 1) Σ_u Σ_c n_uc (n_uc − 1) ÷ (m_u − 1) − Σ_c n_c (n_c − 1)] ÷ [n (n − 1) − Σ_c n_c (n_c − 1)].
    Units may have different numbers of values. Range −1 to 1, 1 is best, 0 is chance. α is undefined if no unit has two
    values, or if all values are equal, since the expected disagreement is then 0.
    Krippendorff 2011, https://repository.upenn.edu/asc_papers/43.

    >>> krippendorff_alpha([{"yes": 2}, {"no": 2}])
    1.0
    >>> round(krippendorff_alpha([{"yes": 2}, {"no": 1, "yes": 1}]), 3)
    0.0
    """
    totals: Counter[Hashable] = Counter()
    agreeing = 0.0
    for unit in units:
        count_of_unit = sum(unit.values())
        if count_of_unit > 1:
            agreeing += sum(count * (count - 1) for count in unit.values()) / (count_of_unit - 1)
            totals.update(unit)
    n = totals.total()
    chance_pairs = sum(count * (count - 1) for count in totals.values())
    possible = n * (n - 1) - chance_pairs
    return ((n - 1) * agreeing - chance_pairs) / possible if possible else None

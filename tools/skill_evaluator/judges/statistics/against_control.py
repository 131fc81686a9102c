"""Does a judge report a batch more often, or as worse, than its control, which holds nothing to report?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.judges.statistics.bounded import Bounded, difference, rate
from skill_evaluator.judges.statistics.corrected_rate import Trials

Test = Literal["exact", "chi-squared"]
_FEWEST_EXPECTED = 5.0
_MOST_TABLES = 5_000_000
_TOLERANCE = 1e-7  # by which two equal probabilities may differ


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstControl:
    """Batch minus control, a two-sided p-value, and the test that gave it."""

    difference: Bounded
    p: float
    test: Test


def against_control(batch: Trials, control: Trials) -> AgainstControl:
    """Compare the reported share of a batch with that of independent controls.

    The p-value is that of `counts_differ`. Adjust those of several dimensions with `verdicts.effects.adjusted`.

    >>> tested = against_control(Trials(count=9, n=40), Trials(count=1, n=40))
    >>> tested.test, round(tested.p, 4)
    ('chi-squared', 0.0068)
    """
    p, test = counts_differ(*((one.count, one.n - one.count) for one in (batch, control)))
    return AgainstControl(
        difference=difference(rate(batch.count, batch.n), rate(control.count, control.n)), p=p, test=test
    )


def counts_differ(left: Sequence[int], right: Sequence[int]) -> tuple[float, Test]:
    """Return how likely two independent samples differ so much by chance, and the test; each has a count by category.

    Where an expected count is below 5 Fisher's exact test, for more than two categories that of Freeman and Halton
    (1951, doi:10.1093/biomet/38.1-2.141), else Pearson's χ² without a correction (Cochran 1954, doi:10.2307/3001616).
    Beyond five million tables to be counted it is χ², too. Categories that neither has are left out; the answer is 1 if
    at most one is left.

    >>> p, test = counts_differ([30, 2, 0, 1], [25, 1, 4, 6])
    >>> round(p, 4), test
    (0.0266, 'exact')
    """
    table = np.array([left, right])
    table = table[:, table.sum(axis=0) > 0]
    columns, rows = np.sort(table.sum(axis=0)), table.sum(axis=1)
    if len(columns) < 2 or not rows.all():
        return 1.0, "exact"
    tables = math.prod(int(min(count, rows.min())) + 1 for count in columns[:-1])
    if rows.min() * columns[0] / rows.sum() >= _FEWEST_EXPECTED or tables > _MOST_TABLES:
        from scipy.stats import chi2_contingency

        return float(chi2_contingency(table, correction=False).pvalue), "chi-squared"
    return _exact(table[np.argmin(rows)], table.sum(axis=0)), "exact"


def _exact(row: NDArray[np.int64], columns: NDArray[np.int64]) -> float:
    """Return the share of tables with these margins that are no likelier than the one with this row."""
    from scipy.special import gammaln

    def likelihood(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """Return the log probability of rows, but for what all tables share."""
        parts = (
            -gammaln(count + 1.0) - gammaln(total - count + 1.0) for count, total in zip(counts, columns, strict=True)
        )
        return np.asarray(sum(parts))

    size = int(row.sum())
    largest = int(np.argmax(columns))
    ranges = [np.arange(1 if place == largest else min(int(total), size) + 1) for place, total in enumerate(columns)]
    grid = [part.ravel() for part in np.meshgrid(*ranges, indexing="ij")]
    grid[largest] = size - np.sum(grid, axis=0)  # its own range is 0 alone
    possible = (grid[largest] >= 0) & (grid[largest] <= columns[largest])
    logs = likelihood([part[possible] for part in grid])
    chances = np.exp(logs - logs.max())
    here = float(np.exp(likelihood(list(row[:, None])) - logs.max())[0])
    return float(chances[chances <= here * (1 + _TOLERANCE)].sum() / chances.sum())

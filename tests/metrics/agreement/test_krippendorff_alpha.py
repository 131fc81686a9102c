"""Krippendorff's α by his own example, and against another implementation."""

import math
import random
from collections import Counter

import krippendorff
import pytest
from skill_evaluator.metrics.agreement import krippendorff_alpha

Table = list[list[int | None]]  # a row per unit, a column per replicate; None is a missing value


def alpha(table: Table) -> float | None:
    return krippendorff_alpha(Counter(value for value in row if value is not None) for row in table)


def test_alpha_of_krippendorffs_example() -> None:
    observers: Table = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = [list(unit) for unit in zip(*observers, strict=True)]
    assert alpha(units) == pytest.approx(0.743, abs=5e-4)  # Krippendorff 2011, section C, nominal


def test_alpha_is_that_of_another_implementation() -> None:
    assert alpha([]) is alpha([[1], [2]]) is None
    dice = random.Random(1)
    compared = 0
    for _ in range(150):
        units, replicates, labels = dice.randint(1, 8), dice.randint(2, 6), dice.randint(2, 4)
        missing = dice.choice([0.0, 0.2, 0.5])
        table: Table = [
            [None if dice.random() < missing else dice.randrange(labels) for _ in range(replicates)]
            for _ in range(units)
        ]
        pairable = [row for row in table if sum(value is not None for value in row) > 1]
        if len({value for row in pairable for value in row if value is not None}) < 2:
            assert alpha(table) is None
            continue
        by_replicate = [[math.nan if value is None else value for value in row] for row in zip(*table, strict=True)]
        expected = krippendorff.alpha(by_replicate, level_of_measurement="nominal", value_domain=list(range(labels)))
        assert alpha(table) == pytest.approx(expected, abs=1e-9)
        compared += 1
    assert compared > 100

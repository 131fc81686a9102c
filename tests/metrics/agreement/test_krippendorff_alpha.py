"""Krippendorff's α by hand, by his own example, and against another implementation."""

import math
import random
from collections import Counter

import krippendorff
import pytest
from skill_evaluator.metrics.agreement.krippendorff_alpha import krippendorff_alpha

Table = list[list[int | None]]  # a row per unit, a column per replicate; None is a missing value


def alpha(table: Table) -> float | None:
    return krippendorff_alpha(Counter(value for value in row if value is not None) for row in table)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[1, 1], [2, 2]], 1.0),
        # n = 4; agreeing pairs 2 ÷ 1; values 1, 1, 1, 2: (3·2 − 6) ÷ (12 − 6)
        ([[1, 1], [1, 2]], 0.0),
        # n = 4; no agreeing pair; values 1, 1, 2, 2: (3·0 − 4) ÷ (12 − 4)
        ([[1, 2], [2, 1]], -0.5),
        # one value missing: agreeing 6 ÷ 2 + 2 ÷ 1; n = 5, values 3 and 2: (4·5 − 8) ÷ (20 − 8)
        ([[1, 1, 1], [2, 2, None]], 1.0),
        # agreeing 6 ÷ 2 + 2 ÷ 2; n = 6, values 4 and 2: (5·4 − 14) ÷ (30 − 14)
        ([[1, 1, 1], [1, 2, 2]], 6 / 16),
        # a unit with one value says nothing
        ([[1, 1], [2, 2], [3, None]], 1.0),
        # without variation there is nothing to agree about beyond chance
        ([[1, 1], [1, 1]], None),
        # without a unit of two values there is no pair
        ([[1, None], [None, 2]], None),
        ([[1], [2]], None),
        ([], None),
    ],
)
def test_alpha_by_hand(table: Table, expected: float | None) -> None:
    assert alpha(table) == (expected if expected is None else pytest.approx(expected))


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

"""The cases that moved: named if they moved further than the others, and rarely if nothing moved."""

import numpy as np
import pytest
from skill_evaluator.stats import benjamini_hochberg
from skill_evaluator.verdicts.decide.comparison import FALSE_NAMES, p_values_of_cases
from skill_evaluator.verdicts.decide.measuring import Floats


def named(before: Floats, after: Floats) -> list[bool]:
    return [q <= FALSE_NAMES for q in benjamini_hochberg(p_values_of_cases(after.mean(axis=1) - before.mean(axis=1)))]


def test_broken_cases_are_named_and_few_others() -> None:
    """Two hundred comparisons of forty cases × 5, three of them broken."""
    rng = np.random.default_rng(1)
    hits = total = false = 0
    for _ in range(200):
        level = rng.uniform(0.5, 0.9, (40, 1))
        before, after = (level + rng.normal(0, 0.1, (40, 5)) for _ in range(2))
        after[:3] = 0.0
        moved = named(before, after)
        hits, total, false = hits + sum(moved[:3]), total + sum(moved), false + sum(moved[3:])
    assert hits >= 0.95 * 600
    assert false / total <= FALSE_NAMES


def test_hardly_any_case_is_named_if_nothing_moved() -> None:
    rng = np.random.default_rng(2)
    some = sum(any(named(*(rng.normal(0.7, 0.1, (40, 5)) for _ in range(2)))) for _ in range(200))
    assert some / 200 <= FALSE_NAMES + 0.04  # two standard errors


def test_three_flips_from_right_to_wrong_name_no_case() -> None:
    before, after = np.ones((40, 1)), np.ones((40, 1))
    after[:3] = 0.0
    assert not any(named(before, after))


def test_p_of_a_case_is_two_sided_and_1_if_it_did_not_move() -> None:
    differences = np.array([0.0, 0.1, -0.1, 0.2, -0.2, 0.9])
    p_values = p_values_of_cases(differences)
    assert p_values[0] == pytest.approx(1.0)
    assert p_values[1] == p_values[2] > p_values[3] == p_values[4] > p_values[5]
    assert p_values_of_cases(np.array([0.0, 0.5, 0.5])) == [1.0] * 3

"""Which cases moved: named where it is sure, and rarely where nothing moved."""

import numpy as np
import pytest
from skill_evaluator.verdicts.comparability import Measure
from skill_evaluator.verdicts.effects import Extra
from skill_evaluator.verdicts.moved import FALSE_NAMES, moved_beyond_chance
from skill_evaluator.verdicts.noise import RunNoise

DRAWS = RunNoise(replicate=0.0, case_run=Extra(), run=Extra())
ONE_DRAW = RunNoise(replicate=0.0, case_run=None, run=Extra())


def measure(before: np.ndarray, after: np.ndarray) -> Measure:
    return Measure(
        name="m",
        kind="accuracy",
        case_ids=tuple(map(str, range(len(before)))),
        before=tuple(map(tuple, before.tolist())),
        after=tuple(map(tuple, after.tolist())),
    )


@pytest.mark.parametrize("noise", [DRAWS, ONE_DRAW], ids=["replicates are draws", "a case is one draw"])
def test_broken_cases_are_named_and_few_others(noise: RunNoise) -> None:
    """Two hundred comparisons of forty cases × 5, three of them broken."""
    rng = np.random.default_rng(1)
    hits = named = false = 0
    for _ in range(200):
        level = rng.uniform(0.5, 0.9, (40, 1))
        before, after = (level + rng.normal(0, 0.1, (40, 5)) for _ in range(2))
        after[:3] = 0.0
        moved = moved_beyond_chance(measure(before, after), noise)
        hits += sum(moved[:3])
        named += sum(moved)
        false += sum(moved[3:])
    assert hits >= 0.95 * 600
    assert false / named <= FALSE_NAMES


@pytest.mark.parametrize("noise", [DRAWS, ONE_DRAW], ids=["replicates are draws", "a case is one draw"])
def test_where_nothing_moved_hardly_any_case_is_named(noise: RunNoise) -> None:
    rng = np.random.default_rng(2)
    some = 0
    for _ in range(200):
        before, after = (rng.normal(0.7, 0.1, (40, 5)) for _ in range(2))
        some += any(moved_beyond_chance(measure(before, after), noise))
    assert some / 200 <= FALSE_NAMES + 0.04  # two standard errors


def test_right_and_wrong_of_single_draws_name_no_case() -> None:
    """Three cases flipped from right to wrong: three coin tosses do that, too."""
    before, after = np.ones((40, 1)), np.ones((40, 1))
    after[:3] = 0.0
    assert not any(moved_beyond_chance(measure(before, after), ONE_DRAW))
    before, after = np.ones((40, 5)), np.ones((40, 5))
    after[:3] = 0.0
    assert sum(moved_beyond_chance(measure(before, after), DRAWS)) == 3

"""Neutrality: a scenario that is hard for all models is found, and the others are not blamed."""

import numpy as np
import pytest
from skill_evaluator.audit.cube import Floats
from skill_evaluator.audit.results import Neutrality
from skill_evaluator.audit.statistics import NEUTRALITY_LIMIT, neutrality_of, shifts_of

from tests.audit.cubes import cube_of


def found_in(scores: Floats) -> Neutrality:
    return neutrality_of(cube_of(scores.tolist()))


def scores_of(random: np.random.Generator, models: int, shift: float) -> Floats:
    """Eight scenarios with a spread of 1 to 3 points and a noise of 1.8; scenario 5 is harder by `shift`."""
    spread = np.hypot(random.uniform(1, 3, (models, 1)), 1.8)
    scores = random.uniform(40, 80, (models, 1)) + spread * random.normal(size=(models, 8))
    scores[:, 5] -= shift
    return scores


@pytest.mark.parametrize("models", [3, 5, 13])
def test_hard_scenario_is_found_and_no_other_is_flagged(models: int) -> None:
    random = np.random.default_rng(models)
    found = [found_in(scores_of(random, models, 10)) for _ in range(100)]
    flagged = [{effect.scenario for effect in each.shifts if effect.significant} for each in found]
    assert sum("scenario-5" in names for names in flagged) >= 95
    assert sum(bool(names - {"scenario-5"}) for names in flagged) <= 7
    neutral = [found_in(scores_of(random, models, 0)).verdict for _ in range(100)]
    assert sum(verdict.startswith("not neutral") for verdict in neutral) <= 12


def test_verdict_names_the_hard_scenario_and_its_shift() -> None:
    scores = 50 + np.array([[np.sin(m * 7 + t * 3) for t in range(8)] for m in range(4)])
    assert found_in(scores).verdict == "neutral (no scenario is harder or easier for all models)"
    scores[:, 2] -= 9
    found = found_in(scores)
    assert found.verdict.startswith("not neutral (scenario scenario-2 is harder for all models by ")
    assert (found.shifts[0].scenario, found.limit) == ("scenario-2", NEUTRALITY_LIMIT)
    assert found.range == pytest.approx(max(found.means) - min(found.means))


def test_one_model_that_breaks_shifts_no_scenario() -> None:
    scores = scores_of(np.random.default_rng(1), 4, 0)
    scores[0, 3] -= 40
    assert found_in(scores).verdict.startswith("neutral")


def test_ratio_is_the_shift_in_standard_errors_of_the_other_scenarios() -> None:
    overall = np.array([[60.0, 61, 62, 50], [70, 72, 71, 60]])
    shifts, ratios = shifts_of(overall)
    assert shifts.tolist() == [-0.75, 0.75, 0.75, -10.75]
    assert ratios[3] == pytest.approx(10.75 / np.sqrt(1 / 2))


def test_single_model_and_few_scenarios_are_not_found_in() -> None:
    for scores in ([[50.0, 60, 70, 80]], [[50.0, 60, 70], [50, 60, 70]]):
        found = found_in(np.array(scores))
        assert (found.limit, found.shifts) == (None, [])
        assert found.verdict.startswith("not known")

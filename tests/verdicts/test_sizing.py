"""What would show a drop: the variances as they are, and the same smallest drop that a comparison then prints."""

import math

import numpy as np
import pytest
from skill_evaluator.verdicts.effects import case_effects, replicate_effect
from skill_evaluator.verdicts.sizing import Spread, drop_beyond, drop_on_fixtures, sizing_of, spread_of

from tests.support.records import Score, a_record


def simulated(cases: int, replicates: int, between: float, within: float, seed: int = 0) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [list(rng.normal(mean, within, replicates)) for mean in rng.normal(0.5, between, cases)]


def test_the_variances_are_taken_apart() -> None:
    found = spread_of(simulated(4000, 3, 0.2, 0.1))
    assert found is not None
    assert math.sqrt(found.between) == pytest.approx(0.2, rel=0.05)
    assert math.sqrt(found.noise) == pytest.approx(0.1, rel=0.05)


def test_noise_alone_is_not_taken_for_a_difference_between_cases() -> None:
    found = spread_of(simulated(4000, 2, 0.0, 0.1))
    assert found is not None
    assert found.between < 0.001


@pytest.mark.parametrize("cases", [[], [[1.0, 0.5]], [[1.0], [0.5]]])
def test_one_case_or_one_replicate_says_nothing(cases: list[list[float]]) -> None:
    assert spread_of(cases) is None


@pytest.mark.parametrize("replicates", [2, 5])
def test_on_fixtures_it_is_the_drop_that_a_comparison_of_such_records_prints(replicates: int) -> None:
    rates = [[float((at + one) % 3 > 0) for one in range(replicates)] for at in range(9)]
    for cases in (simulated(12, replicates, 0.2, 0.1), rates, [[1.0] * replicates] * 7):
        spread, effect = spread_of(cases), replicate_effect(cases, cases)
        assert spread is not None
        assert effect is not None
        assert drop_on_fixtures(spread, replicates) == pytest.approx(effect.detectable_drop)


def test_beyond_them_it_is_the_drop_that_a_comparison_prints_on_average() -> None:
    """Scores of a case before and after that correlate by one half, as the planning takes them to."""
    rng, between, within, count, replicates = np.random.default_rng(4), 0.2, 0.1, 2000, 4
    common = rng.normal(0, between * math.sqrt(0.5), count)
    arms = [common + rng.normal(0, between * math.sqrt(0.5), count) for _ in range(2)]
    noisy = [arm + rng.normal(0, within / math.sqrt(replicates), count) for arm in arms]
    (effect,) = case_effects([list(noisy[1] - noisy[0])])
    spread = Spread(between=between**2, within=(within**2,) * count)
    assert effect is not None
    assert drop_beyond(spread, count, replicates) == pytest.approx(effect.detectable_drop, rel=0.05)


def test_beyond_few_cases_too() -> None:
    rng, count = np.random.default_rng(5), 15
    effects = case_effects([list(rng.normal(0, 0.2, count)) for _ in range(400)])
    drops = [effect.detectable_drop or 0.0 for effect in effects if effect is not None]
    spread = Spread(between=0.04, within=(0.0,) * count)
    assert drop_beyond(spread, count, 1) == pytest.approx(float(np.mean(drops)), rel=0.05)


def test_five_cases_are_beyond_no_chance_whatever_the_drop() -> None:
    """Of 2^5 patterns of signs two are extreme: p is 0.0625 at best."""
    spread = Spread(between=1e-6, within=(0.0,) * 5)
    assert drop_beyond(spread, 5, 10) is None
    assert drop_beyond(spread, 6, 10) is not None


def test_so_many_cases_show_the_drop_and_one_less_does_not() -> None:
    scores: dict[str, list[Score]] = {f"c{at}": list(case) for at, case in enumerate(simulated(30, 5, 0.2, 0.1))}
    found = sizing_of(a_record(scores, cost_usd=1.5), "field_level_f1", 0.05)
    spread = spread_of(simulated(30, 5, 0.2, 0.1))
    assert spread is not None
    assert [choice.replicates for choice in found.choices] == [1, 2, 3, 5, 10, 20]
    for choice in found.choices:
        assert choice.cases is not None
        assert (drop_beyond(spread, choice.cases, choice.replicates) or 1) <= 0.05
        assert (drop_beyond(spread, choice.cases - 1, choice.replicates) or 1) > 0.05
        assert choice.calls == choice.cases * choice.replicates
        assert choice.cost_usd == pytest.approx(choice.calls * 0.01)
    needed = found.replicates_needed
    assert needed is not None
    assert (drop_on_fixtures(spread, needed) or 1) <= 0.05
    assert needed == 2 or (drop_on_fixtures(spread, needed - 1) or 1) > 0.05


def test_where_nothing_varied_it_is_the_drop_that_so_many_answers_all_alike_show() -> None:
    perfect: dict[str, list[Score]] = {f"c{at}": [1.0, 1.0] for at in range(10)}
    found = sizing_of(a_record(perfect), "field_level_f1", 0.05)
    (cases,) = {choice.cases for choice in found.choices}
    effect = case_effects([[0.0] * (cases or 0)])[0]
    assert effect is not None
    assert (effect.detectable_drop or 1) <= 0.05
    assert found.replicates_needed is not None
    assert cases == pytest.approx(found.replicates_needed * 10, abs=10)


def test_an_unknown_cost_is_not_a_cost_of_nothing() -> None:
    scores: dict[str, list[Score]] = {"a": [0.4, 0.5], "b": [0.8, 0.9]}
    found = sizing_of(a_record(scores, cost_usd=None), "field_level_f1", 0.05)
    assert found.cost_per_call_usd is None
    assert {choice.cost_usd for choice in found.choices} == {None}


def test_calls_that_failed_cost_nothing_and_answers_that_cannot_be_read_do() -> None:
    scores: dict[str, list[Score]] = {"a": [0.4, "unparseable", "provider_error"], "b": [0.8, 0.9, 0.7]}
    assert sizing_of(a_record(scores, cost_usd=1.0), "field_level_f1", 0.05).cost_per_call_usd == pytest.approx(0.2)

"""What would show a drop: the variances as they are, and the same smallest drop that a comparison then prints."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.drops import Premises, Spread, drop_beyond, drop_on_fixtures, spread_of
from skill_evaluator.verdicts.effects import Extra, case_effects, replicate_effect
from skill_evaluator.verdicts.results import MeasureResult
from skill_evaluator.verdicts.sizing import DesignChoice, Sizing, sizings_of

from tests.support.records import Score, a_record
from tests.support.rules import some_rules


def simulated(cases: int, replicates: int, between: float, within: float, seed: int = 0) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [list(rng.normal(mean, within, replicates)) for mean in rng.normal(0.5, between, cases)]


def recorded(cases: int, replicates: int, seed: int = 0, **changed: Any) -> Record:
    scores = simulated(cases, replicates, 0.2, 0.1, seed)
    return a_record({f"c{at}": list(case) for at, case in enumerate(scores)}, **changed)


def sized(*runs: Record, detect: float = 0.05, interleaved: bool = False) -> Sizing:
    (found,) = sizings_of([runs], detect, interleaved=interleaved)
    return found


def design(found: Sizing, name: str) -> DesignChoice:
    (choice,) = (one for one in found.designs if one.design == name)
    return choice


def printed(**records: Any) -> MeasureResult:
    """What `compare` says of the primary metric, where both versions scored the same."""
    (model,) = compare_records("s", [Pair(**records)], some_rules()).models
    return model.metrics[0]


def unsampled(**changed: Any) -> dict[str, Any]:
    sampled = a_record({"a": [1.0]}).settings
    return {"settings": sampled.model_copy(update={"profile": "deterministic"}), **changed}


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


@settings(max_examples=15, deadline=None)
@given(
    count=st.integers(3, 6),
    replicates=st.integers(2, 4),
    unshown=st.sampled_from([0.0, 1e-6, 1e-4, 0.01]),
    degrees=st.floats(1, 30),
    seed=st.integers(0, 1000),
)
def test_what_stands_between_the_runs_is_added_as_a_comparison_adds_it(
    count: int, replicates: int, unshown: float, degrees: float, seed: int
) -> None:
    cases = simulated(count, replicates, 0.2, 0.1, seed)
    spread = spread_of(cases)
    effect = replicate_effect(cases, cases, extra=Extra(variance=2 * unshown, degrees=degrees))
    assert spread is not None
    assert effect is not None
    premises = Premises(run=Extra(variance=unshown, degrees=degrees))
    assert drop_on_fixtures(spread, replicates, premises) == pytest.approx(effect.detectable_drop)


def test_a_recorded_run_is_planned_with_the_run_effect_that_its_comparison_allows_for() -> None:
    run = recorded(12, 5)
    found = design(sized(run), "recorded")
    assert not found.one_draw
    compared = printed(baseline=run, candidate=run.model_copy(update={"run_id": "another"}))
    assert found.present_fixtures == pytest.approx(compared.fixtures.detectable_drop, abs=1e-6)


def test_with_aa_runs_it_is_planned_with_what_they_show() -> None:
    runs = [recorded(12, 5, seed, run_id=f"run-{seed}") for seed in range(3)]
    found = design(sized(*runs), "recorded, A/A")
    compared = printed(baseline=runs[0], baseline_again=tuple(runs[1:]), candidate=runs[0])
    assert found.runs == 3
    assert found.present_fixtures == pytest.approx(compared.fixtures.detectable_drop, rel=0.1)


def test_two_versions_in_one_run_have_no_day_between_them() -> None:
    run = recorded(12, 5)
    found = sized(run, interleaved=True)
    beside = run.model_copy(update={"run_id": "another", "beside": run.run_id})
    compared = printed(baseline=run, candidate=beside)
    assert found.design == "interleaved"
    assert design(found, "interleaved").hidden == 0.0
    assert design(found, "interleaved").present_fixtures == pytest.approx(compared.fixtures.detectable_drop, abs=1e-6)
    assert (found.replicates_needed or 0) == 5
    assert sized(run).replicates_needed is None, "two days hide the drop, however many answers there are"


def test_where_nothing_tells_a_case_is_one_draw_and_its_own_cases_show_what_cases_beyond_them_do() -> None:
    found = sized(recorded(12, 5, **unsampled()))
    alone, again = design(found, "recorded"), design(found, "recorded, A/A")
    assert alone.one_draw
    assert alone.present_fixtures == alone.present_beyond
    assert not again.one_draw
    assert (again.present_fixtures or 1) < (alone.present_fixtures or 0)


def test_a_drop_that_the_days_hide_is_shown_by_no_number_of_cases() -> None:
    wide = {f"c{at}": [0.0, 1.0, 0.0, 1.0] for at in range(10)}
    found = sized(a_record(wide), detect=0.05)
    alone = design(found, "recorded")
    assert (alone.hidden) > 0.05
    assert (alone.cases, alone.replicates_needed, found.replicates_needed) == (None, None, None)
    assert design(found, "interleaved").cases is not None


def test_the_effect_of_a_run_is_learned_from_all_models() -> None:
    """Two models were run twice, and each moved by 0.2 in all cases: a comparison of either allows for both."""
    versions = []
    for seed in range(2):
        scores = simulated(12, 5, 0.2, 0.05, seed)
        runs = [
            a_record({f"c{at}": [score + day for score in case] for at, case in enumerate(scores)}, run_id=f"run-{day}")
            for day in (0.0, 0.2)
        ]
        versions.append(runs)
    (first, second), (alone,) = sizings_of(versions, 0.05), sizings_of(versions[:1], 0.05)
    assert first.aa_runs == second.aa_runs == 2
    assert (first.between_runs or 0) > (alone.between_runs or 0) > 0


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
    found = sized(recorded(30, 5, cost_usd=1.5), interleaved=True)
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
    found = sized(a_record(perfect))
    (cases,) = {choice.cases for choice in found.choices}
    effect = case_effects([[0.0] * (cases or 0)])[0]
    assert effect is not None
    assert (effect.detectable_drop or 1) <= 0.05
    assert found.replicates_needed is not None
    assert cases == pytest.approx(found.replicates_needed * 10, abs=10)


def test_an_unknown_cost_is_not_a_cost_of_nothing() -> None:
    scores: dict[str, list[Score]] = {"a": [0.4, 0.5], "b": [0.8, 0.9]}
    found = sized(a_record(scores, cost_usd=None))
    assert found.cost_per_call_usd is None
    assert {choice.cost_usd for choice in found.choices} == {None}


def test_calls_that_failed_cost_nothing_and_answers_that_cannot_be_read_do() -> None:
    scores: dict[str, list[Score]] = {"a": [0.4, "unparseable", "provider_error"], "b": [0.8, 0.9, 0.7]}
    assert sized(a_record(scores, cost_usd=1.0)).cost_per_call_usd == pytest.approx(0.2)

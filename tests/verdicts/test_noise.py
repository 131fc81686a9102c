"""What a day between two runs adds to the error, and which replicates are independent draws."""

from dataclasses import replace

import pytest
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.measuring import ArmStatistics, Measure, measure_pair, samples

from tests.support.records import Score, a_record

RECORD = a_record({"a": [1.0]})


def test_day_moves_scores_near_one_half_most() -> None:
    arms = [((1.0,) * right + (0.0,) * (10 - right),) * 12 for right in (5, 9, 10)]
    pair = Pair(baseline=RECORD, candidate=RECORD)
    middle, high, certain = (
        Measure(name="m", kind="accuracy", scores=(arm, arm), pair=pair).day_variance for arm in arms
    )
    assert middle == pytest.approx(2 * 0.025**2)
    assert middle > high > certain == 0.0
    again = Pair(baseline=RECORD, candidate=RECORD, baseline_again=(RECORD,), candidate_again=(RECORD,) * 3)
    measure = Measure(name="m", kind="accuracy", scores=(arms[0], arms[0]), pair=again)
    assert measure.day_variance == pytest.approx(middle / 2 * (1 / 2 + 1 / 4))


def test_slope_is_at_most_the_standard_deviation() -> None:
    assert ArmStatistics.of(((0.49, 0.51) * 5,) * 12).slope == pytest.approx(0.0105, abs=0.0005)


def test_slope_shrinks_single_outputs_towards_the_mean() -> None:
    arm = ArmStatistics.of(((1.0,),) * 8 + ((0.0,),) * 2)
    assert arm.slope == pytest.approx(0.8 * 0.9 * 0.1 + 0.2 * 0.4 * 0.6)


@pytest.mark.parametrize(
    ("profile", "provider", "known"),
    [("sampled", "openai", True), ("deterministic", "openai", False), ("sampled", "replay", False)],
)
def test_replicates_are_draws_only_for_sampled_providers(profile: str, provider: str, *, known: bool) -> None:
    record = a_record({"a": [1.0]}, provider=provider)
    settings = record.settings.model_copy(update={"profile": profile})
    assert samples(record.model_copy(update={"settings": settings})) is known


def test_interleaved_runs_have_no_variance_of_a_day() -> None:
    cases: dict[str, list[Score]] = {f"c{at}": [0.4 + 0.01 * at, 0.6 + 0.01 * at] for at in range(12)}
    before = a_record(cases, run_id="old")
    pairs = (
        Pair(baseline=before, candidate=a_record(cases)),
        Pair(baseline=before, candidate=a_record(cases, beside="old")),
        Pair(baseline=before, candidate=a_record(cases), side_by_side=True),
    )
    apart, beside, taken = (measure_pair(pair).measured[0] for pair in pairs)
    assert apart.day_variance > 0.0
    assert beside.day_variance == taken.day_variance == 0.0
    errors = [measured.effect.error for measured in (apart, beside, taken) if measured.effect]
    assert errors[0] > errors[1] == errors[2]


def test_drift_after_the_run_of_the_baseline_prevents_a_comparison() -> None:
    drift = {"since": "earlier", "moved": ["exact_match 1.000 → 0.000"]}
    later = {"skill_version": "1.1.0", "timestamp": "2026-02-01T00:00:00Z", "drift": drift}
    pair = Pair(baseline=a_record({"a": [1.0]}, run_id="old"), candidate=a_record({"a": [1.0]}, run_id="new", **later))
    barrier = "the model moved after 1.0.0 was run, though the prompt did not (exact_match 1.000 → 0.000)"
    for compared, barriers in ((pair, (barrier,)), (replace(pair, side_by_side=True), ())):
        common = measure_pair(compared).common
        assert common.barriers == barriers

"""The noise that no run alone shows: from A/A runs where there are some, else from the stated value."""

import math

import numpy as np
import pytest
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.measuring import measure_all
from skill_evaluator.verdicts.noise import RUN_SHARE, RunEffect, Runs, noise_of, run_effect, samples

from tests.support.records import Score, a_record

Arm = list[list[float]]
KNOWN = RunEffect(share=0.0, degrees=10.0)


def drawn(
    rng: np.random.Generator, cases: int = 40, replicates: int = 5, *, case_run: float = 0.0, run: float = 0.0
) -> Arm:
    """One run of scores around 0.5, with noise of 0.1 between replicates and what is asked for between runs."""
    shared = 0.5 + rng.normal(0, run or 1e-12) + rng.normal(0, case_run or 1e-12, (cases, 1))
    return list((shared + rng.normal(0, 0.1, (cases, replicates))).tolist())


def test_without_a_run_again_nothing_tells_what_a_case_s_answers_share() -> None:
    rng = np.random.default_rng(1)
    runs = Runs.of([drawn(rng)], [drawn(rng)])
    assert noise_of(runs, KNOWN, independent=False).case_run is None
    independent = noise_of(runs, KNOWN, independent=True)
    assert independent.case_run is not None
    assert independent.case_run.variance == 0.0
    assert independent.replicate == pytest.approx(2 * 0.1**2 / 5 / 40, rel=0.2)


def test_case_by_run_is_the_interaction_of_two_way_analysis_of_variance_less_what_replicates_explain() -> None:
    """With two runs, half the variance of the paired differences."""
    rng = np.random.default_rng(2)
    first, second = drawn(rng, case_run=0.2), drawn(rng, case_run=0.2)
    noise = noise_of(Runs.of([first, second], [first]), KNOWN, independent=False)
    differences = np.mean(first, axis=1) - np.mean(second, axis=1)
    interaction = differences.var(ddof=1) / 2
    replicate = np.mean([np.var(arm, axis=1, ddof=1).mean() / 5 for arm in (first, second)])
    assert noise.case_run is not None
    assert noise.case_run.variance == pytest.approx((interaction - replicate) / 40 * (1 / 2 + 1))
    assert noise.case_run.degrees == 39


def test_estimates_come_near_the_truth_on_average() -> None:
    rng = np.random.default_rng(3)
    estimates = []
    for _ in range(300):
        arms = [drawn(rng, 20, case_run=0.1) for _ in range(3)]
        noise = noise_of(Runs.of(arms[:2], arms[2:]), KNOWN, independent=False)
        assert noise.case_run is not None
        estimates.append(noise.case_run.variance * 20 / 1.5)
    assert np.mean(estimates) == pytest.approx(0.1**2, rel=0.1)


def test_the_stated_value_holds_until_runs_say_otherwise() -> None:
    rng = np.random.default_rng(4)
    nothing = run_effect([])
    assert nothing.share == pytest.approx(RUN_SHARE)
    assert (nothing.degrees, nothing.runs) == (3.0, 0)
    calm = run_effect([Runs.of([drawn(rng) for _ in range(3)], [drawn(rng)]) for _ in range(8)])
    rough = run_effect([Runs.of([drawn(rng, run=0.1) for _ in range(3)], [drawn(rng)]) for _ in range(8)])
    assert (calm.runs, rough.runs) == (16, 16)
    assert calm.share < RUN_SHARE / 1.5
    assert rough.share == pytest.approx(1.0, abs=0.4)  # a run moves as much as one answer does
    assert calm.degrees > 10


def test_few_answers_weigh_less_than_many() -> None:
    rng = np.random.default_rng(5)
    few = run_effect([Runs.of([drawn(rng, 4, 2) for _ in range(2)], [drawn(rng, 4, 2)])])
    many = run_effect([Runs.of([drawn(rng, 200, 10) for _ in range(2)], [drawn(rng, 200, 10)])])
    assert few.degrees < 3.1 < 3.8 < many.degrees < 4.0


@pytest.mark.parametrize(
    ("profile", "provider", "known"),
    [("sampled", "openai", True), ("deterministic", "openai", False), ("sampled", "replay", False)],
)
def test_only_a_provider_that_samples_is_known_to_draw_each_answer(profile: str, provider: str, *, known: bool) -> None:
    record = a_record({"a": [1.0]}, provider=provider)
    settings = record.settings.model_copy(update={"profile": profile})
    assert samples(record.model_copy(update={"settings": settings})) is known


def test_two_versions_asked_in_one_run_have_no_run_between_them() -> None:
    cases: dict[str, list[Score]] = {f"c{at}": [0.4 + 0.01 * at, 0.6 + 0.01 * at] for at in range(12)}
    before = a_record(cases, run_id="old")
    apart = measure_all([Pair(baseline=before, candidate=a_record(cases))], "field_level_f1")[0]
    together = measure_all([Pair(baseline=before, candidate=a_record(cases, beside="old"))], "field_level_f1")[0]
    assert apart.measured[0].noise.run.variance > 0.0
    assert together.measured[0].noise.run.variance == 0.0
    assert together.run.degrees == math.inf
    effects = [compared.measured[0].effects["fixtures"] for compared in (apart, together)]
    assert effects[0] is not None
    assert effects[1] is not None
    assert effects[0].error > effects[1].error


def test_runs_of_a_version_are_pooled() -> None:
    rng = np.random.default_rng(6)
    runs: list[dict[str, list[Score]]] = [
        {f"c{at}": list(scores) for at, scores in enumerate(np.clip(drawn(rng, 12), 0, 1).tolist())} for _ in range(3)
    ]
    pair = Pair(
        baseline=a_record(runs[0], run_id="1"),
        baseline_again=(a_record(runs[1], run_id="2"),),
        candidate=a_record(runs[2], run_id="3"),
    )
    measured = measure_all([pair], "field_level_f1")[0].measured[0]
    assert {len(scores) for scores in measured.measure.before} == {10}
    assert {len(scores) for scores in measured.measure.after} == {5}
    assert measured.noise.case_run is not None

"""What a run as a whole adds to a score: from further runs of one version where there are some, else a stated value."""

import numpy as np
import pytest
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.measuring import (
    RUN_SD,
    RunEffect,
    Runs,
    measure_all,
    parts_of,
    run_effect,
    samples,
)

from tests.support.records import Score, a_record

Arm = tuple[tuple[float, ...], ...]
SLOPE = 0.1  # of these scores: they move no more than they vary


def drawn(rng: np.random.Generator, cases: int = 40, replicates: int = 5, *, run: float = 0.0) -> Arm:
    """One run of scores around 0.5, with noise of 0.1 between replicates; `run` is its deviation on the logit scale."""
    shared = 0.5 + SLOPE * rng.normal(0, run or 1e-12)
    return tuple(map(tuple, (shared + rng.normal(0, 0.1, (cases, replicates))).tolist()))


def test_the_stated_value_holds_until_runs_say_otherwise() -> None:
    rng = np.random.default_rng(4)
    nothing = run_effect([])
    assert (nothing.sd, nothing.runs) == (pytest.approx(RUN_SD), 0)
    calm = run_effect([Runs.of([drawn(rng) for _ in range(3)], [drawn(rng)]) for _ in range(8)])
    rough = run_effect([Runs.of([drawn(rng, run=0.3) for _ in range(3)], [drawn(rng)]) for _ in range(8)])
    assert (calm.runs, rough.runs) == (16, 16)
    assert calm.sd < RUN_SD / 1.5
    assert rough.sd == pytest.approx(0.3, abs=0.12)


def test_few_answers_weigh_less_than_many() -> None:
    rng = np.random.default_rng(5)
    few = [run_effect([Runs.of([drawn(rng, 4, 2, run=1.0) for _ in range(2)], [drawn(rng, 4, 2)])]) for _ in range(40)]
    many = [
        run_effect([Runs.of([drawn(rng, 200, 10, run=1.0) for _ in range(2)], [drawn(rng, 200, 10)])])
        for _ in range(40)
    ]
    assert np.mean([one.sd for one in few]) < np.mean([one.sd for one in many]) / 1.5


def test_a_run_moves_scores_near_one_half_most_and_certain_ones_not_at_all() -> None:
    run = RunEffect(sd=0.1)
    arms = [((1.0,) * right + (0.0,) * (10 - right),) * 12 for right in (5, 9, 10)]
    middle, high, certain = (run.variance(Runs.of([arm], [arm])) for arm in arms)
    assert middle == pytest.approx(2 * 0.025**2)
    assert middle > high > certain == 0.0
    assert run.variance(Runs.of([arms[0]] * 3, [arms[0]])) == pytest.approx(middle * 2 / 3)


def test_a_score_of_many_parts_that_hardly_varies_moves_no_more_than_it_varies() -> None:
    arm = ((0.49, 0.51) * 5,) * 12
    assert Runs.of([arm], [arm]).before[0].slope == pytest.approx(0.0105, abs=0.0005)


def test_single_answers_of_right_and_wrong_leave_a_run_room_to_move_them() -> None:
    """Scores of 0 and 1 have no middle of their own: each is drawn towards the mean of all."""
    arm = ((1.0,),) * 8 + ((0.0,),) * 2
    runs = Runs.of([arm], [arm])
    assert runs.before[0].slope == pytest.approx(0.8 * 0.9 * 0.1 + 0.2 * 0.4 * 0.6)


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
    pairs = (
        Pair(baseline=before, candidate=a_record(cases)),
        Pair(baseline=before, candidate=a_record(cases, beside="old")),
        Pair(baseline=before, candidate=a_record(cases), side_by_side=True),
    )
    apart, beside, taken = (measure_all([pair], "field_level_f1")[0].measured[0] for pair in pairs)
    assert apart.of_runs > 0.0
    assert beside.of_runs == taken.of_runs == 0.0
    errors = [measured.effects["these"].error for measured in (apart, beside, taken) if measured.effects["these"]]
    assert errors[0] > errors[1] == errors[2]


def test_the_parts_of_the_noise_add_up_and_say_what_they_are_from() -> None:
    rng = np.random.default_rng(6)
    runs = Runs.of([drawn(rng)], [drawn(rng)])
    parts = parts_of(runs, RunEffect(sd=0.1), error=0.05)
    assert sum((part.sd or 0.0) ** 2 for part in parts) == pytest.approx(0.05**2, abs=1e-6)
    assert [part.part for part in parts] == ["replicate", "case", "run"]
    assert "no version was run twice" in parts[-1].source


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
    (compared,) = measure_all([pair], "field_level_f1")
    measured = compared.measured[0]
    assert {len(scores) for scores in measured.measure.before} == {10}
    assert {len(scores) for scores in measured.measure.after} == {5}
    assert compared.run.runs == 1

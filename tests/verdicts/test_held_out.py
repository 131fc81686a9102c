"""Means corrected for the looks: exactly unbiased in a world that is small enough to count, and as wide as they say."""

from collections.abc import Sequence
from itertools import product
from statistics import fmean
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skill_evaluator.library.config import Gate
from skill_evaluator.verdicts import held_out
from skill_evaluator.verdicts.adaptive import Gauge, settled
from skill_evaluator.verdicts.effects import NO_EXTRA, Extra, both, case_effects, replicate_effect, unseen_share
from skill_evaluator.verdicts.held_out import Corrected, corrected_means
from skill_evaluator.verdicts.randomisation import Floats
from skill_evaluator.verdicts.strict_looks import (
    NEITHER,
    UNCHANGED,
    VERDICTS,
    Integers,
    StrictLook,
    strict_verdicts,
)
from skill_evaluator.verdicts.watched import Arms, Unseen, Watched

LOOK = StrictLook(after=2, share=0.2, level=0.001)
CHANCES = (0.7, 0.4)  # of two cases to be right
TRUTH = sum(CHANCES) / 2


def _watched(before: Floats, after: Floats, tolerance: float = 0.05) -> Watched:
    return Watched(
        gate="fixtures",
        before=before[None],
        after=after[None],
        tolerances=np.array([tolerance]),
        noises=(Unseen(),),
    )


def _corrected(after: Floats, verdict: str, *looks: StrictLook, before: Floats | None = None) -> Corrected:
    arm = np.zeros((len(after), 2)) if before is None else before
    (mean,) = corrected_means(_watched(arm, after), looks, verdict, [Arms(before=arm, after=after)])
    return mean


def _good_start(watched: Watched, runs: Floats, looks: Sequence[StrictLook]) -> Integers:
    """A look that calls two good replicates of both cases unchanged, and nothing else."""
    means = np.stack([runs[:, 0, :, : look.after].mean(axis=(1, 2)) for look in looks], axis=1)
    return np.where(means >= 0.75, UNCHANGED, NEITHER)


@pytest.fixture
def of_good_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "strict_verdicts", _good_start)


def _every_run(replicates: int) -> list[tuple[Floats, float]]:
    """Every run of two cases there can be, and its probability."""
    runs = [np.array(right, float).reshape(2, replicates) for right in product((0, 1), repeat=2 * replicates)]
    chances = np.array(CHANCES)[:, None]
    return [(run, float(np.where(run == 1, chances, 1 - chances).prod())) for run in runs]


@pytest.mark.parametrize(("stopped", "replicates"), [(True, 3), (False, 4)])
def test_over_all_runs_that_are_stopped_it_is_the_truth(stopped: bool, replicates: int, of_good_starts: None) -> None:
    verdict = "unchanged" if stopped else ""
    alike = [(run, chance) for run, chance in _every_run(replicates) if (run[:, :2].mean() >= 0.75) == stopped]
    total = sum(chance for _, chance in alike)
    plain = sum(chance * run.mean() for run, chance in alike) / total
    corrected = sum(chance * _corrected(run, verdict, LOOK).mean for run, chance in alike) / total
    assert abs(plain - TRUTH) > 0.05
    assert corrected == pytest.approx(TRUTH, abs=0.005)


def test_where_every_order_would_have_been_stopped_it_is_the_mean(of_good_starts: None) -> None:
    run = np.array([[1.0, 0.9, 0.8], [0.8, 0.9, 0.76]])
    assert _corrected(run, "unchanged", LOOK).mean == pytest.approx(run.mean())


def test_where_only_this_order_would_have_been_it_is_what_was_held_out(of_good_starts: None) -> None:
    run = np.array([[1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]] * 2)
    # one order in 784 of the replicates has both good ones first, in both cases
    assert _corrected(run, "unchanged", LOOK).mean == pytest.approx(0.0, abs=0.15)


def test_a_look_that_other_measures_decided_is_no_condition() -> None:
    run = np.array([[1.0, 0.0, 1.0, 0.0]] * 6)
    assert _corrected(run, "improved", LOOK).mean == pytest.approx(0.5)


def test_what_was_not_measured_is_in_no_mean() -> None:
    run = np.array([[1.0, np.nan, 1.0, 0.0], [0.0, 0.0, np.nan, np.nan], [np.nan] * 4])
    assert _corrected(run, "", LOOK).mean == pytest.approx((2 / 3 + 0.0) / 2)


def test_where_nothing_varied_the_interval_allows_for_what_no_answer_showed() -> None:
    ones = np.ones((6, 4))
    mean = _corrected(ones, "", LOOK, before=ones)
    assert mean == Corrected(mean=1.0, ci95=(pytest.approx(1 - unseen_share(24)), 1.0))


def test_an_interval_is_wider_the_more_the_look_has_chosen(of_good_starts: None) -> None:
    before = np.array([[1.0, 1.0, 1.0, 0.0, 0.0]] * 20)
    chosen = _corrected(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]] * 10), "unchanged", LOOK, before=before)
    never = _corrected(np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]] * 10), "", LOOK, before=before)
    assert chosen.ci95[1] - chosen.ci95[0] > 1.3 * (never.ci95[1] - never.ci95[0])


SCORES = st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=5, max_size=5), min_size=3, max_size=20)


EXTRAS = st.sampled_from([NO_EXTRA, Extra(variance=0.0004, degrees=10.0), Extra(variance=0.002, degrees=3.0)])


@pytest.mark.simulation
@settings(max_examples=150, deadline=None)
@given(
    *(SCORES, SCORES, st.sampled_from([0.05, 0.2, 0.5]), st.sampled_from([0.0, 0.05, 0.3])),
    *(st.sampled_from(get_args(Gate)), st.none() | EXTRAS, EXTRAS),
)
def test_what_many_runs_are_tried_by_is_the_rule_of_one(
    first: list[list[float]],
    second: list[list[float]],
    share: float,
    tolerance: float,
    gate: Gate,
    unshown: Extra | None,
    run: Extra,
) -> None:
    """Apart from changes, of which p is drawn for one run and nearly so for many."""
    cases = min(len(first), len(second))
    before, after = first[:cases], second[:cases]
    moved = [fmean(new) - fmean(old) for old, new in zip(before, after, strict=True)]
    (beyond,) = case_effects([moved], extras=[run])
    fixtures = beyond if unshown is None else replicate_effect(before, after, extra=unshown)
    effect = {"fixtures": fixtures, "generalises": beyond, "robust": both(fixtures, beyond)}[gate]
    expected = settled([Gauge(effect=effect, tolerance=tolerance)], "unchanged", share, 1e-300, 1) or ""
    arm, look = np.array(after), StrictLook(after=5, share=share, level=0.0)
    watched = Watched(
        gate=gate,
        before=np.array([before]),
        after=arm[None],
        tolerances=np.array([tolerance]),
        noises=(Unseen(unshown=unshown, run=run),),
    )
    ((reached,),) = strict_verdicts(watched, arm[None, None], [look])
    assert VERDICTS[reached] == expected


def test_p_of_many_runs_is_that_of_dealing_or_larger() -> None:
    rng = np.random.default_rng(5)
    before = (rng.random((12, 10)) < 0.9).astype(float)
    runs = (rng.random((300, 1, 12, 4)) < rng.choice([0.5, 0.7], size=(300, 1, 12, 1))).astype(float)
    look = StrictLook(after=4, share=0.2, level=0.001)
    reached = strict_verdicts(_watched(before, runs[0, 0]), runs, [look])[:, 0]
    dealt = [replicate_effect(before.tolist(), run[0].tolist()) for run in runs]
    regressed = [effect.p for effect, verdict in zip(dealt, reached, strict=True) if effect and VERDICTS[verdict]]
    assert len(regressed) > 100
    assert max(regressed) < 0.003


def test_what_is_missing_or_of_one_replicate_is_measured_as_of_one_run() -> None:
    before, after = [[1.0, 1.0], [0.5, 1.0, 0.0]], [[1.0], [0.5, 0.5]]
    expected = settled([Gauge(effect=replicate_effect(before, after), tolerance=0.9)], "unchanged", 0.2, 1e-300, 1)
    tables = [
        np.array([[1.0, np.nan, 1.0], [0.5, 1.0, 0.0], [1.0, 1.0, 1.0]]),
        np.array([[np.nan, 1.0], [0.5, 0.5], [np.nan, np.nan]]),
    ]
    look = StrictLook(after=2, share=0.2, level=0.0)
    ((reached,),) = strict_verdicts(_watched(*tables, 0.9), tables[1][None, None], [look])
    assert VERDICTS[reached] == (expected or "")

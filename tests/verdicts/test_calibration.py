"""A record's own replicates through the gate: what must be found where the truth is known, and in what form."""

import datetime
import random
import statistics
from typing import Any

import pytest
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.records.record import Record
from skill_evaluator.reports.sensitivity import calibration_markdown, print_calibration
from skill_evaluator.verdicts.calibration import Calibration, calibrate
from skill_evaluator.verdicts.dealing import HalvesDealer, RunsDealer
from skill_evaluator.verdicts.rules import Waiver

from tests.support.markdown import read_page
from tests.support.records import Score, a_record
from tests.support.rules import some_rules

NAMES = [f"case-{at:02}" for at in range(12)]


def noisy(replicates: int = 8, **changed: Any) -> Record:
    """Twelve cases whose replicates differ: shares, a rate, and a field."""
    dice = random.Random(4)
    ease = {name: 0.5 + 0.4 * dice.random() for name in NAMES}
    shares: dict[str, list[Score]] = {
        name: [sum(dice.random() < ease[name] for _ in range(20)) / 20 for _ in range(replicates)] for name in NAMES
    }
    rates = {name: [float(dice.random() < ease[name]) for _ in range(replicates)] for name in NAMES}
    return a_record(
        shares,
        other={"exact_match": rates},
        fields={"total": {name: (int(sum(rates[name])), replicates) for name in NAMES}},
        agreement=dict.fromkeys(NAMES, 0.5),
        **changed,
    )


@pytest.fixture(scope="module")
def found() -> Calibration:
    return calibrate(noisy(), some_rules(), times=60, seed=1)


def test_where_nothing_differs_alarms_are_as_rare_as_promised(found: Calibration) -> None:
    assert found.planted[0].drop == 0.0
    assert found.planted[0].nominal == found.alpha == 0.05
    assert found.false_alarms <= 0.05 + 3 * (0.05 * 0.95 / 60) ** 0.5
    assert abs(found.planted[0].fell) < 0.01


def test_the_larger_the_planted_drop_the_more_often_it_is_found(found: Calibration) -> None:
    shares = [row.regressed for row in found.planted]
    assert shares[0] < 0.05 < shares[2]
    assert shares[-1] == 1.0
    assert found.planted[-1].fell == pytest.approx(4 * found.tolerance, abs=0.02)


def test_measured_power_is_near_the_nominal(found: Calibration) -> None:
    for row in found.planted[1:]:
        assert row.nominal is not None
        assert row.regressed == pytest.approx(row.nominal, abs=0.25)


def test_what_is_said_adds_up(found: Calibration) -> None:
    for row in found.planted:
        assert row.regressed + row.improved + row.unchanged + row.inconclusive == pytest.approx(1.0)
    assert (found.n_cases, found.replicates, found.left_out, found.family) == (12, 4, 0, 3)


def test_the_same_seed_finds_the_same() -> None:
    assert calibrate(noisy(), some_rules(), 10, seed=3) == calibrate(noisy(), some_rules(), 10, seed=3)


def test_a_record_without_noise_raises_no_alarm_and_every_large_drop() -> None:
    even = a_record({name: [0.9] * 20 for name in NAMES})
    found = calibrate(even, some_rules(), 20, seed=0)
    assert found.false_alarms == 0.0
    assert found.planted[-1].regressed == 1.0
    assert found.planted[0].improved == 0.0


def test_a_rate_falls_by_answers_that_turn_wrong() -> None:
    rates: dict[str, list[Score]] = {name: [1.0] * 20 for name in NAMES}
    found = calibrate(a_record(rates), some_rules(), 40, seed=0)
    for row in found.planted:
        assert row.fell == pytest.approx(row.drop, abs=0.03)


def test_fewer_than_four_replicates_are_refused() -> None:
    with pytest.raises(LeaderboardError, match=r"has 3 replicates a case; .* needs at least 4"):
        calibrate(noisy(replicates=3), some_rules(), 10, seed=0)


def test_cases_with_too_few_answers_are_left_out_and_counted() -> None:
    cases: dict[str, list[Score]] = {"a": [0.5, 0.6, 0.7, 0.8], "b": [0.5, 0.6, 0.7, "provider_error"]}
    found = calibrate(a_record(cases), some_rules(), 5, seed=0)
    assert (found.n_cases, found.left_out, found.replicates) == (1, 1, 2)


def test_waivers_and_coverage_of_the_run_do_not_matter() -> None:
    waiver = Waiver(component="s", metric="field_level_f1", reason="known", expires=datetime.date(2027, 1, 1))
    assert calibrate(noisy(coverage=0.2), some_rules({}, waiver), 20, seed=0).planted[-1].regressed == 1.0


def test_the_gate_of_the_policy_is_the_one_calibrated() -> None:
    found = calibrate(noisy(), some_rules({"gate": "generalises", "tolerance": 0.1}), 20, seed=0)
    assert (found.gate, found.tolerance) == ("generalises", 0.1)
    assert [row.drop for row in found.planted] == pytest.approx([0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    calibrate(noisy(4), some_rules(), 10, seed=0, progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (22, 22)


def test_the_page_shows_measured_beside_nominal(found: Calibration, capsys: pytest.CaptureFixture[str]) -> None:
    print_calibration(found, "text")
    text = capsys.readouterr().out
    page = calibration_markdown(found)
    for shown in (text, page):
        assert f"false alarms {found.false_alarms:.1%} of 60 (regressed" in shown
        assert "), nominal at most 5.0%" in shown
        assert "halves of 4 replicates in 12 cases, 3 measures" in shown
    assert len(read_page(page).tables[0]) == 8
    print_calibration(found, "json")
    assert Calibration.model_validate_json(capsys.readouterr().out) == found


def test_names_from_outside_are_no_mark_up(found: Calibration) -> None:
    page = calibration_markdown(found.model_copy(update={"model_id": "a|b", "skill": "`x`"}))
    assert "`a\\|b`" in page
    assert "`` `x` ``" in page


def unsampled(record: Record) -> Record:
    settings = record.settings.model_copy(update={"profile": "deterministic"})
    return record.model_copy(update={"settings": settings})


def days(*shifts: float) -> list[Record]:
    """Runs of one version whose answers agree within a case and run: each case was drawn once a run."""
    runs = []
    for day, shift in enumerate(shifts):
        dice = random.Random(day)
        scores: dict[str, list[Score]] = {
            name: [round(0.5 + shift + 0.2 * (dice.random() - 0.5), 3)] * 4 for name in NAMES
        }
        runs.append(unsampled(a_record(scores, run_id=f"run-{day}")))
    return runs


def test_where_nothing_tells_it_is_also_said_what_one_draw_a_case_would_do() -> None:
    found = calibrate(unsampled(noisy()), some_rules(), 10, seed=0)
    assert found.one_draw is not None
    assert (found.one_draw.times, found.one_draw.drop) == (2, 0.0)
    page = calibration_markdown(found)
    assert "if the answers of a case were one draw" in page
    assert "nor what a day does: `evaluate --aa` measures both" in page
    assert calibrate(noisy(), some_rules(), 5, seed=0).one_draw is None


def test_copies_of_one_answer_vary_as_single_answers_do() -> None:
    record, dice = noisy(), random.Random(1)
    for case in HalvesDealer(record, dice, copies=True).deal(0.0).candidate.per_case:
        (score,) = set(case.replicates["field_level_f1"])
        assert score in next(own for own in record.per_case if own.case_id == case.case_id).replicates["field_level_f1"]


def test_runs_are_dealt_whole_so_that_answers_which_agree_within_a_run_stay_together() -> None:
    """Halves of one such run never differ; its runs do."""
    runs = days(0.0, 0.0, 0.0)
    pair = RunsDealer(runs, "field_level_f1", random.Random(0)).deal(0.0)
    assert pair.baseline is not None
    dealt = [pair.candidate, pair.baseline, *pair.baseline_again]
    assert len(dealt) == 3
    for at, name in enumerate(NAMES):
        answers = [tuple(run.per_case[at].replicates["field_level_f1"]) for run in dealt]
        assert sorted(answers) == sorted(tuple(run.per_case[at].replicates["field_level_f1"]) for run in runs), name


def test_each_dealt_run_has_a_day_of_its_own_as_large_as_aa_runs_show() -> None:
    runs = [noisy(run_id=f"run-{day}") for day in range(3)]
    moved = [
        run.model_copy(
            update={
                "per_case": [
                    case.model_copy(
                        update={"replicates": {"field_level_f1": [s + day for s in scores if s is not None]}}
                    )
                    for case in run.per_case
                    for scores in [case.replicates["field_level_f1"]]
                ]
            }
        )
        for run, day in zip(runs, (-0.1, 0.0, 0.1), strict=True)
    ]
    calm, stormy = (RunsDealer(some, "field_level_f1", random.Random(0)) for some in (runs, moved))
    assert stormy.day > 2 * calm.day > 0
    falls = [
        _mean(pair.candidate) - _mean(pair.baseline) for pair in (stormy.deal(0.0) for _ in range(200)) if pair.baseline
    ]
    assert statistics.stdev(falls) == pytest.approx(2**0.5 * stormy.day, rel=0.25)
    assert statistics.mean(falls) == pytest.approx(0.0, abs=0.03)


def _mean(record: Record) -> float:
    return statistics.mean(s for case in record.per_case for s in case.replicates["field_level_f1"] if s is not None)


def test_with_aa_runs_it_is_said_what_a_day_does() -> None:
    first, *again = days(0.0, 0.01, -0.01)
    found = calibrate(first, some_rules(), 5, seed=0, again=again)
    assert found.runs is not None
    assert (found.runs.aa_runs, found.one_draw, found.replicates) == (2, None, 4)
    page = calibration_markdown(found)
    assert "3 runs of the version, dealt case by case, 12 cases, 1 measures" in page
    assert "each dealt run was moved by a day of its own, of standard deviation" in page


def test_runs_that_answered_no_case_in_common_are_refused() -> None:
    other = a_record({"elsewhere": [0.5] * 4})
    with pytest.raises(LeaderboardError, match=r"version 1.0.0 have no answered case in common"):
        calibrate(noisy(), some_rules(), 10, seed=0, again=[other])

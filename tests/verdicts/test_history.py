"""A component's history: each step as compare judges it, and changes only where all versions measure the same."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.history import history_of
from skill_evaluator.verdicts.history_results import ModelHistory

from tests.support.records import Score, a_record
from tests.support.rules import some_rules


def cases(level: float, count: int = 12, replicates: int = 5, version: int = 0) -> dict[str, list[Score]]:
    """Scores around a level; each case is a little up in one version and down in another, and all stay as they are."""
    return {
        f"case-{at:02d}": [
            level + 0.01 * (at % 5 + (at + version) % 3 - 1 + (at + 2 * one) % 3) for one in range(replicates)
        ]
        for at in range(count)
    }


def run(version: str, level: float, **changed: Any) -> Record:
    scores = changed.pop("cases", None) or cases(level, version=int(version.split(".")[1]))
    model_id = changed.get("model_id", "m")
    return a_record(scores, **{"skill_version": version, "run_id": f"{version}-{model_id}", **changed})


def versions(*records: Record) -> list[Pair]:
    """The versions of a model, of one run each, beside the one before."""
    later = [Pair(baseline=before, candidate=after) for before, after in pairwise(records)]
    return [Pair(baseline=None, candidate=records[0]), *later]


def history(*records: Record, **policy: Any) -> ModelHistory:
    (model,) = history_of("s", {"m": versions(*records)}, some_rules(policy)).models
    return model


def said(model: ModelHistory) -> list[tuple[str, str]]:
    return [(change.version, change.direction) for change in model.changes]


SEQUENCE = [run("1.0.0", 0.8), run("1.1.0", 0.8), run("1.2.0", 0.6), run("1.3.0", 0.6), run("1.4.0", 0.85)]


def test_each_version_is_judged_against_the_one_before() -> None:
    points = history(*SEQUENCE).points
    assert [(point.version, point.step and point.step.verdict) for point in points] == [
        ("1.0.0", None),
        ("1.1.0", "unchanged"),
        ("1.2.0", "regressed"),
        ("1.3.0", "unchanged"),
        ("1.4.0", "improved"),
    ]
    step = points[2].step
    assert step is not None
    assert (step.before, step.difference, step.reasons[0]) == ("1.1.0", -0.2, "field_level_f1 fell from 0.828 to 0.627")
    assert round(points[2].strict_mean or 0, 3) == 0.627


def test_the_version_that_made_it_worse_is_named_and_the_one_that_mended_it() -> None:
    model = history(*SEQUENCE)
    assert said(model) == [("1.2.0", "worse"), ("1.4.0", "better")]
    worse, better = model.changes
    assert (round(worse.before, 2), round(worse.after, 2), round(better.after, 2)) == (0.83, 0.63, 0.88)
    assert worse.q <= 0.05


def test_a_slow_decline_that_no_step_shows_is_a_change() -> None:
    """Every step is within the tolerance; the sequence is not flat beyond chance."""
    records = [run(f"1.{at}.0", 0.8 - 0.03 * at) for at in range(5)]
    model = history(*records)
    assert {point.step.verdict for point in model.points if point.step} == {"unchanged"}
    assert {change.direction for change in model.changes} == {"worse"}


def test_nothing_is_said_where_nothing_is_beyond_chance() -> None:
    assert history(*(run(f"1.{at}.0", 0.8) for at in range(4))).changes == []
    assert history(run("1.0.0", 0.8)).changes == []


def test_changes_are_looked_for_only_since_the_measurement_is_the_same() -> None:
    other = {"prompt": "p", "schema": "other", "settings": "m", "datasets": "d"}
    model = history(run("1.0.0", 0.9), run("1.1.0", 0.5, digests=other), run("1.2.0", 0.5, digests=other))
    assert model.changes == []
    assert model.remarks == ["changes are looked for from 1.1.0 on: the schema changed"]
    assert [point.step.verdict for point in model.points if point.step] == ["incomparable", "unchanged"]


def test_changes_are_looked_for_on_the_cases_that_all_versions_have() -> None:
    lacking = dict(list(cases(0.8).items())[:9])
    model = history(run("1.0.0", 0, cases=lacking), run("1.1.0", 0.8), run("1.2.0", 0.5))
    assert said(model) == [("1.2.0", "worse")]
    assert model.changes[0].n_cases == 9
    assert model.remarks == ["changes are looked for on 9 of 12 cases: those that all versions have unchanged"]


def test_what_changed_at_the_same_time_is_said() -> None:
    model = history(run("1.0.0", 0.8), run("1.1.0", 0.5, served_model="m-2"))
    assert model.changes[0].remarks == [
        "the vendor served m-1, then m-2: run `evaluate --with-baseline` to ask both prompts in one run"
    ]


def test_beyond_the_fixtures_the_cases_are_the_sample() -> None:
    """Two cases with many replicates fell for sure on themselves, and say nothing of others."""
    few = [run(f"1.{at}.0", 0, cases=cases(level, 2, 20)) for at, level in enumerate((0.8, 0.8, 0.5))]
    assert said(history(*few, gate="fixtures")) == [("1.2.0", "worse")]
    assert history(*few, gate="generalises").changes == history(*few).changes == []


def test_a_step_is_judged_in_one_family_with_the_models_that_came_to_the_same_version() -> None:
    by_model: dict[str, Sequence[Record]] = {
        "m": [run("1.0.0", 0.8), run("1.1.0", 0.75)],
        "n": [run("0.9.0", 0.8, model_id="n"), run("1.1.0", 0.8, model_id="n")],
    }
    found = history_of("s", {model_id: versions(*records) for model_id, records in by_model.items()}, some_rules())
    pairs = [Pair(baseline=before, candidate=after) for before, after in by_model.values()]
    expected = compare_records("s", pairs, some_rules())
    steps = [model.points[-1].step for model in found.models]
    assert [step and (step.verdict, step.q) for step in steps] == [
        (model.verdict, model.metrics[0].q) for model in expected.models
    ]


def test_the_runs_of_a_version_are_pooled() -> None:
    low, high = run("1.1.0", 0.70, run_id="low"), run("1.1.0", 0.80, run_id="high")
    second = Pair(baseline=run("1.0.0", 0.8), candidate=high, candidate_again=(low,))
    found = history_of("s", {"m": [Pair(baseline=None, candidate=run("1.0.0", 0.8)), second]}, some_rules())
    first, last = found.models[0].points
    assert (last.run_id, last.runs, first.runs, found.aa_runs) == ("high", 2, 1, 1)
    assert round((first.strict_mean or 0) - (last.strict_mean or 0), 3) == 0.05


def test_a_run_that_was_stopped_early_is_not_searched() -> None:
    stopped = run("1.2.0", 0.4, saved_calls=5)
    model = history(run("1.0.0", 0.8), run("1.1.0", 0.8), stopped, run("1.3.0", 0.8), run("1.4.0", 0.8))
    assert model.changes == []
    assert model.remarks == ["stopped early by --adaptive, at a mean too high or too low: 1.2.0"]


def shaken(amount: float, fall: float = 0.0) -> list[Record]:
    """Twelve versions of a model whose runs have days of their own."""
    days = [0.3, -1.1, 0.8, -0.2, 1.3, -0.9, 0.1, 1.0, -1.2, 0.6, -0.4, 0.9]
    return [run(f"1.{at}.0", 0.6 + amount * day - fall * (at >= 7)) for at, day in enumerate(days)]


def test_versions_that_go_up_and_down_are_no_changes_and_that_is_said() -> None:
    model = history(*shaken(0.05))
    assert model.changes == []
    assert [remark.partition(" by ")[0] for remark in model.remarks] == ["versions go up and down"]
    assert 0.03 < (model.run_sd or 0) < 0.08
    assert said(history(*shaken(0.0, fall=0.2))) == said(history(*shaken(0.02, fall=0.2))) == [("1.7.0", "worse")]


def test_where_runs_of_one_version_are_alike_smaller_changes_are_seen() -> None:
    """The value that stands where nothing is known is corrected by runs of the same version."""
    fallen = [run(f"1.{at}.0", 0, cases=cases(0.6 - 0.002 * (at >= 7))) for at in range(12)]
    alone = history_of("s", {"m": versions(*fallen)}, some_rules()).models[0]
    repeated = [
        Pair(baseline=None, candidate=record, candidate_again=(record, record, record, record)) for record in fallen
    ]
    together = history_of("s", {"m": repeated}, some_rules()).models[0]
    assert (together.run_sd or 0) < (alone.run_sd or 0) / 2
    assert [len(model.changes) for model in (alone, together)] == [0, 1]

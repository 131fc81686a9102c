"""A component's history: each version as compare judges it against the one before."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.shipping import ModelHistory, history_of

from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules


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


SEQUENCE = [run("1.0.0", 0.8), run("1.1.0", 0.8), run("1.2.0", 0.6), run("1.3.0", 0.6), run("1.4.0", 0.85)]


def test_each_version_is_compared_with_the_version_before() -> None:
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


def test_models_of_a_version_are_one_family_in_the_history() -> None:
    by_model: dict[str, Sequence[Record]] = {
        "m": [run("1.0.0", 0.8), run("1.1.0", 0.75)],
        "n": [run("0.9.0", 0.8, model_id="n"), run("1.1.0", 0.8, model_id="n")],
    }
    found = history_of("s", {model_id: versions(*records) for model_id, records in by_model.items()}, some_rules())
    pairs = [Pair(baseline=before, candidate=after) for before, after in by_model.values()]
    expected = compare_records(pairs, some_rules())
    steps = [model.points[-1].step for model in found.models]
    assert [step and (step.verdict, step.q) for step in steps] == [
        (model.verdict, model.metrics[0].test.q) for model in expected.models
    ]


def test_runs_of_a_version_are_pooled_in_the_history() -> None:
    low, high = run("1.1.0", 0.70, run_id="low"), run("1.1.0", 0.80, run_id="high")
    second = Pair(baseline=run("1.0.0", 0.8), candidate=high, candidate_again=(low,))
    found = history_of("s", {"m": [Pair(baseline=None, candidate=run("1.0.0", 0.8)), second]}, some_rules())
    first, last = found.models[0].points
    assert (last.run_id, last.runs, first.runs) == ("high", 2, 1)
    assert round((first.strict_mean or 0) - (last.strict_mean or 0), 3) == 0.05

"""Why a verdict is what it is; and where two records differ, by case, field and standing."""

from dataclasses import replace
from typing import Any

import pytest
from skill_evaluator.records.summaries import Commits
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import changed_fields, compare_records, named_cases, profile_of
from skill_evaluator.verdicts.decide.measuring import measure_pair
from skill_evaluator.verdicts.decide.results import Cases, RunSummary

from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules


def named(
    before: dict[str, list[Score]], after: dict[str, list[Score]], tolerance: float = 0.05, **fields: Any
) -> Cases:
    old, new = a_record(before, fields=fields.get("old", {})), a_record(after, fields=fields.get("new", {}))
    compared = measure_pair(Pair(baseline=old, candidate=new))
    return named_cases(compared.common, compared.primary("field_level_f1"), some_rules({"tolerance": tolerance}))


def test_cases_that_moved_furthest_are_named_the_largest_change_first() -> None:
    scores = {"a": 0.1, "b": 0.0, "c": 0.96, **{f"calm-{at}": 0.48 + 0.01 * (at % 5) for at in range(20)}}
    before: dict[str, list[Score]] = {name: [0.5, 0.5] for name in scores}
    after: dict[str, list[Score]] = {name: [score, score] for name, score in scores.items()}
    cases = named(before, after)
    assert ([one.case_id for one in cases.broke], [one.case_id for one in cases.fixed]) == (["b", "a"], ["c"])
    assert [one.case_id for one in named(before, after, tolerance=0.45).broke] == ["b"]


def test_cases_that_move_within_noise_are_counted_only() -> None:
    """Every case moves, up or down, by about what its replicates scatter."""
    before: dict[str, list[Score]] = {f"c{at}": [0.4, 0.6, 0.5, 0.3, 0.7] for at in range(20)}
    after: dict[str, list[Score]] = {
        name: [0.5, 0.7, 0.6, 0.4, 0.8] if at % 2 else [0.3, 0.5, 0.4, 0.2, 0.6] for at, name in enumerate(before)
    }
    cases = named(before, after)
    assert (cases.broke, cases.fixed, cases.within_noise, cases.every_answer_worse) == ([], [], 20, [])


def test_cases_worse_in_every_output_are_listed_apart() -> None:
    """One replicate a case: among cases that all moved as far, the one that fell is not beyond chance."""
    before: dict[str, list[Score]] = {f"c{at}": [0.5] for at in range(8)}
    after: dict[str, list[Score]] = {name: [0.3 if at < 4 else 0.7] for at, name in enumerate(before)}
    cases = named(before, after)
    assert (cases.broke, cases.within_noise) == ([], 8)
    assert cases.every_answer_worse == ["c0", "c1", "c2", "c3"]


@pytest.mark.parametrize(("before", "after", "named_"), [(9, 1, True), (9, 2, False), (8, 1, False)])
def test_case_of_several_fields_is_named_if_nearly_all_of_it_is_lost(before: int, after: int, *, named_: bool) -> None:
    old, new = ({name: {"a": (right, 10)} for name in "xyz"} for right in (before, after))
    cases = named({"a": [before / 10] * 10}, {"a": [after / 10] * 10}, old=old, new=new)
    assert bool(cases.broke) is named_


def test_unreadable_outputs_break_a_case_of_several_fields() -> None:
    fields = {name: {"a": (2, 2)} for name in "xyz"}
    (broke,) = named({"a": [1.0, 1.0]}, {"a": ["unparseable", "unparseable"]}, old=fields).broke
    assert (broke.before, broke.after) == (1.0, 0.0)


def test_changed_fields_of_a_case_are_sorted_by_size() -> None:
    old = {"x": (5, 5), "y": (5, 5), "same": (2, 4), "gone": (5, 5)}
    new = {"x": (3, 5), "y": (0, 5), "same": (3, 6), "come": (1, 5)}
    runs = [
        a_record({"x": [0.5]}, fields={path: {"x": count} for path, count in fields.items()}) for fields in (old, new)
    ]
    assert list(changed_fields(runs[0].per_case[0], runs[1].per_case[0]).items()) == [
        ("gone", "5/5 → –"),
        ("y", "5/5 → 0/5"),
        ("x", "5/5 → 3/5"),
        ("come", "– → 1/5"),
    ]


def test_profile_counts_cases_by_stability_of_a_field() -> None:
    record = a_record({"a": [1.0], "b": [1.0], "c": [1.0]}, fields={"total": {"a": (1, 1), "b": (0, 1)}})
    cases = [record.per_case[0].model_copy(update={"profile": {"total": "stable_right"}}), *record.per_case[1:]]
    record = record.model_copy(update={"per_case": cases})
    assert profile_of(record, "total") == {"stable_right": 1, "unscored": 1}
    assert profile_of(record, "other") == {}


def test_run_summary_has_failures_and_amounts() -> None:
    side = RunSummary.of(a_record({"a": [1.0, "refused"]}, failures={"refused": 1}, cost_usd=None))
    assert (side.calls.failures, side.cost.cost_usd) == ({"refused": 1}, None)
    assert (side.cost.output_tokens, side.cost.latency_p95_s) == (10, 0.9)


def reasons(pair: Pair, **policy: Any) -> list[str]:
    return compare_records([pair], some_rules(policy)).models[0].reasons


def two_runs(
    before: dict[str, list[Score]], after: dict[str, list[Score]], first: str = "", last: str = "", **changed: Any
) -> Pair:
    """A prompt and another one, recorded on two days."""
    old = a_record(before, run_id="old", timestamp=first or "2026-05-03T09:00:00Z", prompt_commit="a" * 40)
    digests = {**old.digests, "prompt": "another"}
    new = a_record(after, run_id="new", timestamp=last or "2026-05-09T09:00:00Z", digests=digests, **changed)
    return Pair(baseline=old, candidate=new)


TWELVE: dict[str, list[Score]] = {f"c{at}": [0.9, 0.92, 0.94] for at in range(12)}
FLAKY: dict[str, list[Score]] = {f"c{at}": [0.9, 0.8, 1.0] for at in range(12)}
LOWER: dict[str, list[Score]] = {name: [0.84, 0.74, 0.94] for name in FLAKY}


@pytest.mark.parametrize(
    ("last", "between"),
    [("2026-05-09T09:00:00Z", "between the two runs (2026-05-03 and 2026-05-09)"), ("lately", "between the two runs")],
)
def test_verdict_on_recorded_runs_names_its_premise(last: str, between: str) -> None:
    (said,) = reasons(two_runs(TWELVE, TWELVE, "2026-05-03T09:00:00Z", last))
    premise = f"this verdict assumes that the model did not change {between}, which were not interleaved"
    assert said == f"{premise}; `skill-evaluator evaluate s` runs both versions interleaved"
    pair = two_runs(TWELVE, TWELVE, "2026-05-03T09:00:00Z", last)
    unknown = Commits(prompt_commit=None, dataset_commit=None)
    uncommitted = replace(pair, baseline=pair.baseline.model_copy(update={"git": unknown}))
    assert reasons(uncommitted) == [premise]


def test_verdict_without_a_premise_names_none() -> None:
    """Beside each other; two models; the same prompt again; answers that a file gives."""
    assert reasons(two_runs(TWELVE, TWELVE, beside="old")) == []
    assert reasons(two_runs(TWELVE, TWELVE, model_id="n")) == ["the models differ: m and n"]
    assert reasons(Pair(baseline=a_record(TWELVE, run_id="old"), candidate=a_record(TWELVE))) == []
    assert reasons(two_runs(TWELVE, TWELVE, provider="replay")) == []


def test_imported_results_have_a_premise_without_a_command() -> None:
    said = reasons(two_runs(TWELVE, TWELVE, settings=None))[-2:]
    premise = "this verdict assumes that the model did not change between the two runs (2026-05-03 and 2026-05-09)"
    assert f"{premise}, which were not interleaved" in said


def test_drop_of_a_supporting_metric_that_is_not_significant_is_named() -> None:
    """The same scores under a second name: the first metric regresses, and the second has a smaller level."""
    before: dict[str, list[Score]] = {name: [1.0, 0.8, 1.0, 0.6] for name in TWELVE}
    after: dict[str, list[Score]] = {name: [1.0, 0.65, 0.9, 0.5] for name in TWELVE}
    pair = Pair(
        baseline=a_record(before, run_id="old", other={"exact_match": before}),
        candidate=a_record(after, run_id="new", other={"exact_match": after}, beside="old"),
    )
    said = reasons(pair)
    assert said[0] == "field_level_f1 fell from 0.850 to 0.762"
    assert said[1] == "exact_match fell, but not significantly among all measures"
    assert not any("not significantly" in words for words in reasons(pair, tolerance=0.1))


def test_only_rises_of_critical_measures_are_named() -> None:
    higher: dict[str, list[Score]] = {name: [1.0] * 4 for name in TWELVE}
    lower: dict[str, list[Score]] = {name: [0.6, 0.5, 0.7, 0.6] for name in TWELVE}
    pair = Pair(
        baseline=a_record(lower, run_id="old", other={"exact_match": lower}),
        candidate=a_record(higher, run_id="new", other={"exact_match": higher}, beside="old"),
    )
    assert reasons(pair) == ["field_level_f1 rose from 0.600 to 1.000"]


def test_single_case_names_its_remedy() -> None:
    alone: dict[str, list[Score]] = {"a": [0.9] * 3}
    repeatable = a_record(alone).model_dump()["settings"] | {"profile": "deterministic"}
    said = reasons(two_runs(alone, alone, settings=repeatable))[0]
    assert said == (
        "one case cannot show the effect of chance: more cases would decide it, or `profile: sampled` of m in "
        "models.yaml, which samples each output independently; then `skill-evaluator evaluate s --replicates 5`"
    )
    said = reasons(two_runs(alone, alone, settings=None))[0]
    assert said == "one case cannot show the effect of chance: more cases would decide it"


def test_regression_is_not_explained_as_a_verdict_that_was_withheld() -> None:
    before: dict[str, list[Score]] = {f"c{at:02d}": [0.9, 0.92, 0.94] for at in range(12)}
    after: dict[str, list[Score]] = {name: [0.2, 0.22, 0.24] for name in before}
    pair = Pair(baseline=a_record(before, run_id="old"), candidate=a_record(after, run_id="new"))
    (model,) = compare_records([pair], some_rules()).models
    assert model.verdict == "regressed"
    assert not any("not called" in reason for reason in model.reasons)


def test_field_without_a_difference_is_not_the_one_that_fell_most() -> None:
    before: dict[str, list[Score]] = {f"c{at}": [0.9, 0.92] for at in range(6)}
    fields = {"total": dict.fromkeys(before, (2, 2))}
    pair = Pair(baseline=a_record(before, run_id="old", fields=fields), candidate=a_record(before, run_id="new"))
    (model,) = compare_records([pair], some_rules()).models
    assert model.fell_most is None


def test_regression_with_a_lost_case_withholds_no_other_verdict() -> None:
    scores = {f"c{at:02d}": 0.5 + 0.01 * (at % 5) for at in range(40)}
    before: dict[str, list[Score]] = {name: [score] * 3 for name, score in scores.items()}
    after: dict[str, list[Score]] = {name: [score - 0.1] * 3 for name, score in scores.items()} | {"c00": [0.0] * 3}
    fields = [{name: dict.fromkeys(scores, (3, 3)) | {"c00": (right, 3)} for name in "xyz"} for right in (3, 0)]
    pair = Pair(
        baseline=a_record(before, run_id="old", fields=fields[0]),
        candidate=a_record(after, run_id="new", fields=fields[1], beside="old"),
    )
    (model,) = compare_records([pair], some_rules()).models
    assert (model.verdict, model.lost_cases) == ("regressed", ["c00"])
    assert model.reasons == ["field_level_f1 fell from 0.520 to 0.410"]


def test_rise_that_is_not_significant_is_named_with_its_size() -> None:
    low: dict[str, list[Score]] = {name: [0.5] * 3 for name in TWELVE}
    uneven: dict[str, list[Score]] = {name: [0.5 + (0.3 if at % 4 == 0 else -0.02)] * 3 for at, name in enumerate(low)}
    settings = a_record(low).model_dump()["settings"] | {"profile": "deterministic"}
    before, after = a_record(low, run_id="old", settings=settings), a_record(uneven, beside="old", settings=settings)
    (model,) = compare_records([Pair(baseline=before, candidate=after)], some_rules({"tolerance": 0.05})).models
    print(model.reasons, model.verdict)
    assert "field_level_f1 rose from 0.500 to 0.560, but not significantly" in model.reasons


def test_only_critical_measures_keep_a_verdict_open() -> None:
    unsure: dict[str, list[Score]] = {name: [0.2 + 0.06 * at] * 3 for at, name in enumerate(TWELVE)}
    mixed: dict[str, list[Score]] = {name: unsure[other] for name, other in zip(TWELVE, reversed(TWELVE), strict=True)}
    pair = Pair(
        baseline=a_record(TWELVE, run_id="old", other={"exact_match": unsure}),
        candidate=a_record(TWELVE, run_id="new", other={"exact_match": mixed}, beside="old"),
    )
    (model,) = compare_records([pair], some_rules()).models
    assert [(one.metric, one.verdict) for one in model.metrics] == [
        ("field_level_f1", "unchanged"),
        ("exact_match", "inconclusive"),
    ]
    assert (model.verdict, model.reasons, model.remedy) == ("unchanged", [], None)

"""What is missing bounds a difference: the truth is always within, and what was lost is counted and named."""

from collections.abc import Mapping, Sequence
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.records.record import CaseAccuracy, CaseRecord, FieldCount, Record
from skill_evaluator.verdicts.decide.comparability import CasePairs, Pair, common_part
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.measuring import metric_measures
from skill_evaluator.verdicts.decide.results import Missing, bounds_of, missing_reasons
from skill_evaluator.verdicts.decide.rules import bounded_verdict

from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules
from tests.verdicts.test_comparison import alike, shifted, varied

METRIC = "field_level_f1"
LOST = "provider_error"


def pairs(before: Mapping[str, Sequence[Score]], after: Mapping[str, Sequence[Score]]) -> CasePairs:
    return common_part(a_record(before), a_record(after)).cases


def bounds(before: Mapping[str, Sequence[Score]], after: Mapping[str, Sequence[Score]]) -> Missing:
    missing = bounds_of(pairs(before, after), METRIC)
    assert missing is not None
    return missing


def test_missing_output_is_0_or_1_in_the_worst_case() -> None:
    before = {"a": [0.8, LOST], "b": [0.5, 0.5]}
    after = {"a": [0.8, 0.8], "b": [0.5, "timeout"]}
    missing = bounds(before, after)
    assert (missing.worst, missing.best) == pytest.approx((-0.175, 0.325), abs=2e-6)
    assert missing.n_cases == 2
    assert missing.lost == {"a": "baseline 1 of 2 (1 provider_error)", "b": "candidate 1 of 2 (1 timeout)"}
    assert (missing.baseline_lost, missing.candidate_lost) == (1, 1)


def test_case_lost_by_one_version_is_within_the_bounds() -> None:
    before, after = {"a": [0.8] * 3, "b": [0.9] * 3}, {"a": [0.8] * 3, "b": ["timeout", LOST, LOST]}
    (measure,) = metric_measures(pairs(before, after), [METRIC])
    assert measure.case_ids == ("a",)
    missing = bounds(before, after)
    assert (missing.worst, missing.best) == pytest.approx((-0.45, 0.05), abs=2e-6)
    assert missing.lost == {"b": "candidate 3 of 3 (2 provider_error, 1 timeout)"}


def test_widest_bound_is_named_first() -> None:
    full = alike(3, *[1.0] * 4)
    after: dict[str, list[Score]] = full | {"case-0001": [1.0, 1.0, 1.0, LOST], "case-0002": [1.0, LOST, LOST, LOST]}
    assert list(bounds(full, after).lost) == ["case-0002", "case-0001"]


Planned = tuple[float, bool]  # what an answer scores, and whether it is lost
some_side = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1 / 3, 0.9, 1.0]), st.booleans()), min_size=1, max_size=4)
some_cases = st.lists(st.tuples(some_side, some_side), min_size=1, max_size=5)


def with_losses(side: Sequence[Planned]) -> list[Score]:
    return [LOST if lost else score for score, lost in side]


def full_mean(side: Sequence[Planned]) -> float:
    return fmean(score for score, _ in side)


@given(some_cases)
def test_true_difference_is_within_the_bounds(cases: list[tuple[list[Planned], list[Planned]]]) -> None:
    before = {f"case-{at}": with_losses(side) for at, (side, _) in enumerate(cases)}
    after = {f"case-{at}": with_losses(side) for at, (_, side) in enumerate(cases)}
    truth = fmean(full_mean(candidate) - full_mean(baseline) for baseline, candidate in cases)
    missing = bounds_of(pairs(before, after), METRIC)
    lost = sum(lost for sides in cases for side in sides for _, lost in side)
    assert (missing is None) == (lost == 0)
    if missing is not None:
        assert missing.worst <= truth <= missing.best
        widths = (sum(lost for _, lost in side) / len(side) for sides in cases for side in sides)
        assert missing.best - missing.worst == pytest.approx(sum(widths) / len(cases), abs=5e-6)


@given(some_cases)
def test_field_difference_is_within_its_bounds(cases: list[tuple[list[Planned], list[Planned]]]) -> None:
    def of(at: int, side: list[Planned]) -> CaseRecord:
        (case,) = a_record({f"case-{at}": with_losses(side)}).per_case
        came = [score == 1.0 for score, lost in side if not lost]
        fields = {"total": FieldCount(right=sum(came), n=len(came))} if came else {}
        return case.model_copy(update={"fields": fields})

    found = bounds_of(
        [(of(at, baseline), of(at, candidate)) for at, (baseline, candidate) in enumerate(cases)], "total", "field"
    )
    rights = [[fmean(score == 1.0 for score, _ in side) for side in sides] for sides in cases]
    if found is not None:
        assert found.worst <= fmean(after - before for before, after in rights) <= found.best


def a_case(key: str, *scores: float | None, metric: str = METRIC, truth: bool = True, value: bool = True) -> CaseRecord:
    """A case as a run records it: it names the metrics that its ground truth has a value of."""
    (case,) = a_record({key: [1.0] * len(scores)}).per_case
    accuracy = {metric: CaseAccuracy(mean=None, strict_mean=None, n=0)} if truth and value else {}
    scored = {"replicates": {metric: list(scores)}, "accuracy": accuracy, "exact": 0 if truth else None}
    return case.model_copy(update=scored)


@pytest.mark.parametrize(("metric", "reason"), [(METRIC, "no ground truth"), ("checks", "no check that counts")])
def test_metric_without_a_true_value_is_undefined_and_named(metric: str, reason: str) -> None:
    scored, silent = a_case("a", 1.0, 0.5, metric=metric), a_case("b", None, None, metric=metric, value=False)
    unlabelled = a_case("c", None, None, metric=metric, truth=False)
    missing = bounds_of([(case, case) for case in (scored, silent, unlabelled)], metric)
    assert missing is not None
    assert (missing.worst, missing.best) == pytest.approx((0.0, 0.0), abs=2e-6)
    assert (missing.n_cases, missing.lost) == (1, {})
    assert missing.undefined == {"b": "the ground truth has no value for it", "c": reason}
    assert missing.rests_on == 0.5  # a case without a ground truth cannot be scored


def test_metric_without_the_true_value_is_missing() -> None:
    """A comparison that was given up, on both sides."""
    given_up = a_case("b", None, None)
    missing = bounds_of([(a_case("a", 1.0, 1.0),) * 2, (given_up, given_up)], METRIC)
    assert missing is not None
    assert (missing.worst, missing.best) == pytest.approx((-0.5, 0.5), abs=2e-6)
    assert missing.lost == {"b": "baseline 2 of 2 (2 undefined); candidate 2 of 2 (2 undefined)"}


def test_field_that_one_version_never_has_is_not_missing() -> None:
    full = a_record(alike(2, 1.0, 1.0)).per_case
    before = [case.model_copy(update={"fields": {"total": FieldCount(right=2, n=2)}}) for case in full]
    assert bounds_of(list(zip(before, full, strict=True)), "total", "field") is None


def test_run_without_planned_outputs_has_no_bounds() -> None:
    assert bounds_of(pairs({"a": []}, {"a": []}), METRIC) is None
    assert bounds_of([], METRIC) is None
    assert bounds_of(pairs({"a": [LOST]}, {"a": [1.0]}), "pairwise_exact_match", "reproducibility") is None


TWENTY = alike(20, *[0.9] * 5)
TWO_LOST: dict[str, list[Score]] = TWENTY | {"case-0003": [LOST] * 5, "case-0007": ["timeout"] * 5}


# What remains of a verdict


def a_bound(worst: float, best: float, rests_on: float = 1.0, **changed: object) -> Missing:
    value = {"worst": worst, "best": best, "n_cases": 20, "rests_on": rests_on, "lost": {"a": "candidate 1 of 5"}}
    return Missing.model_validate({**value, **changed})


@pytest.mark.parametrize(
    ("says", "verdict", "missing", "tolerance", "expected"),
    [
        ("nothing is missing", "unchanged", None, 0.05, "unchanged"),
        ("a few answers", "unchanged", a_bound(-0.01, 0.01), 0.05, "unchanged"),
        ("the worst case is just tolerated", "unchanged", a_bound(-0.05, 0.05), 0.05, "unchanged"),
        ("the worst case crosses the tolerance", "unchanged", a_bound(-0.09, 0.01), 0.05, "inconclusive"),
        ("it does, and the rest rose", "improved", a_bound(-0.06, 0.2), 0.05, "inconclusive"),
        ("the rest rose, and the worst case is tolerated", "improved", a_bound(-0.04, 0.1), 0.05, "improved"),
        ("it fell in the best case", "regressed", a_bound(-0.2, -0.001), 0.05, "regressed"),
        ("it did not fall in the best case", "regressed", a_bound(-0.2, 0.0), 0.05, "inconclusive"),
        ("nothing is proven anyway", "inconclusive", a_bound(-0.9, 0.9), 0.05, "inconclusive"),
        ("nothing is comparable", "incomparable", a_bound(-0.9, 0.9), 0.05, "incomparable"),
        ("no drop is tolerated and an answer is lost", "unchanged", a_bound(-0.01, 0.0), 0.0, "inconclusive"),
        ("undefined in half of the cases", "unchanged", a_bound(0, 0, 0.5, lost={}), 0.05, "inconclusive"),
        ("undefined in few", "unchanged", a_bound(0, 0, 0.95, lost={}), 0.05, "unchanged"),
        ("worse where it is defined", "regressed", a_bound(-0.1, -0.1, 0.5, lost={}), 0.05, "regressed"),
    ],
)
def test_bounds_limit_the_verdict(
    says: str, verdict: str, missing: Missing | None, tolerance: float, expected: str
) -> None:
    assert bounded_verdict(verdict, missing, tolerance, 0.9) == expected, says  # type: ignore[arg-type]


def test_missing_reasons_name_cases_and_bounds() -> None:
    (reason,) = missing_reasons("f1", bounds(TWENTY, TWO_LOST), 0.05, 0.9)
    assert reason == (
        "f1: outputs of 2 of 20 cases are missing, 0 of the baseline and 10 of the candidate; whatever they were, "
        "the difference is -0.090 to +0.010: a drop beyond 0.05 is not ruled out "
        "(case-0003: candidate 5 of 5 (5 provider_error) · case-0007: candidate 5 of 5 (5 timeout))"
    )
    cases = [(a_case(name, *scores),) * 2 for name, scores in (("a", (1.0,)), ("b", (1.0,)))]
    silent = a_case("c", None, value=False)
    missing = bounds_of([*cases, (silent, silent)], METRIC)
    assert missing is not None
    assert list(missing_reasons("f1", missing, 0.05, 0.9)) == [
        "f1 has a value in 2 of 3 cases, fewer than the required 0.90 of those with a ground truth "
        "(c: the ground truth has no value for it)"
    ]


# The specification, where answers are missing

LIKE_ALWAYS = varied(20, 5)
NAMED = "case-0003: candidate 5 of 5 (5 provider_error)"


def lost_in(cases: Mapping[str, Sequence[Score]], *case_ids: str, answers: int = 5) -> dict[str, list[Score]]:
    return {
        name: [LOST] * answers + list(scores[answers:]) if name in case_ids else list(scores)
        for name, scores in cases.items()
    }


WORSE = shifted(LIKE_ALWAYS, -0.3)


@pytest.mark.parametrize(
    ("says", "before", "after", "expected", "reason"),
    [
        (
            "two of twenty documents fail in every replicate",
            a_record(LIKE_ALWAYS),
            a_record(lost_in(LIKE_ALWAYS, "case-0003", "case-0007")),
            "inconclusive",
            NAMED,
        ),
        (
            "two of twenty documents failed in the baseline; even had they been perfect, the drop is tolerated",
            a_record(lost_in(LIKE_ALWAYS, "case-0003", "case-0007")),
            a_record(shifted(LIKE_ALWAYS, 0.0)),
            "unchanged",
            "case-0003: baseline 5 of 5 (5 provider_error)",
        ),
        (
            "a regression, beside which one document is missing",
            a_record(LIKE_ALWAYS),
            a_record(lost_in(WORSE, "case-0003")),
            "regressed",
            NAMED,
        ),
    ],
)
def test_missing_outputs_limit_the_verdict_as_specified(
    says: str, before: Record, after: Record, expected: str, reason: str
) -> None:
    known = {"provider": "openai", "beside": before.run_id}  # replicates are draws, and no day stands between the runs
    pair = Pair(
        baseline=before.model_copy(update={"provider": "openai"}),
        candidate=after.model_copy(update={**known, "run_id": "20260102T000000Z-000000-m"}),
    )
    (found,) = compare_records([pair], some_rules()).models
    assert found.verdict == expected, says
    assert reason in "; ".join(found.reasons)


def test_reason_names_five_of_the_cases_with_missing_outputs() -> None:
    lost = {name: [LOST] * 5 if at < 7 else scores for at, (name, scores) in enumerate(TWENTY.items())}
    (reason,) = missing_reasons("f1", bounds(TWENTY, lost), 0.05, 0.9)
    assert reason.endswith("case-0004: candidate 5 of 5 (5 provider_error) · and 2 more)")

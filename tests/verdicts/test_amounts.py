"""Output tokens, cost and latency as measures: which changes are named, which gate, and which are not measured."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair, pooled
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import AmountResult, ModelVerdict

from tests.support.json_values import thorough
from tests.support.records import a_record
from tests.verdicts.rules import some_rules

Amounts = Mapping[str, Sequence[float]]
GATED = {"metrics": {"output_tokens": {"tier": "critical"}}}
TOKENS = [40.0, 55.0, 61.0, 70.0, 82.0, 90.0]


def a_run(amounts: Amounts, **changed: Any) -> Record:
    """A perfect record with the mean amounts of each case, by name."""
    cases = len(next(iter(amounts.values())))
    record = a_record({f"c{at}": [1.0, 1.0] for at in range(cases)}, **changed)
    of_cases = [{name: {"mean": means[at], "n": 2} for name, means in amounts.items()} for at in range(cases)]
    values = record.model_dump(mode="json")
    values["per_case"] = [case | {"amounts": known} for case, known in zip(values["per_case"], of_cases, strict=True)]
    return Record.model_validate(values)


def compared(before: Amounts, after: Amounts, policy: Mapping[str, Any] = {}, **changed: Any) -> ModelVerdict:
    candidate = {"run_id": "new", "skill_version": "1.1.0", "beside": "old", **changed}
    pair = Pair(baseline=a_run(before, run_id="old"), candidate=a_run(after, **candidate))
    return compare_records([pair], some_rules(policy)).models[0]


def of_tokens(before: Sequence[float], after: Sequence[float], policy: Mapping[str, Any] = {}) -> AmountResult:
    return compared({"output_tokens": before}, {"output_tokens": after}, policy).amounts[0]


def scaled(amounts: Sequence[float], *factors: float) -> list[float]:
    """The amounts times the factors, in turns."""
    return [amount * factors[at % len(factors)] for at, amount in enumerate(amounts)]


@pytest.mark.parametrize("factors", [(2000.0,), (1.5, 1.6), (0.5, 0.55)])
def test_large_change_of_tokens_is_named_and_decides_nothing(factors: tuple[float, ...]) -> None:
    model = compared({"output_tokens": TOKENS}, {"output_tokens": scaled(TOKENS, *factors)})
    assert model.amount_words.startswith("output tokens 66 → ")
    assert (model.verdict, model.amounts[0].verdict) == ("unchanged", None)


@pytest.mark.parametrize("factors", [(1.1, 1.12), (0.7, 1.8), (1.0,)])
def test_small_or_chance_change_of_tokens_is_not_named(factors: tuple[float, ...]) -> None:
    assert compared({"output_tokens": TOKENS}, {"output_tokens": scaled(TOKENS, *factors)}).amount_words == ""


def test_words_have_tokens_and_seconds_by_call_and_cost_by_run() -> None:
    before = {"output_tokens": [61.0] * 6, "cost_usd": [0.00007] * 6, "latency_s": [0.5] * 6}
    after = {"output_tokens": [12_000.0] * 6, "cost_usd": [0.0445] * 6, "latency_s": [7.5] * 6}
    tokens, cost, latency = compared(before, after).amount_words.split("), ")
    assert tokens == "output tokens 61 → 12,000 a call (× 197"
    assert cost == "cost $0.0008 → $0.53 a run (× 636"  # of 6 cases × 2 replicates
    assert latency == "latency 0.50 s → 7.50 s a call (× 15)"


@pytest.mark.parametrize(
    ("tier", "factors", "tolerance", "verdict"),
    [
        ("critical", (1.5, 1.6), 0.2, "regressed"),
        ("supporting", (1.5, 1.6), 0.2, "regressed"),
        ("critical", (1.5, 1.6), 1.0, "unchanged"),
        ("critical", (1.1, 1.12), 0.2, "unchanged"),
        ("critical", (0.7, 1.9), 0.2, "inconclusive"),
        ("supporting", (0.7, 1.9), 0.2, "unchanged"),
        ("critical", (0.5, 0.55), 0.2, "unchanged"),  # an amount never makes a version improved
        ("advisory", (2000.0,), 0.2, "unchanged"),
    ],
)
def test_gated_tokens_decide_by_tier_and_tolerance(
    tier: str, factors: tuple[float, ...], tolerance: float, verdict: str
) -> None:
    policy = {"metrics": {"output_tokens": {"tier": tier, "tolerance": tolerance}}}
    model = compared({"output_tokens": TOKENS}, {"output_tokens": scaled(TOKENS, *factors)}, policy)
    assert model.verdict == verdict
    assert ("output tokens" in " ".join(model.reasons)) is (verdict != "unchanged")
    if verdict == "inconclusive":
        assert (
            model.remedy == "output tokens: an increase of more than 20% is not ruled out; more cases would decide it"
        )


@pytest.mark.parametrize(("cases", "named"), [(2, False), (3, True)])
def test_amount_doubled_in_three_cases_is_regressed(cases: int, *, named: bool) -> None:
    found = of_tokens(TOKENS[:cases], scaled(TOKENS[:cases], 2.1, 30.0, 900.0), GATED)
    assert (found.moved, found.verdict) == (named, "regressed" if named else "inconclusive")


def test_case_with_the_largest_increase_is_named() -> None:
    model = compared({"output_tokens": TOKENS}, {"output_tokens": scaled(TOKENS, 2.0, 3.0, 2.5, 9.0, 2.0, 3.0)}, GATED)
    assert model.amounts[0].rose_most == "c3"
    assert model.reasons[-1].endswith("more than the tolerated increase of 20%, most in case c3")


def test_advisory_amounts_do_not_change_other_q() -> None:
    rises, lower = {"output_tokens": scaled(TOKENS, 3.0, 3.1)}, {f"c{at}": [0.8, 0.9] for at in range(6)}
    without = a_record(lower, run_id="new", beside="old")
    amounts = {case.case_id: case.amounts for case in a_run(rises).per_case}
    cases = [case.model_copy(update={"amounts": amounts[case.case_id]}) for case in without.per_case]
    old = a_run({"output_tokens": TOKENS}, run_id="old")
    first, second = (
        compare_records([Pair(baseline=old, candidate=new)], some_rules({})).models[0]
        for new in (without, without.model_copy(update={"per_case": cases}))
    )
    assert [one.moved for one in second.amounts] == [True, False, False]
    assert [one.test.q for one in first.metrics] == [one.test.q for one in second.metrics]


UNMEASURED = [
    ({"output_tokens": TOKENS}, {"output_tokens": [0.0] * 6}, {}, "output_tokens", "no case has a value above 0"),
    ({"output_tokens": TOKENS}, {"output_tokens": TOKENS}, {}, "cost_usd", "`price` of m in models.yaml"),
    ({"latency_s": TOKENS}, {"latency_s": TOKENS}, {"beside": None}, "latency_s", "were not interleaved"),
    ({"latency_s": TOKENS}, {"latency_s": TOKENS}, {"per_case": "old"}, "latency_s", "no amounts by case"),
]


@pytest.mark.parametrize(("before", "after", "changed", "name", "reason"), UNMEASURED)
def test_amount_that_is_not_measured_has_its_reason(
    before: Amounts, after: Amounts, changed: dict[str, Any], name: str, reason: str
) -> None:
    policy = {"metrics": {name: {"tier": "critical"}}}
    if changed.pop("per_case", None):
        old = a_record({f"c{at}": [1.0, 1.0] for at in range(6)}, run_id="old")
        new = a_run(after, run_id="new", beside="old", skill_version="1.1.0")
        model = compare_records([Pair(baseline=old, candidate=new)], some_rules(policy)).models[0]
    else:
        model = compared(before, after, policy, **changed)
    (found,) = (one for one in model.amounts if one.amount == name)
    assert reason in found.unmeasured
    assert (found.verdict, model.verdict) == ("inconclusive", "inconclusive")
    assert reason in (model.remedy or "")


def test_critical_cost_of_a_free_model_is_unchanged() -> None:
    free = {"cost_usd": [0.0] * 6}
    model = compared(free, free, {"metrics": {"cost_usd": {"tier": "critical"}}})
    assert (model.verdict, model.amounts[1].unmeasured) == ("unchanged", "it is 0 in both runs")


@pytest.mark.parametrize("replicates", [1, 5])
def test_number_of_replicates_is_no_change_of_an_amount(replicates: int) -> None:
    old, new = a_run({"output_tokens": TOKENS}, run_id="old"), a_run({"output_tokens": TOKENS}, run_id="new")
    amounts = [case.amounts["output_tokens"].model_copy(update={"n": replicates}) for case in new.per_case]
    cases = [
        case.model_copy(update={"outcomes": case.outcomes[:1] * replicates, "amounts": {"output_tokens": amount}})
        for case, amount in zip(new.per_case, amounts, strict=True)
    ]
    pair = Pair(baseline=old, candidate=new.model_copy(update={"per_case": cases, "beside": "old"}))
    (tokens, *_) = compare_records([pair], some_rules(GATED)).models[0].amounts
    assert (tokens.baseline, tokens.candidate, tokens.change, tokens.moved) == (
        tokens.candidate,
        tokens.baseline,
        0.0,
        False,
    )


def test_two_models_are_not_compared_by_amounts() -> None:
    assert compared({"output_tokens": TOKENS}, {"output_tokens": TOKENS}, GATED, model_id="n").amounts == []


def test_amounts_of_pooled_runs_are_weighted_by_outputs() -> None:
    first, second = a_run({"output_tokens": [10.0]}), a_run({"output_tokens": [40.0]}, run_id="b")
    fewer = second.per_case[0].model_copy(
        update={"amounts": {"output_tokens": second.per_case[0].amounts["output_tokens"].model_copy(update={"n": 1})}}
    )
    both = pooled(first, [second.model_copy(update={"per_case": [fewer]})])
    assert (both.per_case[0].amounts["output_tokens"].mean, both.per_case[0].amounts["output_tokens"].n) == (20.0, 3)


@thorough
@given(logs=st.lists(st.floats(-2, 2), min_size=3, max_size=8), more=st.floats(0, 3))
def test_larger_increase_in_every_case_is_never_a_better_verdict(logs: list[float], more: float) -> None:
    order = ["unchanged", "inconclusive", "regressed"]
    before = [100.0] * len(logs)
    first, second = (of_tokens(before, [100.0 * math.exp(log + by) for log in logs], GATED) for by in (0.0, more))
    if first.verdict == "regressed":
        assert second.verdict == "regressed"
    assert order.index(second.verdict or "") >= order.index(first.verdict or "") or second.verdict == "inconclusive"

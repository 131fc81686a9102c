"""The contract that every metric and comparator keeps. A new one has no choice: it is held to it by its line in
`METRICS`, `REPRODUCIBILITY` or `COMPARATORS`, and declares there which of the laws it claims.
"""

import copy
import doctest
from collections.abc import Mapping
from typing import Any, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from skill_evaluator.comparing.comparators import COMPARATORS, canonical, equal
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.errors import ComponentError
from skill_evaluator.metrics import (
    DEFAULT_METRICS,
    DEFAULT_REPRODUCIBILITY,
    METRICS,
    REPRODUCIBILITY,
    accuracy_metrics,
    agreement_metrics,
)
from skill_evaluator.metrics.base import AgreementMetric, Metric, UnorderedArrays

from tests.support.json_values import (
    ALIGNMENTS,
    answers,
    comparison,
    json_values,
    order_plan,
    orders,
    quick,
    reordered,
    thorough,
    with_keys_reordered,
)

UNORDERED = get_args(UnorderedArrays)
ENTRIES: Mapping[str, Metric | AgreementMetric] = {**METRICS, **REPRODUCIBILITY}
accuracy = pytest.mark.parametrize("name", METRICS)
reproducibility = pytest.mark.parametrize("name", REPRODUCIBILITY)
every = pytest.mark.parametrize("name", ENTRIES)
seeds = st.integers(0, 2**32)


# An alignment rule and two orders, or no rule, no schema, and any two JSON values.
Situation = tuple[str | None, Any, Any]
PLANS: Mapping[str | None, FieldPlan | None] = {None: None, **{align: order_plan(align) for align in ALIGNMENTS}}


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    align = draw(st.sampled_from(list(PLANS)))
    values = json_values if align is None else orders
    return align, draw(values), draw(values)


def score(name: str, align: str | None, truth: Any, output: Any) -> float | None:
    return METRICS[name].score(comparison(truth, output, PLANS[align]))


def agreement(name: str, align: str | None, *outputs: Any, unparseable: int = 0) -> float | None:
    return REPRODUCIBILITY[name].score(answers(*outputs, plan=PLANS[align], unparseable=unparseable))


def same(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and abs(one - other) < 1e-9)


@accuracy
def test_an_accuracy_metric_declares_what_it_is_held_to(name: str) -> None:
    metric = METRICS[name]
    declared = metric.symmetric in (True, False) and metric.unordered_arrays in UNORDERED
    assert declared, (
        f"METRICS['{name}'] must declare symmetric=True or False (may truth and output change places?) and "
        f"unordered_arrays, one of {UNORDERED} (in which arrays does the order of items change nothing?)"
    )


@reproducibility
def test_an_agreement_metric_declares_what_it_is_held_to(name: str) -> None:
    assert REPRODUCIBILITY[name].unordered_arrays in UNORDERED, (
        f"REPRODUCIBILITY['{name}'] must declare unordered_arrays, one of {UNORDERED} "
        "(in which arrays does the order of items change nothing?)"
    )


@every
def test_a_metric_says_its_range_its_best_its_undefined_case_and_an_example(name: str) -> None:
    text = ENTRIES[name].score.__doc__ or ""
    says_all = "Range" in text and "best" in text and ("ndefined" in text or name == "schema_valid")
    says_all = says_all and bool(doctest.DocTestParser().get_examples(text))
    assert says_all, (
        f"the docstring of '{name}' must give its Range, which end is best, when it is undefined, and an example (>>>)"
    )


def test_a_metric_is_scored_by_default_only_where_it_is_known() -> None:
    assert METRICS.keys() >= set(DEFAULT_METRICS)
    assert REPRODUCIBILITY.keys() >= set(DEFAULT_REPRODUCIBILITY)
    assert not METRICS.keys() & REPRODUCIBILITY.keys(), "a name under `metrics` means one metric"


@accuracy
@thorough
@given(situation=situations())
def test_accuracy_is_undefined_or_between_0_and_1(name: str, situation: Situation) -> None:
    value = score(name, *situation)
    assert value is None or 0.0 <= value <= 1.0


@accuracy
@quick
@given(situation=situations())
def test_the_truth_as_answer_is_the_best_there_is(name: str, situation: Situation) -> None:
    align, truth, _ = situation
    assert score(name, align, truth, copy.deepcopy(truth)) in (None, 1.0)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.symmetric])
@quick
@given(situation=situations())
def test_truth_and_answer_may_change_places(name: str, situation: Situation) -> None:
    align, truth, output = situation
    assert same(score(name, align, truth, output), score(name, align, output, truth))


@accuracy
@quick
@given(situation=situations(), seed=seeds)
def test_order_of_keys_never_matters_to_accuracy(name: str, situation: Situation, seed: int) -> None:
    align, truth, output = situation
    moved = score(name, align, with_keys_reordered(truth, seed), with_keys_reordered(output, seed + 1))
    assert same(score(name, align, truth, output), moved)


@pytest.mark.parametrize("name", [name for name in METRICS if METRICS[name].unordered_arrays in ("all", "outer")])
@thorough
@given(situation=situations(), seed=seeds)
def test_order_in_unordered_arrays_never_matters_to_accuracy(name: str, situation: Situation, seed: int) -> None:
    align, truth, output = situation
    below = METRICS[name].unordered_arrays == "all"
    moved = (reordered(value, PLANS[align] or FieldPlan(), seed, below_items=below) for value in (truth, output))
    assert same(score(name, align, truth, output), score(name, align, *moved))


@accuracy
@quick
@given(situation=situations())
def test_accuracy_changes_neither_truth_nor_answer(name: str, situation: Situation) -> None:
    before = repr(situation)
    score(name, *situation)
    assert repr(situation) == before


def spoil_leaf(value: Any, at: int) -> tuple[Any, int]:
    """The value with its `at`-th leaf made wrong (a line's `sku` is who it is, and stays), and how many leaves."""
    if isinstance(value, dict):
        spoilt: dict[str, Any] = {}
        seen = 0
        for key, child in value.items():
            new, count = (child, 0) if key == "sku" else spoil_leaf(child, at - seen)
            spoilt[key], seen = new, seen + count
        return spoilt, seen
    if isinstance(value, list):
        items, seen = [], 0
        for child in value:
            new, count = spoil_leaf(child, at - seen)
            items.append(new)
            seen += count
        return items, seen
    return (f"wrong {at}" if at == 0 else value), 1


@pytest.mark.parametrize("align", ALIGNMENTS)
@thorough
@given(truth=orders, output=orders, seed=seeds)
def test_a_wrong_leaf_never_raises_f1_and_putting_one_right_never_lowers_it(
    align: str, truth: Any, output: Any, seed: int
) -> None:
    _, leaves = spoil_leaf(truth, -1)
    assume(leaves)
    partly_right = truth
    for step in range(3):
        worse, _ = spoil_leaf(partly_right, (seed + step) % leaves)
        before, after = (score("field_level_f1", align, truth, value) for value in (partly_right, worse))
        assert before is not None
        assert after is not None
        assert after <= before + 1e-9
        partly_right = worse


@quick
@given(truth=orders, output=orders)
def test_an_invented_field_never_raises_f1(truth: Any, output: Any) -> None:
    with_more = score("field_level_f1", "best", truth, {**output, "invented": "x"})
    without = score("field_level_f1", "best", truth, output)
    assert with_more is not None
    assert without is not None
    assert with_more <= without


@reproducibility
@thorough
@given(situation=situations(), more=st.integers(0, 3), unparseable=st.integers(0, 2))
def test_agreement_keeps_its_range(name: str, situation: Situation, more: int, unparseable: int) -> None:
    align, one, other = situation
    value = agreement(name, align, one, other, *[one] * more, unparseable=unparseable)
    low, high = (1.0, 2.0 + more + unparseable) if REPRODUCIBILITY[name].is_count else (0.0, 1.0)
    assert value is None or low <= value <= high


@reproducibility
@quick
@given(situation=situations(), n=st.integers(2, 4))
def test_equal_answers_agree_as_well_as_can_be(name: str, situation: Situation, n: int) -> None:
    align, value, _ = situation
    assert agreement(name, align, *[value] * n) in (None, 1.0)


@reproducibility
@quick
@given(situation=situations(), third=orders)
def test_the_order_in_which_answers_came_never_matters(name: str, situation: Situation, third: Any) -> None:
    align, one, other = situation
    assert same(agreement(name, align, one, other, third), agreement(name, align, third, other, one))


@pytest.mark.parametrize("name", [name for name, metric in REPRODUCIBILITY.items() if not metric.reads_raw_text])
@quick
@given(situation=situations(), seed=seeds)
def test_order_of_keys_never_matters_to_agreement(name: str, situation: Situation, seed: int) -> None:
    align, one, other = situation
    assert same(agreement(name, align, one, other), agreement(name, align, one, with_keys_reordered(other, seed)))


@pytest.mark.parametrize("name", [name for name, metric in REPRODUCIBILITY.items() if metric.unordered_arrays == "all"])
@thorough
@given(situation=situations(), seed=seeds)
def test_order_in_unordered_arrays_never_matters_to_agreement(name: str, situation: Situation, seed: int) -> None:
    align, one, other = situation
    moved = reordered(other, PLANS[align] or FieldPlan(), seed, below_items=True)
    assert same(agreement(name, align, one, other), agreement(name, align, one, moved))


@reproducibility
@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_answers_agree_about_nothing(name: str, n: int) -> None:
    assert agreement(name, None, *[{"a": 1}] * n) is None


@reproducibility
def test_unparseable_answers_agree_with_nothing(name: str) -> None:
    worst = 2.0 if REPRODUCIBILITY[name].is_count else 0.0
    assert agreement(name, None, unparseable=2) in (None, worst)
    beside = agreement(name, None, {"a": 1}, unparseable=1)
    assert beside is None or beside != 1.0


@pytest.mark.parametrize("name", DEFAULT_REPRODUCIBILITY)
def test_how_an_unparseable_answer_counts(name: str) -> None:
    alone = agreement(name, None, unparseable=2)
    assert alone == {"distinct_outputs": 2.0, "field_stability": None, "array_length_stability": None}.get(name, 0.0)
    beside = agreement(name, None, {"a": 1}, unparseable=1)
    assert beside == {"distinct_outputs": 2.0, "field_stability": 0.5, "array_length_stability": None}.get(name, 0.0)


RULES = [
    *(FieldRule(compare=name) for name in COMPARATORS),
    FieldRule(compare="string", casefold=True, ignore_punctuation=True),
    FieldRule(compare="string", casefold=True, threshold=0.5),
    FieldRule(compare="number", tolerance=0.5, from_string=True),
    FieldRule(compare="number", relative_tolerance=0.1),
    FieldRule(compare="date", formats=("%d/%m/%Y", "%Y-%m-%d"), tolerance_days=1),
    FieldRule(compare="text", threshold=0.5),
]
by_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.compare} {rule.options}")
leaf_values = json_values | st.sampled_from(["1", "1.5", "RM 1,5", "02/01/2024", "2024-01-02", "2024-01-03"])


@by_rule
@thorough
@given(one=leaf_values, other=leaf_values)
def test_every_comparator_is_reflexive_and_symmetric_on_any_json(rule: FieldRule, one: Any, other: Any) -> None:
    assert equal(one, copy.deepcopy(one), rule)
    assert equal(one, other, rule) is equal(other, one, rule)


@by_rule
@thorough
@given(one=leaf_values, other=leaf_values)
def test_equal_canonical_forms_are_equal_leaves(rule: FieldRule, one: Any, other: Any) -> None:
    assume(one is not None and other is not None)
    forms_agree = canonical(one, rule) == canonical(other, rule)
    assert hash(canonical(one, rule)) == hash(canonical(one, rule))
    assert equal(one, other, rule) or not forms_agree
    if rule.exact_equality:
        assert equal(one, other, rule) is forms_agree


@by_rule
@quick
@given(value=leaf_values)
def test_null_equals_null_and_nothing_else(rule: FieldRule, value: Any) -> None:
    assert equal(None, None, rule)
    assume(value is not None)
    assert not equal(None, value, rule)
    assert not equal(value, None, rule)


def test_an_unknown_metric_is_named_with_the_nearest_and_the_place() -> None:
    with pytest.raises(
        ComponentError, match=r"unknown metric 'exact_mach' in d\.json \(did you mean 'exact_match'\?\)"
    ):
        accuracy_metrics(["schema_valid", "exact_mach"], "d.json")


def test_metrics_are_chosen_in_the_order_declared() -> None:
    assert list(accuracy_metrics(["jaccard", "schema_valid"], "d.json")) == ["jaccard", "schema_valid"]


def test_a_declared_agreement_metric_comes_after_the_default_ones() -> None:
    assert tuple(agreement_metrics(["exact_match", "tara_at_n"])) == DEFAULT_REPRODUCIBILITY

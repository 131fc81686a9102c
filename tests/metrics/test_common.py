"""The contract that every metric and comparator keeps. A new one has no choice: it is held to it by its line in
`METRICS`, `REPRODUCIBILITY` or `COMPARATORS`, and declares there which of the laws it claims.
"""

import copy
import doctest
from collections.abc import Mapping
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.comparing.field_plan import COMPARATORS, FieldPlan, FieldRule, canonical, equal
from skill_evaluator.errors import ComponentError, ConfigError
from skill_evaluator.metrics import DEFAULT_METRICS, METRICS, REPRODUCIBILITY, accuracy_metrics
from skill_evaluator.metrics.accuracy import Metric, UnorderedArrays, checked_score
from skill_evaluator.metrics.agreement import AgreementMetric

from tests.metrics.orders import ALIGNMENTS, answers, comparison, order_plan, orders, reordered
from tests.support.json_values import json_values, thorough, with_keys_reordered

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
def test_accuracy_metric_declares_its_properties(name: str) -> None:
    metric = METRICS[name]
    declared = metric.symmetric in (True, False) and metric.unordered_arrays in UNORDERED
    assert declared, (
        f"METRICS['{name}'] must declare symmetric=True or False (may truth and output change places?) and "
        f"unordered_arrays, one of {UNORDERED} (in which arrays does the order of items change nothing?)"
    )


@reproducibility
def test_agreement_metric_declares_its_properties(name: str) -> None:
    assert REPRODUCIBILITY[name].unordered_arrays in UNORDERED, (
        f"REPRODUCIBILITY['{name}'] must declare unordered_arrays, one of {UNORDERED} "
        "(in which arrays does the order of items change nothing?)"
    )


@every
def test_metric_docstring_has_range_best_undefined_case_and_example(name: str) -> None:
    text = ENTRIES[name].score.__doc__ or ""
    says_all = "Range" in text and "best" in text and ("ndefined" in text or name == "schema_valid")
    says_all = says_all and bool(doctest.DocTestParser().get_examples(text))
    assert says_all, (
        f"the docstring of '{name}' must give its Range, which end is best, when it is undefined, and an example (>>>)"
    )


def test_default_metrics_exist_and_names_are_unique() -> None:
    assert METRICS.keys() >= set(DEFAULT_METRICS)
    assert not METRICS.keys() & REPRODUCIBILITY.keys(), "a name under `metrics` means one metric"


@accuracy
@thorough
@given(situation=situations(), seed=seeds)
def test_accuracy_metric_has_its_declared_properties(name: str, situation: Situation, seed: int) -> None:
    align, truth, output = situation
    plan, before = PLANS[align] or FieldPlan(), repr(situation)
    value = score(name, *situation)
    assert value is None or 0.0 <= value <= 1.0, "it is undefined or between 0 and 1"
    assert score(name, align, truth, copy.deepcopy(truth)) in (None, 1.0), "the truth as answer is the best there is"
    if METRICS[name].symmetric:
        assert same(value, score(name, align, output, truth)), "truth and answer may change places"
    moved = score(name, align, with_keys_reordered(truth, seed), with_keys_reordered(output, seed + 1))
    assert same(value, moved), "the order of keys never matters"
    if METRICS[name].unordered_arrays != "none":
        below = METRICS[name].unordered_arrays == "all"
        sides = (reordered(side, plan, seed, below_items=below) for side in (truth, output))
        assert same(value, score(name, align, *sides)), "the order in unordered arrays never matters"
    assert repr(situation) == before, "it changes neither truth nor answer"


@reproducibility
@thorough
@given(situation=situations(), third=orders, more=st.integers(0, 3), unparseable=st.integers(0, 2), seed=seeds)
def test_agreement_metric_has_its_declared_properties(
    name: str, situation: Situation, third: Any, more: int, unparseable: int, seed: int
) -> None:
    align, one, other = situation
    metric, plan, before = REPRODUCIBILITY[name], PLANS[align] or FieldPlan(), repr(situation)
    value = agreement(name, align, one, other, *[one] * more, unparseable=unparseable)
    low, high = (1.0, 2.0 + more + unparseable) if metric.is_count else (0.0, 1.0)
    assert value is None or low <= value <= high, "it keeps its range"
    assert agreement(name, align, *[one] * (2 + more)) in (None, 1.0), "equal answers agree as well as can be"
    came = agreement(name, align, one, other, third)
    assert same(came, agreement(name, align, third, other, one)), "the order in which answers came never matters"
    if not metric.reads_raw_text:
        moved = with_keys_reordered(other, seed)
        assert same(agreement(name, align, one, other), agreement(name, align, one, moved)), "nor does that of keys"
    if metric.unordered_arrays == "all":
        moved = reordered(other, plan, seed, below_items=True)
        assert same(agreement(name, align, one, other), agreement(name, align, one, moved)), "nor of unordered items"
    assert repr(situation) == before, "it changes no answer"


@reproducibility
def test_agreement_of_too_few_or_unparseable_answers(name: str) -> None:
    assert agreement(name, None) is agreement(name, None, {"a": 1}) is None
    alone, beside = agreement(name, None, unparseable=2), agreement(name, None, {"a": 1}, unparseable=1)
    assert alone in (None, 2.0 if REPRODUCIBILITY[name].is_count else 0.0)
    assert beside is None or beside != 1.0
    nothing = {"field_stability": None, "array_length_stability": None, "distinct_outputs": 2.0}
    assert alone == nothing.get(name, 0.0)
    assert beside == {**nothing, "field_stability": 0.5}.get(name, 0.0)


RULES = [
    *(FieldRule(compare=name) for name in COMPARATORS),
    FieldRule(compare="string", casefold=True, ignore_punctuation=True),
    FieldRule(compare="string", casefold=True, threshold=0.5),
    FieldRule(compare="number", tolerance=0.5, from_string=True),
    FieldRule(compare="number", relative_tolerance=0.1),
    FieldRule(compare="date", formats=("%d/%m/%Y", "%Y-%m-%d"), tolerance_days=1),
    FieldRule(compare="text", threshold=0.5),
]
leaf_values = json_values | st.sampled_from(["1", "1.5", "RM 1,5", "02/01/2024", "2024-01-02", "2024-01-03"])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.compare} {rule.options}")
@thorough
@given(one=leaf_values, other=leaf_values)
def test_comparator_is_symmetric_reflexive_and_canonical(rule: FieldRule, one: Any, other: Any) -> None:
    found = equal(one, other, rule)
    assert found is equal(other, one, rule), "symmetric"
    assert equal(one, copy.deepcopy(one), rule), "reflexive"
    assert equal(None, None, rule), "null equals null"
    assert equal(None, one, rule) is equal(one, None, rule) is (one is None), "and nothing else"
    if one is not None and other is not None:
        forms_agree = canonical(one, rule) == canonical(other, rule)
        assert hash(canonical(one, rule)) == hash(canonical(one, rule))
        assert found or not forms_agree, "equal canonical forms are equal leaves"
        if rule.exact_equality:
            assert found is forms_agree, "and, where equality is exact, the other way about"


def test_unknown_metric_is_rejected_with_the_nearest_name() -> None:
    with pytest.raises(
        ComponentError, match=r"unknown metric 'exact_mach' in d\.json \(did you mean 'exact_match'\?\)"
    ):
        accuracy_metrics(["schema_valid", "exact_mach"], "d.json")
    with pytest.raises(ComponentError, match=r"'tarr_at_n' in d\.json is a reproducibility metric"):
        accuracy_metrics(["tarr_at_n"], "d.json")


def test_metrics_keep_the_declared_order() -> None:
    assert list(accuracy_metrics(["jaccard", "schema_valid"], "d.json")) == ["jaccard", "schema_valid"]


def test_score_of_a_package_metric_is_checked() -> None:
    compared = comparison({}, {})
    assert [checked_score("new", lambda _, value=value: value, compared) for value in (None, 0, 0.5, True)] == [
        *(None, 0.0, 0.5, 1.0)
    ]
    for value in (2.0, -0.1, float("nan"), "1"):
        with pytest.raises(
            ConfigError, match=r"metric 'new' returned .*, which is neither None nor a number from 0 to 1"
        ):
            checked_score("new", lambda _, value=value: value, compared)

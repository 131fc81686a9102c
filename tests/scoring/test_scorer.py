"""Scores of a case and of its checks by the outcomes of its replicates; every planned call is counted."""

import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.library.components import Component
from skill_evaluator.library.contract import Contract
from skill_evaluator.providers.base import Completion, Usage
from skill_evaluator.records.record import CaseRecord, CheckRecord, Record
from skill_evaluator.records.summaries import CaseAmount
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.recording import amounts_by_case, summarize_contract
from skill_evaluator.scoring.scorer import (
    CaseScore,
    CheckScore,
    CompletedCall,
    RunScorer,
    TextScorer,
    check_stability,
    passed_counts,
)
from skill_evaluator.verdicts.decide.comparability import Pair, field_scores, with_same_checks

from tests.support.components import FAILED, NOT_RUN, REFUSED, TRUNCATED, case, component, record, replicate, scorecard
from tests.support.json_values import thorough

TRUTH = {"shop": "A", "total": 9, "items": ["x"]}
RIGHT = '{"shop": "A", "total": 9, "items": ["x"]}'
ALSO_RIGHT = '```json\n{"items": ["x"], "total": 9.0, "shop": "A"}\n```'
WRONG = '{"shop": "A", "total": 8, "items": ["x"]}'  # 2 of 3 leaves
INVALID = '{"shop": "A"}'  # 2·1 ÷ (3 + 1)
PROSE = "I think it is 9."


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    return component(tmp_path_factory.mktemp("library"))


def score(skill: Component, outcomes: Sequence[str], *, labelled: bool = True) -> CaseScore:
    (found,) = scorecard(skill, [(case("a", TRUTH, labelled=labelled), outcomes)]).cases
    return found


@pytest.mark.parametrize(
    ("replicates", "outcomes", "f1", "valid", "exact_pairs", "f1_pairs"),
    [
        ([RIGHT, RIGHT], ["scored", "scored"], [1, 1], [1, 1], 1, 1),
        ([RIGHT, ALSO_RIGHT], ["scored", "scored"], [1, 1], [1, 1], 1, 1),
        ([RIGHT, WRONG], ["scored", "scored"], [1, 2 / 3], [1, 1], 0, 2 / 3),
        ([RIGHT, INVALID], ["scored", "scored"], [1, 1 / 2], [1, 0], 0, 1 / 2),
        # no JSON: not measured (of validity: not valid), and it agrees with nothing
        ([RIGHT, PROSE], ["scored", "unparseable"], [1, None], [1, 0], 0, 0),
        ([PROSE, PROSE], ["unparseable", "unparseable"], [None, None], [0, 0], 0, 0),
        (["", RIGHT, RIGHT], ["unparseable", "scored", "scored"], [None, 1, 1], [0, 1, 1], 1 / 3, 1 / 3),
        # refused or cut off: answers, too, whatever their text
        ([RIGHT, REFUSED], ["scored", "refused"], [1, None], None, 0, 0),
        ([RIGHT, RIGHT, TRUNCATED], ["scored", "scored", "truncated"], [1, 1, None], None, 1 / 3, 1 / 3),
        ([REFUSED, TRUNCATED], ["refused", "truncated"], [None, None], None, 0, 0),
        # no answer: nothing measured, and no pair
        ([RIGHT, FAILED], ["scored", "provider_error"], [1, None], [1, None], None, None),
        ([RIGHT, RIGHT, FAILED], ["scored", "scored", "provider_error"], [1, 1, None], [1, 1, None], 1, 1),
        ([NOT_RUN, WRONG], ["not_run", "scored"], [None, 2 / 3], [None, 1], None, None),
        ([FAILED, NOT_RUN], ["provider_error", "not_run"], [None, None], [None, None], None, None),
    ],
)
def test_replicates_are_scored_by_outcome(
    skill: Component,
    replicates: list[str],
    outcomes: list[str],
    f1: list[Any],
    valid: list[Any] | None,
    exact_pairs: float | None,
    f1_pairs: float | None,
) -> None:
    found = score(skill, replicates)
    assert list(found.outcomes) == outcomes
    assert list(found.metrics["field_level_f1"]) == pytest.approx(f1)
    assert valid is None or list(found.metrics["schema_valid"]) == valid
    assert found.agreement.metrics["pairwise_exact_match"] == (exact_pairs and pytest.approx(exact_pairs))
    assert found.agreement.metrics["pairwise_field_f1"] == (f1_pairs and pytest.approx(f1_pairs))


def test_case_without_truth_has_only_metrics_that_need_none(skill: Component) -> None:
    found = score(skill, [RIGHT, WRONG, PROSE], labelled=False)
    assert found.outcomes == ("scored", "scored", "unparseable")
    assert found.metrics["schema_valid"] == (1, 1, 0)
    assert found.metrics["field_level_f1"] == found.metrics["exact_match"] == (None, None, None)
    assert found.agreement.metrics["pairwise_exact_match"] == 0.0
    assert found.agreement.metrics["distinct_outputs"] == 3.0
    assert found.agreement.stability["shop"] == pytest.approx(2 / 3)
    assert found.fields == {}


def test_null_is_a_ground_truth(tmp_path: Path) -> None:
    skill = component(tmp_path, schema={"type": ["object", "null"]})
    (found,) = scorecard(skill, [(case("a", None), ["null", "{}"])]).cases
    assert found.metrics["exact_match"] == (1, 0)


def test_numeric_texts_are_scored_as_numbers(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"price": {"anyOf": [{"type": "number"}, {"type": "string"}]}}}
    skill = component(tmp_path, schema=schema)
    outputs = ['{"price": 4.75}', '{"price": "4.750"}', '{"price": "4,75"}']
    (found,) = scorecard(skill, [(case("a", {"price": "4.75"}), outputs)]).cases
    assert (found.metrics["exact_match"], found.exact) == ((1, 1, 0), 2)
    assert found.agreement.metrics["distinct_outputs"] == 2
    assert sorted(found.agreement.values["price"].values()) == [1, 2]


def test_fields_are_counted_over_the_scored_replicates(skill: Component) -> None:
    found = score(skill, [RIGHT, RIGHT, WRONG, INVALID, PROSE, REFUSED, FAILED])
    assert {path: (each.right, each.wrong, each.missing) for path, each in found.fields.items()} == {
        "shop": (4, 0, 0),
        "total": (2, 1, 1),
        "items[]": (3, 0, 1),
    }


def test_schema_errors_are_listed_once_per_distinct_text(skill: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    violations = Contract.violations
    monkeypatch.setattr(
        Contract, "violations", lambda self, value, most: asked.append(value) or violations(self, value, most)
    )
    found = score(skill, [RIGHT, ALSO_RIGHT, INVALID, INVALID, PROSE, REFUSED])
    assert asked == [{"shop": "A"}]
    assert [(contract.holds, times) for contract, times in found.contracts] == [(True, 1), (True, 1), (False, 2)]
    assert found.contracts[2][0].errors == (("total", "required", '"total" is a required property'),)


def test_case_has_stability_fill_rates_and_array_lengths(skill: Component) -> None:
    found = score(skill, [RIGHT, ALSO_RIGHT, WRONG])
    assert found.exact == 2
    assert found.profile == {"shop": "stable_right", "total": "flaky", "items[]": "stable_right"}
    assert {(each.filled, each.filled_in_truth) for each in found.fields.values()} == {(3, 3)}
    assert found.agreement.arrays["items"].stability == 1.0
    unlabelled = score(skill, [RIGHT, ALSO_RIGHT, WRONG], labelled=False)
    assert (unlabelled.exact, unlabelled.fields) == (None, {})
    assert unlabelled.profile == {"shop": "stable", "total": "flaky", "items[]": "stable"}
    assert unlabelled.agreement.values == found.agreement.values


def test_failures_are_counted_by_kind_and_reason(skill: Component) -> None:
    found = scorecard(
        skill,
        [(case("a", TRUTH), [RIGHT, PROSE, PROSE, ""]), (case("b", TRUTH), [REFUSED, TRUNCATED, FAILED, NOT_RUN])],
    )
    assert found.reasons == {"empty": 1, "prose": 2, "output_limit": 1, "refusal": 1, "server_error": 1}
    assert found.failures == {"not_run": 1, "provider_error": 1, "refused": 1, "truncated": 1, "unparseable": 3}
    assert found.retries == 2


def test_output_with_several_candidates_is_scored_and_counted(skill: Component) -> None:
    found = scorecard(skill, [(case("a", TRUTH), [RIGHT, f"{WRONG} {RIGHT}"])])
    assert (found.reasons, found.failures, found.cases[0].metrics["exact_match"]) == ({"ambiguous": 1}, {}, (1, 1))
    assert [(fault.kind, fault.reason, fault.cases) for fault in found.faults] == [("scored", "ambiguous", ["a"])]


def test_output_in_reasoning_or_a_tool_call_is_unparseable(skill: Component) -> None:
    scorer = RunScorer(TextScorer(skill, [case("a", TRUTH)]), ["a"], 3)
    beside = ({"reasoning": RIGHT}, {"tool_call": RIGHT}, {"reasoning": "hm", "text": RIGHT})
    for index, parts in enumerate(beside):
        scorer.add(Replicate(call=Call("a", index), completion=Completion(**{"text": "", **parts})))
    found = scorer.scorecard()
    assert found.reasons == {"in_reasoning": 1, "tool_call": 1}
    assert found.cases[0].outcomes == ("unparseable", "unparseable", "scored")


def test_amounts_of_a_case_are_means_over_its_known_outputs(skill: Component) -> None:
    completed = (
        CompletedCall("a", Usage(output_tokens=10), 0.5, None),
        CompletedCall("a", Usage(), 1.5, None),
        CompletedCall("b", Usage(output_tokens=40), None, None),
    )
    found = amounts_by_case(completed, (None, None, 0.002))
    assert found["a"] == {"output_tokens": CaseAmount(mean=10, n=1), "latency_s": CaseAmount(mean=1, n=2)}
    assert found["b"] == {"output_tokens": CaseAmount(mean=40, n=1), "cost_usd": CaseAmount(mean=0.002, n=1)}


outcomes = st.sampled_from([RIGHT, ALSO_RIGHT, WRONG, INVALID, PROSE, "", REFUSED, TRUNCATED, FAILED, NOT_RUN])
tables = st.integers(1, 4).flatmap(
    lambda replicates: st.lists(st.lists(outcomes, min_size=replicates, max_size=replicates), min_size=1, max_size=4)
)


@thorough
@given(table=tables)
def test_scored_and_failed_calls_add_up_to_the_planned(skill: Component, table: list[list[str]]) -> None:
    found = scorecard(skill, [(case(f"c{index}", TRUTH), row) for index, row in enumerate(table)])
    scored = sum(outcome == "scored" for one in found.cases for outcome in one.outcomes)
    assert scored + sum(found.failures.values()) == found.planned == sum(map(len, table))
    assert found.answered == sum(outcome not in (FAILED, NOT_RUN) for row in table for outcome in row)
    for one in found.cases:
        for values in one.metrics.values():
            assert len(values) == found.replicates
        assert one.exact == one.metrics["exact_match"].count(1.0)


@thorough
@given(table=tables, seed=st.randoms(use_true_random=False))
def test_order_of_outputs_does_not_change_the_scores(skill: Component, table: list[list[str]], seed: Any) -> None:
    cases = [case(f"c{index}", TRUTH) for index in range(len(table))]
    calls = [(one, index, table[row][index]) for row, one in enumerate(cases) for index in range(len(table[0]))]
    shuffled = seed.sample(calls, len(calls))
    scores = TextScorer(skill, cases)
    scorer = RunScorer(scores, scores.cases, len(table[0]))
    for one, index, outcome in shuffled:
        made = replicate(one.id, index, outcome)
        if made is not None:
            scorer.add(made)
    found, expected = scorer.scorecard(), scorecard(skill, list(zip(cases, table, strict=True)))
    assert (found.reasons, found.failures) == (expected.reasons, expected.failures)
    for one, other in zip(found.cases, expected.cases, strict=True):
        assert (one.outcomes, one.metrics) == (other.outcomes, other.metrics)
        assert one.agreement.metrics == pytest.approx(other.agreement.metrics)
        assert one.agreement.stability == pytest.approx(other.agreement.stability)
        assert (one.fields, one.profile, one.agreement.values) == (other.fields, other.profile, other.agreement.values)
        assert (one.agreement.arrays, one.exact) == (other.agreement.arrays, other.exact)
    assert summarize_contract(found) == summarize_contract(expected)


def test_scored_outputs_are_in_memory_once(skill: Component) -> None:
    count, size = 100, 20_000
    texts = (json.dumps({"shop": f"{index} {'x' * size}", "total": 1, "items": []}) for index in range(count))
    scorer = RunScorer(TextScorer(skill, [case("a", TRUTH)]), ["a"], count)
    tracemalloc.start()
    try:
        for index, text in enumerate(texts):
            scorer.add(Replicate(call=Call("a", index), completion=Completion(text=text)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1.2 * count * size
    (scored,) = scorer.scorecard().cases
    assert scored.agreement.metrics["distinct_outputs"] == count


APOLOGY = "I cannot say what it cost"
DECLARED: list[dict[str, Any]] = [
    {"contains": "A", "id": "a"},
    {"not_contains": "cannot", "id": "helps"},
    {"json": {"at": "/total", "not_equals": 8}, "id": "total"},
    {"not_is_json": True, "id": "prose"},
]


def checked_record(root: Path, declared: list[dict[str, Any]], answers: list[str], **changed: Any) -> Record:
    skill = component(root, datasets={"checks": declared})
    return record(skill, [(replace(case("one"), labelled=False, checks=skill.scoring.checks), answers)], **changed)


def test_outcome_of_a_call_decides_the_scores_of_its_checks(tmp_path: Path) -> None:
    answers = [RIGHT, APOLOGY, "", REFUSED, TRUNCATED, FAILED, NOT_RUN]
    made = checked_record(tmp_path, DECLARED, answers)
    (one,) = made.per_case
    scores = {check_id: check.scores for check_id, check in one.checks.items()}
    assert scores == {
        "a": [1, 0, 0, 0, 0, None, None],
        "helps": [1, 0, 1, 0, 0, None, None],
        "total": [1, 0, 0, 0, 0, None, None],
        "prose": [0, 1, 1, 0, 0, None, None],
    }
    assert one.replicates["checks"] == [0.75, 0.25, 0.5, 0.0, 0.0, None, None]
    assert made.accuracy["checks"].strict_mean == pytest.approx(0.3)
    assert made.coverage == pytest.approx(5 / 7, abs=1e-6)
    assert field_scores(one, "checks.prose") == (0.0, 1.0, 1.0, 0.0, 0.0), "also of what could not be parsed"
    assert (one.fields["checks.prose"].right, one.fields["checks.prose"].n) == (2, 5)


@pytest.mark.parametrize(
    ("scores", "standing", "right"),
    [
        ((1.0, 1.0, None), "stable_right", 2),
        ((0.0, 0.4), "stable_wrong", 0),
        ((0.5, 0.4), "flaky", 1),
        ((1.0, None), "unscored", 1),
        ((None, None), "unscored", 0),
    ],
)
def test_check_is_stable_or_flaky(scores: tuple[float | None, ...], standing: str, right: int) -> None:
    passed = passed_counts(scores)
    assert (check_stability(passed), passed[True]) == (standing, right)


def test_check_passes_by_its_score_before_rounding(tmp_path: Path) -> None:
    skill = component(tmp_path, datasets={"checks": [{"expect": "It is short", "id": "short"}]})
    unlabelled = replace(case("a"), labelled=False, checks=skill.scoring.checks)
    scorer = RunScorer(TextScorer(skill, [unlabelled]), ["a"], 1)
    scorer.add(Replicate(call=Call("a", 0), completion=Completion(text=RIGHT)))
    scorer.take({("a", RIGHT): {"short": CheckScore(0.4999999)}})
    (scored,) = scorer.scorecard().cases
    assert (scored.checks["short"].scores, scored.fields["checks.short"].right) == ([0.5], 0)


def test_runs_with_other_checks_are_not_pooled(tmp_path: Path) -> None:
    old = checked_record(tmp_path / "1", DECLARED[:1], [RIGHT])
    new = checked_record(tmp_path / "2", DECLARED, [RIGHT])
    pair = with_same_checks(Pair(baseline=new, candidate=new, baseline_again=(old,)))
    assert pair.baseline_again == ()


def test_check_record_omits_default_values() -> None:
    assert CheckRecord(digest="d", scores=[1.0, None]).model_dump() == {"digest": "d", "scores": [1.0, None]}
    with pytest.raises(ValueError, match="less than or equal to 1"):
        CheckRecord(digest="d", scores=[1.5])
    assert CaseRecord.model_construct(checks={}).model_dump(include={"checks"}) == {}

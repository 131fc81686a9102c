"""Findings of a regression judge, dimensions, rates, and the decision of the ship rules."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import ConfigError
from skill_evaluator.judges.judge_run import ORDERS, JudgeCalls
from skill_evaluator.judges.modes.regression import (
    DimensionSummary,
    JudgeRegressions,
    combine_orders,
    pair_questions,
    rate_changes,
    reduce_regressions,
    regression_form,
)
from skill_evaluator.judges.modes.ship_rules import ShipRules, blocking_sentence, decide, dimensions_of
from skill_evaluator.judges.statistics import rate
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import Completion
from skill_evaluator.runner.schedule import Call, Replicate

from tests.support.judged import JUDGE, LIBRARY, SAME, answer, judged, reading

SHIP, REVIEW, BLOCK = "ship", "review_required", "block"
LENIENT = ShipRules(one_low="ship")
HIGH_STAKES = ShipRules(high_stakes=True)
NAMES = [dimension.name for dimension in dimensions_of()]
WORSE, BETTER = {"completeness": ("worse", "high")}, {"completeness": ("better", "low")}
QUOTED, PARAPHRASED = ("Late fees rise to 0.40 a day", ""), ("Names the fee.", "Says nothing of it.")


@pytest.mark.parametrize(
    ("findings", "rules", "decision", "severity"),
    [
        ({}, None, SHIP, "none"),
        ({"completeness": ("worse", "low")}, None, REVIEW, "low"),
        ({"completeness": ("worse", "low")}, LENIENT, SHIP, "low"),
        ({"completeness": ("worse", "low"), "format_adherence": ("worse", "low")}, LENIENT, REVIEW, "low"),
        ({"completeness": ("worse", "medium")}, LENIENT, REVIEW, "medium"),
        ({"completeness": ("worse", "high")}, None, BLOCK, "high"),
        ({"factuality": ("worse", "low")}, LENIENT, BLOCK, "low"),
        ({}, HIGH_STAKES, REVIEW, "none"),
        ({"completeness": ("worse", "high")}, HIGH_STAKES, BLOCK, "high"),
    ],
)
@pytest.mark.parametrize("evidence", [QUOTED, PARAPHRASED])
def test_impact_and_blocking_decide_with_or_without_quotation(
    findings: Any, rules: Any, decision: str, severity: str, evidence: tuple[str, str]
) -> None:
    """Also a regression without a quotation counts: code never turns a block into a review."""
    described = {name: (*finding, *evidence) for name, finding in findings.items()}
    verdict = judged(answer({**SAME, **described}), rules=rules)
    assert (verdict.ship_decision, verdict.regression_severity) == (decision, severity)
    assert verdict.regression_detected is (severity != "none")


def test_candidate_stands_first_in_the_second_question() -> None:
    first, second = pair_questions(LIBRARY, ShipRules(), seed=0)
    for question, order in ((first, ("baseline", "candidate")), (second, ("candidate", "baseline"))):
        places = [question.dialogue[0].text.index(f"<judged_{role} ") for role in ("prompt", *order)]
        assert places == sorted(places)
    assert first.system == second.system


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["low", "medium", "high"])),
    st.sampled_from(NAMES),
    st.sampled_from(["low", "medium", "high"]),
    st.builds(ShipRules, one_low=st.sampled_from([SHIP, REVIEW]), high_stakes=st.booleans()),
)
def test_further_regression_never_makes_the_decision_milder(
    worse: Any, name: str, impact: Any, rules: ShipRules
) -> None:
    order = [SHIP, REVIEW, BLOCK]
    before = decide(worse, rules)[0]
    after = decide({name: impact} | worse, rules)[0]
    assert order.index(before) <= order.index(after)


@pytest.mark.parametrize(("evidence", "verified"), [(QUOTED, True), (PARAPHRASED, False), (("", ""), False)])
def test_regression_is_verified_by_a_quotation_from_one_output(evidence: tuple[str, str], verified: bool) -> None:
    verdict = judged(answer({**SAME, "factuality": ("worse", "high", *evidence)}))
    assert (verdict.dimensions[0].verified, verdict.ship_decision) == (verified, BLOCK)
    assert ("unverified: factuality" in verdict.reasons) is not verified


def test_one_quoting_answer_verifies_both_orders() -> None:
    bare = answer({**SAME, "completeness": ("worse", "low", "", "Something is gone.")})
    assert judged(bare, answer({**SAME, "completeness": ("worse", "low")})).dimensions[1].verified is True


@pytest.mark.parametrize(
    ("findings", "stated", "mismatches"),
    [
        ({}, {}, set()),
        ({"factuality": ("worse", "high")}, {}, {"regression_detected", "regression_severity", "ship_decision"}),
        (
            {"completeness": ("worse", "low")},
            {"regression_detected": True, "regression_severity": "low", "ship_decision": "review_required"},
            set(),
        ),
        ({}, {"decision_basis": "word " * 41}, {"decision_basis"}),
        ({"style": ("worse", "high")}, {"ship_decision": "block"}, set()),  # it may rest on the further dimension
    ],
)
def test_conclusion_that_does_not_follow_is_named(findings: Any, stated: Any, mismatches: set[str]) -> None:
    found = answer({**SAME, **findings}, **stated)
    for rules in (ShipRules(), HIGH_STAKES):  # the judge does not know of high stakes
        assert set(reading(found, rules=rules).mismatches) == mismatches


@pytest.mark.parametrize(
    ("first", "second", "verdict", "decision", "detected", "confidence"),
    [
        ({}, {}, "same", SHIP, False, 1.0),
        (WORSE, WORSE, "candidate_worse", BLOCK, True, 1.0),
        (BETTER, BETTER, "candidate_better", SHIP, False, 1.0),
        (WORSE, {}, "uncertain", REVIEW, None, 0.5),
        (BETTER, {}, "uncertain", REVIEW, False, 0.5),
    ],
)
def test_verdict_is_what_both_orders_say(
    first: Any, second: Any, verdict: str, decision: str, detected: bool | None, confidence: float
) -> None:
    both = judged(answer({**SAME, **first}), answer({**SAME, **second}))
    completeness = both.dimensions[1]
    assert (completeness.verdict, completeness.confidence) == (verdict, confidence)
    assert completeness.flipped is (verdict == "uncertain")
    assert (both.ship_decision, both.regression_detected, both.compared) == (decision, detected, True)


@pytest.mark.parametrize(
    ("votes", "verdict", "confidence"),
    [
        (["worse", "worse", "same"], "candidate_worse", 2 / 3),
        (["worse", "same"], "same", 0.25),  # a tie: half the confidence
        (["worse", "better", "same"], "same", 1 / 6),
    ],
)
def test_replicates_vote_in_each_order(votes: list[str], verdict: str, confidence: float) -> None:
    found = [answer({**SAME, "completeness": "same" if vote == "same" else (vote, "high")}) for vote in votes]
    answers = [reading(one, order=order) for one in found for order in (1, 2)]
    completeness = combine_orders(LIBRARY, answers, ShipRules()).dimensions[1]
    assert (completeness.verdict, completeness.confidence) == (verdict, pytest.approx(confidence, abs=1e-6))


TWICE = answer(SAME) | {"per_dimension": [*answer(SAME)["per_dimension"], answer(SAME)["per_dimension"][0]]}
IMPACT = json.dumps(answer({**SAME, "factuality": ("worse", "severe")}))


@pytest.mark.parametrize(
    ("said", "reason", "detail"),
    [
        ("", "empty", ""),
        (json.dumps(answer(SAME))[:-20], "not_json", ""),
        (answer({name: "same" for name in NAMES if name != "completeness"}), "missing_dimension", "completeness"),
        (TWICE, "repeated_dimension", "factuality"),
        (IMPACT, "off_scale", "at per_dimension[0].impact"),
        (answer(SAME, regression_detected="false"), "wrong_format", "at regression_detected"),
        ({key: value for key, value in answer(SAME).items() if key != "ship_reason"}, "wrong_format", "ship_reason"),
        ([answer(SAME)] * 2, "wrong_format", "mapping"),
    ],
)
def test_incomplete_output_is_unscored_and_does_not_ship(said: Any, reason: str, detail: str) -> None:
    verdict = judged(said)
    assert [each.unscored for each in verdict.answers] == [reason, reason]
    assert detail in verdict.answers[0].detail
    assert (verdict.ship_decision, verdict.regression_detected, verdict.compared) == (None, None, False)
    half = judged(answer(SAME), said)
    assert (half.ship_decision, half.regression_detected) == (REVIEW, False)
    assert half.reasons[0].startswith(f"unscored answer: {reason}")


@pytest.mark.parametrize(("impact", "decision"), [("high", BLOCK), ("medium", REVIEW), ("low", REVIEW)])
def test_regression_in_one_usable_order_blocks_if_impact_is_high(impact: str, decision: str) -> None:
    lone = answer({**SAME, "factuality": ("worse", impact)})
    for first, second in ((lone, "no JSON"), ("no JSON", lone)):
        verdict = judged(first, second)
        assert (verdict.ship_decision, verdict.compared) == (decision, False)
        assert set(verdict.dimensions[0].by_order) == {"candidate_worse", None}


def test_extra_keys_and_null_evidence_are_ignored() -> None:
    found = answer(SAME)["per_dimension"]
    changes: list[dict[str, Any]] = [{"impact": "severe"}, {"evidence_baseline": None}, {"verdict": "Same"}]
    for said in (
        *({**answer(SAME), "per_dimension": [{**one, **changed} for one in found]} for changed in changes),
        answer(SAME, notes=["fine"], ship_decision="Ship"),
        answer({"Factuality": "same", "completeness": "same", "Format-Adherence": "same"}),
    ):
        verdict = judged(said)
        assert (verdict.ship_decision, verdict.compared) == (SHIP, True), said
    worse = json.dumps(answer({**SAME, "completeness": ("worse", "high")}))
    assert judged(worse.replace("candidate_worse", "Candidate_Worse")).ship_decision == BLOCK
    assert judged(worse.replace('"high"', "null")).ship_decision is None


def test_names_replace_the_dimensions_of_a_preset() -> None:
    for preset, names, blocking in (
        ("default", ["factuality", "completeness", "format_adherence"], "factuality"),
        ("chat", ["factuality", "completeness", "tone"], "factuality"),
        ("code", ["correctness", "format", "efficiency"], "correctness"),
        ("checklist", ["completeness", "format"], "no dimension"),
    ):
        dimensions = dimensions_of(preset=preset)
        assert [dimension.name for dimension in dimensions] == names, preset
        assert blocking_sentence(dimensions) == f"any regression of {blocking} blocks, whatever its impact", preset
    dimensions = dimensions_of(["correctness, house style"], preset="code", blocking=["House-Style"])
    assert [(dimension.name, dimension.blocking) for dimension in dimensions] == [
        ("correctness", False),  # it blocks by the preset, which is not used
        ("house_style", True),
    ]


def test_invalid_dimension_is_an_error() -> None:
    for names, preset, complaint in (
        ((), "chatt", "unknown preset 'chatt' (did you mean 'chat'?)"),
        (["tone", "Tone"], "default", "the dimension 'tone' is named twice"),
        (["a\u202eb"], "default", "'a\\u202eb' is not a dimension: use at most 100 printable characters"),
        (["x" * 101], "default", f"'{'x' * 100}' is not a dimension: use at most 100 printable characters"),
    ):
        with pytest.raises(ConfigError) as caught:
            dimensions_of(names, preset)
        assert str(caught.value) == complaint, names


def test_form_has_the_findings_before_the_decision() -> None:
    schema, shown = regression_form(dimensions_of())
    keys = "per_dimension regression_detected regression_severity ship_decision ship_reason decision_basis"
    assert list(schema["properties"]) == list(shown) == keys.split()
    keys = "dimension verdict evidence_baseline evidence_candidate impact"
    assert list(schema["properties"]["per_dimension"]["items"]["properties"]) == keys.split()
    assert schema["required"] == list(schema["properties"])


HIGH, LOW = ({**SAME, "completeness": ("worse", impact)} for impact in ("high", "low"))
BROKEN = '{"per_dimension": ['


def test_pairs_with_a_broken_output_are_decided_but_in_no_rate() -> None:
    texts = [(HIGH, HIGH), (SAME, SAME), (LOW, None), (None, HIGH), (SAME, LOW)]  # in both orders
    items = [LIBRARY.model_copy(update={"id": f"p{place}"}) for place in range(len(texts))]
    answers = {}
    for item, both in zip(items, texts, strict=True):
        for order, found in zip(ORDERS, both, strict=True):
            call = Call(f"{item.id}/{order}", 0)
            text = BROKEN if found is None else json.dumps(answer(found))
            answers[call] = Replicate(call=call, completion=Completion(text=text))
    judge = Model(id="m", provider="replay")
    calls = JudgeCalls(model=judge, replicates=1, outcomes=answers, record=JUDGE, failure=None)
    result = reduce_regressions(items, calls, {item.id: ShipRules() for item in items})
    completeness = result.dimensions[1]
    assert (completeness.worse.value, completeness.worse.n, completeness.uncertain) == (1 / 3, 3, 1)
    assert {name: figure.value for name, figure in result.decisions.items()} == dict.fromkeys(result.decisions, 1 / 3)
    assert (result.flips.value, result.severity) == (1 / 3, {"none": 2, "low": 0, "medium": 0, "high": 1})
    assert (result.outputs.unscored, result.lean.n) == ({"not_json": 2}, 3)
    decided = [pair.ship_decision for pair in result.pairs]
    assert decided == ["block", "ship", "review_required", "block", "review_required"]


def test_dimension_that_was_not_requested_needs_review() -> None:
    verdict = judged(answer({**SAME, "style": ("worse", "high")}, ship_decision="block"))
    assert (verdict.ship_decision, verdict.reasons) == (REVIEW, ["dimension that was not requested: style"])
    assert [each.unrequested for each in verdict.answers] == [["style"]] * 2


def test_rate_rose_if_the_adjusted_p_value_is_significant() -> None:
    def batch(*worse: int) -> JudgeRegressions:
        rows = [DimensionSummary.model_construct(dimension=f"d{n}", worse=rate(k, 100)) for n, k in enumerate(worse)]
        return JudgeRegressions.model_construct(judge=JUDGE, dimensions=rows)

    rose, *others = rate_changes([batch(25, 5, 4)], [batch(5, 5, 5)])
    assert (rose.earlier.value, rose.later.value, rose.rose) == (0.05, 0.25, True)
    assert rose.difference.value == pytest.approx(0.2)
    assert rose.p == pytest.approx(0.000104, abs=1e-6)  # Fisher's exact test of 25 and 5 of 100
    assert rose.q == pytest.approx(3 * rose.p, abs=1e-6)
    assert not any(change.rose for change in (*others, *rate_changes([batch(0)], [batch(25)])))

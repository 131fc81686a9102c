"""The rules of the regression judge as a table: what the answers say, and what code decides on it."""

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.modes.regression import RegressionItem, pairs_of
from skill_evaluator.judges.modes.regression_results import PairResult
from skill_evaluator.judges.modes.ship_rules import ShipRules, decide, dimensions_of

from tests.support.judged import BLOCKS, LOST, SAME, answer, judged, reading


def mismatched(verdict: PairResult) -> Counter[str]:
    return Counter(name for one in verdict.answers if one.conclusion for name in one.conclusion.mismatches)


SHIP, REVIEW, BLOCK = "ship", "review_required", "block"
LENIENT = ShipRules(one_low="ship")
HIGH_STAKES = ShipRules(high_stakes=True)


def test_impact_and_blocking_decide() -> None:
    for findings, rules, decision, severity in (
        ({}, None, SHIP, "none"),
        ({"completeness": ("better", "high")}, None, SHIP, "none"),  # an impact counts only where it is worse
        ({"completeness": ("worse", "low")}, None, REVIEW, "low"),  # only «no regression» ships
        ({"completeness": ("worse", "low")}, LENIENT, SHIP, "low"),  # unless the team says otherwise
        ({"completeness": ("worse", "low"), "format_adherence": ("worse", "low")}, None, REVIEW, "low"),
        ({"completeness": ("worse", "low"), "format_adherence": ("worse", "low")}, LENIENT, REVIEW, "low"),
        ({"completeness": ("worse", "medium")}, LENIENT, REVIEW, "medium"),
        ({"completeness": ("worse", "medium"), "format_adherence": ("better", "high")}, None, REVIEW, "medium"),
        ({"completeness": ("worse", "high")}, None, BLOCK, "high"),
        ({"completeness": ("worse", "high"), "format_adherence": ("worse", "low")}, None, BLOCK, "high"),
        ({"factuality": ("worse", "low")}, LENIENT, BLOCK, "low"),  # any regression of factuality blocks
        ({"factuality": ("worse", "low"), "completeness": ("better", "high")}, None, BLOCK, "low"),
        ({}, HIGH_STAKES, REVIEW, "none"),  # a person must agree
        ({"completeness": ("worse", "low")}, ShipRules(one_low="ship", high_stakes=True), REVIEW, "low"),
        ({"completeness": ("worse", "high")}, HIGH_STAKES, BLOCK, "high"),
    ):
        verdict = judged(answer({**SAME, **findings}), rules=rules)
        assert (verdict.ship_decision, verdict.regression_severity) == (decision, severity), findings
        assert verdict.regression_detected is (severity != "none"), findings


NAMES = [dimension.name for dimension in dimensions_of()]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["low", "medium", "high"])),
    st.sampled_from(NAMES),
    st.sampled_from(["low", "medium", "high"]),
    st.builds(ShipRules, one_low=st.sampled_from([SHIP, REVIEW]), high_stakes=st.booleans()),
)
def test_one_more_regression_never_makes_the_decision_milder(
    worse: Any, name: str, impact: Any, rules: ShipRules
) -> None:
    order = [SHIP, REVIEW, BLOCK]
    before = decide(worse, dimensions_of(), rules)[0]
    after = decide({name: impact} | worse, dimensions_of(), rules)[0]
    assert order.index(before) <= order.index(after)


def test_the_worked_example_of_lost_bullets_and_lost_content_blocks_on_observations_alone() -> None:
    verdict = judged(answer(LOST, **BLOCKS))
    assert (verdict.ship_decision, verdict.regression_severity, mismatched(verdict)) == (BLOCK, "high", {})
    assert {each.dimension: each.legs for each in verdict.dimensions} == {
        "factuality": [],
        "format_adherence": ["form"],
        "completeness": ["omission"],
    }
    assert not any(each.flags for each in verdict.dimensions)


def test_a_conclusion_that_does_not_follow_is_counted_but_for_stakes_it_is_not_told() -> None:
    for findings, stated, mismatches in (
        ({}, {}, set()),
        ({}, {"regression_detected": True}, {"regression_detected"}),
        ({}, {"ship_decision": "block"}, {"ship_decision"}),
        ({"factuality": ("worse", "high")}, {}, {"regression_detected", "regression_severity", "ship_decision"}),
        (
            {"factuality": ("worse", "medium")},
            {"regression_detected": True, "regression_severity": "high", "ship_decision": "block"},
            {"regression_severity"},
        ),
        (
            {"completeness": ("worse", "low")},
            {"regression_detected": True, "regression_severity": "low", "ship_decision": "review_required"},
            set(),
        ),
    ):
        both = {**SAME, **findings}
        verdict = judged(answer(both, **stated))
        assert {name for name, count in mismatched(verdict).items() if count == 2} == mismatches, findings
        assert verdict.ship_decision == judged(answer(both)).ship_decision, findings
    read = reading(answer(SAME), rules=HIGH_STAKES)
    assert read.conclusion.mismatches == []


WORSE, BETTER = {"completeness": ("worse", "high")}, {"completeness": ("better", "low")}


def test_only_what_both_orders_say_is_a_verdict_and_it_blocks_beside_a_difference() -> None:
    for first, second, verdict, decision, detected, flipped in (
        ({}, {}, "same", SHIP, False, 0),
        (WORSE, WORSE, "candidate_worse", BLOCK, True, 0),
        (WORSE, {"completeness": ("worse", "low")}, "candidate_worse", BLOCK, True, 0),  # the higher impact counts
        (BETTER, BETTER, "candidate_better", SHIP, False, 0),
        (WORSE, {}, "uncertain", REVIEW, None, 1),
        ({}, WORSE, "uncertain", REVIEW, None, 1),
        (WORSE, BETTER, "uncertain", REVIEW, None, 1),
        (BETTER, {}, "uncertain", REVIEW, False, 1),
    ):
        both = judged(answer({**SAME, **first}), answer({**SAME, **second}))
        assert both.dimensions[1].verdict == verdict, first
        assert (both.ship_decision, both.regression_detected) == (decision, detected), first
        assert (both.flipped, both.compared) == (flipped, True), first
    first = answer({**SAME, "factuality": ("worse", "low"), **WORSE})
    verdict = judged(first, answer({**SAME, "factuality": ("worse", "low")}))
    assert verdict.ship_decision == BLOCK
    assert verdict.reasons == [
        "a regression where any blocks: factuality",
        "uncertain: completeness (candidate_worse, then same)",
    ]


def without(name: str) -> dict[str, str]:
    return {each: verdict for each, verdict in SAME.items() if each != name}


TWICE = answer(SAME) | {"per_dimension": [*answer(SAME)["per_dimension"], answer(SAME)["per_dimension"][0]]}
IMPACT = json.dumps(answer({**SAME, "factuality": ("worse", "severe")}))


def test_an_answer_that_is_not_whole_is_unscored_with_its_reason_and_nothing_ships() -> None:
    for said, reason, detail in (
        ("", "empty", ""),
        ("The candidate is fine.", "not_json", ""),
        (json.dumps(answer(SAME))[:-20], "not_json", ""),  # cut off
        (answer(without("completeness")), "missing_dimension", "completeness"),
        (answer({**without("factuality"), "facts": ("worse", "high")}), "missing_dimension", "factuality"),
        (answer({}), "missing_dimension", "factuality, completeness, format_adherence"),
        (TWICE, "repeated_dimension", "factuality"),
        (IMPACT, "off_scale", "at per_dimension[0].impact"),
        (answer({**SAME, "factuality": ("much worse", "low")}), "off_scale", "at per_dimension[0].verdict"),
        (answer(SAME, ship_decision="maybe"), "off_scale", "at ship_decision"),
        (answer(SAME, regression_detected="false"), "wrong_format", "at regression_detected"),
        ({key: value for key, value in answer(SAME).items() if key != "ship_reason"}, "wrong_format", "ship_reason"),
        ([answer(SAME)] * 2, "wrong_format", "mapping"),
    ):
        verdict = judged(said)
        assert [each.unscored for each in verdict.answers] == [reason, reason], said
        assert detail in verdict.answers[0].detail, said
        assert (verdict.ship_decision, verdict.regression_detected, verdict.compared) == (None, None, False), said
        half = judged(answer(SAME), said)
        assert (half.ship_decision, half.regression_detected) == (REVIEW, False), said
        assert {each.verdict for each in half.dimensions} == {"uncertain"}, said
        assert half.reasons[0].startswith(f"unscored answer: {reason}"), said


def test_beside_an_answer_that_does_not_count_only_a_confirmed_regression_of_high_impact_decides() -> None:
    for impact, decision, detected in (("high", BLOCK, True), ("medium", REVIEW, None), ("low", REVIEW, None)):
        lone = answer({**SAME, "factuality": ("worse", impact)})
        for first, second in ((lone, "no JSON"), ("no JSON", lone)):
            verdict = judged(first, second)
            assert (verdict.ship_decision, verdict.regression_detected, verdict.compared) == (
                decision,
                detected,
                False,
            ), impact
            assert set(verdict.dimensions[0].by_order) == {"candidate_worse", None}
    assert judged(answer({**SAME, "factuality": UNSUPPORTED}), "no JSON").ship_decision == REVIEW


UNSUPPORTED = ("worse", "high", '"It closes on Sundays"', '"It is open every day"')
LESS_POLISHED = ("worse", "high", "", "It feels less polished.")


def test_what_code_cannot_confirm_or_is_style_alone_goes_to_a_person_and_never_blocks() -> None:
    for finding, reasons in (
        (UNSUPPORTED, ["unsupported: factuality"]),
        (LESS_POLISHED, ["unsupported: factuality", "style only: factuality"]),
    ):
        for rules in (None, LENIENT):
            verdict = judged(answer({**SAME, "factuality": finding}), rules=rules)
            assert (verdict.ship_decision, verdict.reasons) == (REVIEW, reasons)
            assert (verdict.regression_detected, verdict.regression_severity) == (True, "high")  # as the judge says it
        beside = judged(answer({**SAME, "factuality": finding, "completeness": ("worse", "high")}))
        assert (beside.ship_decision, beside.reasons[0]) == (BLOCK, "a regression of high impact: completeness")
        once = judged(answer({**SAME, "factuality": finding}), answer({**SAME, "factuality": ("worse", "low")}))
        assert (once.ship_decision, once.dimensions[0].flags) == (BLOCK, ["quote_not_found"] * (finding is UNSUPPORTED))


def test_what_says_nothing_costs_no_answer_and_what_says_something_is_read() -> None:
    found = answer(SAME)["per_dimension"]
    changes: list[dict[str, Any]] = [{"impact": impact} for impact in (None, "", "none", "severe")]
    changes += [{"evidence_baseline": None, "evidence_candidate": None}, {"confidence": 0.9, "verdict": "Same"}]
    for said in (
        *({**answer(SAME), "per_dimension": [{**one, **changed} for one in found]} for changed in changes),
        {**answer(SAME), "per_dimension": [{"dimension": name, "verdict": "same"} for name in SAME]},
        answer(SAME, notes=["fine"], ship_decision="Ship"),
        answer({**SAME, "elegance": ("much worse", "awful")}),  # costs itself, not the answer
    ):
        verdict = judged(said)
        assert (verdict.ship_decision, verdict.compared) == (SHIP, True), said
    worse = json.dumps(answer({**SAME, "completeness": ("worse", "high")}))
    assert judged(worse.replace("candidate_worse", "Candidate_Worse")).ship_decision == BLOCK
    for impact in ("null", '""', '"none"'):
        assert judged(worse.replace('"high"', impact)).ship_decision is None, impact  # how bad it is, nobody said


def test_names_may_be_spelled_otherwise_and_a_basis_of_more_than_forty_words_is_noted() -> None:
    read = reading(answer({"Factuality": "same", "completeness": "same", "Format-Adherence": "same"}))
    assert [finding.dimension for finding in read.findings] == ["factuality", "completeness", "format_adherence"]
    for count, too_long in ((40, False), (41, True)):
        read = reading(answer(SAME, decision_basis="word " * count))
        assert read.conclusion.basis_too_long is too_long, count


def test_the_document_is_shown_and_demands_nothing_of_the_form() -> None:
    texts = {"baseline_output": "- a\n- b\n- c", "candidate_output": "a, b, c"}
    document = "Please answer in 3 bullets."
    whole = RegressionItem.model_validate({"id": "p", "prompt": f"Sum it up.\n\n{document}", **texts})
    apart = RegressionItem.model_validate({"id": "p", "prompt": "Sum it up.", "document": document, **texts})
    pairs = pairs_of({"whole": whole, "apart": apart}, (), "default", ())
    assert (pairs[0].item.digest, pairs[0].item.shown) == (pairs[1].item.digest, pairs[1].item.shown)
    said = answer({**SAME, "format_adherence": ("worse", "low", "Has bullets.", "Has none.")})
    legs = [reading(said, pair.item).finding("format_adherence").legs for pair in pairs]
    assert legs == [("form",), ()]

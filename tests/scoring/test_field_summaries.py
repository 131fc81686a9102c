"""Summaries of fields and arrays over a run, computed by hand."""

from pathlib import Path

import pytest
from skill_evaluator.library.components import Component
from skill_evaluator.records.summaries import ArraySummary, FieldSummary, Filled, Profile
from skill_evaluator.scoring.recording import summarize_arrays, summarize_fields, summarize_pass_hat_k

from tests.support.components import FAILED, REFUSED, case, component, scorecard

TRUTH = {"shop": "A", "total": 9, "items": ["x"]}
R = '{"shop": "A", "total": 9, "items": ["x"]}'
W = '{"shop": "A", "total": 8, "items": ["x"]}'
SHORT = '{"shop": "A", "total": null, "items": []}'
J = "no JSON"


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    return component(tmp_path_factory.mktemp("library"))


def fields(skill: Component, *run: list[str], unlabelled: tuple[int, ...] = ()) -> dict[str, FieldSummary]:
    table = [(case(f"c{i}", TRUTH, labelled=i not in unlabelled), outcomes) for i, outcomes in enumerate(run)]
    return summarize_fields(scorecard(skill, table), skill.scoring.plan)


def test_fields_are_summarized_over_cases_and_replicates(tmp_path: Path) -> None:
    skill = component(
        tmp_path,
        schema={"type": "object", "properties": {"kind": {"enum": ["sale", "refund"]}, "note": {"type": "string"}}},
        datasets={"fields": {"note": {"compare": "text"}}},
    )
    sale = '{"kind": "sale", "note": "as agreed"}'
    refund = '{"kind": "refund", "note": "agreed as"}'
    card = scorecard(
        skill,
        [
            (case("a", {"kind": "sale", "note": "as agreed"}), [sale, sale, refund]),
            (case("b", {"kind": "refund"}), ["{}", refund, J]),
        ],
    )
    found = summarize_fields(card, skill.scoring.plan)
    assert found["kind"] == FieldSummary(
        compare="category",
        accuracy=0.6,
        n=5,
        right=3,
        wrong=1,
        missing=1,
        extra=0,
        stability=0.5,  # (2/3 + 1/3) ÷ 2
        confusion={"sale": {"sale": 2, "refund": 1}, "refund": {"null": 1, "refund": 1}},
        macro_f1=0.65,  # sale 2·2 ÷ (3 + 2), refund 2·1 ÷ (2 + 2)
        # sale, sale, refund and refund, none: n = 5, agreeing 2 ÷ 2 + 0; counts 2, 2, 1: (4·1 − 4) ÷ (20 − 4)
        alpha=0.0,
        filled=Filled(n=5, output=4, truth=5),
        profile=Profile(flaky=2),
    )
    note = found["note"]
    assert (note.compare, note.right, note.wrong, note.extra, note.confusion) == ("text", 2, 1, 1, None)
    assert (note.token_f1, note.rouge_l) == (pytest.approx((1 + 1 + 1 + 0) / 4), pytest.approx((1 + 1 + 1 / 2 + 0) / 4))
    assert note.filled == Filled(n=5, output=4, truth=3)
    assert note.profile == Profile(unscored=2)


def test_unscored_field_has_only_stability_and_alpha(skill: Component) -> None:
    assert fields(skill, [R, W], unlabelled=(0,))["total"] == FieldSummary(
        compare="number",
        accuracy=None,
        n=0,
        right=0,
        wrong=0,
        missing=0,
        extra=0,
        stability=0.5,
        alpha=0.0,
        profile=Profile(flaky=1),
    )


def test_profile_counts_cases_by_stability(skill: Component) -> None:
    found = fields(skill, [R, R], [W, W], [R, W], [R, J], [R, FAILED], [R, R], [R, W], unlabelled=(5, 6))
    assert found["total"].profile == Profile(stable_right=1, stable_wrong=1, stable=1, flaky=3, unscored=1)
    assert found["shop"].profile == Profile(stable_right=3, stable=2, flaky=1, unscored=1)


def test_alpha_of_a_field(skill: Component) -> None:
    assert fields(skill, [R, R], [W, W])["total"].alpha == 1.0
    assert fields(skill, [R, W], [W, R])["total"].alpha == -0.5
    assert fields(skill, [R, R], [R, R])["total"].alpha is None  # nothing varied
    assert fields(skill, [R], [W])["total"].alpha is None  # nothing to pair
    # answers that could not be parsed are missing values: (9, 9), (8, 8) and a 9 alone
    assert fields(skill, [R, R, J], [W, REFUSED, W], [R, J, FAILED])["total"].alpha == 1.0
    # where no answer has the field, all gave the same: none. none, none and z, none: n = 4, (3·2 − 6) ÷ (12 − 6)
    invented = '{"shop": "A", "total": 9, "items": ["x"], "z": 1}'
    assert fields(skill, [R, R], [invented, R])["z"].alpha == 0.0


def test_filled_counts_outputs_and_truths_with_a_value(skill: Component) -> None:
    found = fields(skill, [R, SHORT, J], [SHORT, SHORT, W], [R, R, R], unlabelled=(2,))
    assert found["shop"].filled == Filled(n=5, output=5, truth=5)
    assert found["total"].filled == Filled(n=5, output=2, truth=5)
    assert found["items[]"].filled == Filled(n=5, output=2, truth=5)
    assert fields(skill, [J, J])["shop"].filled is None


def test_arrays_are_summarized_over_cases(skill: Component) -> None:
    run = [[R, R, W], [R, SHORT, SHORT], [R, J, R], [R, FAILED, FAILED]]
    card = scorecard(skill, [(case(f"c{index}", TRUTH), outcomes) for index, outcomes in enumerate(run)])
    # stability (1 + 2/3 + 2/3) ÷ 3; a case with one answer says nothing
    assert summarize_arrays(card) == {"items": ArraySummary(stability=0.777778, n_cases=3, varied=1, widest=1)}


def test_worked_example_of_the_documentation_is_true(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"kind": {"enum": ["sale", "refund"]}}}
    skill = component(tmp_path, schema=schema)
    sale, refund = '{"kind": "sale"}', '{"kind": "refund"}'
    run = [(case("A", {"kind": "sale"}), [sale, sale, refund]), (case("B", {"kind": "refund"}), [sale, sale, sale])]
    card = scorecard(skill, run)
    kind = summarize_fields(card, skill.scoring.plan)["kind"]
    assert kind.confusion == {"sale": {"sale": 2, "refund": 1}, "refund": {"sale": 3}}
    assert (kind.macro_f1, kind.alpha) == (0.25, 0.0)
    assert kind.profile == Profile(stable_wrong=1, flaky=1)
    assert [round(summary.mean or 0, 4) for summary in summarize_pass_hat_k(card).values()] == [0.3333, 0.1667, 0]
    page = " ".join((Path(__file__).parents[2] / "docs" / "metrics.md").read_text().split())
    assert "Case A (truth `sale`): sale, sale, refund. Case B (truth `refund`): sale, sale, sale." in page
    for number in ("**0.3333**", "**0.1667**", "**0**", "**0.25**", "**0.0**", "A flaky, B stable-wrong"):
        assert number in page

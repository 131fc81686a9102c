"""Summaries of a run by the outcomes of its cases and replicates, computed by hand."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.library.components import Component
from skill_evaluator.metrics import REPRODUCIBILITY
from skill_evaluator.records.summaries import ContractSummary, Summary
from skill_evaluator.scoring.recording import (
    case_accuracy,
    summarize_accuracy,
    summarize_contract,
    summarize_pass_hat_k,
    summarize_reproducibility,
)

from tests.support.components import FAILED, NOT_RUN, REFUSED, TRUNCATED, case, component, scorecard

TRUTH = {"shop": "A", "total": 9, "items": ["x"]}
R = '{"shop": "A", "total": 9, "items": ["x"]}'
W = '{"shop": "A", "total": 8, "items": ["x"]}'  # F1 2/3
J = "no JSON"
F1 = "field_level_f1"
UNSEEN = 1 - 0.05**0.5  # what two cases that agree leave open
HALF = (0.025, 0.975)  # the 95 % interval of a rate of 1 in 2


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    return component(tmp_path_factory.mktemp("library"))


def summary(skill: Component, run: list[list[str]], metric: str, unlabelled: tuple[int, ...] = ()) -> Summary:
    table = [(case(f"c{i}", TRUTH, labelled=i not in unlabelled), outcomes) for i, outcomes in enumerate(run)]
    return summarize_accuracy(scorecard(skill, table), skill.scoring.metrics)[metric]


def expected(
    mean: float | None,
    strict: float | None,
    stdev: float | None,
    stdev_cases: float | None,
    n: int,
    n_cases: int,
    ci95: tuple[float, float] | None,
) -> Any:
    return pytest.approx(
        {
            "mean": mean,
            "strict_mean": strict,
            "stdev": stdev,
            "stdev_cases": stdev_cases,
            "n": n,
            "n_cases": n_cases,
            "low": ci95 and ci95[0],
            "high": ci95 and ci95[1],
        },
        abs=2e-6,
    )


def flat(found: Summary) -> dict[str, Any]:
    values = found.model_dump()
    low, high = values.pop("ci95") or (None, None)
    return {**values, "low": low, "high": high}


@pytest.mark.parametrize(
    ("run", "metric", "numbers"),
    [
        # all right: agreement leaves open what two cases could not show
        ([[R, R], [R, R]], F1, expected(1, 1, 0, 0, 4, 2, (1 - UNSEEN, 1))),
        # one case: replicates say how it varies, nothing says how cases do
        ([[R, W]], F1, expected(5 / 6, 5 / 6, 0.235702, None, 2, 1, None)),
        # one replicate: no spread between replicates
        ([[R], [R]], F1, expected(1, 1, None, 0, 2, 2, (1 - UNSEEN, 1))),
        # means over cases of means over replicates: (5/6 + 2/3) ÷ 2; replicates have means 5/6 and 2/3
        ([[R, W], [W, W]], F1, expected(3 / 4, 3 / 4, 0.117851, 0.117851, 4, 2, (0.005404, 0.999397))),
        # three cases 1, 5/6, 5/6: t(2) = 4.302653 times √(0.096225² ÷ 3 + (1/6 ÷ 2 ÷ 3)²) on the log-odds of 8/9
        ([[R, R], [R, W], [W, R]], F1, expected(8 / 9, 8 / 9, 0, 0.096225, 6, 3, (0.348311, 0.991718))),
        # a case counts once, however many of its replicates were scored: (1 + 2/3) ÷ 2
        ([[R, FAILED, FAILED], [W, W, W]], F1, expected(5 / 6, 5 / 6, 0.096225, 0.235702, 4, 2, (0, 1))),
        # nothing parsed: mean of nothing, strictly 0, never valid
        ([[J, J], [J, J]], F1, expected(None, 0, 0, 0, 0, 2, (0, UNSEEN))),
        ([[J, J], [J, J]], "schema_valid", expected(0, 0, 0, 0, 4, 2, (0, UNSEEN))),
        # unparseable, refused, truncated: 0 strictly, absent from the mean
        ([[R, J], [R, R]], F1, expected(1, 3 / 4, 0.353553, 0.353553, 3, 2, (0, 1))),
        ([[R, REFUSED], [R, R]], F1, expected(1, 3 / 4, 0.353553, 0.353553, 3, 2, (0, 1))),
        ([[REFUSED, TRUNCATED]], F1, expected(None, 0, 0, None, 0, 1, None)),
        # calls that brought no answer: in neither
        ([[R, FAILED], [W, R]], F1, expected(11 / 12, 11 / 12, 0.117851, 0.117851, 3, 2, (0, 1))),
        ([[FAILED, FAILED], [R, R]], F1, expected(1, 1, 0, None, 2, 1, None)),
        ([[FAILED, J], [R, R]], F1, expected(1, 1 / 2, 0.353553, 0.707107, 2, 2, HALF)),
        ([[FAILED, NOT_RUN]], F1, expected(None, None, None, None, 0, 0, None)),
        # 0 or 1 for every case: mid-P
        ([[R, R], [W, W]], "exact_match", expected(1 / 2, 1 / 2, 0, 0.707107, 4, 2, HALF)),
    ],
)
def test_metric_is_summarized_over_a_run(skill: Component, run: list[list[str]], metric: str, numbers: Any) -> None:
    assert flat(summary(skill, run, metric)) == numbers


def test_worked_example_of_the_documentation_is_true(skill: Component) -> None:
    found = summary(skill, [[R, J], [R, W]], "exact_match")
    assert flat(found) == expected(0.75, 0.5, 0.707107, 0, 3, 2, (0.111803, 0.888197))
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    assert "two replicates, metric `exact_match`. Case A: 1 and unparseable. Case B: 1 and 0." in page
    for number in ("**0.75**", "**0.5**", "**0.7071**", "**[0.1118, 0.8882]**"):
        assert number in page


def test_case_without_truth_counts_only_for_metrics_that_need_none(skill: Component) -> None:
    run = [[R, W], [W, J]]
    assert flat(summary(skill, run, F1, unlabelled=(1,))) == expected(5 / 6, 5 / 6, 0.235702, None, 2, 1, None)
    valid = summary(skill, run, "schema_valid", unlabelled=(1,))
    assert (valid.mean, valid.n, valid.n_cases) == (0.75, 4, 2)
    assert summary(skill, run, F1, unlabelled=(0, 1)).n_cases == 0


@pytest.mark.parametrize("run", [[["{}", "{}"]], [["{}", J], ["{}", REFUSED]]])
def test_undefined_metric_is_excluded(tmp_path: Path, run: list[list[str]]) -> None:
    skill = component(tmp_path, schema={"type": "object"})
    table = [(case(f"c{index}", {}), outcomes) for index, outcomes in enumerate(run)]
    card = scorecard(skill, table)
    found = summarize_accuracy(card, skill.scoring.metrics)["jaccard"]
    assert (found.mean, found.strict_mean, found.n, found.n_cases, found.ci95) == (None, None, 0, 0, None)
    assert "jaccard" not in case_accuracy(card.cases[0])


@pytest.mark.parametrize(
    ("outcomes", "mean", "strict", "n"),
    [
        ([R, W], 5 / 6, 5 / 6, 2),
        ([R, REFUSED, TRUNCATED, FAILED], 1, 1 / 3, 1),
        ([FAILED, NOT_RUN], None, None, 0),
    ],
)
def test_metric_is_summarized_over_a_case(
    skill: Component, outcomes: list[str], mean: float | None, strict: float | None, n: int
) -> None:
    (one,) = scorecard(skill, [(case("c", TRUTH), outcomes)]).cases
    found = case_accuracy(one)[F1]
    assert (found.mean, found.strict_mean, found.n) == pytest.approx((mean, strict, n), abs=2e-6)


def test_case_without_truth_has_no_accuracy_that_needs_one(skill: Component) -> None:
    (one,) = scorecard(skill, [(case("c", labelled=False), [R])]).cases
    assert list(case_accuracy(one)) == ["schema_valid"]


def test_agreement_is_the_mean_over_cases_with_two_outputs(skill: Component) -> None:
    run = [[R, R, R], [R, R, W], [R, J, FAILED], [R, FAILED, FAILED]]
    card = scorecard(skill, [(case(f"c{index}", TRUTH), outcomes) for index, outcomes in enumerate(run)])
    found = summarize_reproducibility(card)
    exact = found["pairwise_exact_match"]
    assert exact.mean == exact.strict_mean == pytest.approx((1 + 1 / 3 + 0) / 3, abs=1e-6)
    assert (exact.n, exact.n_cases, exact.stdev) == (3, 3, None)
    assert found["pairwise_field_f1"].mean == pytest.approx((1 + (1 + 2 / 3 + 2 / 3) / 3 + 0) / 3, abs=1e-6)
    assert found["tara_at_n"].mean == pytest.approx(1 / 3, abs=1e-6)
    distinct = found["distinct_outputs"]
    assert (distinct.mean, distinct.n) == (pytest.approx((1 + 2 + 2) / 3, abs=2e-6), 3)
    # 1, 2, 2 is 0, 1/2, 1/2 of the way from one output to three: log-odds of 1/3 ± t(2) = 4.302653 standard errors
    assert distinct.ci95 == pytest.approx((1.026747, 2.89714), abs=2e-6)


def test_interval_of_distinct_outputs_is_on_their_scale(skill: Component) -> None:
    spread = [[R, W, J], [R, R, R]]
    card = scorecard(skill, [(case(f"c{index}", TRUTH), outcomes) for index, outcomes in enumerate(spread)])
    assert summarize_reproducibility(card)["distinct_outputs"].ci95 == pytest.approx(
        (1 + 2 * HALF[0], 1 + 2 * HALF[1]), abs=2e-6
    )
    alike = scorecard(skill, [(case("a", TRUTH), [R, R]), (case("b", TRUTH), [R, R])])
    found = summarize_reproducibility(alike)
    assert found["distinct_outputs"].ci95 == pytest.approx((1, 1 + UNSEEN), abs=2e-6)


def test_one_replicate_has_no_agreement(skill: Component) -> None:
    found = summarize_reproducibility(scorecard(skill, [(case("c", TRUTH), [R])]), REPRODUCIBILITY)[
        "pairwise_exact_match"
    ]
    assert (found.mean, found.n, found.ci95) == (None, 0, None)


PASSES = [
    ([[R, R, R]], {1: (1, 1), 2: (1, 1), 3: (1, 1)}),
    ([[R, R, W], [W, W, W]], {1: (1 / 3, 2), 2: (1 / 6, 2), 3: (0, 2)}),  # 2/3 and 0; C(2,2) ÷ C(3,2) and 0
    ([[R, R, J], [R, R, REFUSED]], {1: (2 / 3, 2), 2: (1 / 3, 2), 3: (0, 2)}),  # what cannot be read is no success
    # a call that brought no answer is no failure; with two answers there is no third
    ([[R, R, FAILED], [R, W, R]], {1: (5 / 6, 2), 2: (2 / 3, 2), 3: (0, 1)}),
    ([[FAILED, NOT_RUN, FAILED]], {1: (None, 0), 2: (None, 0), 3: (None, 0)}),
]


@pytest.mark.parametrize(("run", "expected"), PASSES)
def test_pass_hat_k_is_the_mean_over_cases_with_k_outputs(
    skill: Component, run: list[list[str]], expected: dict[int, tuple[float | None, int]]
) -> None:
    card = scorecard(skill, [(case(f"c{index}", TRUTH), outcomes) for index, outcomes in enumerate(run)])
    found = summarize_pass_hat_k(card)
    assert found.keys() == expected.keys()
    for k, (mean, n_cases) in expected.items():
        assert (found[k].mean, found[k].n_cases) == pytest.approx((mean, n_cases), abs=1e-6)
        assert found[k].mean == found[k].strict_mean


def test_pass_hat_k_needs_truth_and_no_metric(tmp_path: Path) -> None:
    skill = component(tmp_path, datasets={"metrics": ["schema_valid"]})
    run = [(case("a", TRUTH), [R] * 5), (case("b", labelled=False), [R] * 5)]
    found = summarize_pass_hat_k(scorecard(skill, run))
    assert list(found) == [1, 2, 3, 5]
    assert all((summary.mean, summary.n_cases) == (1, 1) for summary in found.values())


def test_schema_errors_are_summed_over_the_run(skill: Component) -> None:
    renamed = '{"vendor": "A", "total": 9}'
    more = '{"shop": "A", "total": 9, "tax": 1, "items": []}'
    text = '{"shop": 5, "total": 9, "items": [1, 2]}'
    card = scorecard(skill, [(case("a", TRUTH), [R, renamed, renamed]), (case("b", labelled=False), [more, text, J])])
    found = summarize_contract(card)
    assert (found.n, found.valid, found.valid_apart_from_extra_keys) == (5, 0.2, 0.4)
    assert [(fault.path, fault.rule, fault.count) for fault in found.errors] == [
        ("items[]", "type", 2),
        ("shop", "required", 2),
        ("vendor", "additionalProperties", 2),
        ("shop", "type", 1),
        ("tax", "additionalProperties", 1),
    ]
    assert found.errors[0].message == '1 is not of type "string"'
    assert (found.missing_keys, found.extra_keys) == ({"shop": 2}, {"vendor": 2, "tax": 1})


def test_valid_run_has_no_schema_errors(skill: Component) -> None:
    found = summarize_contract(scorecard(skill, [(case("a", TRUTH), [R, W, REFUSED])]))
    assert found == ContractSummary(
        n=2, valid=1, valid_apart_from_extra_keys=1, errors=[], missing_keys={}, extra_keys={}
    )
    nothing = summarize_contract(scorecard(skill, [(case("a", TRUTH), [J, J])]))
    assert (nothing.n, nothing.valid, nothing.valid_apart_from_extra_keys) == (0, None, None)


def test_unnamed_key_of_an_open_schema_is_extra_but_no_error(tmp_path: Path) -> None:
    skill = component(tmp_path, schema={"type": "object", "properties": {"shop": {"type": "string"}}})
    found = summarize_contract(scorecard(skill, [(case("a", {}), ['{"vendor": "A"}', '{"shop": "A"}'])]))
    assert (found.valid, found.errors, found.extra_keys) == (1, [], {"vendor": 1})

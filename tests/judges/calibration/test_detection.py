"""What a regression judge finds of what code broke, and what the rates of a batch become by that."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.detection import batch_rates, detection, see
from skill_evaluator.judges.calibration.labels import RegressionLabel
from skill_evaluator.judges.calibration.planting import PlantedPair
from skill_evaluator.judges.calibration.results import BatchDimension, DetectionResult, DimensionDetection
from skill_evaluator.judges.modes.regression_results import PairResult

DIMENSIONS = ("factuality", "completeness", "format_adherence")
WORSE, SAME, UNCERTAIN = "candidate_worse", "same", "uncertain"
Found = Mapping[str, tuple[str, str | None]]


def planted(name: str, way: str, dimension: str | None = None, impact: str | None = None) -> PlantedPair:
    return PlantedPair(
        id=name,
        input="p",
        baseline_output="a",
        candidate_output="b",
        source=name,
        planted=way,
        dimension=dimension,
        impact=impact,  # type: ignore[arg-type]
    )


def judged(name: str, found: Found, answered: Sequence[str] = DIMENSIONS) -> PairResult:
    """A pair as `judge regression` has it; what is not in `found` is the same."""
    return PairResult.model_validate(
        {
            "id": name,
            "stratum": "all",
            "ship_decision": None,
            "reasons": [],
            "regression_detected": None,
            "regression_severity": None,
            "answers": [],
            "dimensions": [dimension(key, *found.get(key, (SAME, None)), given=key in answered) for key in DIMENSIONS],
        }
    )


def dimension(name: str, verdict: str, impact: str | None, *, given: bool) -> dict[str, Any]:
    orders = [WORSE, SAME] if verdict == UNCERTAIN else [verdict, verdict]
    return {
        "dimension": name,
        "verdict": verdict,
        "impact": impact,
        "by_order": orders if given else [None, None],
        "supported": None,
        "legs": [],
        "flags": [],
    }


def measured(pairs: Sequence[tuple[PlantedPair, Found]], bar: float = 0.6) -> DetectionResult:
    results = {one.id: judged(one.id, found) for one, found in pairs}
    return detection([one for one, _ in pairs], results, bar, {})


def of(result: DetectionResult, name: str) -> DimensionDetection:
    return next(row for row in result.dimensions if row.dimension == name)


def judge_of(found: int, missed: int, quiet: int, loud: int) -> list[tuple[PlantedPair, Found]]:
    """Planted pairs before a judge that finds and makes up so many regressions of factuality."""
    broken = [(True, place) for place in range(found)] + [(False, place + found) for place in range(missed)]
    controls = [(False, place) for place in range(quiet)] + [(True, place + quiet) for place in range(loud)]
    worse: Found = {"factuality": (WORSE, "high")}
    return [
        *(
            (planted(f"b{place}", "number_changed", "factuality", "high"), worse if hit else {})
            for hit, place in broken
        ),
        *((planted(f"c{place}", "same_text"), worse if hit else {}) for hit, place in controls),
    ]


def test_sensitivity_and_specificity_are_counted_by_dimension_impact_and_way() -> None:
    result = measured(
        [
            (planted("1", "number_changed", "factuality", "high"), {"factuality": (WORSE, "high")}),
            (planted("2", "fact_invented", "factuality", "medium"), {"completeness": (WORSE, "low")}),
            (planted("3", "date_changed", "factuality", "high"), {"factuality": (UNCERTAIN, None)}),
            (planted("4", "item_dropped", "completeness", "low"), {"completeness": (WORSE, "medium")}),
            (planted("5", "same_text"), {}),
            (planted("6", "other_words"), {"factuality": (WORSE, "low")}),
            (planted("7", "typography"), {"completeness": ("candidate_better", None)}),
        ]
    )
    assert [row.dimension for row in result.dimensions] == ["completeness", "factuality", "any"]
    factuality, whole = of(result, "factuality"), of(result, "any")
    assert (factuality.sensitivity.value, factuality.sensitivity.n) == (pytest.approx(1 / 3), 3)
    assert {impact: figure.value for impact, figure in factuality.by_impact.items()} == {"medium": 0.0, "high": 0.5}
    assert (factuality.specificity.value, factuality.specificity.n) == (pytest.approx(2 / 3), 3)
    assert (whole.sensitivity.value, whole.specificity.value, whole.same.value) == pytest.approx(
        (0.75, 2 / 3, 1 / 3), abs=1e-5
    )
    ways = {way.planted: (way.found.value, way.elsewhere, way.uncertain) for way in result.ways}
    assert ways["fact_invented"] == (0.0, 1, 0)
    assert ways["date_changed"] == (0.0, 0, 1)
    assert {kind.planted: kind.quiet.value for kind in result.control_kinds} == {
        "same_text": 1.0,
        "other_words": 0.0,
        "typography": 1.0,
    }
    assert result.severity["low"] == {"none": 0, "low": 0, "medium": 1, "high": 0}
    assert result.severity["high"] == {"none": 1, "low": 0, "medium": 0, "high": 1}


def test_a_pair_without_an_answer_counts_for_nothing_and_a_batch_of_them_is_refused() -> None:
    pairs = [planted("1", "number_changed", "factuality", "high"), planted("2", "same_text")]
    result = detection(pairs, {"1": judged("1", {}, answered=())}, 0.6, {})
    assert (result.broken, result.controls, result.unscored) == (0, 0, 2)
    with pytest.raises(JudgeError, match="no pair of the batch"):
        batch_rates([judged("p", {}, answered=())], {}, [], 0.6)


def test_a_judge_is_trusted_in_a_dimension_above_the_bar_and_the_pairs_that_would_decide_do() -> None:
    for counts, trusted in (
        ((95, 5, 98, 2), True),
        ((20, 80, 98, 2), False),  # it misses
        ((98, 2, 20, 80), False),  # it makes up
        ((50, 50, 50, 50), False),  # a coin
        ((8, 2, 9, 1), None),
    ):
        row = of(measured(judge_of(*counts)), "factuality")
        assert row.trusted is trusted, counts
        assert (row.more_pairs is None) == (trusted is not None), counts
    row = of(measured(judge_of(8, 2, 9, 1)), "factuality")
    factor = (20 + row.more_pairs) / 20
    more = measured(judge_of(*(round(count * factor * 1.05) for count in (8, 2, 9, 1))))
    assert of(more, "factuality").trusted is not None


def batch(
    found: Sequence[Found],
    seen: Sequence[tuple[PlantedPair, Found]],
    labels: Mapping[str, Mapping[str, str]] | None = None,
) -> Any:
    given = {
        name: {
            key: RegressionLabel.model_validate({"id": name, "dimension": key, **label(human)})
            for key, human in mine.items()
        }
        for name, mine in (labels or {}).items()
    }
    pairs = [judged(f"p{place}", one) for place, one in enumerate(found)]
    results = {one.id: judged(one.id, verdicts) for one, verdicts in seen}
    return batch_rates(pairs, given, see([one for one, _ in seen], results), 0.6)


def label(human: str) -> dict[str, str]:
    return {"human": SAME} if human == SAME else {"human": WORSE, "impact": human}


def row(result: Any, name: str) -> BatchDimension:
    return next(one for one in result.dimensions if one.dimension == name)


def test_the_rate_of_a_batch_is_corrected_for_what_the_judge_misses_and_makes_up() -> None:
    """Sensitivity 0.8 and specificity 0.9 make 0.31 of a true 0.3: 0.3 × 0.8 + 0.7 × 0.1."""
    found: list[Found] = [{"factuality": (WORSE, "high")} if place < 62 else {} for place in range(200)]
    result = batch(found, judge_of(80, 20, 90, 10))
    factuality = row(result, "factuality")
    assert factuality.reported.value == 0.31
    assert factuality.corrected.value == pytest.approx(0.3)
    assert factuality.corrected.ci95[0] < 0.3 < factuality.corrected.ci95[1]
    assert (factuality.control.value, factuality.test) == (0.1, "chi-squared")
    assert result.severity == {"none": 138, "low": 0, "medium": 0, "high": 62}
    assert not result.too_few


def test_what_batch_and_controls_have_alike_is_no_finding_and_p_is_adjusted_over_dimensions() -> None:
    found: list[Found] = [{"factuality": (WORSE, "low")} if place < 5 else {} for place in range(50)]
    result = batch(found, judge_of(45, 5, 45, 5))
    assert result.too_few
    factuality, completeness = row(result, "factuality"), row(result, "completeness")
    assert factuality.p == pytest.approx(1.0)
    assert completeness.test == "exact"
    assert row(result, "any").q is None
    found: list[Found] = [{"factuality": (WORSE, "low")} if place < 6 else {} for place in range(50)]
    factuality = row(batch(found, judge_of(45, 5, 50, 0)), "factuality")
    assert factuality.q == pytest.approx(3 * factuality.p)


def test_with_labels_of_some_pairs_the_rate_is_theirs_and_not_the_judges() -> None:
    """A judge that reports everything: people say that one pair in four is worse."""
    found: list[Found] = [{"factuality": (WORSE, "high")} for _ in range(200)]
    labels = {f"p{place}": {"factuality": "high" if place % 4 == 0 else SAME} for place in range(80)}
    result = batch(found, judge_of(50, 0, 0, 50), labels)
    powered = row(result, "factuality").powered
    assert powered.value == pytest.approx(0.25)
    assert row(result, "completeness").powered is None
    assert row(result, "any").powered is None  # not every dimension has a label
    assert row(result, "factuality").corrected.value is None
    assert result.rated["none"]["high"] == 60


@pytest.mark.simulation
def test_the_corrected_rate_covers_the_truth_of_simulated_batches() -> None:
    """200 batches of 150 pairs: the judge finds 85 % and makes up 10 %, 60 broken outputs and 100 controls."""
    dice = random.Random(3)

    def verdict(broken: bool) -> Found:
        return {"factuality": (WORSE, "high")} if dice.random() < (0.85 if broken else 0.1) else {}

    covered = 0
    for _ in range(200):
        seen = [
            (planted(f"b{place}", "number_changed", "factuality", "high"), verdict(broken=True)) for place in range(60)
        ]
        seen += [(planted(f"c{place}", "same_text"), verdict(broken=False)) for place in range(100)]
        rate = row(batch([verdict(dice.random() < 0.2) for _ in range(150)], seen), "factuality").corrected
        covered += rate.ci95 is not None and rate.ci95[0] <= 0.2 <= rate.ci95[1]
    assert covered >= 184

"""Ranked models: planted gaps are told apart or grouped, dominated models are never advised, a table as by hand."""

import csv
import random
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from math import sqrt
from statistics import fmean, stdev

import pytest
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.noise import RUN_DEGREES, RUN_SHARE
from skill_evaluator.verdicts.ranking import rank_models
from skill_evaluator.verdicts.ranking_results import ModelRanking

from tests.audit.cubes import PAPER
from tests.support.records import Score, a_record
from tests.support.rules import some_rules


def model(name: str, cases: Mapping[str, Sequence[Score]], **changed: object) -> Record:
    """A run of a model, whose settings are its own."""
    digests = {"prompt": "p", "schema": "s", "settings": name, "datasets": "d"}
    return a_record(cases, model_id=name, run_id=f"20260101T000000Z-000000-{name}", **{"digests": digests, **changed})


def rank(*records: Record) -> ModelRanking:
    pairs = [Pair(baseline=None, candidate=record) for record in records]
    return rank_models("s", pairs, some_rules(), verdicts={}, left_out={})


def drawn(mean: float, seed: int, cases: int = 40, replicates: int = 5) -> dict[str, list[Score]]:
    """Cases of different difficulty, the same for all models, with noise between a case's answers of each model."""
    difficulty, noise = random.Random(0), random.Random(seed)
    return {
        f"case-{at:02d}": [
            min(1.0, max(0.0, mean + hard + noise.gauss(0, 0.05))) for hard in [difficulty.gauss(0, 0.1)] * replicates
        ]
        for at in range(cases)
    }


def test_two_models_0_10_apart_on_40_cases_are_told_apart_and_0_01_apart_are_grouped() -> None:
    ranking = rank(model("low", drawn(0.6, 1)), model("high", drawn(0.7, 2)), model("near", drawn(0.69, 3)))
    assert [one.model_id for one in ranking.models][-1] == "low"
    assert ranking.groups == {"a": [one.model_id for one in ranking.models][:2], "b": ["low"]}
    assert {frozenset((pair.higher, pair.lower)): pair.told_apart for pair in ranking.pairs} == {
        frozenset(("high", "low")): True,
        frozenset(("near", "low")): True,
        frozenset(("high", "near")): False,
    }


def test_a_group_is_no_chain_two_models_may_be_alike_a_third_and_yet_told_apart() -> None:
    cases = [drawn(mean, seed, cases=12) for mean, seed in ((0.80, 1), (0.745, 2), (0.69, 3))]
    ranking = rank(*(model(name, scores) for name, scores in zip(("x", "y", "z"), cases, strict=True)))
    apart = {(pair.higher, pair.lower) for pair in ranking.pairs if pair.told_apart}
    for first, second in combinations([one.model_id for one in ranking.models], 2):
        share = any({first, second} <= set(group) for group in ranking.groups.values())
        assert share == ((first, second) not in apart)


def test_a_model_that_is_cheaper_and_no_worse_on_any_metric_dominates_and_is_advised_instead() -> None:
    ranking = rank(
        model("dear", drawn(0.80, 1), cost_usd=9.0, other={"exact_match": drawn(0.70, 3)}),
        model("cheap", drawn(0.82, 2), cost_usd=1.0, other={"exact_match": drawn(0.72, 4)}),
    )
    by_name = {one.model_id: one for one in ranking.models}
    assert [(one.by, one.shown) for one in by_name["dear"].dominated_by] == [("cheap", True)]
    assert (by_name["cheap"].frontier, by_name["dear"].frontier) == (True, False)
    assert [one.model_id for one in ranking.advice] == ["cheap"]


def test_a_model_that_is_better_on_one_metric_is_not_dominated() -> None:
    good = drawn(0.8, 1)
    ranking = rank(
        model("dear", good, cost_usd=9.0, other={"exact_match": drawn(0.7, 3)}),
        model("cheap", good, cost_usd=1.0, other={"exact_match": drawn(0.5, 3)}),
    )
    assert not any(one.dominated_by for one in ranking.models)


def test_dominance_of_few_cases_is_seen_and_not_shown() -> None:
    ranking = rank(
        model("dear", drawn(0.6, 1, cases=4, replicates=2), cost_usd=9.0),
        model("cheap", drawn(0.66, 5, cases=4, replicates=2), cost_usd=1.0),
    )
    dear = next(one for one in ranking.models if one.model_id == "dear")
    assert [(one.by, one.shown) for one in dear.dominated_by] == [("cheap", False)]


def test_a_dominated_model_is_never_advised() -> None:
    dice = random.Random(7)
    for _ in range(12):
        ranking = rank(
            *(
                model(
                    f"m{at}",
                    drawn(dice.choice((0.6, 0.62, 0.7)), dice.randrange(4), cases=8),
                    cost_usd=dice.choice((0.0, 1.0, 2.0)),
                )
                for at in range(4)
            )
        )
        dominated = {one.model_id for one in ranking.models if one.dominated_by}
        assert ranking.advice
        assert not dominated & {one.model_id for one in ranking.advice}


def test_the_cheaper_of_two_that_are_not_told_apart_is_advised_beside_the_best() -> None:
    ranking = rank(model("best", drawn(0.70, 2), cost_usd=8.0), model("thrifty", drawn(0.69, 3), cost_usd=2.0))
    assert [one.model_id for one in ranking.advice] == ["best", "thrifty"]
    assert ranking.advice[1].reason.startswith("75% cheaper and not told apart from best")


def test_a_cost_that_is_not_known_makes_no_dominance_and_no_frontier() -> None:
    ranking = rank(model("free", drawn(0.5, 1), cost_usd=None), model("best", drawn(0.7, 2), cost_usd=1.0))
    assert [one.frontier for one in ranking.models] == [True, None]
    assert not any(one.dominated_by for one in ranking.models)


def test_only_shared_cases_count_and_a_model_of_other_cases_or_another_schema_is_left_out() -> None:
    whole = drawn(0.7, 1)
    most = {case_id: scores for case_id, scores in drawn(0.7, 2).items() if case_id != "case-00"}
    few = {case_id: scores for case_id, scores in whole.items() if case_id < "case-10"}
    other = {"prompt": "p", "schema": "other", "settings": "x", "datasets": "d"}
    ranking = rank(
        model("z", whole),
        model("most", most),
        model("few", few),
        model("old", whole, digests=other, timestamp="2025-01-01T00:00:00Z"),
    )
    assert {one.model_id for one in ranking.models} == {"z", "most"}
    assert ranking.n_cases == 39
    assert ranking.left_out == {
        "few": "it answered 10 of 40 cases of z",
        "old": "not measured as z was: the schema changed",
    }


@pytest.fixture(scope="module")
def published() -> dict[str, list[float]]:
    """The overall score of each published model in each of ten scenarios, from 0 to 1."""
    scores: dict[str, list[float]] = {}
    for row in csv.DictReader(PAPER.read_text().splitlines()):
        benchmarks = [float(value) for name, value in row.items() if name not in ("model", "template")]
        scores.setdefault(row["model"], []).append(fmean(benchmarks) / 100)
    return scores


def test_thirteen_published_models_rank_and_group_as_a_hand_calculation_does(published: dict[str, list[float]]) -> None:
    ranking = rank(
        *(model(name, {f"scenario-{at}": [score] for at, score in enumerate(row)}) for name, row in published.items())
    )
    by_hand = sorted(published, key=lambda name: -fmean(published[name]))
    assert len(by_hand) == 13
    assert [one.model_id for one in ranking.models] == by_hand
    p_values, lows = {}, {}
    for higher, lower in combinations(by_hand, 2):
        differences = [b - a for a, b in zip(published[higher], published[lower], strict=True)]
        p_values[higher, lower], lows[higher, lower] = _paired_by_hand(differences)
    ranks = {pair: rank for rank, pair in enumerate(sorted(p_values, key=p_values.__getitem__), 1)}
    apart = set()
    for pair in p_values:
        q = min(len(ranks) * p_values[other] / ranks[other] for other in ranks if ranks[other] >= ranks[pair])
        if q <= 0.05 and lows[pair] < -0.05:
            apart.add(pair)
    assert {(pair.higher, pair.lower) for pair in ranking.pairs if pair.told_apart} == apart
    assert 20 < len(apart) < 78  # neither all nor none: the table can tell
    for first, second in combinations(by_hand, 2):
        assert any({first, second} <= set(group) for group in ranking.groups.values()) == ((first, second) not in apart)


def _paired_by_hand(differences: list[float]) -> tuple[float, float]:
    """Two-sided p of flipped signs (of t with the noise of a whole run, if larger), and the interval's lower end."""
    from scipy.stats import t as student

    n, mean, sd = len(differences), fmean(differences), stdev(differences)
    flipped = [
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True))) for signs in product((1, -1), repeat=n)
    ]
    p = sum(total >= abs(sum(differences)) - 1e-9 for total in flipped) / len(flipped)
    of_cases, of_runs = sd**2 / n, 2 * (RUN_SHARE * sd / sqrt(2)) ** 2
    variance = of_cases + of_runs
    degrees = variance**2 / (of_cases**2 / (n - 1) + of_runs**2 / RUN_DEGREES)
    unseen = ((max(differences) - min(differences)) / 2 / n) ** 2
    low = mean - student.ppf(0.975, degrees) * sqrt(variance + unseen)
    return max(p, 2 * student.sf(abs(mean) / sqrt(variance), degrees)), max(-1.0, low)

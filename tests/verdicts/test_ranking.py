"""Ranked models: planted gaps are told apart or grouped, a table as by hand."""

import random
from collections.abc import Mapping, Sequence

import pytest
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.shipping import Advice, ModelRanking, rank_models

from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules


def model(name: str, cases: Mapping[str, Sequence[Score]], **changed: object) -> Record:
    """A run of a model, whose settings are its own."""
    digests = {"prompt": "p", "schema": "s", "settings": name, "datasets": "d"}
    run_id = f"20260101T000000Z-000000-{name}"
    return a_record(cases, model_id=name, **{"run_id": run_id, "digests": digests, **changed})


def rank(*records: Record, **verdicts: VerdictName) -> ModelRanking:
    pairs = [Pair(baseline=None, candidate=record) for record in records]
    return rank_models("s", pairs, some_rules(), verdicts=verdicts)


def drawn(mean: float, seed: int, cases: int = 40, replicates: int = 5) -> dict[str, list[Score]]:
    """Cases of different difficulty, the same for all models, with noise between a case's answers of each model."""
    difficulty, noise = random.Random(0), random.Random(seed)
    return {
        f"case-{at:02d}": [
            min(1.0, max(0.0, mean + hard + noise.gauss(0, 0.05))) for hard in [difficulty.gauss(0, 0.1)] * replicates
        ]
        for at in range(cases)
    }


def test_models_0_10_apart_on_40_cases_differ_significantly() -> None:
    ranking = rank(model("low", drawn(0.6, 1)), model("high", drawn(0.7, 2)), model("near", drawn(0.69, 3)))
    assert [one.model_id for one in ranking.models][-1] == "low"
    assert [one.like_best for one in ranking.models] == [True, True, False]
    assert {frozenset((pair.higher, pair.lower)): pair.significant for pair in ranking.pairs} == {
        frozenset(("high", "low")): True,
        frozenset(("near", "low")): True,
        frozenset(("high", "near")): False,
    }


def test_pair_names_the_field_in_which_the_lower_model_is_worst() -> None:
    cases = {name: [*scores[:4], "unparseable"] for name, scores in drawn(0.6, 1).items()}
    better, worse = (
        {path: dict.fromkeys(cases, (right, 4)) for path, right in counts.items()}
        for counts in ({"total": 4, "date": 4}, {"total": 1, "date": 3})
    )
    high = model("high", drawn(0.7, 2), fields={path: dict.fromkeys(cases, (5, 5)) for path in better})
    (pair,) = rank(model("low", cases, fields=worse), high).pairs
    assert pair.fell_most == "total 1.000 → 0.200", "an unparseable output counts as wrong, as in a comparison"
    (pair,) = rank(model("low", drawn(0.6, 1), fields=better), model("high", drawn(0.7, 2), fields=better)).pairs
    assert pair.fell_most == ""


def test_only_cheap_and_good_models_are_on_the_frontier() -> None:
    ranking = rank(
        model("dear", drawn(0.80, 1), cost_usd=9.0, other={"exact_match": drawn(0.70, 3)}),
        model("cheap", drawn(0.82, 2), cost_usd=1.0, other={"exact_match": drawn(0.72, 4)}),
    )
    by_name = {one.model_id: one for one in ranking.models}
    assert (by_name["cheap"].frontier, by_name["dear"].frontier) == (True, False)
    assert ranking.advice.model_id == "cheap"


def latency(median: float) -> dict[str, object]:
    return {"latency_s": {"p50": median, "p95": median}}


LEVEL = (drawn(0.70, 2), drawn(0.69, 3))  # two models that are not told apart


def test_cheapest_of_equally_good_models_is_advised() -> None:
    advice = rank(model("best", LEVEL[0], cost_usd=8.0), model("thrifty", LEVEL[1], cost_usd=2.0)).advice
    assert advice.model_id == "thrifty"
    assert advice.reason == "not shown to differ from best; the cheapest of them"
    dearer = rank(model("best", LEVEL[0], cost_usd=2.0), model("other", LEVEL[1], cost_usd=8.0)).advice
    assert (dearer.model_id, dearer.reason) == ("best", "not shown to differ from other; the cheapest of them")


@pytest.mark.parametrize(("costs", "named"), [((8.0, 2.0), None), ((2.0, 8.0), "high"), ((None, None), None)])
def test_cheaper_model_is_not_advised_when_a_drop_is_not_ruled_out(
    costs: tuple[float | None, float | None], named: str | None
) -> None:
    high, low = ({f"c{at}": [score] * 3 for at, score in enumerate(scores)} for scores in ([1, 1, 1], [1, 1, 0]))
    advice = rank(model("high", high, cost_usd=costs[0]), model("low", low, cost_usd=costs[1])).advice
    assert advice.model_id == named
    if costs == (8.0, 2.0):
        assert advice.reason == (
            "high, low are not shown to differ; low is the cheapest of them, but may be more than 0.05 worse than "
            "high (-0.333); about 4 cases (1.3 × the calls) would decide it, if the difference stays"
        )


def test_quickest_model_is_advised_if_costs_are_unknown_or_equal() -> None:
    for costs in ((None, 1.0), (1.0, 1.0)):
        slow = model("slow", LEVEL[0], cost_usd=costs[0], **latency(2.0))
        advice = rank(slow, model("quick", LEVEL[1], cost_usd=costs[1], **latency(1.0))).advice
        assert (advice.model_id, "not shown to differ from slow; the quickest of them" in advice.reason) == (
            "quick",
            True,
        )


def test_no_model_is_advised_if_score_cost_and_latency_are_equal() -> None:
    advice = rank(model("x", LEVEL[0], cost_usd=None), model("y", LEVEL[1], cost_usd=None)).advice
    assert advice.model_id is None
    assert advice.reason == "x, y do not differ significantly in score, cost or latency"
    assert advice.sentence.startswith("best model: x or y (")
    alone = rank(model("x", LEVEL[0])).advice
    assert alone.sentence == "best model: none (there is no other model to compare it with)"


def test_best_model_is_named_if_it_differs_from_all_others() -> None:
    high, low = model("high", drawn(0.8, 2), cost_usd=9.0), model("low", drawn(0.6, 1), cost_usd=1.0)
    best = rank(high, low, model("lowest", drawn(0.5, 5)))
    ahead = [pair for pair in best.pairs if pair.higher == "high"]
    lead, q = min(-(pair.difference or 0.0) for pair in ahead), max(pair.q or 1e-6 for pair in ahead)
    reason = f"significantly better than low, lowest, by {lead:.3f} or more (q ≤ {q:.2g})"
    assert (len(ahead), best.advice) == (2, Advice(model_id="high", reason=reason))
    for cost, named in ((8.0, "near"), (10.0, "high")):
        advice = rank(high, low, model("near", drawn(0.79, 3), cost_usd=cost)).advice
        assert (advice.model_id, "low" in advice.reason) == (named, False)


def test_regressed_model_is_never_advised() -> None:
    records = model("best", LEVEL[0], cost_usd=1.0), model("other", LEVEL[1], cost_usd=2.0)
    advice = rank(*records, best="regressed", other="unchanged").advice
    assert advice.model_id == "other"
    assert advice.reason.startswith("not shown to differ from best; the only model that did not regress")
    none = rank(*records, best="regressed", other="regressed").advice
    assert (none.model_id, none.reason[:36]) == (None, "best, other regressed against the ve")
    worse = rank(model("high", drawn(0.8, 2)), model("low", drawn(0.6, 1)), high="regressed").advice
    assert worse.model_id is None


def test_models_of_one_invocation_count_as_interleaved() -> None:
    high, low = drawn(0.8, 1), drawn(0.74, 2)
    together = rank(model("high", high), model("low", low)).pairs[0]
    apart = rank(model("high", high), model("low", low, run_id="20260109T000000Z-000000-low")).pairs[0]
    assert together.ci95 is not None
    assert apart.ci95 is not None
    assert apart.ci95[0] < together.ci95[0] < together.ci95[1] < apart.ci95[1]


def test_model_of_unknown_cost_is_on_no_frontier() -> None:
    ranking = rank(model("free", drawn(0.5, 1), cost_usd=None), model("best", drawn(0.7, 2), cost_usd=1.0))
    assert [one.frontier for one in ranking.models] == [True, None]


def test_ranking_skips_models_with_other_cases_or_schema() -> None:
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


def test_newest_run_is_always_ranked() -> None:
    """Also if more than half of its cases are not applicable to its model."""
    run = model("picky", {"a": [1.0], "b": [1.0], "c": [1.0]}, not_applicable={"a": "no image", "b": "no image"})
    assert [one.model_id for one in rank(run).models] == ["picky"]


def test_ranking_without_runs_is_empty() -> None:
    ranking = rank()
    assert (ranking.models, ranking.advice) == ([], Advice(reason="no model can be ranked"))


def test_ranking_without_shared_cases_is_empty_and_names_the_models() -> None:
    newest = model("newest", {"a": [1.0], "b": [1.0]}, timestamp="2026-01-02T00:00:00Z")
    ranking = rank(newest, model("first", {"a": [1.0], "c": [1.0]}), model("second", {"b": [1.0], "c": [1.0]}))
    assert ranking.models == []
    assert ranking.left_out == dict.fromkeys(("newest", "first", "second"), "no case was answered by all models")

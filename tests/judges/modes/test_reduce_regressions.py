"""What is said of a batch when some answers of the judge are broken: less of it is known, and nothing else is said."""

import json
import random

import pytest
from skill_evaluator.judges.modes.regression import ORDERS, JudgedPair, question_id
from skill_evaluator.judges.modes.regression_results import JudgeRegressions, reduce_regressions
from skill_evaluator.judges.modes.ship_rules import ShipRules, dimensions_of
from skill_evaluator.judges.prompting.results import JudgeRecord
from skill_evaluator.judges.statistics import Figure
from skill_evaluator.providers.base import Completion
from skill_evaluator.runner.schedule import Call, Replicate

from tests.support.judged import LIBRARY, SAME, answer

PAIRS, WORSE = 300, 55  # completeness is worse in 55 pairs, of medium impact; of high impact in the first 10 of them
LOST = {impact: {**SAME, "completeness": ("worse", impact)} for impact in ("medium", "high")}
JUDGE = JudgeRecord(
    model_id="m", provider="replay", settings="s", served_models=[], planned=2 * PAIRS, answered=2 * PAIRS,
    input_tokens=None, output_tokens=None, cost_usd=None,
)  # fmt: skip


def judged(broken: float, seed: int) -> JudgeRegressions:
    """The batch before a perfect judge, with so large a share of its answers broken."""
    chance = random.Random(seed)
    pairs = [
        JudgedPair(item=LIBRARY.model_copy(update={"id": f"p{place}"}), dimensions=dimensions_of())
        for place in range(PAIRS)
    ]
    answers = {}
    for place, pair in enumerate(pairs):
        found = LOST["high" if place < 10 else "medium"] if place < WORSE else SAME
        for order in ORDERS:
            call = Call(question_id(pair.id, order), 0)
            text = '{"per_dimension": [' if chance.random() < broken else json.dumps(answer(found))
            answers[call] = Replicate(call=call, completion=Completion(text=text))
    return reduce_regressions(pairs, answers, 1, ShipRules(), JUDGE, declared_strong=True)


def holds(figure: Figure, truth: float) -> bool:
    return figure.ci95 is not None and figure.ci95[0] <= truth <= figure.ci95[1]


@pytest.mark.parametrize(("broken", "seed"), [(0.0, 0), (0.1, 1), (0.3, 2)])
def test_rates_of_a_perfect_judge_hold_the_truth_with_broken_answers(broken: float, seed: int) -> None:
    result = judged(broken, seed)
    completeness = result.dimensions[1]
    assert holds(completeness.worse, WORSE / PAIRS)
    assert completeness.worse.n == pytest.approx(PAIRS * (1 - broken) ** 2, abs=25)
    assert completeness.uncertain == 0
    for decision, count in (("ship", PAIRS - WORSE), ("review_required", WORSE - 10), ("block", 10)):
        assert holds(result.decisions[decision], count / PAIRS), decision
    assert sum(result.severity.values()) == completeness.worse.n
    assert holds(result.flips, 0.0)
    assert holds(result.lean, 0.0)
    lone = [pair for pair in result.pairs if None in pair.dimensions[0].by_order and pair.ship_decision]
    for pair in lone:  # what is in no rate is decided on all the same
        said = {finding.impact for one in pair.answers for finding in one.findings}
        assert pair.ship_decision == ("block" if "high" in said else "review_required"), pair.id
    assert bool(lone) == bool(broken)

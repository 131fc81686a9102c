"""A batch with answers that do not count: their pairs are in no rate and are decided all the same."""

import json
from types import SimpleNamespace
from typing import Any

from skill_evaluator.judges.modes.regression import JudgedPair
from skill_evaluator.judges.modes.regression_results import reduce_regressions
from skill_evaluator.judges.modes.ship_rules import ShipRules, dimensions_of
from skill_evaluator.judges.prompting.judging import JudgeCalls
from skill_evaluator.judges.prompting.results import ORDERS, JudgeRecord
from skill_evaluator.providers.base import Completion
from skill_evaluator.runner.schedule import Call, Replicate

from tests.support.judged import LIBRARY, SAME, answer

JUDGE = JudgeRecord(
    model_id="m", provider="replay", settings="s", served_models=[], planned=8, answered=8,
    input_tokens=None, output_tokens=None, cost_usd=None,
)  # fmt: skip
HIGH, LOW = ({**SAME, "completeness": ("worse", impact)} for impact in ("high", "low"))
BROKEN = '{"per_dimension": ['


def test_pairs_with_a_broken_answer_are_in_no_rate_and_are_decided() -> None:
    texts = [(HIGH, HIGH), (SAME, SAME), (LOW, None), (None, HIGH), (SAME, LOW)]  # in both orders
    items = [LIBRARY.model_copy(update={"id": f"p{place}"}) for place in range(len(texts))]
    answers = {}
    for item, both in zip(items, texts, strict=True):
        for order, found in zip(ORDERS, both, strict=True):
            call = Call(f"{item.id}/{order}", 0)
            text = BROKEN if found is None else json.dumps(answer(found))
            answers[call] = Replicate(call=call, completion=Completion(text=text))
    pairs = [JudgedPair(item=item, dimensions=dimensions_of()) for item in items]
    run: Any = SimpleNamespace(manifest=SimpleNamespace(replicates=1))
    calls = JudgeCalls(run=run, answers=answers, record=JUDGE, stopped=None)
    result = reduce_regressions(pairs, calls, ShipRules(), declared_strong=True)
    completeness = result.dimensions[1]
    assert (completeness.worse.value, completeness.worse.n, completeness.uncertain) == (1 / 3, 3, 1)
    assert {name: figure.value for name, figure in result.decisions.items()} == dict.fromkeys(result.decisions, 1 / 3)
    assert (result.flips.value, result.severity) == (1 / 3, {"none": 2, "low": 0, "medium": 0, "high": 1})
    assert (result.unscored, result.lean.n) == ({"not_json": 2}, 3)
    decided = [pair.ship_decision for pair in result.pairs]
    assert decided == ["block", "ship", "review_required", "block", "review_required"]

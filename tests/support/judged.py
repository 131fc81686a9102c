"""Answers of a regression judge, written shortly, and the verdicts on them."""

import json
from collections.abc import Mapping
from typing import Any

from skill_evaluator.judges.judge_run import ORDERS, JudgeRecord, Order
from skill_evaluator.judges.modes.regression import (
    PairResult,
    RegressionAnswer,
    RegressionItem,
    combine_orders,
    read_answer,
)
from skill_evaluator.judges.modes.ship_rules import ShipRules

JUDGE = JudgeRecord(
    model_id="m", provider="replay", settings="s", served_models=[], planned=8, answered=8,
    input_tokens=None, output_tokens=None, cost_usd=None,
)  # fmt: skip
LIBRARY = RegressionItem(
    id="pair",
    prompt="Summarize the notice in 3 bullet points:\n\n[notice of the town library]",
    baseline_output="- The reading room opens at 8:30 from 4 May.\n- Late fees rise to 0.40 a day.\n"
    "- The archive stays closed until the roof is repaired.",
    candidate_output="The library has wonderful news for its visitors. It was founded in 1911. "
    "The reading room opens earlier from 4 May.",
)
CHANGE = {"prompt": LIBRARY.input, **LIBRARY.model_dump(include={"baseline_output", "candidate_output"})}
Short = tuple[str, str] | tuple[str, str, str, str]
SAME: Mapping[str, Short | str] = {"factuality": "same", "completeness": "same", "format_adherence": "same"}
LOST: Mapping[str, Short | str] = {  # of CHANGE: the bullets and most of the content
    "factuality": "same",
    "format_adherence": ("worse", "high", "Three bullets, as requested.", "Free prose without any bullet."),
    "completeness": (
        "worse",
        "high",
        "Has the opening hours, the raised fee and the closed archive.",
        "Has the founding year instead, and says nothing of fee or archive.",
    ),
}
BLOCKS = {"regression_detected": True, "regression_severity": "high", "ship_decision": "block"}


def answer(findings: Mapping[str, Short | str], **changed: Any) -> dict[str, Any]:
    """An answer: dimension → `same`, or verdict and impact, with evidence of both or a quote of the baseline.

    Its conclusions are those of a judge that says `none` and `ship`, unless changed.
    """
    written = []
    for name, finding in findings.items():
        verdict, impact, *evidence = (finding, "low", "", "") if isinstance(finding, str) else finding
        before, after = evidence or ("Late fees rise to 0.40 a day", "no word on it")
        written.append(
            {
                "dimension": name,
                "verdict": {"worse": "candidate_worse", "better": "candidate_better"}.get(verdict, verdict),
                "evidence_baseline": before,
                "evidence_candidate": after,
                "impact": impact,
            }
        )
    conclusions = {"regression_detected": False, "regression_severity": "none", "ship_decision": "ship"}
    return {"per_dimension": written, **conclusions, "ship_reason": "r", "decision_basis": "b", **changed}


def reading(given: Any, rules: ShipRules | None = None, order: Order = 1) -> RegressionAnswer:
    """One answer of a judge, a value or a text, as it is read."""
    text = given if isinstance(given, str) else json.dumps(given)
    return read_answer(text, LIBRARY, rules or ShipRules(), order)


def judged(first: Any, second: Any = None, rules: ShipRules | None = None) -> PairResult:
    """The verdict on a pair; without a second answer both orders give the same."""
    both = (first, first if second is None else second)
    readings = [reading(given, rules, order) for order, given in zip(ORDERS, both, strict=True)]
    return combine_orders(LIBRARY, readings, rules or ShipRules())

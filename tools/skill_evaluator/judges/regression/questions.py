"""Pairs → the questions of the regression judge: each pair twice, the second time with the candidate first."""

import json
from collections.abc import Sequence
from typing import Any, get_args

from skill_evaluator.judges.asking.delimiting import delimited, mark_of
from skill_evaluator.judges.asking.prompts import JudgePrompt, fill, load_prompt
from skill_evaluator.judges.asking.question import JudgeQuestion, object_schema
from skill_evaluator.judges.regression.answer import (
    IMPACTS,
    MOST_BASIS_WORDS,
    Finding,
    RegressionSeverity,
    ShipDecision,
)
from skill_evaluator.judges.regression.dimensions import Dimension, blocking_sentence
from skill_evaluator.judges.regression.pairs import JudgedPair
from skill_evaluator.judges.regression.rules import ShipRules

ORDERS = (1, 2)  # 1: the baseline stands first, 2: the candidate does


def regression_questions(
    pairs: Sequence[JudgedPair], rules: ShipRules, seed: int
) -> tuple[list[JudgeQuestion], JudgePrompt]:
    """Return two questions a pair, called `<pair>/1` and `<pair>/2`, with the prompt they are put by."""
    prompt = load_prompt("regression")
    questions = []
    for pair in pairs:
        mark = mark_of(seed, pair.digest)
        system = fill(prompt.instructions, _instructions(pair.dimensions, rules))
        outputs = [
            ("baseline", delimited("baseline", pair.outputs.baseline, mark)),
            ("candidate", delimited("candidate", pair.outputs.candidate, mark)),
        ]
        for order in ORDERS:
            (first_role, first), (second_role, second) = outputs if order == 1 else reversed(outputs)
            slots = {
                "mark": mark,
                "prompt": delimited("prompt", pair.outputs.prompt, mark),
                "first_role": first_role,
                "first": first,
                "second_role": second_role,
                "second": second,
            }
            questions.append(
                JudgeQuestion(
                    case_id=question_id(pair.id, order),
                    system=system,
                    user=fill(prompt.texts, slots),
                    schema=regression_schema(pair.dimensions),
                )
            )
    return questions, prompt


def question_id(pair: str, order: int) -> str:
    """Return the id under which a judging has the question of a pair in an order."""
    return f"{pair}/{order}"


def regression_schema(dimensions: Sequence[Dimension]) -> dict[str, Any]:
    """Return the schema of an answer; the order of its keys has the judge look before it concludes.

    Without bounds of lengths, which not every vendor takes; reading the answer checks them.
    """
    text = {"type": "string"}
    finding = object_schema(
        {
            "dimension": _one_of([dimension.name for dimension in dimensions]),
            "verdict": _one_of(get_args(Finding)),
            "evidence_baseline": text,
            "evidence_candidate": text,
            "impact": _one_of(IMPACTS),
        }
    )
    return object_schema(
        {
            "per_dimension": {"type": "array", "items": finding},
            "regression_detected": {"type": "boolean"},
            "regression_severity": _one_of(get_args(RegressionSeverity)),
            "ship_decision": _one_of(get_args(ShipDecision)),
            "ship_reason": text,
            "decision_basis": {**text, "description": f"at most {MOST_BASIS_WORDS} words"},
        }
    )


def _one_of(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def _instructions(dimensions: Sequence[Dimension], rules: ShipRules) -> dict[str, str]:
    low = (
        ["several `low`: `review_required`", "a single `low`: `ship`"]
        if rules.one_low == "ship"
        else ["any `low`: `review_required`"]
    )
    lines = ["any impact `high`: `block`", blocking_sentence(dimensions), "any `medium`: `review_required`", *low]
    form = {
        "per_dimension": [
            {
                "dimension": dimension.name,
                "verdict": " | ".join(get_args(Finding)),
                "evidence_baseline": "…",
                "evidence_candidate": "…",
                "impact": " | ".join(IMPACTS),
            }
            for dimension in dimensions
        ],
        "regression_detected": "a boolean: true | false",
        "regression_severity": " | ".join(get_args(RegressionSeverity)),
        "ship_decision": " | ".join(get_args(ShipDecision)),
        "ship_reason": "…",
        "decision_basis": "…",
    }
    return {
        "rules": "\n".join(f"  - {line}" for line in [*lines, "nothing of that: `ship`"]),
        "dimensions": "\n".join(f"- `{dimension.name}`: {dimension.question}" for dimension in dimensions),
        "form": json.dumps(form, indent=2, ensure_ascii=False),
    }

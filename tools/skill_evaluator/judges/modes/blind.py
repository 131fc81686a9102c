"""The regression judge without roles: outputs called A and B, and its answers mapped back to baseline and candidate.

A probe of `judge calibrate`: what differs from the answers with roles comes from the names alone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from skill_evaluator.judges.asking.questions import (
    JudgePrompt,
    JudgeQuestion,
    load_prompt,
    make_question,
    mark_of,
    object_schema,
)
from skill_evaluator.judges.asking.reading import Unscored, last_whole, text_of
from skill_evaluator.judges.modes.regression import ORDERS, JudgedPair, question_id
from skill_evaluator.judges.modes.ship_rules import IMPACTS, dimension_name
from skill_evaluator.runner.schedule import Call, Replicate

_VERDICTS = ("a_better", "same", "b_better")
_BLIND = "names"
_NOTHING_SAID = {
    "regression_detected": False,
    "regression_severity": "none",
    "ship_decision": "ship",
    "ship_reason": "",
    "decision_basis": "",
}


def blind_questions(pairs: Sequence[JudgedPair], seed: int) -> tuple[list[JudgeQuestion], JudgePrompt]:
    """Return two questions a pair, with the prompt they are put by: A is the baseline first, then the candidate."""
    prompt = load_prompt("blind")
    questions = []
    for pair in pairs:
        names = [dimension.name for dimension in pair.dimensions]
        finding = {
            "verdict": " | ".join(_VERDICTS),
            "evidence_a": "…",
            "evidence_b": "…",
            "impact": " | ".join(IMPACTS),
        }
        instructions = {
            "dimensions": "\n".join(f"- `{dimension.name}`: {dimension.question}" for dimension in pair.dimensions),
            "form": json.dumps({"per_dimension": [{"dimension": name, **finding} for name in names]}, indent=2),
        }
        text = {"type": "string"}
        finding_schema = object_schema(
            {
                "dimension": {**text, "enum": names},
                "verdict": {**text, "enum": list(_VERDICTS)},
                "evidence_a": text,
                "evidence_b": text,
                "impact": {**text, "enum": list(IMPACTS)},
            }
        )
        for order in ORDERS:
            outputs = (pair.outputs.baseline, pair.outputs.candidate)
            first, second = outputs if order == ORDERS[0] else reversed(outputs)
            questions.append(
                make_question(
                    question_id(f"{pair.id}/{_BLIND}", order),
                    prompt,
                    instructions,
                    {"prompt": pair.outputs.prompt, "output_a": first, "output_b": second},
                    object_schema({"per_dimension": {"type": "array", "items": finding_schema}}),
                    mark_of(seed, pair.digest),
                )
            )
    return questions, prompt


def with_roles(
    pairs: Sequence[JudgedPair], answers: Mapping[Call, Replicate], replicates: int
) -> dict[Call, Replicate]:
    """Return the answers as those of the questions with roles, so that they are read and reduced alike."""
    mapped = {}
    for pair in pairs:
        for order in ORDERS:
            for replicate in range(replicates):
                made = answers.get(Call(question_id(f"{pair.id}/{_BLIND}", order), replicate))
                if made is not None:
                    mapped[Call(question_id(pair.id, order), replicate)] = _with_roles(made, pair, order)
    return mapped


def _with_roles(made: Replicate, pair: JudgedPair, order: int) -> Replicate:
    """Return one answer with its names mapped back; one that is no verdict stays as it is, and will not count."""
    text = text_of(made)
    if isinstance(text, Unscored) or made.completion is None:
        return made
    outputs = pair.outputs
    verdict = last_whole(
        text, lambda value: _mapped(value, order), (outputs.prompt, outputs.baseline, outputs.candidate)
    )
    if isinstance(verdict, Unscored):
        return made
    return replace(made, completion=replace(made.completion, text=json.dumps(verdict, ensure_ascii=False)))


def _mapped(value: Any, order: int) -> dict[str, Any] | Unscored:
    findings = value.get("per_dimension") if isinstance(value, dict) else None
    if not isinstance(findings, list) or not all(isinstance(finding, dict) for finding in findings):
        return Unscored(reason="wrong_format", detail="no findings under 'per_dimension'")
    baseline, candidate = ("a", "b") if order == ORDERS[0] else ("b", "a")
    names = {
        "same": "same",
        f"{baseline}_better": "candidate_worse",
        f"{candidate}_better": "candidate_better",
    }
    return {
        "per_dimension": [
            {
                "dimension": finding.get("dimension"),
                "verdict": names.get(dimension_name(str(finding.get("verdict"))), finding.get("verdict")),
                "evidence_baseline": finding.get(f"evidence_{baseline}"),
                "evidence_candidate": finding.get(f"evidence_{candidate}"),
                "impact": finding.get("impact"),
            }
            for finding in findings
        ],
        **_NOTHING_SAID,
    }

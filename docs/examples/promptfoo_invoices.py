"""A promptfoo assertion: `type: python`, `value: file://promptfoo_invoices.py`; promptfooconfig.yaml uses it."""

import json
from pathlib import Path
from typing import Any

from skill_evaluator import OutputScorer

SCORER = OutputScorer(
    schema=json.loads((Path(__file__).parent / "invoices" / "schema.json").read_text()),
    fields={
        "supplier": {"casefold": True, "ignore_punctuation": True},
        "lines": {"align": "key", "key": ["code"]},
        "total": {"tolerance": 0.005},
    },
)


def get_assert(output: Any, context: dict[str, Any]) -> dict[str, Any]:
    """Grade one answer against the variable `truth`; `minimum` in the assertion's `config` is the F1 to reach."""
    truth = context["vars"]["truth"]
    if isinstance(truth, str):  # a `file://` variable arrives as the file's text
        truth = json.loads(truth)
    # An answer is text, unless a transform or a tool call made it a value.
    result = SCORER.score_text(truth, output) if isinstance(output, str) else SCORER.score(truth, output)
    score = result.scores["field_level_f1"] or 0.0  # None where the answer holds no JSON
    minimum = (context.get("config") or {}).get("minimum", 1.0)
    wrong = [*result.schema_errors, *map(str, result.mistakes)]
    return {
        "pass": bool(result.valid) and score >= minimum,
        "score": score,
        "reason": result.problem or "; ".join(wrong) or "every field is right",
        "namedScores": {name: value for name, value in result.scores.items() if value is not None},
        "componentResults": [{"pass": False, "score": 0, "reason": reason} for reason in wrong],
    }

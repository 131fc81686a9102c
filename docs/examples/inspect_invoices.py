"""An inspect_ai scorer and a task that uses it. Run: `inspect eval inspect_invoices.py --model openai/gpt-5`."""

import json
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate, system_message
from skill_evaluator import OutputScorer

INVOICES = Path(__file__).parent / "invoices"
SCHEMA = (INVOICES / "schema.json").read_text()
SCORER = OutputScorer(
    schema=json.loads(SCHEMA),
    fields={
        "supplier": {"casefold": True, "ignore_punctuation": True},
        "lines": {"align": "key", "key": ["code"]},
        "total": {"tolerance": 0.005},
    },
    metrics=["schema_valid", "exact_match", "field_level_f1"],
)


@scorer(metrics={"*": [mean(), stderr()]})
def field_scores() -> Scorer:
    """Every metric of the answer; the explanation names the wrong leaves, the metadata holds all of them."""

    async def score(state: TaskState, target: Target) -> Score:
        result = SCORER.score_text(json.loads(target.text), state.output.completion)
        wrong = [*result.schema_errors, *map(str, result.mistakes)]
        return Score(
            value={name: value or 0.0 for name, value in result.scores.items()},  # None: no JSON in the answer
            answer=state.output.completion,
            explanation=result.problem or "\n".join(wrong) or "every field is right",
            metadata=result.as_dict(),
        )

    return score


@task
def invoices() -> Task:
    """Read each invoice."""
    return Task(
        dataset=[
            Sample(
                id=case.name,
                input=(case / "document.md").read_text(),
                target=(case / "ground_truth.json").read_text(),
            )
            for case in sorted(INVOICES.glob("*/"))
        ],
        solver=[system_message("Answer with JSON that fits this schema:\n{schema}", schema=SCHEMA), generate()],
        scorer=field_scores(),
    )

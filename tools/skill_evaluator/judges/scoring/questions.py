"""Items and criteria → the questions of `judge score`: one an item and method, with all criteria of that method."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric, criteria_text
from skill_evaluator.judges.asking.delimiting import mark_of
from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.asking.prompts import JudgePrompt, load_prompt
from skill_evaluator.judges.asking.question import JudgeQuestion, make_question, object_schema
from skill_evaluator.library.rubrics import Criterion, MethodName

PROMPTS: Mapping[MethodName, str] = {"direct_scoring": "direct", "reference_based": "reference"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreQuestion:
    """A question with what it is about."""

    item: OutputItem
    criteria: Sequence[Criterion]
    question: JudgeQuestion

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that the judge is shown."""
        shown = (self.item.output, self.item.reference, self.item.source, self.item.input)
        return tuple(text for text in shown if text)


def score_questions(
    rubric: NamedRubric, items: Sequence[OutputItem], seed: int, *, reference: bool
) -> tuple[list[ScoreQuestion], list[JudgePrompt]]:
    """Return the questions with their prompts; with `reference` every criterion is scored beside a source.

    Raise JudgeError for an item without a source or reference where one is needed.
    """
    by_method: dict[MethodName, list[Criterion]] = {}
    for criterion in rubric.criteria:
        method: MethodName = "reference_based" if reference else criterion.primary_method
        by_method.setdefault(method, []).append(criterion)
    if "reference_based" in by_method:
        _refuse_without_source(items, by_method["reference_based"])
    prompts = {method: load_prompt(PROMPTS[method]) for method in by_method}
    slots = {
        method: {
            "criteria": criteria_text(rubric.rubric, criteria, prompts[method].mitigations, scored=True),
            "form": answer_form(criteria),
        }
        for method, criteria in by_method.items()
    }
    questions = [
        ScoreQuestion(
            item=item,
            criteria=criteria,
            question=make_question(
                f"{item.id}/{PROMPTS[method]}",
                prompts[method],
                slots[method],
                _texts(item, method),
                score_schema(criteria),
                mark_of(seed, item.digest),
            ),
        )
        for item in items
        for method, criteria in by_method.items()
    ]
    return questions, list(prompts.values())


def score_schema(criteria: Sequence[Criterion]) -> dict[str, object]:
    """Return the schema of an answer; the order of its keys has the judge argue before it scores.

    Without bounds of numbers, which not every vendor takes; reading the answer checks them.
    """
    return object_schema(
        {
            "criteria": object_schema(
                {
                    criterion.id: object_schema(
                        {
                            "evidence": {"type": "array", "items": {"type": "string"}},
                            "justification": {"type": "string"},
                            "score": {"type": "integer", "enum": list(range(1, criterion.highest + 1))},
                            "suggestion": {"type": "string"},
                            "confidence": {"type": "number", "description": "from 0 to 1"},
                        }
                    )
                    for criterion in criteria
                }
            )
        }
    )


def answer_form(criteria: Sequence[Criterion]) -> str:
    """Return the same for people and for models that no schema binds."""
    form = {
        criterion.id: {
            "evidence": ["…"],
            "justification": "…",
            "score": f"a whole number from 1 to {criterion.highest}",
            "suggestion": "…",
            "confidence": "a number from 0 to 1",
        }
        for criterion in criteria
    }
    return json.dumps({"criteria": form}, indent=2, ensure_ascii=False)


def _texts(item: OutputItem, method: MethodName) -> dict[str, str]:
    texts = {"input": item.input, "output": item.output}
    if method == "reference_based":
        shown_once = "" if item.source == item.input else item.input
        return {**texts, "input": shown_once, "source": item.source, "reference": item.reference}
    return texts


def _refuse_without_source(items: Sequence[OutputItem], criteria: Sequence[Criterion]) -> None:
    bare = next((item for item in items if not item.source and not item.reference), None)
    if bare is not None:
        raise JudgeError(
            f"'{criteria[0].id}' is scored beside a source or a right answer, and item '{bare.id}' has neither; "
            'give it "source" or "reference"'
        )

"""An item as the page gets it: texts in pieces, steps with their keys, and what was said before. Names no model.

Why an item is queued is left out: who knows that a judge would block looks for a reason to.
"""

from typing import Any, Literal

from skill_evaluator.judges.review.differences import differences
from skill_evaluator.judges.review.items import ReviewItem
from skill_evaluator.judges.review.labels import ReviewLabel
from skill_evaluator.judges.review.steps import keys_of, shown_outputs, steps_of


def item_screen(item: ReviewItem, first: Literal[1, 2], label: ReviewLabel | None) -> dict[str, Any]:
    """Return the JSON of an item for a reviewer before whom this output stands first."""
    outputs = shown_outputs(item, first)
    pieces = differences(*outputs) if len(outputs) > 1 else ([(outputs[0], False)],)
    names = ("A", "B") if len(outputs) > 1 else ("Output",)
    return {
        "id": item.id,
        "document": item.document,
        "reference": item.reference,
        "outputs": [{"name": name, "pieces": parts} for name, parts in zip(names, pieces, strict=True)],
        "steps": [
            {
                "name": step.name,
                "text": step.text,
                "choices": [{"key": key, "meaning": meaning} for key, meaning in step.choices.items()],
                "after": None if step.only_after is None else {"step": step.only_after[0], "keys": step.only_after[1]},
            }
            for step in steps_of(item)
        ],
        "keys": {} if label is None else keys_of(item, label, first),
        "note": "" if label is None else label.note,
    }

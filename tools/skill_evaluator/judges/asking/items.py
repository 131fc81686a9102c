"""What is judged: JSON Lines of outputs with what they answer, or the answers of a run → items with checked texts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AliasChoices, BeforeValidator, Field

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel, read_checked
from skill_evaluator.identifiers import Label
from skill_evaluator.library.cases import Case, parse_case_output
from skill_evaluator.library.components import Component
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.text import canonical_json, digest


def _as_text(value: Any) -> Any:
    return value if isinstance(value, str) or value is None else json.dumps(value, indent=2, ensure_ascii=False)


JudgedText = Annotated[str, BeforeValidator(_as_text)]


class JudgedItem(FrozenModel):
    """What every line of items has; keys that are not named here, such as labels, are left aside.

    `input` (or `prompt`) is what the outputs answer. A text may be any JSON value: it is shown as JSON.
    """

    id: Label = Field(min_length=1)
    stratum: Label = "all"
    input: JudgedText = Field(default="", validation_alias=AliasChoices("input", "prompt"))

    @property
    def digest(self) -> str:
        """The digest of all its texts."""
        return digest(canonical_json(self.model_dump(mode="json")))


class OutputItem(JudgedItem):
    """One output to be scored; `reference` is a right answer, `source` what it was made from.

    `model` wrote it, where that is known.
    """

    output: JudgedText = Field(min_length=1)
    reference: JudgedText = ""
    source: JudgedText = ""
    model: Label | None = None


ItemT = TypeVar("ItemT", bound=JudgedItem)


def read_items(path: Path, model: type[ItemT]) -> dict[str, ItemT]:
    """Read items by id; raise JudgeError with file and line for a wrong or repeated item, or without any."""
    items: dict[str, ItemT] = {}
    for number, item in read_checked(path, model.model_validate, JudgeError):
        if item.id in items:
            raise JudgeError(f"{path}:{number}: the id '{item.id}' is there already")
        items[item.id] = item
    if not items:
        raise JudgeError(f"{path} is empty; it needs a JSON object on each line, such as {{id, input, output}}")
    return items


def items_of_run(
    component: Component, cases: Sequence[Case], answers: Mapping[Call, Replicate], model_id: str, field: str = ""
) -> tuple[dict[str, OutputItem], dict[str, str]]:
    """Return an item for each case, its first answer, and by case why the rest have no answer.

    `field` is a path such as `budget[].amount`; without it the whole answer is judged. The document is input and
    source, the ground truth the reference.
    """
    items: dict[str, OutputItem] = {}
    left_out: dict[str, str] = {}
    for case in cases:
        mine = sorted((call.replicate, made) for call, made in answers.items() if call.case_id == case.id)
        made = next((made for _, made in mine if made.completion is not None), None)
        if made is None or made.completion is None or made.failure is not None:
            left_out[case.id] = made.failure.kind if made is not None and made.failure is not None else "not answered"
            continue
        parsed = parse_case_output(component, case, made.completion.text)
        value = value_at(parsed.value, field) if parsed.problem is None else None
        if value in (None, "", []):
            left_out[case.id] = f"no {field} in the answer" if field and parsed.problem is None else "unparseable"
            continue
        items[case.id] = case_item(case, field, value, model_id)
    return items, left_out


def case_item(case: Case, field: str, output: Any, model_id: str) -> OutputItem:
    """Return what a model wrote in a field beside the case's document and truth."""
    truth = value_at(case.truth, field) if case.labelled else None
    texts = {"input": case.document, "source": case.document, "reference": "" if truth is None else truth}
    return OutputItem.model_validate({"id": case.id, **texts, "output": output, "model": model_id})


def value_at(value: Any, path: str) -> Any:
    """Return what stands at a path of a JSON value; of an array a list of what its items have. None: nothing.

    >>> value_at({"budget": [{"amount": 1}, {"amount": 2}]}, "budget[].amount")
    [1, 2]
    """
    if not path:
        return value
    head, _, rest = path.partition(".")
    inside = value.get(head.removesuffix("[]")) if isinstance(value, dict) else None
    if not head.endswith("[]"):
        return value_at(inside, rest)
    return [value_at(item, rest) for item in inside] if isinstance(inside, list) else None

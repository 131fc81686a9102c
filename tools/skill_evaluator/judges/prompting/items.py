"""The items to judge: outputs with their inputs."""

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AliasChoices, BeforeValidator, Field

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel, read_checked
from skill_evaluator.identifiers import Label
from skill_evaluator.text import canonical_json, digest


def _json_text(value: Any) -> Any:
    return value if isinstance(value, str) or value is None else json.dumps(value, indent=2, ensure_ascii=False)


JudgedText = Annotated[str, BeforeValidator(_json_text)]


class JudgedItem(FrozenModel):
    """A line of a file of items; `input` or `prompt` is the input of its outputs. A text may be any JSON value."""

    id: Label = Field(min_length=1)
    stratum: Label = "all"
    input: JudgedText = Field(default="", validation_alias=AliasChoices("input", "prompt"))

    @property
    def digest(self) -> str:
        """The digest of all its texts."""
        return digest(canonical_json(self.model_dump(mode="json")))


class OutputItem(JudgedItem):
    """One output to score. `reference`: a right answer; `source`: the input's source; `model` wrote the output."""

    output: JudgedText = Field(min_length=1)
    reference: JudgedText = ""
    source: JudgedText = ""
    model: Label | None = None


ItemT = TypeVar("ItemT", bound=JudgedItem)


def read_items(path: Path, model: type[ItemT]) -> dict[str, ItemT]:
    """Read items by id. Raise JudgeError for an empty file, and with file and line for an invalid or repeated item."""
    items: dict[str, ItemT] = {}
    for number, item in read_checked(path, model.model_validate, JudgeError):
        if item.id in items:
            raise JudgeError(f"{path}:{number}: repeated id '{item.id}'")
        items[item.id] = item
    if not items:
        raise JudgeError(f"{path} is empty; expected a JSON object on each line, such as {{id, input, output}}")
    return items


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path of a JSON value. A path through an array gives a list with one value per item.

    Return None if the path does not exist.

    >>> value_at({"budget": [{"amount": 1}, {"amount": 2}]}, "budget[].amount")
    [1, 2]
    """
    if not path:
        return value
    head, _, remaining_path = path.partition(".")
    member = value.get(head.removesuffix("[]")) if isinstance(value, dict) else None
    if not head.endswith("[]"):
        return value_at(member, remaining_path)
    return [value_at(item, remaining_path) for item in member] if isinstance(member, list) else None

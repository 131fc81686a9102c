"""The items to judge, the questions on them, and the forms of the outputs.

A judge prompt is a Markdown file: `## Instructions` become the system text, `## Texts` the user text, and `##
Mitigations` has a sentence for each bias mitigation.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import AliasChoices, BeforeValidator, Field

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel, read_checked, read_text
from skill_evaluator.identifiers import Digest, Label, VersionText
from skill_evaluator.library.prompts import dialogue
from skill_evaluator.library.reading import parse_front_matter
from skill_evaluator.providers.base import Request
from skill_evaluator.text import canonical_json, digest


def _json_text(value: Any) -> Any:
    return value if isinstance(value, str) or value is None else json.dumps(value, indent=2, ensure_ascii=False)


JudgedText = Annotated[str, BeforeValidator(_json_text)]


class JudgedItem(FrozenModel):
    """A line of a file of items to judge; subclasses add the outputs. The key of `input` may also be `prompt`.

    Any JSON value except null may stand for a text.
    """

    id: Label = Field(min_length=1)
    stratum: Label = "all"
    input: JudgedText = Field(default="", validation_alias=AliasChoices("input", "prompt"))

    @property
    def digest(self) -> str:
        """The digest of all fields."""
        return digest(canonical_json(self.model_dump(mode="json")))


class OutputItem(JudgedItem):
    """One output to score. `reference`: a right answer; `source`: the text to rely on; `model` wrote the output."""

    output: JudgedText = Field(min_length=1)
    reference: JudgedText = ""
    source: JudgedText = ""
    model: Label | None = None


ItemT = TypeVar("ItemT", bound=JudgedItem)


def read_items(path: Path, model: type[ItemT]) -> list[ItemT]:
    """Read a JSON Lines file of items. Raise JudgeError if it is empty, or an item is invalid or repeated."""
    items: dict[str, ItemT] = {}
    for number, item in read_checked(path, model.model_validate, JudgeError):
        if item.id in items:
            raise JudgeError(f"{path}:{number}: an earlier line has the id '{item.id}', too")
        items[item.id] = item
    if not items:
        raise JudgeError(f"{path} is empty; expected a JSON object on each line, such as {{id, input, output}}")
    return list(items.values())


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path of a JSON value; a path through an array gives a list. Return None if it is missing.

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


_MARK_DIGITS = 20
_TAG = re.compile(r"<(?=\s*/?\s*judged_)", re.IGNORECASE)
_HARMLESS = "‹"  # replaces the `<` of a tag in a judged text


def mark_of(seed: int, item_digest: str) -> str:
    """Return a hash for the tags around an item's judged texts, so that no text can contain forged tags."""
    return hashlib.sha256(f"{seed}/{item_digest}".encode()).hexdigest()[:_MARK_DIGITS]


def delimited(name: str, text: str, mark: str) -> str:
    """Enclose a judged text in tags that contain `mark`. Such tags inside the text are made inert."""
    inert = _TAG.sub(_HARMLESS, text).replace(mark, "[mark]")
    return f"<judged_{name} {mark}>\n{inert}\n</judged_{name} {mark}>"


class Form(NamedTuple):
    """The form of a part of an output: its JSON schema, and the placeholder that the judge reads.

    Schemas do not bound lengths or numbers, because some vendors reject such bounds; the module `reading` checks them.
    """

    schema: Mapping[str, Any]
    placeholder: Any

    @classmethod
    def text(cls, placeholder: str = "…") -> "Form":
        """Return the form of a string."""
        return cls({"type": "string"}, placeholder)

    @classmethod
    def confidence(cls) -> "Form":
        """Return the form of a confidence, a number from 0 to 1."""
        return cls({"type": "number", "description": "from 0 to 1"}, "a number from 0 to 1")

    @classmethod
    def list_of(cls, member: "Form") -> "Form":
        """Return the form of an array whose items have the form `member`."""
        return cls({"type": "array", "items": member.schema}, [member.placeholder])

    @classmethod
    def one_of(cls, choices: Sequence[str], separator: str = " | ") -> "Form":
        """Return the form of a text that is one of `choices`. Its placeholder is the choices, joined by `separator`."""
        return cls({"type": "string", "enum": list(choices)}, separator.join(choices))

    @classmethod
    def object_of(cls, members: "Mapping[str, Form]") -> "Form":
        """Return the form of an object with exactly these keys, in the order in which the judge writes them."""
        schema = {
            "type": "object",
            "properties": {key: member.schema for key, member in members.items()},
            "required": list(members),
            "additionalProperties": False,
        }
        return cls(schema, {key: member.placeholder for key, member in members.items()})

    def as_json(self) -> str:
        """Format the placeholders as JSON, which shows a judge what to write."""
        return json.dumps(self.placeholder, indent=2, ensure_ascii=False)


_FOLDER = Path(__file__).parents[1] / "prompts"
_SLOT = re.compile(r"\{\{ (\w+) \}\}")
_PART = re.compile(r"^## (Instructions|Texts|Mitigations)\n", re.MULTILINE)
_MITIGATION = re.compile(r"^- (\w+): (.+)$", re.MULTILINE)


def judge_request(question_id: str, system: str, user: str, schema: Mapping[str, Any] | None) -> Request:
    """Return the request of one question to a judge. If `schema` is None, only the prompt describes the output."""
    messages = dialogue(system, user)
    return Request(case_id=question_id, messages=messages, constant=len(system), schema=schema, schema_name="verdict")


def digest_of(question: Request) -> str:
    """Return the digest of the judge's input and of the schema, including the order of the schema's keys."""
    return digest(json.dumps([question.system, question.dialogue[0].text, question.schema], ensure_ascii=False))


class PromptIdentity(FrozenModel):
    """The identity of a judge prompt; any change of its file changes the digest."""

    name: Label
    version: VersionText
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePrompt:
    """The parts of a judge prompt; `mitigations` has a sentence by bias mitigation."""

    identity: PromptIdentity
    instructions: str
    texts: str
    mitigations: Mapping[str, str]

    def question(
        self, case_id: str, instructions: Mapping[str, str], texts: Mapping[str, str], form: Form, mark: str
    ) -> Request:
        """Fill the prompt for one item. The system text is the same for all items, so that vendors can cache it."""
        judged = {name: delimited(name, text, mark) if text else "" for name, text in texts.items()}
        system = fill(self.instructions, {"form": form.as_json(), **instructions})
        return judge_request(case_id, system, fill(self.texts, {"mark": mark, **judged}), form.schema or None)


@cache
def load_prompt(name: str) -> JudgePrompt:
    """Read a shipped judge prompt, such as direct or regression."""
    path = _FOLDER / f"{name}.md"
    text = read_text(path, JudgeError)
    front, body = parse_front_matter(text, path, JudgeError)
    _, *pieces = _PART.split(body)
    parts = dict(zip(pieces[::2], pieces[1::2], strict=True))
    return JudgePrompt(
        identity=PromptIdentity(name=front["name"], version=str(front["version"]), digest=digest(text)),
        instructions=parts["Instructions"].strip(),
        texts=parts["Texts"].strip(),
        mitigations=dict(_MITIGATION.findall(parts.get("Mitigations", ""))),
    )


def fill(template: str, slots: Mapping[str, str]) -> str:
    """Fill the slots of a template by name; drop each line and paragraph whose slots are all empty."""

    def drop_empty(text: str, separator: str) -> str:
        parts = [(part, _SLOT.findall(part)) for part in text.split(separator)]
        return separator.join(
            part for part, slots_in_part in parts if not slots_in_part or any(slots[slot] for slot in slots_in_part)
        )

    paragraphs = drop_empty(template, "\n\n").split("\n\n")
    filled = "\n\n".join(drop_empty(paragraph, "\n") for paragraph in paragraphs)
    return _SLOT.sub(lambda slot: slots[slot[1]], filled)

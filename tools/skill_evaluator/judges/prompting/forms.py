"""The forms of a judge's output, each as a JSON schema and as the placeholders that the judge reads."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Form = tuple[dict[str, Any], Any]
"""The form of a part of an output: its JSON schema, and the placeholder that the judge reads.

Schemas do not bound lengths or numbers, because some vendors reject such bounds; `reading` checks them.
"""
TEXT: Form = ({"type": "string"}, "…")
CONFIDENCE: Form = ({"type": "number", "description": "from 0 to 1"}, "a number from 0 to 1")


def list_of(member: Form) -> Form:
    """Return the form of an array whose items have the form `member`."""
    return {"type": "array", "items": member[0]}, [member[1]]


TEXTS: Form = list_of(TEXT)


def one_of(choices: Sequence[str], separator: str = " | ") -> Form:
    """Return the form of a text that is one of `choices`. Its placeholder is the choices, joined by `separator`."""
    return {"type": "string", "enum": list(choices)}, separator.join(choices)


def object_of(members: Mapping[str, Form]) -> Form:
    """Return the form of an object with exactly these keys, in the order in which the judge writes them."""
    schema = {
        "type": "object",
        "properties": {key: member for key, (member, _) in members.items()},
        "required": list(members),
        "additionalProperties": False,
    }
    return schema, {key: placeholder for key, (_, placeholder) in members.items()}


def as_json(form: Form) -> str:
    """Format the placeholders of a form as JSON, which shows a judge what to write."""
    return json.dumps(form[1], indent=2, ensure_ascii=False)

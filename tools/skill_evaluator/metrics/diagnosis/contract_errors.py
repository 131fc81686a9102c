"""What a schema holds against an output, in a form that adds up over many outputs: paths of the plan, rules, messages.

Also whether it holds nothing but keys it does not know against it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from skill_evaluator.comparing.field_plan import FieldPlan

_EXTRA_KEYS = ("additionalProperties", "unevaluatedProperties")
_BRANCHES = ("anyOf", "oneOf")
_LONGEST = 200  # a message quotes the value it is about


class ContractError(NamedTuple):
    """One rule broken: where (array items as `[]`; of a missing or extra key, the key), which keyword, in words."""

    path: str
    rule: str
    message: str


def contract_errors(errors: Iterable[Any], plan: FieldPlan) -> tuple[ContractError, ...]:
    """The errors of a `jsonschema_rs` validator as `ContractError`s; one for each key where several are extra.

    >>> import jsonschema_rs
    >>> rows = {"items": {"properties": {"sum": {"type": "number"}}, "required": ["sum"]}}
    >>> validator = jsonschema_rs.validator_for({"properties": {"rows": rows}})
    >>> for error in contract_errors(validator.iter_errors({"rows": [{"sum": "9"}, {}]}), FieldPlan()): print(*error)
    rows[].sum type "9" is not of type "number"
    rows[].sum required "sum" is a required property
    """
    return tuple(
        ContractError(plan.field("").at(parts).path, error.kind.name, _cut(error.message))
        for error in errors
        for parts in _places(error)
    )


def only_extra_keys(errors: Sequence[Any]) -> bool:
    """Whether the errors are all of keys the schema does not allow; of `anyOf` and `oneOf`, those of some branch."""
    return all(_extra_key(error) for error in errors)


def _extra_key(error: Any) -> bool:
    if error.kind.name in _BRANCHES:
        return any(branch and only_extra_keys(branch) for branch in getattr(error.kind, "context", ()))
    return error.kind.name in _EXTRA_KEYS


def _places(error: Any) -> list[list[str | int]]:
    if error.kind.name == "required":
        return [[*error.instance_path, error.kind.property]]
    if error.kind.name in _EXTRA_KEYS:
        return [[*error.instance_path, key] for key in error.kind.unexpected]
    return [error.instance_path]


def _cut(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"

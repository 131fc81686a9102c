"""Schema errors, missing keys and extra keys of an output, in forms that can be summed over many outputs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from skill_evaluator.comparing.declarations import same_value
from skill_evaluator.comparing.field_plan import FieldPlan

_EXTRA_KEYS = ("additionalProperties", "unevaluatedProperties")
_BRANCH_KEYWORDS = ("anyOf", "oneOf")
_COMBINING_KEYWORDS = ("allOf", *_BRANCH_KEYWORDS, "if", "then", "else")
_MAX_MESSAGE = 200  # characters; a message quotes the invalid value


class ContractError(NamedTuple):
    """One schema error: its path (`[]` for array items; the key if missing or extra), its keyword and its message."""

    path: str
    rule: str
    message: str


def contract_errors(errors: Iterable[Any], plan: FieldPlan) -> tuple[ContractError, ...]:
    """Convert the errors of a `jsonschema_rs` validator; an error on several extra keys becomes one for each key.

    >>> import jsonschema_rs
    >>> rows = {"items": {"properties": {"sum": {"type": "number"}}, "required": ["sum"]}}
    >>> validator = jsonschema_rs.validator_for({"properties": {"rows": rows}})
    >>> for error in contract_errors(validator.iter_errors({"rows": [{"sum": "9"}, {}]}), FieldPlan()): print(*error)
    rows[].sum type "9" is not of type "number"
    rows[].sum required "sum" is a required property
    """
    broken = []
    for error in errors:
        rule, message, error_paths = error.kind.name, error.message, [error.instance_path]
        if rule == "required":
            error_paths = [[*error.instance_path, error.kind.property]]
        elif rule in _EXTRA_KEYS:
            error_paths = [[*error.instance_path, key] for key in error.kind.unexpected]
        if len(message) > _MAX_MESSAGE:
            message = f"{message[: _MAX_MESSAGE - 1]}…"
        broken += [ContractError(plan.field("").descendant(steps).path, rule, message) for steps in error_paths]
    return tuple(broken)


def only_extra_keys(errors: Sequence[Any]) -> bool:
    """Return whether all errors of an output are extra keys. For `anyOf` and `oneOf`, one such branch is enough."""
    for error in errors:
        if error.kind.name in _BRANCH_KEYWORDS:
            if not any(branch and only_extra_keys(branch) for branch in getattr(error.kind, "context", ())):
                return False
        elif error.kind.name not in _EXTRA_KEYS:
            return False
    return True


@dataclass(frozen=True, slots=True)
class TopNames:
    """The top-level keys of a schema: the required ones, and all named ones; None if it allows keys by pattern."""

    required: frozenset[str] = frozenset()
    named: frozenset[str] | None = None


def missing_and_extra_keys(output: Any, names: TopNames) -> tuple[frozenset[str], frozenset[str]]:
    """Return the required top-level keys that an output lacks, and its keys that the schema does not name.

    A key with the value null is present. Both sets are empty for an output that is not an object.
    """
    if not isinstance(output, dict):
        return frozenset(), frozenset()
    return names.required - output.keys(), frozenset(output if names.named is not None else ()) - (names.named or set())


def top_names(schema: Mapping[str, Any] | None) -> TopNames:
    """Return the top-level keys of a schema, also through `$ref`, `allOf`, `anyOf`, `oneOf`, `if`, `then` and `else`.

    >>> names = top_names({"properties": {"shop": {}, "total": {}}, "required": ["shop"]})
    >>> sorted(names.required), sorted(names.named or ())
    (['shop'], ['shop', 'total'])
    """
    nodes = [node for node in same_value(schema, schema or {}, _COMBINING_KEYWORDS) if isinstance(node, Mapping)]
    certain = [node for node in same_value(schema, schema or {}, ("allOf",)) if isinstance(node, Mapping)]
    property_names = frozenset(name for node in nodes for name in node.get("properties", ()))
    required = frozenset(name for node in certain for name in node.get("required", ()))
    is_open = any(
        "patternProperties" in node or isinstance(node.get("additionalProperties"), Mapping) for node in nodes
    )
    return TopNames(required, property_names if property_names and not is_open else None)

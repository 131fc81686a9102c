"""How an output breaks its contract, in forms that add up over many outputs.

The errors of the schema by path, rule and message; whether they are extra keys only; and by which names the output
calls things: a renamed key is one missing and one extra.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from skill_evaluator.comparing.declarations import same_value
from skill_evaluator.comparing.field_plan import FieldPlan

_EXTRA_KEYS = ("additionalProperties", "unevaluatedProperties")
_BRANCHES = ("anyOf", "oneOf")
_COMBINED = ("allOf", *_BRANCHES, "if", "then", "else")
_LONGEST = 200  # a message quotes the value it is about


class ContractError(NamedTuple):
    """One rule broken: where (array items as `[]`; of a missing or extra key, the key), which keyword, in words."""

    path: str
    rule: str
    message: str


def contract_errors(errors: Iterable[Any], plan: FieldPlan) -> tuple[ContractError, ...]:
    """Return the errors of a `jsonschema_rs` validator as `ContractError`s; one for each key where several are extra.

    >>> import jsonschema_rs
    >>> rows = {"items": {"properties": {"sum": {"type": "number"}}, "required": ["sum"]}}
    >>> validator = jsonschema_rs.validator_for({"properties": {"rows": rows}})
    >>> for error in contract_errors(validator.iter_errors({"rows": [{"sum": "9"}, {}]}), FieldPlan()): print(*error)
    rows[].sum type "9" is not of type "number"
    rows[].sum required "sum" is a required property
    """
    broken = []
    for error in errors:
        rule, message, places = error.kind.name, error.message, [error.instance_path]
        if rule == "required":
            places = [[*error.instance_path, error.kind.property]]
        elif rule in _EXTRA_KEYS:
            places = [[*error.instance_path, key] for key in error.kind.unexpected]
        if len(message) > _LONGEST:
            message = f"{message[: _LONGEST - 1]}…"
        broken += [ContractError(plan.field("").at(steps).path, rule, message) for steps in places]
    return tuple(broken)


def only_extra_keys(errors: Sequence[Any]) -> bool:
    """Return whether all errors are of keys the schema does not allow; of `anyOf` and `oneOf`, in some branch."""
    for error in errors:
        if error.kind.name in _BRANCHES:
            if not any(branch and only_extra_keys(branch) for branch in getattr(error.kind, "context", ())):
                return False
        elif error.kind.name not in _EXTRA_KEYS:
            return False
    return True


@dataclass(frozen=True, slots=True)
class TopNames:
    """The top-level keys of a schema: those it requires, those it names (None: it allows names by pattern)."""

    required: frozenset[str] = frozenset()
    named: frozenset[str] | None = None


class NameDrift(NamedTuple):
    """Top-level keys that an output lacks, and those the schema does not name."""

    missing: frozenset[str] = frozenset()
    extra: frozenset[str] = frozenset()


NO_DRIFT = NameDrift()


def name_drift(output: Any, names: TopNames) -> NameDrift:
    """Return the required top-level keys that the output lacks, and its keys that the schema does not name.

    An unnamed key counts, forbidden or not; a key whose value is null is there. Both empty is best, and all there is
    for an output that is no object.

    >>> drift = name_drift({"vendor": "A", "total": 9}, TopNames(frozenset({"shop"}), frozenset({"shop", "total"})))
    >>> sorted(drift.missing), sorted(drift.extra)
    (['shop'], ['vendor'])
    """
    if not isinstance(output, dict):
        return NO_DRIFT
    missing = names.required - output.keys()
    extra = output.keys() - names.named if names.named is not None else frozenset()
    return NameDrift(missing, frozenset(extra)) if missing or extra else NO_DRIFT


def top_names(schema: Mapping[str, Any] | None) -> TopNames:
    """Return the top-level keys of a schema, also through `$ref`, `allOf`, `anyOf`, `oneOf`, `if`, `then` and `else`.

    >>> names = top_names({"properties": {"shop": {}, "total": {}}, "required": ["shop"]})
    >>> sorted(names.required), sorted(names.named or ())
    (['shop'], ['shop', 'total'])
    """
    nodes = [node for node in same_value(schema, schema or {}, _COMBINED) if isinstance(node, Mapping)]
    certain = [node for node in same_value(schema, schema or {}, ("allOf",)) if isinstance(node, Mapping)]
    named = frozenset(name for node in nodes for name in node.get("properties", ()))
    required = frozenset(name for node in certain for name in node.get("required", ()))
    by_pattern = any("patternProperties" in node or _is_open(node) for node in nodes)
    return TopNames(required, named if named and not by_pattern else None)


def _is_open(node: Mapping[str, Any]) -> bool:
    return isinstance(node.get("additionalProperties"), Mapping)

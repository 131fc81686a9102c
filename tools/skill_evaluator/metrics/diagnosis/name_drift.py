"""Does the output call things by the names of the contract? A renamed key is one missing and one extra."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class TopNames:
    """The top-level keys of a schema: those it requires, those it knows (None: it allows names by pattern)."""

    required: frozenset[str] = frozenset()
    known: frozenset[str] | None = None


class NameDrift(NamedTuple):
    """Top-level keys that an output lacks, and those the schema does not name."""

    missing: frozenset[str] = frozenset()
    extra: frozenset[str] = frozenset()


NO_DRIFT = NameDrift()


def name_drift(output: Any, names: TopNames) -> NameDrift:
    """Required top-level keys that the output lacks, and keys of it that the schema does not name, forbidden or not.

    Both empty is best, and all there is for an output that is no object. A key whose value is null is there.

    >>> drift = name_drift({"vendor": "A", "total": 9}, TopNames(frozenset({"shop"}), frozenset({"shop", "total"})))
    >>> sorted(drift.missing), sorted(drift.extra)
    (['shop'], ['vendor'])
    """
    if not isinstance(output, dict):
        return NO_DRIFT
    missing = names.required - output.keys()
    extra = output.keys() - names.known if names.known is not None else frozenset()
    return NameDrift(missing, frozenset(extra)) if missing or extra else NO_DRIFT


def top_names(schema: Mapping[str, Any] | None) -> TopNames:
    """The top-level keys a schema speaks of, also through `$ref`, `allOf`, `anyOf`, `oneOf`, `if`, `then` and `else`.

    >>> names = top_names({"properties": {"shop": {}, "total": {}}, "required": ["shop"]})
    >>> sorted(names.required), sorted(names.known or ())
    (['shop'], ['shop', 'total'])
    """
    required: set[str] = set()
    known: set[str] = set()
    by_pattern = False
    for node, certain in _whole_value(schema, schema or {}, True, frozenset()):
        known.update(node.get("properties", ()))
        required.update(node.get("required", ()) if certain else ())
        by_pattern |= "patternProperties" in node or isinstance(node.get("additionalProperties"), Mapping)
    return TopNames(frozenset(required), frozenset(known) if known and not by_pattern else None)


def _whole_value(
    node: Any, root: Mapping[str, Any], certain: bool, seen: frozenset[str]
) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """The schemas that speak of the whole value, each with whether it must hold (False for one branch of several)."""
    if not isinstance(node, Mapping):
        return
    yield node, certain
    reference = node.get("$ref")
    if reference is not None and reference not in seen:
        yield from _whole_value(_target(reference, root), root, certain, seen | {reference})
    for child in node.get("allOf", ()):
        yield from _whole_value(child, root, certain, seen)
    for child in (*node.get("anyOf", ()), *node.get("oneOf", ()), *(node.get(word) for word in ("if", "then", "else"))):
        yield from _whole_value(child, root, False, seen)


def _target(reference: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part:
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return node

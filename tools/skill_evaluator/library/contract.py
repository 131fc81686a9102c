"""An output contract: a JSON Schema, checked and compiled once, that validates any number of values.

Its own module because a component's `schema.json` and a schema given by another program obey the same rules.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jsonschema_rs

from skill_evaluator.errors import ComponentError

_DRAFT = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?")
_DATA = ("const", "enum", "default", "examples")
_T = TypeVar("_T")
_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


class Contract:
    """A compiled schema; every value conforms to the empty one, `{}`.

    >>> Contract({"properties": {"total": {"type": "number"}}}, "the schema").errors({"total": "9"})
    ['/total: "9" is not of type "number"']
    """

    def __init__(self, schema: Any, where: str) -> None:
        """Compile the schema; raise ComponentError, which names `where`, if it is invalid or refers to another file."""
        if not isinstance(schema, Mapping):
            raise ComponentError(f"{where} is no JSON Schema: an object is expected")
        schema = dict(schema)
        draft = schema.get("$schema")
        if draft is not None and not (isinstance(draft, str) and _DRAFT.fullmatch(draft)):
            raise ComponentError(f"{where} names an unknown draft in $schema: {draft}")
        remote = _find_remote_reference(schema)
        if remote:
            raise ComponentError(f"{where} refers to '{remote}'; only local references (#/...) are followed")
        try:
            jsonschema_rs.meta.validate(schema)
            self._validator: Any = jsonschema_rs.validator_for(schema, validate_formats=True)
        except jsonschema_rs.ValidationError as problem:
            place = _pointer(problem.instance_path)
            raise ComponentError(f"{where} is no valid JSON Schema at {place}: {problem.message}") from None
        except (ValueError, jsonschema_rs.ReferencingError) as problem:
            raise ComponentError(f"{where} is no valid JSON Schema: {problem}") from None

    def conforms(self, value: Any) -> bool:
        """Return whether a value validates against the schema."""
        return bool(_validate(self._validator.is_valid, value))

    def violations(self, value: Any) -> list[jsonschema_rs.ValidationError]:
        """Return the validator's own errors, with path, rule and message; none when the value validates.

        Raises RecursionError when the value is nested too deeply for a message.
        """
        return list(_validate(self._validator.iter_errors, value))

    def errors(self, value: Any) -> list[str]:
        """Say where and how a value breaks the schema; nothing when it validates."""
        return [f"{_pointer(error.instance_path)}: {error.message}" for error in self.violations(value)]


def _validate(validate: Callable[[Any], _T], value: Any) -> _T:
    try:
        return validate(value)
    except UnicodeEncodeError:  # JSON may carry a lone surrogate and UTF-8 cannot: it becomes a question mark
        return _validate(validate, json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")))
    except ValueError as problem:  # an error about more than some 250 levels
        raise RecursionError(str(problem)) from None


def _find_remote_reference(node: Any) -> str | None:
    """Find the first reference that leaves the file; `const`, `enum` and examples hold data, not references."""
    if isinstance(node, dict):
        for key, child in node.items():
            if key in ("$ref", "$dynamicRef") and isinstance(child, str) and not child.startswith("#"):
                return child
            if key in _NAMED_SCHEMAS and isinstance(child, dict):
                child = list(child.values())  # its keys are names, be they «default» or «$ref»
            remote = None if key in _DATA else _find_remote_reference(child)
            if remote:
                return remote
    elif isinstance(node, list):
        return next(filter(None, map(_find_remote_reference, node)), None)
    return None


def _pointer(parts: list[str | int]) -> str:
    return "/" + "/".join(map(str, parts))

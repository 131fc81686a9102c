"""Build the requests of use cases from the arguments of `Library` methods."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import first_problem
from skill_evaluator.library.options import FOLDERS

_Request = TypeVar("_Request")


def request_of(kind: type[_Request], arguments: Mapping[str, Any]) -> _Request:
    """Build a request of class `kind` from the `locals()` of a `Library` method.

    Arguments that are not fields of `kind` are ignored. If a field is a tuple, a single value becomes a tuple with
    this value. The folders are those of `self`, the library. Raise ConfigError for a value of the wrong type.
    """
    hints, library = get_type_hints(kind), arguments.get("self")
    folders = {name: getattr(library, name) for name in FOLDERS if library}
    options = {}
    for name, value in {**folders, **arguments}.items():
        if name not in hints:
            continue
        if get_origin(hints[name]) is tuple:
            values = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
            value = tuple(str(each) if isinstance(each, Path) else each for each in values)
        elif isinstance(value, Path):
            value = str(value)
        try:
            options[name] = TypeAdapter(hints[name]).validate_python(value)
        except ValidationError as problem:
            raise ConfigError(f"argument '{name}': {first_problem(problem)}") from None
    return kind(**options)

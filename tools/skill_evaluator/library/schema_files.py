"""The contract of a component from its files: a schema, or a part of one, with all it refers to in one value.

Only here may a reference lead to a second file, in the same repository.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from skill_evaluator.comparing.schema_paths import DATA, NAMED_SCHEMAS, references_of, schemas_in, target_of
from skill_evaluator.errors import ComponentError
from skill_evaluator.files import read_json
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.reading import Root
from skill_evaluator.text import canonical_json, digest

_MOST_FILES = 50
_MOST_PARTS = 100_000  # objects and arrays of the one schema: definitions that all refer to each other grow
_OF_A_FILE = ("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$defs", "definitions")  # not for another file


def read_schema(
    folder: Path, declared: str | None, limits: SafetyLimits
) -> tuple[Mapping[str, Any] | None, str, dict[str, str]]:
    """Return the schema of the component in a folder, where it stands, and the digests of what it is made of.

    The schema is None where there is no schema.json and nothing is `declared`, which names a file and a part of it
    (`schema.json#/$defs/output`). A schema.json that refers to no other file is taken as it stands. `schema` is the
    digest of schema.json, and `contract` that of a schema which was put together. Raises ComponentError.
    """
    own = folder / "schema.json"
    name, _, fragment = (declared or own.name).partition("#")
    files = _Files(folder, name, limits)
    whole = files.read(own, own.name) if own.exists() else None
    digests = {"schema": digest(canonical_json(whole))}
    if declared is None:
        references = [ref for node in schemas_in(whole) for ref in references_of(node)]
        if whole is None or all(reference.startswith("#") for reference in references):
            return whole, str(own), digests
    schema = files.put_together(Path(os.path.normpath(folder / name)), f"#{fragment}")
    return schema, f"{folder / (declared or own.name)}", {**digests, "contract": digest(canonical_json(schema))}


class _Files:
    """The files of one contract, read once each, and the definitions that references to them became."""

    def __init__(self, folder: Path, name: str, limits: SafetyLimits) -> None:
        library = Path(os.path.normpath(Path.cwd() / folder)).parent.parent
        self._root = next((place for place in (library, *library.parents) if (place / ".git").exists()), library)
        self._inside = Root(self._root, ComponentError, follow_links=limits.follow_links)
        self._limit = limits.size_of("schema_bytes")
        self._where = str(folder / name)
        self._read: dict[Path, dict[str, Any]] = {}
        self._names: dict[tuple[Path, str], str] = {}
        self._ahead: list[tuple[Path, str, str]] = []
        self._parts = 0

    def read(self, path: Path, reference: str) -> dict[str, Any]:
        """Read a file of the repository; raise ComponentError, which names the reference to it."""
        place = Path(os.path.normpath(Path.cwd() / path))
        if place not in self._read:
            if not place.is_relative_to(self._root):
                raise ComponentError(f"{self._where} refers to '{reference}', which is outside of {self._root}")
            if len(self._read) == _MOST_FILES:
                raise ComponentError(f"{self._where} refers to more than {_MOST_FILES} files; put them together")
            self._inside.inside(place)
            self._read[place] = read_json(path, ComponentError, self._limit)
            if not isinstance(self._read[place], dict):
                raise ComponentError(f"{path} is not a JSON Schema: an object is expected")
        return self._read[place]

    def put_together(self, path: Path, fragment: str) -> dict[str, Any]:
        """Return one schema: the part that is pointed to, and a definition for each part that is referred to."""
        schema = self._rewritten(self._target(path, fragment, fragment), path)
        if not isinstance(schema, dict):
            raise ComponentError(f"{self._where}{fragment} is not a JSON Schema: an object is expected")
        definitions: dict[str, Any] = {}
        while self._ahead:
            place, fragment, reference = self._ahead.pop()
            definitions[self._names[place, fragment]] = self._rewritten(self._target(place, fragment, reference), place)
        drafts = {str(file["$schema"]).rstrip("#") for file in self._read.values() if "$schema" in file}
        if len(drafts) > 1:
            raise ComponentError(
                f"{self._where} refers to a file of a different draft: $schema is {' and '.join(drafts)}"
            )
        draft = {"$schema": drafts.pop()} if drafts else {}
        return draft | schema | ({"$defs": definitions} if definitions else {})

    def _target(self, path: Path, fragment: str, reference: str) -> Any:
        target = target_of(fragment, self.read(path, reference))
        if target is None:
            raise ComponentError(f"{self._where} refers to '{reference}', and {path} has no such part")
        return target

    def _rewritten(self, node: Any, path: Path) -> Any:
        """Copy a part of a file, with every reference in it led to a definition of the one schema."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise ComponentError(f"{self._where} has more than {_MOST_PARTS:,} parts with all that it refers to")
        if isinstance(node, list):
            return [self._rewritten(child, path) for child in node]
        if not isinstance(node, dict):
            return node
        copy: dict[str, Any] = {}
        for key, child in node.items():
            if key in _OF_A_FILE:
                continue
            if key in NAMED_SCHEMAS and isinstance(child, dict):
                copy[key] = {name: self._rewritten(inner, path) for name, inner in child.items()}
            elif key == "$ref" and isinstance(child, str):
                copy[key] = f"#/$defs/{self._named(child, path)}"
            elif key == "$dynamicRef":
                raise ComponentError(f"{self._where}: $dynamicRef is not followed from file to file; write $ref")
            else:
                copy[key] = child if key in DATA else self._rewritten(child, path)
        return copy

    def _named(self, reference: str, path: Path) -> str:
        """Return the name of the definition that a reference becomes."""
        file, _, fragment = reference.partition("#")
        if ":" in file or file.startswith("/"):
            raise ComponentError(
                f"{self._where} refers to '{reference}'; only references inside of it (#/...) and to files of this "
                "repository (../other/schema.json) are followed"
            )
        place = Path(os.path.normpath(path.parent / unquote(file))) if file else path
        key = (place, f"#{fragment}")
        if key not in self._names:
            name = re.sub(r"\W", "_", fragment.rpartition("/")[2] or place.parent.name, flags=re.ASCII)
            taken = set(self._names.values())
            self._names[key] = name if name not in taken else f"{name}_{len(taken) + 1}"
            self._ahead.append((*key, reference))
        return self._names[key]

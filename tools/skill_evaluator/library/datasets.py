"""Datasets that other tools export → rows of cases, for `cases import`, and a contract that fits their ground truths.

What an item has and no case uses is counted.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from skill_evaluator.errors import FixtureError
from skill_evaluator.files import SizeLimit, json_text, read_json
from skill_evaluator.library.messages import DOCUMENT
from skill_evaluator.library.reading import as_list
from skill_evaluator.library.sources.asserts import Leave, as_test, as_text, checks_of
from skill_evaluator.library.tables import CaseRows, Odd, Row, read_rows

Exporter = Literal["langfuse", "langsmith", "openai-evals", "promptfoo-csv"]
Left = Counter[tuple[str, str]]
_Asserts = Sequence[dict[str, Any]]
_ITEM = re.compile(r"\{\{\s*item\.([\w.]+)\s*\}\}")
_SAMPLE = re.compile(r"\{\{\s*sample\.output_text\s*\}\}")
_OPERATIONS = {"eq": "equals", "ne": "not-equals", "like": "contains", "ilike": "icontains"}
_TYPES: Mapping[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """What an item says: its input, any JSON, and the truth, the checks and the metadata that it may have."""

    input: Any
    truth: Any = None
    checks: list[dict[str, Any]] = field(default_factory=list)
    id: Any = None
    metadata: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedItems:
    """A file of a tool, and which part of an input is the document; `criteria` is the file of OpenAI's eval."""

    path: Path
    exporter: Exporter
    document: str | None = None
    criteria: Path | None = None

    def rows(self, inputs: Sequence[str], limit: SizeLimit, odd: Odd) -> tuple[CaseRows, Left]:
        """Return rows for a prompt with these inputs, and what is left out; raise FixtureError."""
        left, rows, asserts = Left(), list[tuple[str, int, Row]](), self._asserts()

        def leave(what: str, reason: str) -> None:
            left[what, reason] += 1

        for line, value in self._items(limit, odd):
            if (item := _EXPORTERS[self.exporter](value, asserts, leave)) is None:
                continue
            case_id = re.sub(r"[^\w@.+-]+", "-", str(item.id or "")).strip(".-")[:100]
            row = {"ground_truth": item.truth, "checks": item.checks, "metadata": item.metadata}
            row |= self._inputs(item.input, inputs)
            case_id = case_id or re.sub(r"\W+", "-", f"{self.path.stem}-{line}").strip("-")
            rows.append((case_id, line, {name: value for name, value in row.items() if value not in (None, [])}))
        return CaseRows(path=self.path, rows=rows), left

    def _items(self, limit: SizeLimit, odd: Odd) -> Iterator[tuple[int, Row]]:
        if self.path.suffix != ".json":
            yield from read_rows(self.path, limit, odd)
            return
        value = read_json(self.path, FixtureError)
        listed = value if isinstance(value, list) else value.get("data") if isinstance(value, dict) else None
        if not isinstance(listed, list):
            raise FixtureError(f"{self.path} is neither a list of items nor an object with them as data")
        for number, item in enumerate(listed, 1):
            if isinstance(item, dict):
                yield number, item
            else:
                odd(FixtureError(f"{self.path}: item {number} is no object"))

    def _asserts(self) -> list[dict[str, Any]]:
        if self.criteria is None:
            return []
        value = read_json(self.criteria, FixtureError)
        listed = as_list(value.get("testing_criteria")) if isinstance(value, dict) else []
        if not listed or not all(isinstance(criterion, dict) for criterion in listed):
            raise FixtureError(f"{self.criteria} has no testing_criteria, which is a list of objects")
        return [_assert_of(criterion) for criterion in listed]

    def _inputs(self, value: Any, inputs: Sequence[str]) -> dict[str, Any]:
        """Return the document and the other inputs of an item: those that the prompt names, else all of it is one."""
        if isinstance(value, dict) and self.document is not None:
            others = {name: value[name] for name in inputs if name in value and name != DOCUMENT}
            return {DOCUMENT: value.get(self.document), "inputs": others}
        if isinstance(value, dict) and all(name in value for name in inputs):
            others = {name: value[name] for name in inputs if name != DOCUMENT and value[name] is not None}
            return {**({DOCUMENT: value[DOCUMENT]} if DOCUMENT in inputs else {}), "inputs": others}
        return {DOCUMENT: _lone(value)}


def _lone(value: Any) -> Any:
    """Return the only member of an object, and any other value as it is."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def _langfuse(row: Row, _: _Asserts, leave: Leave) -> _Item | None:
    if row.get("status") == "ARCHIVED":
        leave("item", "it is archived")
        return None
    truth = row.get("expectedOutput", row.get("expected_output"))
    return _Item(input=row.get("input"), truth=truth, id=row.get("id"), metadata=row.get("metadata"))


def _langsmith(row: Row, _: _Asserts, leave: Leave) -> _Item:
    truth = _lone(row.get("outputs"))
    return _Item(input=row.get("inputs"), truth=truth, id=row.get("id"), metadata=row.get("metadata"))


def _openai(row: Row, asserts: _Asserts, leave: Leave) -> _Item:
    item = row.get("item", row)
    checks, _ = checks_of(asserts, dict(_variables(item)), lambda value: value, leave)
    return _Item(input=item, checks=checks, id=row.get("id"))


def _promptfoo(row: Row, _: _Asserts, leave: Leave) -> _Item:
    test = as_test({name: str(cell) for name, cell in row.items()})
    columns = [name for name, cell in test["options"].items() if cell] + [*test.keys() - {"vars", "assert", "options"}]
    for name in columns:
        leave(f"__{name} cell", "it has no counterpart here")
    checks, _ = checks_of(test["assert"], test["vars"], lambda value: value, leave)
    return _Item(input=test["vars"], checks=checks)


_EXPORTERS: Mapping[Exporter, Callable[[Row, _Asserts, Leave], _Item | None]] = {
    "langfuse": _langfuse,
    "langsmith": _langsmith,
    "openai-evals": _openai,
    "promptfoo-csv": _promptfoo,
}


def _assert_of(criterion: Mapping[str, Any]) -> dict[str, Any]:
    """Return a string check as an assert, the item's members as its variables; any other criterion by its type."""
    sides, operation = [str(criterion.get("input")), str(criterion.get("reference"))], criterion.get("operation")
    if operation in ("eq", "ne") and _SAMPLE.fullmatch(sides[1]):
        sides.reverse()
    is_string_check = criterion.get("type") == "string_check" and _SAMPLE.fullmatch(sides[0])
    if not is_string_check or operation not in _OPERATIONS:
        return {"type": f"{criterion.get('type')} {criterion.get('name', '')}"}
    value = _ITEM.sub(lambda name: "{{" + _variable(name[1]) + "}}", sides[1])
    return {"type": _OPERATIONS[operation], "value": value, "metric": criterion.get("name")}


def _variables(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if path:
        yield _variable(path), as_text(value)
    for name, inner in value.items() if isinstance(value, dict) else ():
        yield from _variables(inner, f"{path}.{name}".lstrip("."))


def _variable(path: str) -> str:
    return f"item__{path.replace('.', '__')}"


def inferred_schema(truths: Sequence[Any], source: Path) -> str:
    """Return the JSON of a schema that all ground truths of a file satisfy, with a remark that it was inferred."""
    remark = f"Inferred from {len(truths)} ground truths of {source.name}: make it as strict as the answers must be."
    draft = "https://json-schema.org/draft/2020-12/schema"
    return json_text({"$schema": draft, "description": remark, **_schema_of(truths)})


def _schema_of(values: Sequence[Any]) -> dict[str, Any]:
    types = sorted({_TYPES[type(value)] for value in values})
    types = [name for name in types if name != "integer" or "number" not in types]
    schema: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
    if objects := [value for value in values if isinstance(value, dict)]:
        names = dict.fromkeys(name for value in objects for name in value)
        schema["properties"] = {name: _schema_of([value[name] for value in objects if name in value]) for name in names}
        schema["required"] = [name for name in names if all(name in value for value in objects)]
    if items := [item for value in values if isinstance(value, list) for item in value]:
        schema["items"] = _schema_of(items)
    return schema

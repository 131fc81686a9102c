"""Tables of cases: rows of CSV, TSV or JSON Lines, and the case data in each row."""

import csv
import difflib
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from skill_evaluator.comparing.declarations import SchemaPath, schema_places
from skill_evaluator.errors import FixtureError, SkillEvaluatorError, refuse
from skill_evaluator.files import SizeLimit, StrictModel, json_text, parse_json, read_json, read_lines, read_text
from skill_evaluator.library.prompts import DOCUMENT, TURNS
from skill_evaluator.parsing import Output
from skill_evaluator.text import nearest, unix_lines

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
ENDINGS = (".jsonl", *_SEPARATORS)
_MAX_COLUMNS, _MAX_VALUES, _MAX_LISTED = 10_000, 4_000_000, 20
_DECIMAL_COMMA = re.compile(r"-?(0,\d+|\d+,(\d\d?|\d{4,}))")
_LEADING_ZERO = re.compile(r"\s*[+-]?0\d+\s*")
_TEXTS = ("string", "category", "date", "any")
_ID, _INPUTS, TRUTH_COLUMNS = "id", "inputs", ("ground_truth", "expected")
_NO_INPUTS = (_ID, _INPUTS, TURNS, *TRUTH_COLUMNS, "checks", "not_applicable")
_SAME_KEY = 0.9  # name similarity from which an unknown key is an error; `reviewed` stays metadata
_close_matches = lru_cache(maxsize=1_000)(difflib.get_close_matches)
TableRow = Mapping[str, Any]
"""The values of a row by column name."""
ProblemHandler = Callable[[SkillEvaluatorError], None]
"""Receives the problem of an invalid row or case; it raises the problem, or returns to skip the row."""


def read_rows(path: Path, limit: SizeLimit, on_problem: ProblemHandler = refuse) -> list[tuple[int, TableRow]]:
    """Read the (line, values) of each row of a .csv, .tsv, .jsonl or .json file. Lines count from 1.

    `limit` is for each cell of .csv and .tsv, and for each line of .jsonl. It is not used for .json, where the "line"
    is the position in the list. Raise FixtureError if the file is invalid, empty or too large.
    """
    if path.suffix not in (".json", *ENDINGS):
        raise FixtureError(f"{path} is not a table; its name must end in .csv, .tsv, .jsonl or .json")
    rows: list[tuple[int, TableRow]] = []
    values = 0
    is_csv = path.suffix in _SEPARATORS
    cells = read_cells(read_text(path, FixtureError), path, limit.max_bytes, on_problem) if is_csv else None
    for line, row in cells or _read_objects(path, limit, on_problem):
        values += len(row)
        if len(row) > _MAX_COLUMNS or values > _MAX_VALUES:
            limits_text = f"a table can have at most {_MAX_COLUMNS:,} columns and {_MAX_VALUES:,} values"
            raise FixtureError(f"{path}:{line}: {len(row):,} columns, {values:,} values so far; {limits_text}")
        rows.append((line, row))
    if not rows:
        raise FixtureError(f"{path} has no rows")
    return rows


def _read_objects(path: Path, limit: SizeLimit, on_problem: ProblemHandler) -> Iterator[tuple[int, TableRow]]:
    listed = read_json(path, FixtureError) if path.suffix == ".json" else []
    if not isinstance(listed, list):
        raise FixtureError(f"{path} is not a list of objects")
    values = enumerate(listed, 1) if path.suffix == ".json" else read_lines(path, FixtureError, limit=limit)
    for number, value in values:
        if isinstance(value, dict):
            yield number, value
        else:
            on_problem(FixtureError(f'{path}:{number}: not an object; write a line such as {{"text": …, "answer": …}}'))


def value_at(value: Any, path: str) -> Any:
    """Return the value at a dotted path in nested objects, or None if the path does not exist.

    >>> value_at({"input": {"text": "a"}}, "input.text")
    'a'
    """
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def separator_of(text: str, default: str) -> str:
    """Return the most frequent of comma, semicolon, tab and `default` in the first line. `default` wins ties."""
    header = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").partition("\n")[0])
    return max([default, ",", ";", "\t"], key=header.count)


def with_decimal_point(cell: str) -> str:
    """Replace the decimal comma of a number such as 9,5 by a point. Return other texts, also 1,234, unchanged."""
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell


def read_cells(text: str, path: Path, max_chars: int, on_problem: ProblemHandler) -> Iterator[tuple[int, TableRow]]:
    """Yield (line, cells by column name) for each row of a CSV text. Raise FixtureError if the text is not CSV."""
    csv.field_size_limit(max_chars)
    separator = separator_of(text, _SEPARATORS.get(path.suffix, ","))
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
    header: list[str] = []
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as problem:
            raise FixtureError(f"{path}:{line}: {problem}") from None
        if cells is None:
            return
        if not any(cells):
            continue
        if not header:
            header = [cell.strip() for cell in cells]
            if len(set(header)) < len(header) or not all(header):
                raise FixtureError(f"{path}:{line}: every column needs a unique name in the first row")
        elif len(cells) != len(header):
            on_problem(FixtureError(f"{path}:{line}: {len(cells)} cells, where the first row has {len(header)}"))
        else:
            yield line, dict(zip(header, cells, strict=True))


class Columns(StrictModel):
    """The columns that cases are made from; all other columns become metadata."""

    id: str | None = Field(default=_ID, description="column of the ids; without it cases are numbered")
    inputs: dict[str, str] = Field(default={}, description="column of each input; default: document and inputs")
    truth: str | dict[str, str] | None = Field(default=None, description="column of the ground truth or of each field")

    @field_validator("truth")
    @classmethod
    def _names_whole_fields(cls, truth: Any) -> Any:
        for path in truth if isinstance(truth, dict) else ():
            parents = [other for other in truth if path.startswith(f"{other}.")]
            if "[]" in path or parents:
                parent = min([*parents, path.partition("[]")[0]], key=len)
                raise ValueError(f"field '{path}' is inside '{parent}'; name one column with the JSON of '{parent}'")
        return truth

    @property
    def fields(self) -> Mapping[str, str]:
        """The columns of ground-truth fields, by path; empty if one column has the whole ground truth."""
        return self.truth if isinstance(self.truth, dict) else {}

    @property
    def named(self) -> list[str]:
        """The names of the declared columns, which must exist."""
        truth_columns = [self.truth] if isinstance(self.truth, str) else []
        ids = [self.id] if self.id is not None and "id" in self.model_fields_set else []
        return [*self.inputs.values(), *ids, *self.fields.values(), *truth_columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRows:
    """The (id, line, values) of each row of a table of cases; empty if there is no table."""

    path: Path = Path()
    columns: Columns = field(default_factory=Columns)
    rows: Sequence[tuple[str, int, TableRow]] = ()
    name: str = ""  # the word for cases in this format, such as evals
    codes: Collection[str] = ()  # columns whose cells stay text if there is no schema

    @property
    def output(self) -> Output | None:
        """The output type of the ground truths, "json" or "text". If the type cannot be inferred, it is None."""
        cells = [cell for _, _, row in self.rows if not _is_blank(cell := self._truth_cell(row))]
        if self.columns.fields or not all(isinstance(cell, str) for cell in cells):
            return "json"
        with suppress(FixtureError):
            if self._has_json_texts and cells:
                cells = [_parsed(cell, "", "") for cell in cells]
                return "json"
        return "text" if cells else None

    def truths(self, output: Output, schema: Mapping[str, Any] | None) -> Iterator[Any]:
        """Yield the ground truths of the reviewed rows, except those that cannot be read."""
        schema_paths = schema_places(schema or {})
        for _, _, row in self.rows:
            with suppress(FixtureError):
                is_draft = str(row.get("unreviewed")).lower() == "true"
                if not is_draft and (truth := self.truth("", row, output, schema_paths)) is not None:
                    yield truth

    def truth(self, location: str, row: TableRow, output: Output, schema_paths: Mapping[str, SchemaPath]) -> Any:
        """Return the ground truth of a row, or None if its column is blank. Raise FixtureError for invalid JSON."""
        if self.columns.fields:
            return self._truth_of_fields(location, row, schema_paths)
        cell = self._truth_cell(row)
        if output == "text" or not isinstance(cell, str) or not self._has_json_texts:
            return None if _is_blank(cell) else cell
        advice = "name a column for each field (FIELD=COLUMN), or for a text write output: text in prompt.md"
        column = self.columns.truth if isinstance(self.columns.truth, str) else TRUTH_COLUMNS[0]
        return _parsed(cell, f"{location}: the truth, column '{column}', is not valid JSON", advice)

    def inputs(self, location: str, row: TableRow, prompt_inputs: Iterable[str] = ()) -> dict[str, Any]:
        """Return a row's inputs by name. Without declared columns, read `inputs`, `document` and `prompt_inputs`."""
        names = self.columns.inputs or {name: name for name in (DOCUMENT, *prompt_inputs) if name not in _NO_INPUTS}
        inputs = {name: row[column] for name, column in names.items() if row.get(column) is not None}
        if DOCUMENT in inputs or (DOCUMENT in names and self.columns.inputs):
            document = inputs.get(DOCUMENT, "")
            if not (isinstance(document, dict) and document.keys() == {"file"}):
                text = document if isinstance(document, str) else json_text(document)
                inputs[DOCUMENT] = unix_lines(text)
        if self.columns.inputs or row.get(_INPUTS) is None:
            return inputs
        return with_others(location, inputs, row[_INPUTS])

    def meta(self, row: TableRow) -> dict[str, Any]:
        """Return a row's metadata by column: all non-empty values outside of the declared and the reserved columns."""
        used = {self.columns.id, *self.columns.named, DOCUMENT, _INPUTS, TURNS, *TRUTH_COLUMNS}
        return {name: value for name, value in row.items() if name not in used and value not in (None, "")}

    def misspelt_keys(self, inputs: Iterable[str], keys: Iterable[str]) -> Iterator[FixtureError]:
        """Yield an error for each likely misspelling of a reserved key or of one of `keys`. Ignore keys in `inputs`."""
        reserved = (*keys, *(() if self.columns.model_fields_set else (*_NO_INPUTS, DOCUMENT)))
        lines = {name: line for _, line, row in reversed(self.rows) for name in self.meta(row)}
        for name in sorted(lines.keys() - set(inputs)):
            yield from (FixtureError(f"{self.path}:{lines[name]}: {problem}") for problem in misspelt([name], reserved))

    def with_values(self, location: str, row: TableRow, structured: Collection[str]) -> TableRow:
        """Parse the JSON cells of a CSV row: `inputs`, `turns` and the columns in `structured`. Return the new row."""
        if self.path.suffix not in _SEPARATORS:
            return row
        names = {_INPUTS, TURNS, *structured} & row.keys() - set(self.columns.named)
        cells = {name: row[name] for name in names if isinstance(row[name], str)}
        problem = f"{location}: {{}} is not valid JSON"
        values = {name: _parsed(cell, problem.format(name), 'write ["a"]') for name, cell in cells.items()}
        return {**row, **values}

    @property
    def _has_json_texts(self) -> bool:
        return self.path.suffix in _SEPARATORS or self.columns.truth is not None

    def _truth_cell(self, row: TableRow) -> Any:
        names = TRUTH_COLUMNS if self.columns.truth is None else (self.columns.truth,)
        return next((row[name] for name in names if isinstance(name, str) and row.get(name) is not None), None)

    def _truth_of_fields(self, location: str, row: TableRow, schema_paths: Mapping[str, SchemaPath]) -> dict[str, Any]:
        truth: dict[str, Any] = {}
        for path, column in self.columns.fields.items():
            value = row.get(column)
            if isinstance(value, str) and not value.strip():
                value = None
            elif isinstance(value, str) and path in schema_paths and schema_paths[path].kind not in _TEXTS:
                problem = f"{location}: '{path}', column '{column}', is not valid JSON"
                value = _parsed(value, problem, 'write 9.5, true or ["a"]')
            elif isinstance(value, str) and path not in schema_paths and column not in self.codes:
                value = _number_or_text(value)
            *parents, last = path.split(".")
            inner = truth
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = value
        return truth


def with_others(location: str, inputs: Mapping[str, Any], others: Any) -> dict[str, Any]:
    """Add the object `others` to the inputs. Raise FixtureError for null values or a second document."""
    if not isinstance(others, dict) or None in others.values():
        example = '{"kind": "invoice"}'
        raise FixtureError(f"{location}: inputs must be an object without null values, such as {example}")
    if DOCUMENT in inputs and DOCUMENT in others:
        raise FixtureError(f"{location}: the document is in inputs, and also in a file or column of its own; keep one")
    return {**inputs, **others}


def read_table(
    path: Path, columns: Columns, limit: SizeLimit, on_problem: ProblemHandler = refuse, advice: str = ""
) -> CaseRows:
    """Read a table of cases; without an id column, number them. Raise FixtureError if a declared column is missing."""
    rows: list[tuple[int, TableRow]] = []
    for line, row in read_rows(path, limit, on_problem):
        nested = {name: value_at(row, name) for name in columns.named if name not in row}
        rows.append((line, {**row, **{name: value for name, value in nested.items() if value is not None}}))
    names = dict.fromkeys(name for _, row in rows for name in row)
    for column in columns.named:
        if column not in names:
            printable = [name for name in names if name.isprintable()][:_MAX_LISTED]
            raise FixtureError(f"no column '{column}' in {path} {nearest(column, printable)}{advice}")
    stem = re.sub(r"[^\w]+", "-", path.stem).strip("-_") or "case"
    width = len(str(len(rows)))
    ids = [f"{stem}-{number:0{width}d}" for number in range(1, len(rows) + 1)]
    if columns.id in names:
        ids = ["" if row.get(columns.id) is None else str(row[columns.id]) for _, row in rows]
    codes = set(names)
    if path.suffix in _SEPARATORS:
        codes = {name for _, row in rows for name, cell in row.items() if _LEADING_ZERO.fullmatch(str(cell))}
    numbered = [(case_id, line, row) for case_id, (line, row) in zip(ids, rows, strict=True)]
    return CaseRows(path=path, columns=columns, rows=numbered, codes=codes)


def misspelt(names: Iterable[str], keys: Iterable[str]) -> Iterator[str]:
    """Yield an error message for each name that is a likely misspelling of one of `keys`."""
    choices = tuple(keys)
    for name in names:
        near = () if name in choices else _close_matches(str(name).lower(), choices, 1, _SAME_KEY)
        yield from (f"unknown key '{name}' (did you mean '{key}'?)" for key in near)


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _number_or_text(cell: str) -> bool | float | str:
    with suppress(FixtureError):
        if isinstance(value := _parsed(cell, "", ""), bool | int | float):
            return value
    return cell


def _parsed(cell: str, message: str, advice: str) -> Any:
    if not cell.strip():
        return None
    for text in (cell, with_decimal_point(cell.lower())):  # spreadsheets write TRUE and 9,5
        with suppress(FixtureError):
            return parse_json(text, Path(), FixtureError)
    raise FixtureError(f"{message}: {cell.strip()[:60]!a}; {advice}")

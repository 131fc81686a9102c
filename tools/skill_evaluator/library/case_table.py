"""Cases from a table: rows of CSV, TSV or JSON Lines in, documents with their ground truths out.

What is wrong with a row is one line with file and line number, before anything is written.
"""

import csv
import io
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skill_evaluator.comparing.schema_paths import schema_places
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    argument,
    flag,
    option,
    options,
)
from skill_evaluator.errors import ComponentError, FixtureError, SkillEvaluatorError, refuse
from skill_evaluator.files import SizeLimit, json_text, parse_json, read_lines, read_text, storing
from skill_evaluator.identifiers import is_file_name
from skill_evaluator.library.components import Component, load_component, places_of
from skill_evaluator.library.config import load_settings
from skill_evaluator.text import nearest, nearest_path

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_TEXTS = ("string", "category", "date", "any")
Rows = list[tuple[int, Mapping[str, Any]]]
"""The rows of a table with the lines they begin at, from 1."""
NewCases = Mapping[str, Mapping[str, str]]
"""Cases that are to be written, by id: the texts of their files by name."""
Odd = Callable[[SkillEvaluatorError], None]
"""Takes the problem of a wrong row: raises it, or reports it so that the row is left out."""


@options
class CaseTable(ComponentsOption, FixturesOption, ConfigOption):
    """A table, and which columns of it the cases of a component are made of. Without `id` the cases are numbered."""

    file: Path = argument("A table: .csv or .tsv with a row of names, or .jsonl.", metavar="FILE")
    document: str = option("The column of the documents.", ..., "--input", metavar="COLUMN")
    truth: tuple[str, ...] = option(
        "The column of the ground truth; with FIELD= or repeated, of one of its fields.",
        (),
        metavar="[FIELD=]COLUMN",
    )
    id: str | None = option("The column of the cases' ids; default: numbered.", metavar="COLUMN")
    skill: str | None = option("The component, if there are several.", metavar="NAME")
    yes: bool = flag("Write the cases; without it they are only checked.")

    @property
    def fields(self) -> dict[str, str] | None:
        """The columns of the truth by field; None without such a column, or if a column holds the whole truth."""
        if len(self.truth) < 2 and not any("=" in part for part in self.truth):
            return None
        pairs = [part.partition("=") for part in self.truth]
        return {field: column or field for field, _, column in pairs}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCases:
    """The cases of a table by id, with the texts of their files by name, and the folder that they are for."""

    component: Component
    place: Path
    cases: Mapping[str, Mapping[str, str]]


def import_cases(table: CaseTable, odd: Odd = refuse) -> ImportedCases:
    """Make cases of the rows of a table, each checked against the contract; write them if `yes`, and over nothing.

    A row that is no case is `odd`.
    """
    names = sorted(path.parent.name for path in table.components.glob("*/prompt.md"))
    if table.skill is None and len(names) != 1:
        raise ComponentError(f"name the component with --skill NAME: there are {len(names)} in {table.components}")
    limits = load_settings(table.config).limits
    component = load_component(table.components, table.skill or names[0], limits, table.fixtures)
    if component.output == "choice":
        raise FixtureError(f"'{component.name}' asks questions: its cases are lines of questions.jsonl, not documents")
    rows = read_rows(table.file, limits.size_of("document_bytes"), odd)
    cases = cases_of(rows, table, component, odd)
    places = places_of(component.folder, component.fixtures, table.fixtures, "cases")
    place = next((place for place in places if place.is_dir()), places[0])
    there = [case_id for case_id in cases if (place / case_id).exists()]
    if there:
        raise FixtureError(f"{place / there[0]} exists already; choose other ids with --id COLUMN")
    if table.yes:
        write_cases(place, cases)
    return ImportedCases(component=component, place=place, cases=cases)


def read_rows(path: Path, limit: SizeLimit, odd: Odd = refuse) -> Rows:
    """Read the rows of a table by its ending; raise FixtureError if it is no table. Each line or cell is limited."""
    if path.suffix == ".jsonl":
        rows: Rows = []
        for number, value in read_lines(path, FixtureError, limit=limit):
            if isinstance(value, dict):
                rows.append((number, value))
            else:
                odd(FixtureError(f'{path}:{number}: no object; write a line such as {{"text": …, "answer": …}}'))
    elif path.suffix in _DELIMITERS:
        rows = list(_read_cells(path, limit, odd))
    else:
        raise FixtureError(f"{path} is not a table; its name must end in .csv, .tsv or .jsonl")
    if not rows:
        raise FixtureError(f"{path} holds no row")
    return rows


def _read_cells(path: Path, limit: SizeLimit, odd: Odd) -> Iterator[tuple[int, Mapping[str, Any]]]:
    csv.field_size_limit(limit.most)
    reader = csv.reader(io.StringIO(read_text(path, FixtureError)), delimiter=_DELIMITERS[path.suffix], strict=True)
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
                raise FixtureError(f"{path}:{line}: every column needs a name of its own, in the first row")
        elif len(cells) != len(header):
            odd(FixtureError(f"{path}:{line}: {len(cells)} cells, where the first row has {len(header)}"))
        else:
            yield line, dict(zip(header, cells, strict=True))


def cases_of(rows: Rows, table: CaseTable, component: Component, odd: Odd = refuse) -> NewCases:
    """Make a case of each row; a row that cannot be one, or fails the contract, is `odd`."""
    path, fields = table.file, table.fields or {}
    known = list(dict.fromkeys(name for _, row in rows for name in row))
    for column in (table.document, table.id, *(fields.values() or table.truth)):
        if column is not None and column not in known:
            raise FixtureError(f"no column '{column}' in {path} {nearest(column, known)}")
    _refuse_fields(fields, component)
    stem = re.sub(r"[^\w]+", "-", path.stem).strip("-_") or "case"
    width = len(str(len(rows)))
    lines: dict[str, int] = {}
    cases: dict[str, Mapping[str, str]] = {}
    for number, (line, row) in enumerate(rows, 1):
        at = f"{path}:{line}"
        case_id = f"{stem}-{number:0{width}d}" if table.id is None else str(row.get(table.id, ""))
        try:
            if not is_file_name(case_id):
                raise FixtureError(f"{at}: {case_id[:100]!a} cannot be a case's id (letters, digits, '.', '_', '-')")
            files = _files_of(at, row, table, component)
            if lines.setdefault(case_id, line) != line:
                raise FixtureError(f"{at}: the id '{case_id}' is that of line {lines[case_id]}")
            cases[case_id] = files
        except FixtureError as problem:
            odd(problem)
    return cases


def write_cases(place: Path, cases: NewCases) -> None:
    """Write all cases, or none: each is there as a whole before the first is moved to its place."""
    with storing(place):
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=".new-") as aside, ExitStack() as undo:
            for case_id, files in cases.items():
                (Path(aside) / case_id).mkdir()
                for name, text in files.items():
                    (Path(aside) / case_id / name).write_bytes(text.encode("utf-8", "backslashreplace"))
            for case_id in cases:
                (Path(aside) / case_id).rename(place / case_id)
                undo.callback(shutil.rmtree, place / case_id)
            undo.pop_all()


def _refuse_fields(fields: Mapping[str, str], component: Component) -> None:
    """Raise FixtureError for a field that no column can give."""
    places = schema_places(component.schema or {})
    for field in fields:
        if component.schema is not None and field not in places:
            where = component.contract.where
            raise FixtureError(f"--truth {field}: no such field in {where} {nearest_path(field, places)}")
        if "[]" in field or any(field.startswith(f"{other}.") for other in fields):
            raise FixtureError(f"--truth {field}: it is inside an array or object; name a column for that")


def _files_of(at: str, row: Mapping[str, Any], table: CaseTable, component: Component) -> dict[str, str]:
    given = row.get(table.document)
    document = given if isinstance(given, str) else "" if given is None else json_text(given)
    limit = component.limits.size_of("document_bytes")
    if not document.strip():
        raise FixtureError(f"{at}: column '{table.document}', the document, is empty")
    if len(document.encode()) > limit.most:
        raise FixtureError(f"{at}: the document has {len(document.encode()):,} bytes; {limit}")
    files = {"document.md": document.rstrip("\n") + "\n"}
    truth = _truth_of(at, row, table, component)
    if truth is None:
        return files
    if component.output == "text":
        if not isinstance(truth, str):
            raise FixtureError(f"{at}: the truth must be a text: '{component.name}' answers with text")
        return {**files, "expected.md": truth.rstrip("\n") + "\n"}
    problems = component.contract.errors(truth)
    if problems:
        raise FixtureError(f"{at}: the truth fails {component.contract.where} at {problems[0][:500]}")
    return {**files, "ground_truth.json": json_text(truth)}


def _truth_of(at: str, row: Mapping[str, Any], table: CaseTable, component: Component) -> Any:
    fields = table.fields
    if fields is None:
        cell = row.get(table.truth[0]) if table.truth else None
        if component.output == "text" or not isinstance(cell, str):
            return cell or None
        advice = "for one field of it, write --truth FIELD=COLUMN; for a text, output: text in prompt.md"
        return _parsed(cell, f"{at}: the truth, column '{table.truth[0]}', is no JSON", advice)
    places = schema_places(component.schema or {})
    truth: dict[str, Any] = {}
    for field, column in fields.items():
        value = row.get(column)
        if isinstance(value, str) and not value.strip():
            value = None
        elif isinstance(value, str) and component.schema is not None and places[field].kind not in _TEXTS:
            value = _parsed(value, f"{at}: '{field}', column '{column}', is no JSON", 'write 9.5, true or ["a"]')
        *parents, last = field.split(".")
        inner = truth
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return truth


def _parsed(cell: str, what: str, advice: str) -> Any:
    if not cell.strip():
        return None
    for text in (cell, cell.lower()):  # TRUE, as spreadsheets write it
        with suppress(FixtureError):
            return parse_json(text, Path(), FixtureError)
    raise FixtureError(f"{what}: {cell.strip()[:60]!a}; {advice}")

"""Import cases from a table, and accept cases that a model drafted."""

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from skill_evaluator.errors import ComponentError, FixtureError, NotEvaluatedError, refuse
from skill_evaluator.files import json_text, replace_text, storing, validated
from skill_evaluator.library import options as cli
from skill_evaluator.library.cases import INPUTS, Case, case_folders, cases_of_table, find_cases, read_cases
from skill_evaluator.library.components import METAS, Component, load_component, sources_at
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.prompts import DOCUMENT
from skill_evaluator.library.sources import component_names
from skill_evaluator.library.tables import TRUTH_COLUMNS, Columns, ProblemHandler, read_table
from skill_evaluator.parsing import Output
from skill_evaluator.text import nearest

_JSON_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_TYPES = dict(zip((type(None), bool, int, float, str, list, dict), _JSON_TYPES, strict=True))

NewCases = Mapping[str, Mapping[str, str]]
"""The texts of new cases' files, by case id and file name."""


@cli.options
class CaseTable(cli.ComponentsOption, cli.FixturesOption, cli.ConfigOption):
    """The options of `cases import`."""

    file: Path = cli.argument("A table: .csv, .tsv, .jsonl or .json.")
    document: tuple[str, ...] = cli.option(
        "Column of a prompt input; repeatable.", (), "--input", metavar="[NAME=]COLUMN"
    )
    truth: tuple[str, ...] = cli.option(
        "Truth column; repeatable; default: ground_truth or expected.", (), metavar="[FIELD=]COLUMN"
    )
    id: str | None = cli.option("Column of the case ids; by default they are numbered.", metavar="COLUMN")
    skill: str | None = cli.option("Component of the cases; required if there are several.", metavar="NAME")
    new: bool = cli.flag("Import only rows that are not cases yet.")
    yes: bool = cli.flag("Write the cases without confirmation.")

    def columns_for(self, component: Component) -> Columns:
        """Return the columns of the table.

        If no option names the column of an input, use its column in datasets.json, or the column with the input's name.
        """
        inputs = {name: name for name in component.prompt.inputs} | component.files.cases.columns.inputs
        default_name = next(iter(inputs)) if len(inputs) == 1 else DOCUMENT
        for name, equals, column in (part.partition("=") for part in self.document):
            inputs[name if equals else default_name] = column if equals else name
        is_single = len(self.truth) == 1 and "=" not in self.truth[0]
        pairs = [part.partition("=") for part in self.truth]
        truth = self.truth[0] if is_single else {field: column or field for field, _, column in pairs} or None
        return validated(Columns, {"id": self.id, "inputs": inputs, "truth": truth}, Path("the options"), FixtureError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCases:
    """The cases that were made from a table for `component`, and the folder for them."""

    component: Component
    folder: Path
    cases: NewCases  # texts of the files by case id and file name
    labelled: int  # number of cases with a ground truth
    schema: str | None = None  # text of the inferred schema.json
    existing: int = 0  # number of skipped rows that are cases already

    def write(self) -> None:
        """Write the cases, and the inferred schema if there is still no schema.json. Write no case if one fails."""
        write_cases(self.folder, self.cases)
        path = self.component.files.folder / "schema.json"
        if self.schema is not None and not path.exists():
            replace_text(path, self.schema)


def import_cases(table: CaseTable, on_problem: ProblemHandler = refuse) -> ImportedCases:
    """Make cases from the rows of a table. If `table.yes`, write them, and a schema.json if one is inferred.

    With `table.new`, skip the rows that are cases already. Raise FixtureError if the folder of a new case exists.
    """
    names = component_names(table.components)
    if table.skill is None and len(names) != 1:
        remedy = "name one with --skill NAME" if names else "`skill-evaluator init` creates one"
        raise ComponentError(f"there are {len(names)} components in {table.components}; {remedy}")
    limits = load_settings(table.config).limits
    component = load_component(table.components, table.skill or names[0], limits, table.fixtures)
    limit, schema = limits.size_of("document_bytes"), None
    columns = table.columns_for(component)
    read = read_table(
        table.file, columns, limit, on_problem, "; name a column with --input NAME=COLUMN, --truth or --id"
    )
    names = [*columns.named, *(TRUTH_COLUMNS if columns.truth is None else ())]
    rows = [(at, line, {name: row[name] for name in names if name in row}) for at, line, row in read.rows]
    read = replace(read, rows=rows)
    if component.contract.schema is None and not sources_at(place_of_new(component, (), "")):
        component = replace(component, output=read.output or component.output)
        truths = list(read.truths(component.output, None))
        schema = inferred_schema(truths, table.file) if truths and component.output == "json" else None
    valid = cases_of_table(read, component, on_problem)
    made = _new_cases(valid, table, component) if table.new else valid
    cases = {case_id: files_of(case, component.output) for case_id, case in made.items()}
    advice = "choose other ids with --id COLUMN" + ("" if table.new else ", or import only the new rows with --new")
    folder = place_of_new(component, cases, advice)
    imported = ImportedCases(
        component=component,
        folder=folder,
        cases=cases,
        labelled=sum(case.labelled for case in made.values()),
        schema=schema,
        existing=len(valid) - len(made),
    )
    if table.yes:
        imported.write()
    return imported


def _new_cases(cases: Mapping[str, Case], table: CaseTable, component: Component) -> dict[str, Case]:
    """Return the cases that the component does not have yet, by id. Without an id column, compare their digests."""
    try:
        existing = read_cases(component, on_problem=lambda _: None)
    except NotEvaluatedError:
        return dict(cases)
    numbered = table.id is None
    existing_ids = {case.digest if numbered else case.id for case in existing}
    return {name: case for name, case in cases.items() if (case.digest if numbered else name) not in existing_ids}


def place_of_new(component: Component, case_ids: Iterable[str], advice: str) -> Path:
    """Return the folder for new cases. Raise FixtureError for multiple choice, or if a case exists already."""
    if component.output == "choice":
        raise FixtureError(
            f"component '{component.name}' has multiple-choice questions: add lines to questions.jsonl instead; "
            "for a fixed list of labels use `output: json` with an enum in schema.json"
        )
    folders = component.files.cases.possible_paths()
    folder = next(filter(sources_at, folders), folders[0])
    if existing := [case_id for case_id in case_ids if (folder / case_id).exists()]:
        raise FixtureError(f"{folder / existing[0]} exists already; {advice}")
    return folder


def write_cases(folder: Path, cases: NewCases) -> None:
    """Write each case into a subfolder. If one cannot be written, write none and raise StorageError."""
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as aside, ExitStack() as undo:
            for case_id, files in cases.items():
                (Path(aside) / case_id).mkdir()
                for name, text in files.items():
                    (Path(aside) / case_id / name).write_bytes(text.encode("utf-8", "backslashreplace"))
            for case_id in cases:
                (Path(aside) / case_id).rename(folder / case_id)
                undo.callback(shutil.rmtree, folder / case_id)
            undo.pop_all()


def files_of(case: Case, output: Output) -> dict[str, str]:
    """Return the texts of the files to write for a case, by file name."""
    others = {name: value for name, value in case.inputs.items() if name != DOCUMENT}
    files = {}
    if DOCUMENT in case.inputs:
        document = case.inputs[DOCUMENT]
        files["document.md"] = document if isinstance(document, str) else json_text(document)
    if others:
        files[INPUTS] = json_text(others)
    if case.meta:
        files["meta.json"] = json_text(case.meta)
    if case.labelled and output == "text":
        return {**files, "expected.md": f"{case.truth}\n"}
    return {**files, "ground_truth.json": json_text(case.truth)} if case.labelled else files


def unreviewed_cases(component: Component) -> dict[Path, Case]:
    """Return the unreviewed cases by path. The path is the case's folder, or `<file>/<id>` for a row or question."""
    try:
        cases, sources = read_cases(component), find_cases(component)
    except NotEvaluatedError:
        return {}
    folders = {folder.name: folder for source in sources for folder in case_folders(source)}
    return {folders.get(case.id, sources[-1] / case.id): case for case in cases if case.unreviewed}


def accept_cases(component: Component, patterns: Sequence[str]) -> list[str]:
    """Accept the unreviewed cases whose ids match a glob. Return their ids.

    Raise FixtureError, and accept none, if a glob matches no unreviewed case, or matches a table row or a question.
    """
    waiting = unreviewed_cases(component)
    ids = [case.id for case in waiting.values()]
    for pattern in patterns:
        if not any(fnmatchcase(case_id, pattern) for case_id in ids):
            raise FixtureError(f"no unreviewed case of {component.name} matches '{pattern}' {nearest(pattern, ids)}")
    chosen = {folder: case for folder, case in waiting.items() if any(fnmatchcase(case.id, one) for one in patterns)}
    for folder, case in chosen.items():
        if not folder.is_dir():
            raise FixtureError(f"case '{case.id}' is a row of {folder.parent}; remove the key `unreviewed` there")
    accepted = []
    for folder, case in chosen.items():
        path = next(folder / name for name in METAS if (folder / name).is_file())
        meta = {name: value for name, value in case.meta.items() if name != "unreviewed"}
        try:
            text = json_text(meta)
        except TypeError:
            raise FixtureError(f"{path} has a value that JSON lacks, such as a date; remove `unreviewed`") from None
        hides_yaml = path.name == METAS[0] and (folder / METAS[1]).is_file()  # also an empty meta.json does
        is_written = bool(meta) or hides_yaml
        with storing(path):
            if is_written:
                replace_text(folder / METAS[0], text)
            if path.name != METAS[0] or not is_written:
                path.unlink()
        accepted.append(case.id)
    return accepted


def inferred_schema(truths: Sequence[Any], source: Path) -> str:
    """Return the text of a JSON Schema that all `truths` satisfy. Its description names the file `source`."""
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

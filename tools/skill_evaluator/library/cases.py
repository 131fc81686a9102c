"""Read and check the cases of a component: folders, rows of a table, or lines of `questions.jsonl`."""

import hashlib
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any

import imagesize
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from skill_evaluator.checks import Check, DeclaredCheck, read_checks
from skill_evaluator.comparing.declarations import SchemaPath, schema_places
from skill_evaluator.errors import FixtureError, NotEvaluatedError, refuse
from skill_evaluator.files import (
    SURROGATE,
    FrozenModel,
    SizeLimit,
    first_problem,
    open_file,
    read_json,
    read_lines,
    read_text,
    validated,
)
from skill_evaluator.identifiers import FILE_NAME_RULE, ModelPatterns, is_file_name
from skill_evaluator.library.components import (
    DOCUMENT_FILES,
    DOCUMENTS,
    METAS,
    TEXT_TRUTHS,
    TRUTHS,
    Component,
    read_meta,
)
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.prompts import DOCUMENT, TURNS, File, MediaType, Message, Turns
from skill_evaluator.library.reading import ConfinedFolder
from skill_evaluator.library.tables import CaseRows, ProblemHandler, TableRow, misspelt, read_table, with_others
from skill_evaluator.parsing import Parsed, parse_output
from skill_evaluator.processes import Program, run_process
from skill_evaluator.text import (
    canonical_json,
    count_leaves,
    counted,
    digest,
    letters_of,
    listed,
    nearest,
    nearest_path,
    normalise,
)

QUESTIONS = "questions.jsonl"
_NO_META = ("id", "question", "options", "answer", "not_applicable", "unreviewed")


class Question(BaseModel):
    """One line of questions.jsonl: a multiple-choice question, with its options in the order of their letters."""

    model_config = ConfigDict(frozen=True, extra="allow", str_strip_whitespace=True, defer_build=True)

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="id of the case, a slug such as capital-of-france")
    question: str = Field(min_length=1)
    options: tuple[str, ...] = Field(min_length=2, max_length=len(ascii_uppercase))
    answer: str | None = Field(default=None, description="the letter of the right option")
    topic: str | None = None
    why: str | None = Field(default=None, description="reason for the right answer, or purpose of the question")
    not_applicable: ModelPatterns = ()
    unreviewed: bool = Field(default=False, description="drafted by a model: not evaluated before a person accepts it")

    @field_validator("options")
    @classmethod
    def _refuse_equal_options(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        texts = [normalise(option).casefold() for option in options]
        for letter, text in zip(ascii_uppercase, texts, strict=False):
            if not text:
                raise ValueError(f"option {letter} is empty")
            if (first := ascii_uppercase[texts.index(text)]) != letter:
                raise ValueError(f"options {first} and {letter} are the same (case and white space do not count)")
        return options

    @model_validator(mode="after")
    def _check_answer(self) -> "Question":
        for problem in misspelt(self.model_extra or (), Question.model_fields):
            raise ValueError(problem)
        letters = letters_of(self.options)
        if self.answer is not None and self.answer not in tuple(letters):
            raise ValueError(f"answer '{self.answer}' is not among the options A to {letters[-1]}")
        return self


_MAX_ERROR_CHARS = 500  # characters of a schema error, which may quote the whole ground truth
SOURCE = "input-source.md"
_ADVICE = "add <case-id>/document.md and ground_truth.json, or use `skill-evaluator cases draft` or `cases import`"
INPUTS = "inputs.json"
_TRUTH = re.compile(r"(expected|ground|truth|answer)", re.IGNORECASE)  # names of files that look like a ground truth


class CaseMeta(FrozenModel):
    """The keys of a case's meta.json that have an effect; other keys are metadata."""

    not_applicable: ModelPatterns = ()
    checks: tuple[DeclaredCheck, ...] = Field(default=(), description="checks of the case's outputs")
    unreviewed: bool = Field(default=False, description="drafted by a model: not evaluated before a person accepts it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case: the inputs of a call, and the ground truth and the checks of its outputs."""

    id: str
    inputs: Mapping[str, Any]
    truth: Any
    labelled: bool  # whether there is a ground truth; `truth` may then be None, which is JSON null
    meta: Mapping[str, Any]  # all keys of its meta.json, or all other columns of its row
    options: tuple[str, ...] = ()  # only of a multiple-choice question
    not_applicable: tuple[str, ...] = ()  # ids and patterns of models that are not called
    turns: tuple[Message, ...] = ()  # earlier messages of a conversation
    used: tuple[str, ...] = (DOCUMENT,)  # names of the prompt's inputs
    parts: Mapping[str, str] = field(default_factory=dict)  # digest of each input, or the turns, with the truth
    checks: tuple[Check, ...] = ()
    unreviewed: bool = False

    @property
    def files(self) -> tuple[File, ...]:
        """The PDFs and images among the inputs."""
        return tuple(value for value in self.inputs.values() if isinstance(value, File))

    @property
    def shown_as(self) -> str:
        """The heading under which a case is shown: "document", "inputs" or "turns and inputs"."""
        return "turns and inputs" if self.turns else DOCUMENT if self.used == (DOCUMENT,) else "inputs"

    @property
    def document(self) -> str:
        """The document's text if it is the only used input and there are no turns.

        Otherwise all turns, each below its role, then all used inputs, each below its name.
        """
        if self.shown_as == DOCUMENT:
            return str(self.inputs[DOCUMENT])
        sections: list[tuple[str, str]] = [(turn.role, turn.text) for turn in self.turns]
        sections += [(name, text_of(self.inputs[name])) for name in self.used]
        return "\n\n".join(f"{name}:\n{text.strip()}" for name, text in sections)

    @property
    def sentences(self) -> dict[str, str]:
        """The sentences that a judge verifies (`expect` checks), by check id."""
        return {check.id: check.argument for check in self.checks if check.kind == "expect"}

    @property
    def digest(self) -> str:
        """The digest of the used inputs, the turns and the truth."""
        used_parts = {name: part for name, part in self.parts.items() if name in (*self.used, TURNS)}
        return used_parts[DOCUMENT] if list(used_parts) == [DOCUMENT] else digest(canonical_json(used_parts))

    def as_used(self, inputs: tuple[str, ...]) -> "Case":
        """Return a copy of the case that uses only these inputs. If an input is missing, return the case itself."""
        return replace(self, used=inputs) if set(inputs) <= self.parts.keys() else self

    def was(self, digest: str) -> bool:
        """Return whether `digest` is the case's digest, or would be if the document were its only used input."""
        return digest == self.digest or (not self.turns and digest == self.parts.get(DOCUMENT))


def parse_case_output(component: Component, case: Case, text: str) -> Parsed:
    """Parse an output of a case. The schema or the ground truth gives the expected type of JSON inside prose."""
    return parse_output(text, component.output, case.options, component.contract.expected.or_type_of(case.truth))


def text_of(value: Any) -> str:
    """Return an input as text: a string unchanged, the description of a `File`, or the JSON of any other value."""
    return str(value) if isinstance(value, str | File) else json.dumps(value, ensure_ascii=False)


def load_cases(component: Component, patterns: Sequence[str] = ()) -> tuple[Case, ...]:
    """Read a component's reviewed cases, sorted by id. `patterns` are globs of ids; without any, read all.

    If all selected cases are unreviewed, raise NotEvaluatedError, or FixtureError if the component has records.
    """
    cases = read_cases(component, patterns)
    reviewed = tuple(case for case in cases if not case.unreviewed)
    if cases and not reviewed:
        advice = f"see `skill-evaluator review cases {component.name}`"
        raise _without_cases(component, f"{counted(len(cases), 'case')} drafted by a model and not reviewed; {advice}")
    return reviewed


def read_cases(
    component: Component, patterns: Sequence[str] = (), on_problem: ProblemHandler = refuse
) -> tuple[Case, ...]:
    """Read a component's cases, reviewed or not, sorted by id. `patterns` are globs of ids; without any, read all.

    `on_problem` receives the FixtureError of each invalid case. Raise FixtureError if a pattern matches no case. If no
    selected case has inputs, raise NotEvaluatedError, or FixtureError if the component has records.
    """
    sources, case_files = find_cases(component), component.files.cases
    where = listed([str(source) for source in sources])
    if component.output == "choice":
        questions = _read_questions(sources[0], component, on_problem)
        ids = _select([case.id for case in questions], patterns, where)
        return tuple(case for case in questions if case.id in ids)
    folders = {folder.name: folder for source in sources for folder in case_folders(source)}
    table = case_files.rows
    for source in sources:
        if source.suffix and source != table.path:
            table = read_table(source, case_files.columns, component.limits.size_of("document_bytes"), on_problem)
    ids = _select([*folders, *(case_id for case_id, _, _ in table.rows)], patterns, where)
    waiting = ids.intersection(cases_without_document(sources))
    if ids == waiting:
        pending = f"case '{min(waiting)}' has {SOURCE} and no document.md" if waiting else ""
        raise _without_cases(component, pending or f"{where} has no cases; {_ADVICE}")
    root = row_root = case_files.root(sources[0])
    if component.files.origin:
        row_root = ConfinedFolder(component.files.origin.root, FixtureError, follow_links=component.limits.follow_links)
    selected = replace(table, rows=[row for row in table.rows if row[0] in ids])
    cases = cases_of_table(selected, component, on_problem, folders, row_root)
    for case_id in sorted(folders.keys() & ids - waiting):
        try:
            cases[case_id] = _read_case(folders[case_id], component, root)
        except FixtureError as problem:
            on_problem(problem)
    return _with_pdfs([cases[case_id] for case_id in sorted(cases)], component, on_problem)


def cases_of_table(
    table: CaseRows,
    component: Component,
    on_problem: ProblemHandler = refuse,
    folders: Mapping[str, Path] = MappingProxyType({}),
    root: ConfinedFolder | None = None,
) -> dict[str, Case]:
    """Return the case of each valid row of a table, by id.

    `on_problem` receives the FixtureError of each invalid row. If `root` is None, ignore the checks of rows, and do not
    read the files that inputs name. Raise FixtureError if the schema lacks a truth field of `table.columns`.
    """
    schema_paths = schema_places(component.contract.schema or {})
    for path in table.columns.fields if component.contract.schema is not None else ():
        if path not in schema_paths:
            where = component.contract.where
            raise FixtureError(f"truth '{path}': no such field in {where} {nearest_path(path, schema_paths)}")
    for problem in table.misspelt_keys(component.prompt.inputs, CaseMeta.model_fields):
        on_problem(problem)
    sources = {case_id: str(folder) for case_id, folder in folders.items()}
    cases: dict[str, Case] = {}
    for item in table.rows:
        case_id, line, _ = item
        try:
            case = _case_of_row(component, table, item, schema_paths, root)
            if case_id in sources:
                raise FixtureError(f"{table.path}:{line}: the id '{case_id}' is also the id of {sources[case_id]}")
            sources[case_id] = f"line {line}"
            cases[case_id] = case
        except FixtureError as problem:
            on_problem(problem)
    return cases


def _case_of_row(
    component: Component,
    table: CaseRows,
    item: tuple[str, int, TableRow],
    schema_paths: Mapping[str, SchemaPath],
    root: ConfinedFolder | None,
) -> Case:
    case_id, line, row = item
    where, folder = f"{table.path}:{line}", table.path.parent
    if not is_file_name(case_id):
        raise FixtureError(f"{where}: {case_id[:100]!a} cannot be a case's id ({FILE_NAME_RULE})")
    row = table.with_values(where, row, CaseMeta.model_fields)
    inputs = table.inputs(where, row, component.prompt.inputs)
    document, limit = inputs.get(DOCUMENT), component.limits.size_of("document_bytes")
    size = len(document.encode("utf-8", "surrogatepass")) if isinstance(document, str) else 0
    if size > limit.max_bytes:
        raise FixtureError(f"{where}: the document has {size:,} bytes; {limit}")
    truth = table.truth(where, row, component.output, schema_paths)
    case = Case(
        id=case_id,
        inputs=_with_files(inputs, folder, root, component.limits) if root else inputs,
        turns=() if row.get(TURNS) is None else _read_turns(row[TURNS], Path(where)),
        truth=None if truth is None else _checked(truth, f"{where}: the truth", component),
        labelled=truth is not None,
        **_meta_arguments(component, table.meta(row), Path(where), folder, root),
    )
    return _with_used_inputs(case, component, where)


def case_folders(folder: Path) -> list[Path]:
    """Return the visible subfolders of a folder, sorted by name. Return [] if `folder` is not a folder."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def cases_without_document(sources: Iterable[Path]) -> list[str]:
    """Return the ids of the case folders that have an `input-source.md`, but neither a document nor inputs.json."""
    folders = (folder for source in sources for folder in case_folders(source) if (folder / SOURCE).exists())
    return [folder.name for folder in folders if not any((folder / name).exists() for name in (*DOCUMENTS, INPUTS))]


def find_cases(component: Component) -> list[Path]:
    """Return the existing paths of cases: the case folder and the table, or for multiple choice the questions file.

    Raise NotEvaluatedError if the component has no cases. Raise FixtureError instead if the component has records or
    declares its `fixtures` folder. Also raise FixtureError if there are two tables.
    """
    is_choice, case_files = component.output == "choice", component.files.cases
    fixtures_dir, rows = case_files.fixtures_dir, case_files.rows
    if fixtures_dir is not None and not fixtures_dir.is_dir():
        raise FixtureError(
            f"no fixtures for component '{component.name}': {fixtures_dir} is not a folder; see --fixtures DIR"
        )
    candidates = case_files.possible_paths(QUESTIONS if is_choice else "cases")
    sources = [path for path in candidates if path.is_file()][:1] if is_choice else case_files.sources()
    sources = [*sources, *([rows.path] if rows.rows else [])]
    if len(tables := [str(source) for source in sources if source.suffix]) > 1:
        raise FixtureError(f"{' and '.join(tables)} are both the cases of component '{component.name}'; keep one")
    if sources:
        root = case_files.root(sources[0])
        return [source if source == rows.path else root.inside(source) for source in sources]
    missing = f"{' and '.join(map(str, candidates))} missing"
    advice = f"{_ADVICE}, or name another folder with --fixtures DIR"
    if rows.name and fixtures_dir is None:
        missing = f"write {rows.name} into {rows.path}, or cases into {candidates[0]}"
        advice = "`skill-evaluator cases draft` drafts cases"
    if case_files.fixtures != component.name:  # the fixtures folder is declared, so its cases must exist
        raise FixtureError(f"no fixtures for component '{component.name}': {missing}; {advice}")
    raise _without_cases(component, "; ".join([f"it has no cases: {missing}", advice, *component.left_out]))


def _without_cases(component: Component, reason: str) -> FixtureError | NotEvaluatedError:
    if any(component.records_dir.glob("[0-9]*.json")):  # names of imported records begin with a tool's name
        return FixtureError(f"no fixtures for component '{component.name}', which has records: {reason}")
    return NotEvaluatedError(f"component '{component.name}' is not evaluated yet: {reason}")


def _read_questions(path: Path, component: Component, on_problem: ProblemHandler) -> list[Case]:
    if others := [name for name in component.prompt.inputs if name != DOCUMENT]:
        raise FixtureError(f"{path}: a question has only a document, and the prompt also requires {listed(others)}")
    cases: dict[str, Case] = {}
    lines: dict[str, int] = {}
    problems: list[str] = []
    try:
        for number, value in read_lines(path, FixtureError, limit=component.limits.size_of("document_bytes")):
            try:
                case = _case_of_question(Question.model_validate(value), component)
            except ValidationError as problem:
                problems.append(f"{path}:{number}: {first_problem(problem)}")
            except UnicodeEncodeError:
                problems.append(f"{path}:{number}: {SURROGATE}")
            else:
                if (first_line := lines.setdefault(case.id, number)) != number:
                    problems.append(f"{path}:{number}: id '{case.id}' is also the id of line {first_line}")
                cases.setdefault(case.id, case)
    except FixtureError as problem:
        problems.append(str(problem))
    if not cases and not problems:
        problems.append(f'{path} has no questions; add lines of {{"id", "question", "options", "answer"}}')
    for text in problems:
        on_problem(FixtureError(text))
    return [cases[case_id] for case_id in sorted(cases)]


def _case_of_question(question: Question, component: Component) -> Case:
    lines = [f"{letter}. {option}" for letter, option in zip(ascii_uppercase, question.options, strict=False)]
    document = "\n".join([f"{question.question}\n", *lines])
    document.encode()  # raises UnicodeEncodeError for a lone surrogate
    meta = question.model_dump(exclude=set(_NO_META))
    return Case(
        id=question.id,
        inputs={DOCUMENT: document},
        truth=question.answer,
        labelled=question.answer is not None,
        meta={name: value for name, value in meta.items() if value is not None},
        parts={DOCUMENT: digest(canonical_json([question.question, list(question.options), question.answer]))},
        options=question.options,
        not_applicable=question.not_applicable,
        unreviewed=question.unreviewed,
        checks=component.scoring.checks,
    )


def _select(ids: Sequence[str], patterns: Sequence[str], source: str) -> set[str]:
    for pattern in patterns:
        if not any(fnmatchcase(case_id, pattern) for case_id in ids):
            raise FixtureError(f"no case matches --case '{pattern}' in {source} {nearest(pattern, ids)}")
    return {case_id for case_id in ids if not patterns or any(fnmatchcase(case_id, pattern) for pattern in patterns)}


def _read_case(folder: Path, component: Component, root: ConfinedFolder) -> Case:
    if _has_surrogate(folder.name):
        raise FixtureError(f"the name of {folder} is not UTF-8; rename the folder")
    limit = component.limits.size_of("document_bytes")
    meta_path = _first_file(folder, METAS, root)
    meta = {} if meta_path is None else read_meta(meta_path, component.limits)
    truth_path = _first_file(folder, TRUTHS, root)
    if truth_path is None and (others := sorted(path.name for path in folder.iterdir() if _TRUTH.match(path.name))):
        raise FixtureError(f"{folder / others[0]} looks like a ground truth; rename it to {' or '.join(TRUTHS)}")
    truth = None
    if truth_path is not None and truth_path.name in TEXT_TRUTHS and component.output == "text":
        truth = read_text(truth_path, FixtureError, limit).strip()
    elif truth_path is not None:
        truth = _checked(read_json(truth_path, FixtureError, limit), str(truth_path), component)
    turns_path = _first_file(folder, (f"{TURNS}.json",), root)
    case = Case(
        id=folder.name,
        inputs=_read_inputs(folder, component, root, limit),
        turns=() if turns_path is None else _read_turns(read_json(turns_path, FixtureError, limit), turns_path),
        truth=truth,
        labelled=truth_path is not None,
        **_meta_arguments(component, meta, meta_path or folder, folder.parent.parent, root),
    )
    for problem in misspelt(meta, CaseMeta.model_fields):
        raise FixtureError(f"{meta_path}: {problem}")
    return _with_used_inputs(case, component, folder)


def _meta_arguments(
    component: Component, meta: Any, where: Path, folder: Path, root: ConfinedFolder | None
) -> dict[str, Any]:
    """Return the arguments of `Case` that `meta` declares, by name. Ignore the checks in `meta` if `root` is None."""
    declared = validated(CaseMeta, meta, where, FixtureError)
    checks = component.scoring.checks
    if root:
        checks = read_checks(declared.checks, folder, where, FixtureError, root.inside, earlier=checks)
    return {"meta": meta, "checks": checks} | declared.model_dump(include={"not_applicable", "unreviewed"})


def _read_turns(content: Any, where: Path) -> tuple[Message, ...]:
    return tuple(turn.message for turn in validated(Turns, {"turns": content}, where, FixtureError).turns)


class UnfilledError(FixtureError):
    """A case lacks an input that the prompt requires."""


def _with_used_inputs(case: Case, component: Component, source: Path | str) -> Case:
    """Return the case with `used` and `parts` set. Raise FixtureError if an input is missing or invalid."""
    used, inputs = component.prompt.inputs, case.inputs
    if missing := [name for name in used if name not in inputs]:
        location = f"'{missing[0]}' in {source if isinstance(source, str) else source / INPUTS}"
        if isinstance(source, Path) and missing[0] == DOCUMENT:
            location = str(source / "document.md")
        hint = nearest(missing[0], inputs) if inputs else ""
        columns = "; `columns` in evals/datasets.json maps columns of other names" if isinstance(source, str) else ""
        message = f"case '{case.id}' has no {listed(missing)}: {location} is missing {hint}".rstrip()
        raise UnfilledError(f"{message}{columns}")
    texts = {name: text_of(value) for name, value in inputs.items()}
    if not texts.get(DOCUMENT, "x").strip():
        raise FixtureError(f"{source}: the document of case '{case.id}' is empty")
    texts[TURNS] = canonical_json([turn.text for turn in case.turns])
    if broken := [name for name, text in texts.items() if _has_surrogate(text)]:
        raise FixtureError(f"case '{case.id}' in {source}: {broken[0]}: {SURROGATE}")
    other_names = component.prompt.names_in("system") | component.prompt.names_in("assistant")
    if files := sorted(name for name in other_names if isinstance(inputs.get(name), File)):
        raise FixtureError(f"case '{case.id}': input '{files[0]}' is a file, which only user messages can contain")
    return _with_digests(replace(case, used=used))


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= mark <= "\udfff" for mark in text)


def _with_digests(case: Case) -> Case:
    values = {name: value.digest if isinstance(value, File) else text_of(value) for name, value in case.inputs.items()}
    if case.turns:
        values[TURNS] = canonical_json([[turn.role, turn.text] for turn in case.turns])
    truth_text = canonical_json(case.truth) if case.labelled else ""
    parts = {name: digest(f"{value}\x00{truth_text}") for name, value in values.items()}
    return replace(case, parts=parts)


def _with_pdfs(cases: Sequence[Case], component: Component, on_problem: ProblemHandler) -> tuple[Case, ...]:
    """Return the cases with the pages of their PDFs counted, or with texts instead of PDFs if `text_of` is pdf.

    Report cases with an unreadable PDF to `on_problem`, and omit them.
    """
    pdfs = [file for case in cases for file in case.files if file.media_type == PDF]
    if not pdfs:
        return tuple(cases)
    try:
        contents = _read_pdfs(pdfs, component.limits, texts=component.prompt.text_of == "pdf")
    except FixtureError as problem:
        if len(cases) > 1:  # read one by one, to find the case
            return tuple(case for each in cases for case in _with_pdfs([each], component, on_problem))
        on_problem(problem)
        return ()

    def content(value: Any) -> Any:
        return contents.get(value.path, value) if isinstance(value, File) else value

    inputs = [{name: content(value) for name, value in case.inputs.items()} for case in cases]
    return tuple(_with_digests(replace(case, inputs=values)) for case, values in zip(cases, inputs, strict=True))


PDF: MediaType = "application/pdf"
_IMAGES: Mapping[bytes, MediaType] = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_HEAD_BYTES = 1_000_000  # read to find the size of an image
_BLOCK_BYTES = 1 << 18
_MAX_PDF_S, _MAX_PDF_MEMORY = 20.0, 1_000_000_000  # memory in bytes
_STARTUP_S = 30.0
_read: dict[tuple[str, bool], Mapping[str, Any]] = {}  # results by PDF digest and whether the text was extracted


def _media_type(head: bytes) -> MediaType | None:
    """Return the media type of a file by its first bytes, or None if it is neither a PDF nor a supported image.

    >>> _media_type(b"%PDF-1.7"), _media_type(b"GIF89a")
    ('application/pdf', None)
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    image = next((media_type for begin, media_type in _IMAGES.items() if head.startswith(begin)), None)
    return image or (PDF if b"%PDF-" in head[:1024] else None)


def read_file(path: Path, limits: SafetyLimits) -> File:
    """Return the `File` of a PDF or an image; `pages` is None. Raise FixtureError for any other file."""
    limit, content = limits.size_of("file_bytes"), hashlib.sha256()
    with open_file(path, FixtureError) as handle:
        size = os.fstat(handle.fileno()).st_size
        if size > limit.max_bytes:
            raise FixtureError(f"{path} has {size:,} bytes; {limit}")
        head = handle.read(_HEAD_BYTES)
        content.update(head)
        while part := handle.read(min(_BLOCK_BYTES, max(0, size - handle.tell()))):
            content.update(part)
    media_type = _media_type(head)
    if media_type is None:
        raise FixtureError(f"{path} begins neither as a PDF nor as a PNG, JPEG or WebP image; save it as one of these")
    file = File(path=path, media_type=media_type, digest=f"sha256:{content.hexdigest()}", size=size)
    return file if media_type == PDF else _with_extent(file, head)


def _with_extent(image: File, head: bytes) -> File:
    try:
        width, height = imagesize.get(io.BytesIO(head))
    except Exception:  # imagesize raises many types of errors on damaged files
        width = height = 0
    if min(width, height) < 1:
        raise FixtureError(f"{image.path} begins as {image.media_type} but cannot be read as an image; save it again")
    return replace(image, width=int(width), height=int(height))


def _read_pdfs(files: Iterable[File], limits: SafetyLimits, *, texts: bool) -> dict[Path, File | str]:
    """Return each PDF with its `pages`, or its text if `texts`, by path. Raise FixtureError for an unreadable PDF."""
    by_path = {file.path: file for file in files}
    new = [file for file in by_path.values() if (file.digest, texts) not in _read]
    if new:
        request = {"paths": [str(file.path.absolute()) for file in new], "max_pages": limits.file_pages}
        program = Program(
            argv=[sys.executable, "-I", str(Path(__file__).with_name("pdf.py"))],
            folder=Path.cwd(),
            seconds=_STARTUP_S + _MAX_PDF_S * len(new),
            output_bytes=1_000_000 + 2 * limits.document_bytes * len(new),
            memory_bytes=_MAX_PDF_MEMORY,
        )
        process = run_process(program, json.dumps({**request, "seconds": _MAX_PDF_S, "texts": texts}).encode())
        lines = [json.loads(line) for line in process.stdout.splitlines(keepends=True) if line.endswith(b"\n")]
        for file, result in zip(new, [*lines, {"problem": process.problem}], strict=False):
            _read[file.digest, texts] = result
    contents: dict[Path, File | str] = {}
    for path, file in by_path.items():
        result = _read.get((file.digest, texts), {"problem": "it was not reached"})
        if "problem" in result:
            raise FixtureError(f"{path} cannot be read as a PDF: {result['problem']}")
        text = result["text"] or ""
        if texts and not text.strip():
            raise FixtureError(
                f"{path} has no text (it may be a scan); remove text_of from prompt.md to send the file itself"
            )
        if len(text.encode("utf-8", "surrogatepass")) > limits.document_bytes:
            raise FixtureError(f"the text of {path} is too long; {limits.size_of('document_bytes')}")
        contents[path] = text if texts else replace(file, pages=result["pages"])
    return contents


def refuse_unfilled(component: Component, cases: Iterable[Case], current: Component) -> None:
    """Raise FixtureError if `component` cannot use the `cases` of `current`, another version of the component."""
    if component.prompt.text_of != current.prompt.text_of:
        versions = f"versions {component.version} and {current.version}"
        raise FixtureError(f"{versions} have different inputs: only one has the key text_of in prompt.md")
    for case in cases:
        if missing := [name for name in component.prompt.inputs if name not in case.inputs]:
            raise FixtureError(f"version {component.version} requires '{missing[0]}', which case '{case.id}' lacks")


def _read_inputs(folder: Path, component: Component, root: ConfinedFolder, limit: SizeLimit) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    if (path := _first_file(folder, DOCUMENTS, root)) is not None:
        is_file = path.name in DOCUMENT_FILES
        inputs[DOCUMENT] = read_file(path, component.limits) if is_file else read_text(path, FixtureError, limit)
    if (path := _first_file(folder, (INPUTS,), root)) is not None:
        inputs = with_others(str(path), inputs, read_json(path, FixtureError, limit))
    return _with_files(inputs, folder, root, component.limits)


def _with_files(inputs: Mapping[str, Any], folder: Path, root: ConfinedFolder, limits: SafetyLimits) -> dict[str, Any]:
    """Replace each value such as {"file": "scan.png"} by a `File`. Raise FixtureError for a file outside `folder`."""
    files = dict(inputs)
    for input_name, value in inputs.items():
        if isinstance(value, dict) and value.keys() == {"file"}:
            name = value["file"]
            if not isinstance(name, str) or not name or Path(name).is_absolute() or ".." in Path(name).parts:
                raise FixtureError(f"{folder}: an input's file must be in this folder, but {str(name)[:100]!a} is not")
            if not (path := root.inside(folder / name)).exists():
                raise FixtureError(f"{folder}: inputs name the file {name!a}, which does not exist")
            files[input_name] = read_file(path, limits)
    return files


def _first_file(folder: Path, names: Sequence[str], root: ConfinedFolder) -> Path | None:
    path = next((folder / name for name in names if (folder / name).exists()), None)
    return None if path is None else root.inside(path)


def _checked(truth: Any, source: str, component: Component) -> Any:
    leaves, max_leaves = count_leaves(truth), component.limits.answer_leaves
    if leaves > max_leaves:
        advice = "shorten it, or raise limits.answer_leaves in settings.yaml"
        raise FixtureError(f"{source} holds {leaves:,} values, more than the limit of {max_leaves:,}; {advice}")
    if component.output == "text":
        if not isinstance(truth, str):
            raise FixtureError(
                f"{source} must be a JSON string, because the output of component '{component.name}' is text"
            )
        return truth.strip()
    problems = component.contract.errors(truth)
    if problems:
        raise FixtureError(f"{source} fails {component.contract.where} at {problems[0][:_MAX_ERROR_CHARS]}")
    return truth

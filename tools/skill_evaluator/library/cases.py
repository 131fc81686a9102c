"""The cases of a component: documents with their ground truth.

`document.md` + `ground_truth.json` (+ `meta.json`); also the older names `input.md`, `expected.json` / `expected.md`
and `metadata.yaml`. Where the answer is a choice they are the lines of `questions.jsonl`. A case without ground truth
is kept: it is scored for reproducibility alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from skill_evaluator.errors import FixtureError
from skill_evaluator.files import read_json, read_text, read_yaml
from skill_evaluator.library.components import Component
from skill_evaluator.library.questions import QUESTIONS, Question, read_questions
from skill_evaluator.text import canonical_json, digest, nearest

_DOCUMENTS = ("document.md", "input.md")
_TRUTHS = ("ground_truth.json", "expected.json", "expected.md")
_METAS = ("meta.json", "metadata.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One document. `truth` is meaningful only if `labelled` (a truth may be JSON null); `options` are a choice's."""

    id: str
    document: str
    truth: Any
    labelled: bool
    meta: Mapping[str, Any]
    digest: str
    options: tuple[str, ...] = ()


def load_cases(component: Component, fixtures_dir: Path | None, patterns: Sequence[str] = ()) -> tuple[Case, ...]:
    """All cases of a component, by id, or those a pattern matches; checks every truth against the schema.

    Without `fixtures_dir` the cases are in `fixtures/<name>/cases`, or in the component's own `evals/cases`; questions
    in a file beside. Raises FixtureError.
    """
    place = find_cases(component, fixtures_dir)
    if component.output == "choice":
        cases, problems = read_question_cases(place)
        if problems:
            raise FixtureError(problems[0])
        names = _matching([case.id for case in cases], patterns, place)
        return tuple(case for case in cases if case.id in names)
    folders = _case_folders(place)
    names = _matching([path.name for path in folders], patterns, place)
    return tuple(_load_case(path, component) for path in folders if path.name in names)


def read_question_cases(path: Path) -> tuple[list[Case], list[str]]:
    """The questions of a file that are in order, by id, and what is wrong with the others."""
    questions, problems = read_questions(path)
    return [_asked(question) for question in sorted(questions, key=lambda question: question.id)], problems


def _asked(question: Question) -> Case:
    return Case(
        id=question.id,
        document=question.document,
        truth=question.answer,
        labelled=question.answer is not None,
        meta=question.meta,
        digest=question.digest,
        options=question.options,
    )


def _case_folders(folder: Path) -> list[Path]:
    folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not folders:
        raise FixtureError(f"{folder} holds no case; add <case-id>/document.md and ground_truth.json")
    return folders


def _matching(names: Sequence[str], patterns: Sequence[str], place: Path) -> set[str]:
    """The names that a pattern matches, or all; raises FixtureError for a pattern that matches none."""
    if not patterns:
        return set(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise FixtureError(f"no case matches --case '{pattern}' in {place} {nearest(pattern, names)}")
    return {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}


def find_cases(component: Component, fixtures_dir: Path | None) -> Path:
    """The folder of the case folders, or the file of the questions; raises FixtureError when there is none."""
    name = QUESTIONS if component.output == "choice" else "cases"
    candidates = [(fixtures_dir or Path("fixtures")) / component.fixtures / name]
    if fixtures_dir is None:
        candidates.append(component.folder / "evals" / name)
    for candidate in candidates:
        if candidate.is_file() if component.output == "choice" else candidate.is_dir():
            return candidate
    raise FixtureError(
        f"no fixtures for '{component.name}': {' and '.join(map(str, candidates))} missing; see --fixtures DIR"
    )


def _load_case(folder: Path, component: Component) -> Case:
    document_path = _first(folder, _DOCUMENTS)
    if document_path is None:
        raise FixtureError(f"case '{folder.name}' has no document: {folder / 'document.md'} is missing")
    document = read_text(document_path, FixtureError)
    if not document.strip():
        raise FixtureError(f"{document_path} is empty")
    truth_path = _first(folder, _TRUTHS)
    try:
        truth = None if truth_path is None else _read_truth(truth_path, component)
        content = document + "\x00" + (canonical_json(truth) if truth_path else "")
    except RecursionError:
        raise FixtureError(f"{truth_path} is nested too deeply to be compared with an answer") from None
    return Case(
        id=folder.name,
        document=document,
        truth=truth,
        labelled=truth_path is not None,
        meta=_read_meta(_first(folder, _METAS)),
        digest=digest(content),
    )


def _first(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _read_truth(path: Path, component: Component) -> Any:
    if path.suffix == ".md" and component.output == "text":
        return read_text(path, FixtureError).strip()
    truth = read_json(path, FixtureError)
    if component.output == "text":
        if not isinstance(truth, str):
            raise FixtureError(f"{path} must hold a JSON string: '{component.name}' answers with text")
        return truth.strip()
    problems = component.schema_errors(truth)
    if problems:
        raise FixtureError(f"{path} fails {component.folder / 'schema.json'} at {problems[0]}")
    return truth


def _read_meta(path: Path | None) -> Mapping[str, Any]:
    if path is None:
        return {}
    meta = read_json(path, FixtureError) if path.suffix == ".json" else read_yaml(path, FixtureError)
    if not isinstance(meta, dict):
        raise FixtureError(f"{path} must hold a mapping")
    return meta

"""The cases of a component: documents with their ground truth, read and checked.

A case is a folder: `document.md`, `ground_truth.json` and perhaps `meta.json` (or, under their older names, `input.md`,
`expected.json` / `expected.md` and `metadata.yaml`). Of a component with `output: choice` it is a line of
`questions.jsonl`. A case without ground truth is kept: its answers are scored for reproducibility alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from skill_evaluator.errors import FixtureError
from skill_evaluator.files import read_json, read_text, read_yaml
from skill_evaluator.library.components import Component
from skill_evaluator.library.questions import QUESTIONS, read_questions
from skill_evaluator.text import canonical_json, digest, nearest

_DOCUMENTS = ("document.md", "input.md")
_TRUTHS = ("ground_truth.json", "expected.json", "expected.md")
_METAS = ("meta.json", "metadata.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One document. `labelled` says whether it has a `truth`, which may be JSON null; a question has `options`."""

    id: str
    document: str
    truth: Any
    labelled: bool
    meta: Mapping[str, Any]
    digest: str
    options: tuple[str, ...] = ()


def load_cases(component: Component, fixtures_dir: Path | None, patterns: Sequence[str] = ()) -> tuple[Case, ...]:
    """Read the cases of a component that match a pattern (all without patterns), in the order of their ids.

    Every ground truth must validate against the component's schema. Raises FixtureError.
    """
    place = find_cases(component, fixtures_dir)
    if component.output == "choice":
        cases, problems = read_question_cases(place)
        if problems:
            raise FixtureError(problems[0])
        ids = _select([case.id for case in cases], patterns, place)
        return tuple(case for case in cases if case.id in ids)
    folders = sorted(path for path in place.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not folders:
        raise FixtureError(f"{place} holds no case; add <case-id>/document.md and ground_truth.json")
    ids = _select([folder.name for folder in folders], patterns, place)
    return tuple(_read_case(folder, component) for folder in folders if folder.name in ids)


def find_cases(component: Component, fixtures_dir: Path | None) -> Path:
    """Find the folder of a component's case folders, or the file of its questions; raise FixtureError.

    Without `fixtures_dir` they are in `fixtures/<name>/`, or in the component's own `evals/`.
    """
    is_choice = component.output == "choice"
    name = QUESTIONS if is_choice else "cases"
    candidates = [(fixtures_dir or Path("fixtures")) / component.fixtures / name]
    if fixtures_dir is None:
        candidates.append(component.folder / "evals" / name)
    for candidate in candidates:
        if candidate.is_file() if is_choice else candidate.is_dir():
            return candidate
    raise FixtureError(
        f"no fixtures for '{component.name}': {' and '.join(map(str, candidates))} missing; see --fixtures DIR"
    )


def read_question_cases(path: Path) -> tuple[list[Case], list[str]]:
    """Read the questions of a file as cases, in the order of their ids, and say what is wrong with the other lines."""
    questions, problems = read_questions(path)
    cases = [
        Case(
            id=question.id,
            document=question.document,
            truth=question.answer,
            labelled=question.answer is not None,
            meta=question.meta,
            digest=question.digest,
            options=question.options,
        )
        for question in sorted(questions, key=lambda question: question.id)
    ]
    return cases, problems


def _select(ids: Sequence[str], patterns: Sequence[str], place: Path) -> set[str]:
    """Return the ids that a pattern matches, or all without patterns; raise FixtureError if a pattern matches none."""
    for pattern in patterns:
        if not any(fnmatchcase(case_id, pattern) for case_id in ids):
            raise FixtureError(f"no case matches --case '{pattern}' in {place} {nearest(pattern, ids)}")
    return {case_id for case_id in ids if not patterns or any(fnmatchcase(case_id, pattern) for pattern in patterns)}


def _read_case(folder: Path, component: Component) -> Case:
    document_path = _first_file(folder, _DOCUMENTS)
    if document_path is None:
        raise FixtureError(f"case '{folder.name}' has no document: {folder / 'document.md'} is missing")
    document = read_text(document_path, FixtureError)
    if not document.strip():
        raise FixtureError(f"{document_path} is empty")
    truth_path = _first_file(folder, _TRUTHS)
    try:
        truth = None if truth_path is None else _read_truth(truth_path, component)
        content = document + "\x00" + (canonical_json(truth) if truth_path else "")
    except RecursionError:
        raise FixtureError(f"{truth_path} is nested too deeply to be compared with an answer") from None
    meta_path = _first_file(folder, _METAS)
    meta: Any = {}
    if meta_path is not None:
        read = read_json if meta_path.suffix == ".json" else read_yaml
        meta = read(meta_path, FixtureError)
    if not isinstance(meta, dict):
        raise FixtureError(f"{meta_path} must hold a mapping")
    return Case(
        id=folder.name,
        document=document,
        truth=truth,
        labelled=truth_path is not None,
        meta=meta,
        digest=digest(content),
    )


def _first_file(folder: Path, names: Sequence[str]) -> Path | None:
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

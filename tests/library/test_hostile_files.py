"""Whatever bytes a file of the library holds: it is read, or refused in one line, and soon."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_models, load_settings, load_waivers
from skill_evaluator.library.scenarios import load_scenario
from skill_evaluator.library.versions import read_version
from skill_evaluator.runner.schedule import build_request

from tests.support.components import NAME, write_component
from tests.support.hostile_files import spoilt
from tests.support.json_values import thorough

_FRONT = f"---\nname: {NAME}\nversion: 1.0.0\noutput: choice\nteam: {{a: [1, 2], b: &x 3, c: *x}}\n---\nRead.\n"
_SCHEMA = '{"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"enum": [1, "x"]}}}'
_DATASETS = '{"datasets": [{"fixtures": "shared", "metrics": ["exact_match"], "fields": {"shop": {"casefold": true}}}]}'
_MODELS = "models:\n- {id: a, provider: openai, params: {effort: low, seed: 0x1}, price: {input: 1, output: 2.5}}\n"
_SETTINGS = "replicates: 3\ntimeout_s: 1_000.5\npolicy: {alpha: 0.05, metrics: {exact_match: {tier: advisory}}}\n"
_SCENARIO = "---\nname: s\nintent: none\n---\nBefore. {{ prompt }}\n"
_WAIVER = "component: a\nmetric: exact_match\nreason: none\nexpires: 2027-01-31\ndown_to: 0.8\n"
_QUESTION = '{"id": "a-b", "question": "Which?", "options": ["x", "y"], "answer": "A", "topic": {"a": [1]}}\n'
_META = "reason: plain\nday: 2024-01-31\nmore: [1, {a: b}]\n"


def _component(root: Path) -> Any:
    return load_component(root / "components", NAME)


def _cases(root: Path) -> None:
    component = _component(root)
    for case in load_cases(component, root / "fixtures"):
        request = build_request(component, case, replicate=0, seed=0, max_output_tokens=10)
        json.dumps([request.system, request.user, request.schema], ensure_ascii=False).encode()  # as an API takes it


# Each file of a library: where it lies, what is good in it, and what reads it.
FILES: Mapping[str, tuple[str, Callable[[Path], object]]] = {
    f"components/{NAME}/prompt.md": (_FRONT.replace("output: choice\n", ""), _component),
    f"components/{NAME}/schema.json": (_SCHEMA, _component),
    f"components/{NAME}/evals/datasets.json": (_DATASETS, _component),
    f"fixtures/{NAME}/cases/a/document.md": ("A 9", _cases),
    f"fixtures/{NAME}/cases/a/ground_truth.json": ('{"shop": "A", "total": 9}', _cases),
    f"fixtures/{NAME}/cases/a/meta.json": ('{"reason": "plain"}', _cases),
    f"fixtures/{NAME}/cases/a/metadata.yaml": (_META, _cases),
    "models.yaml": (_MODELS, load_models),
    "settings.yaml": (_SETTINGS, load_settings),
    "scenarios/s.md": (_SCENARIO, lambda root: load_scenario(root, "s")),
    "waivers/a.yaml": (_WAIVER, load_waivers),
}


def _library(root: Path) -> Path:
    write_component(root)
    case = root / "fixtures" / NAME / "cases" / "a"
    case.mkdir(parents=True, exist_ok=True)
    (case / "document.md").write_text("A 9")
    (case / "ground_truth.json").write_text('{"shop": "A", "total": 9}')
    return root


def _put(root: Path, path: str, content: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)


def _read_or_refused(read: Callable[[Path], object], root: Path) -> None:
    started = time.monotonic()
    refused = ""
    try:
        read(root)
    except SkillEvaluatorError as problem:
        refused = str(problem)
    assert "\n" not in refused
    assert time.monotonic() - started < 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("libraries")


@pytest.mark.parametrize("path", FILES)
@thorough
@given(data=st.data())
def test_a_file_is_read_or_refused_in_one_line(path: str, data: st.DataObject, folder: Path) -> None:
    good, read = FILES[path]
    root = _library(folder / path.replace("/", "-"))  # what the last example spoilt is written over
    _put(root, path, data.draw(spoilt(good)))
    _read_or_refused(read, root)
    if path.endswith("prompt.md"):
        read_version(root / "components" / NAME, "components")


@thorough
@given(lines=st.lists(spoilt(_QUESTION), max_size=3))
def test_questions_are_read_or_refused_in_one_line(lines: list[bytes], folder: Path) -> None:
    root = folder / "questions"
    write_component(root, prompt=_FRONT, schema=None)
    _put(root, f"fixtures/{NAME}/questions.jsonl", b"\n".join(lines))
    _read_or_refused(_cases, root)


@pytest.mark.parametrize("path", FILES)
def test_what_is_good_in_it_is_read(path: str, tmp_path: Path) -> None:
    good, read = FILES[path]
    _put(_library(tmp_path), path, good.encode())
    if path.endswith("datasets.json"):
        with pytest.raises(SkillEvaluatorError, match="no fixtures for"):  # they would be in another folder
            _cases(tmp_path)
    read(tmp_path)

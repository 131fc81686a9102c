"""Whatever bytes a file from outside holds: it is read, or refused in one line, and soon."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.audit.cube import read_cube
from skill_evaluator.audit.manifest import read_audit_manifest
from skill_evaluator.ci.plan import Outcome, read_outcome, read_plan
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.exchange.imported import ImportRequest, import_results
from skill_evaluator.files import json_text
from skill_evaluator.judges.calibration.corruption import CorruptedPair, corrupt
from skill_evaluator.judges.calibration.labels import read_labels, read_verdicts
from skill_evaluator.judges.prompting.questions import OutputItem, read_items
from skill_evaluator.judges.review.queue import ReviewQueue
from skill_evaluator.library.case_table import CaseTable, import_cases
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import DEFAULT_LIMITS, Settings, load_models, load_settings
from skill_evaluator.library.rubrics import load_rubric
from skill_evaluator.library.scenarios import load_scenario
from skill_evaluator.library.sources import SOURCES
from skill_evaluator.library.sources.tree import folder_tree
from skill_evaluator.library.versions import read_version
from skill_evaluator.records.archive import (
    format_leaderboard,
    load_leaderboard,
    newest_recorded,
    read_acceptances,
    read_entries,
)
from skill_evaluator.records.record import read_record
from skill_evaluator.runner.journal import read_manifest, read_outcomes
from skill_evaluator.runner.schedule import build_request

from tests.audit.cubes import manifest
from tests.ci.test_plan import PLAN
from tests.judges.review.reviews import label, pair
from tests.support.components import NAME, with_fixtures, write_component
from tests.support.hostile_files import spoilt
from tests.support.json_values import quick
from tests.support.library import ROOT
from tests.support.records import a_record
from tests.support.rubrics import some_criterion, some_levels

_FRONT = f"---\nname: {NAME}\nversion: 1.0.0\noutput: choice\nteam: {{a: [1, 2], b: &x 3, c: *x}}\n---\nRead.\n"
_SCHEMA = '{"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"enum": [1, "x"]}}}'
_DATASETS = '{"datasets": [{"fixtures": "shared", "metrics": ["exact_match"], "fields": {"shop": {"casefold": true}}}]}'
_MODELS = "models:\n- {id: a, provider: openai, params: {effort: low, n: 0x1}, price: {input: 1, output: 2.5}}\n"
_SETTINGS = "replicates: 3\ntimeout_s: 1_000.5\npolicy: {alpha: 0.05, metrics: {exact_match: {tier: advisory}}}\n"
_SCENARIO = "---\nname: s\nintent: none\n---\nBefore. {{ prompt }}\n"
_QUESTION = '{"id": "a-b", "question": "Which?", "options": ["x", "y"], "answer": "A", "topic": {"a": [1]}}\n'
_RECORD = a_record({"alpha": [1.0, 0.5], "beta": [0.0, 1.0]}, skill=NAME, skill_version="1.0.0")
_BOARD = format_leaderboard({"skill": NAME}, [_RECORD.row().model_dump(mode="json")]).decode()
_ACCEPTANCE = {"version": "1.0.0", "by": "A", "why": "good", "date": "2026-03-01", "run_ids": {"m": [_RECORD.run_id]}}
_ACCEPTED = {"skill": NAME, "accepted": [_ACCEPTANCE]}
_, _MANIFEST = next(PLAN.manifests())
_ANSWERED = '{"case_id": "one", "replicate": 0, "text": "{}", "input_tokens": 5, "cost_usd": 0.1}\n'
_ELSEWHERE = ROOT / "tests" / "data" / "elsewhere"
_SCORES = "case,replicate,model,exact_match,cost_usd\na,0,m,1,0.5\na,1,m,0.5,1e-3\nb,0,m,0,\n"
_JUDGING = {name: (ROOT / "tests/data/judging" / f"{name}.jsonl").read_text()[:400] for name in ("items", "verdicts")}
_LABELS = "".join(line for line in _JUDGING["items"].splitlines(keepends=True) if line.endswith("\n"))
_VERDICTS = "".join(line for line in _JUDGING["verdicts"].splitlines(keepends=True) if line.endswith("\n"))
_OUTPUT = OutputItem(id="g", input="Summarize.", output="- It opened in 1980.\n- Dogs are not allowed in it.\n")
_CORRUPTED = "".join(pair.model_dump_json() + "\n" for pair in corrupt([_OUTPUT], 6, seed=0))
_OUTCOME = Outcome(invocation="20240101T000000Z-abc123", head=None, dry_run=False, runs=[])
_ROW = {"id": "b", "document": "A 9", "expected": {"shop": "A", "total": 9}, "not_applicable": ["m"]}
_PROMPTFOO = {
    "prompts": ["Say {{word}}", {"raw": "{{word}}", "label": "a"}],
    "providers": [{"id": "openai:gpt-5", "config": {"temperature": 0}}],
    "defaultTest": {"vars": {"lang": "en"}, "assert": [{"type": "is-json", "value": {"type": "object"}}]},
    "tests": [{"vars": {"word": ["a", "b"]}, "assert": [{"type": "contains-any", "value": "a, b", "weight": 2}]}],
}
_SKILL = "---\nname: pdf\ndescription: Reads PDFs.\n---\nSay what it says.\n"
_TRIGGERS = [{"id": 1, "query": "Read a.pdf.", "should_trigger": True}, {"query": "Hi", "expected_skill": None}]
_PROMPT_YML = "messages: [{role: user, content: 'Say {{input}}'}]\ntestData: [{input: x}]\nevaluators: []\n"
_META = "reason: plain\nday: 2024-01-31\nmore: [1, {a: b}]\n"


def _component(root: Path) -> Any:
    return load_component(root / "components", NAME)


def _cases(root: Path) -> None:
    component = _component(root)
    for case in load_cases(with_fixtures(component, root / "fixtures")):
        request = build_request(component, case)
        texts = [message.text for message in request.messages]
        json.dumps([*texts, request.schema], ensure_ascii=False).encode()  # as an API takes it


def _board(root: Path) -> None:
    path = root / "components" / NAME / "leaderboard.json"
    read_entries(path)
    load_leaderboard(path, NAME)
    newest_recorded(path.read_bytes(), str(path))


def _results(name: str) -> Callable[[Path], None]:
    def read(root: Path) -> None:
        request = ImportRequest(
            components=root / "components", file=root / name, skill=NAME, version="1.0.0", model="m"
        )
        import_results(request, Settings())

    return read


def _table(root: Path) -> None:
    places = {"components": root / "components", "fixtures": root / "fixtures", "config": root}
    import_cases(CaseTable(file=root / "rows.csv", document=("text",), truth=("shop", "total"), skill=NAME, **places))


def _source(name: str) -> Callable[[Path], None]:
    """Return a function that reads all components of a foreign format."""

    def read(root: Path) -> None:
        (root / "skills" / "pdf").mkdir(parents=True, exist_ok=True)
        if not (root / "skills" / "pdf" / "SKILL.md").exists():
            (root / "skills" / "pdf" / "SKILL.md").write_text(_SKILL)
        tree = folder_tree(root, DEFAULT_LIMITS)
        for key in SOURCES[name].find(tree):
            SOURCES[name].read(tree, key)

    return read


def _verdicts(root: Path) -> None:
    (root / "items.jsonl").write_text(_LABELS)
    read_verdicts(root / "verdicts.jsonl", read_labels(root / "items.jsonl"))


def _reviews(root: Path) -> None:
    queue = ReviewQueue(folder=root)
    queue.labels(queue.items() or {pair().id: pair()})


# The files that other people may write: the path, a valid content, and the reader.
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
    f"components/{NAME}/leaderboard.json": (_BOARD, _board),
    "record.json": (json_text(_RECORD.model_dump(mode="json")), lambda root: read_record(root / "record.json")),
    "accepted.json": (json.dumps(_ACCEPTED), lambda root: read_acceptances(root / "accepted.json")),
    "plan.json": (
        json_text(PLAN.model_dump(mode="json")),
        lambda root: list(read_plan(root / "plan.json").manifests()),
    ),
    "manifest.json": (json_text(_MANIFEST.model_dump(mode="json")), read_manifest),
    "replicates.jsonl": (_ANSWERED, lambda root: list(read_outcomes(root))),
    "promptfoo.json": ((_ELSEWHERE / "promptfoo_a.json").read_text(), _results("promptfoo.json")),
    "inspect.json": ((_ELSEWHERE / "inspect_a.json").read_text(), _results("inspect.json")),
    "scores.csv": (_SCORES, _results("scores.csv")),
    "rubric.yaml": (json.dumps({"criteria": [some_criterion()]}), lambda root: load_rubric(root / "rubric.yaml")),
    "levels.json": (json.dumps(some_levels()), lambda root: load_rubric(root / "levels.json")),
    "items.jsonl": (_LABELS, lambda root: read_labels(root / "items.jsonl")),
    "verdicts.jsonl": (_VERDICTS, _verdicts),
    "corrupted.jsonl": (_CORRUPTED, lambda root: read_items(root / "corrupted.jsonl", CorruptedPair)),
    "queue.jsonl": (pair().model_dump_json() + "\n", _reviews),
    "labels.jsonl": (label(pair(), overall="1").model_dump_json() + "\n", _reviews),
    "audit.json": (manifest([2], 2).model_dump_json(), lambda root: read_audit_manifest(root / "audit.json")),
    "table.csv": (
        (ROOT / "tests/data/creditaudit_table2.csv").read_text(),
        lambda root: read_cube(root / "table.csv", weights={}),
    ),
    "outcome.json": (_OUTCOME.model_dump_json(), read_outcome),
    f"fixtures/{NAME}/cases.jsonl": (json.dumps(_ROW) + "\n", _cases),
    f"fixtures/{NAME}/cases.csv": ("id,document,shop,total\nb,A 9,A,9\n", _cases),
    "promptfooconfig.yaml": (json.dumps(_PROMPTFOO), _source("promptfoo")),
    "skills/pdf/SKILL.md": (_SKILL, _source("skills")),
    "skills/pdf/evals/trigger-eval.json": (json.dumps(_TRIGGERS), _source("skills")),
    "a.prompt.yml": (_PROMPT_YML, _source("prompt_yml")),
    "rows.csv": ('text,shop,total\n"A, 9",A,9\nB 1,B,1\n', _table),
}


def _library(root: Path) -> Path:
    write_component(root)
    case = root / "fixtures" / NAME / "cases" / "a"
    case.mkdir(parents=True, exist_ok=True)
    (case / "document.md").write_text("A 9")
    (case / "ground_truth.json").write_text('{"shop": "A", "total": 9}')
    return root


def _check(path: str, content: bytes, folder: Path) -> None:
    root = _library(folder / path.replace("/", "-"))  # what the last example spoilt is written over
    _put(root, path, content)
    _read_or_refused(FILES[path][1], root)
    if path.endswith("prompt.md"):
        read_version(root / "components" / NAME, "components")


def _put(root: Path, path: str, content: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)


def _read_or_refused(read: Callable[[Path], object], root: Path) -> None:
    started = time.process_time()
    refused = ""
    try:
        read(root)
    except SkillEvaluatorError as problem:
        refused = str(problem)
    assert "\n" not in refused
    assert time.process_time() - started < 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("libraries")


@pytest.mark.parametrize("path", FILES)
@quick
@given(data=st.data())
def test_hostile_file_is_read_or_refused_in_one_line(path: str, data: st.DataObject, folder: Path) -> None:
    _check(path, data.draw(spoilt(FILES[path][0])), folder)


@quick
@given(lines=st.lists(spoilt(_QUESTION), max_size=3))
def test_hostile_questions_are_read_or_refused_in_one_line(lines: list[bytes], folder: Path) -> None:
    root = folder / "questions"
    write_component(root, prompt=_FRONT, schema=None)
    _put(root, f"fixtures/{NAME}/questions.jsonl", b"\n".join(lines))
    _read_or_refused(_cases, root)


@pytest.mark.parametrize("path", FILES)
def test_valid_file_is_read(path: str, tmp_path: Path) -> None:
    good, read = FILES[path]
    _put(_library(tmp_path), path, good.encode())
    if path.endswith("datasets.json"):
        with pytest.raises(SkillEvaluatorError, match="no fixtures for"):  # they would be in another folder
            _cases(tmp_path)
    read(tmp_path)

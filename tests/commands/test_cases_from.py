"""`cases import` of JSON exported by other tools: dotted paths, JSON lists and the inferred schema."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.library.case_table import inferred_schema
from skill_evaluator.library.contract import Contract

from tests.support.json_values import json_values
from tests.support.library import Ended, Library, read

SKILL = "support"
PROMPT = "---\nname: support\nversion: 1.0.0\n---\nAnswer the question.\n"
ITEMS = [
    {"id": "a", "input": {"text": "Why?"}, "expectedOutput": {"why": "so", "n": 1}, "status": "ACTIVE"},
    {"id": "b", "input": {"text": "Who?"}, "expectedOutput": {"why": None}},
]
PATHS = ("--input", "input.text", "--truth", "expectedOutput", "--id", "id")


@pytest.fixture
def bare(tmp_path: Path) -> Library:
    library = Library.__new__(Library)
    library.stand_in(tmp_path)
    library.write(f"components/{SKILL}/prompt.md", PROMPT)
    return library


def imported(library: Library, items: Any, *arguments: str, name: str = "items.json") -> Ended:
    library.write(name, json.dumps(items))
    return library.call("cases", "import", name, "--yes", *arguments)


def files_of(library: Library, case_id: str) -> dict[str, Any]:
    folder = library.root / f"fixtures/{SKILL}/cases" / case_id
    return {
        path.name: read(path) if path.suffix == ".json" else path.read_text("utf-8")
        for path in sorted(folder.iterdir())
    }


def test_json_list_is_imported_with_paths_and_inferred_schema(bare: Library) -> None:
    done = imported(bare, ITEMS, *PATHS)
    assert done.code == 0, done.err
    assert "2 cases of support, 2 with ground truth" in done.out
    assert files_of(bare, "a") == {"document.md": "Why?", "ground_truth.json": {"why": "so", "n": 1}}
    schema = read(bare.root / f"components/{SKILL}/schema.json")
    assert schema["description"].startswith("Inferred from 2 ground truths of items.json")
    assert schema["properties"]["why"] == {"type": ["null", "string"]}
    assert schema["required"] == ["why"]
    assert bare.call("lint").code == 0


def test_text_truths_are_imported_without_schema(bare: Library) -> None:
    item = {"inputs": {"question": "Why?"}, "outputs": {"answer": "So."}}
    paths = ("--input", "inputs.question", "--truth", "outputs.answer")
    done = imported(bare, item, *paths, name="x.jsonl")
    assert done.code == 0, done.err
    assert files_of(bare, "x-1") == {"document.md": "Why?", "expected.md": "So.\n"}
    assert not (bare.root / f"components/{SKILL}/schema.json").exists()
    assert bare.call("lint").code == 0


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ({"a": 1}, "items.json is no list of objects"),
        ([1], "items.json:1: no object"),
        ([{"input": "x"}], "no column 'input.text' in items.json"),
    ],
)
def test_json_without_objects_or_path_is_refused(bare: Library, items: Any, words: str) -> None:
    assert imported(bare, items, *PATHS).refuses(words)


@given(truths=st.lists(json_values, min_size=1, max_size=4))
def test_inferred_schema_fits_every_truth(truths: list[Any]) -> None:
    contract = Contract(json.loads(inferred_schema(truths, Path("x.json"))), "schema.json")
    assert not [truth for truth in truths if contract.errors(truth)]

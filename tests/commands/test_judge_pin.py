"""`judge pin`: outputs that are kept in the repository with the digests of their cases."""

import json
import shutil
from pathlib import Path

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.asked_judges import JudgingLibrary
from tests.support.judged import answer
from tests.support.library import CASES, REPLAY, SKILL, Ended, read

SAME = json.dumps(answer({"factuality": "same", "completeness": "same", "format_adherence": "same"}))
PINNED = f"components/{SKILL}/evals/pinned/recorded.json"


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    """A library with a run of the component, and a judge that finds no regression."""
    library = JudgingLibrary(tmp_path)
    assert library.evaluate_here().code == 0
    library.models(REPLAY, {**REPLAY, "id": "judge", "params": {"file": "judge.jsonl"}})
    library.record_answers({(f"{case}/{order}", 0): SAME for case in CASES for order in (1, 2)}, "judge.jsonl")
    return library


def pin(library: JudgingLibrary, *arguments: str) -> Ended:
    return library.call("judge", "pin", library.run_folder().name, *arguments)


def judged(library: JudgingLibrary, run: str) -> Ended:
    return library.call("judge", "regression", "--candidate", run, "--judge", "judge", "--format", "json")


def test_first_outputs_of_a_run_are_pinned_with_their_digests(library: JudgingLibrary) -> None:
    done = pin(library)
    assert (done.code, done.err) == (0, "")
    assert f"3 outputs of {SKILL} 1.0.0 by recorded pinned in {PINNED}" in done.out
    kept, manifest = read(library.root / PINNED), read(library.run_folder() / "manifest.json")
    jsonschema.validate(kept, json.loads(schema_text("pinned")))
    assert (kept["run_id"], kept["digests"]) == (manifest["run_id"], manifest["digests"])
    assert {case: output["case"] for case, output in kept["outputs"].items()} == manifest["cases"]
    assert kept["outputs"]["beta"]["text"] == '{"title": "beta", "year": 2024}'
    done = pin(library, "--case", "beta", "--format", "json")  # replaces the outputs of the model
    jsonschema.validate(done.json, json.loads(schema_text("judge-pin")))
    assert list(read(library.root / PINNED)["outputs"]) == ["beta"]


def test_run_is_compared_with_pinned_outputs_without_their_run(library: JudgingLibrary) -> None:
    assert judged(library, library.run_folder().name).refuses("use --baseline RUN, or run `judge pin RUN` first")
    assert pin(library, "--case", "a*", "--case", "beta").code == 0
    pinned_run = library.run_folder().name
    shutil.rmtree(library.results)
    assert library.evaluate_here("--model", "recorded").code == 0
    done = judged(library, library.run_folder().name)
    assert done.code == 0, done.err
    assert done.json["baseline"] == pinned_run != done.json["candidate"]
    assert [pair["id"] for pair in done.json["judges"][0]["pairs"]] == ["alpha", "beta"]


def hints(library: JudgingLibrary) -> tuple[int, list[str], list[str]]:
    done = library.call("lint", "--format", "json")
    (component,) = done.json["components"]
    return done.code, component["hints"], component["problems"]


def test_lint_names_stale_outputs(library: JudgingLibrary) -> None:
    before = hints(library)
    assert pin(library).code == 0
    assert hints(library) == before
    library.case("beta", {"title": "another", "year": 2024})
    shutil.rmtree(library.root / "fixtures" / SKILL / "cases" / "gamma")
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.0.0\n---\nExtract.\n")
    _, said, _ = hints(library)
    stale = [hint.partition(" are stale: ")[2].partition(";")[0] for hint in said if "are stale" in hint]
    assert stale == ["case 'beta' changed", "case 'gamma' no longer exists", "the prompt of 1.0.0 changed"]


def test_edited_file_is_one_problem_and_no_baseline(library: JudgingLibrary) -> None:
    assert pin(library).code == 0
    kept = read(library.root / PINNED)
    kept["outputs"]["beta"]["text"] = "better"
    library.write(PINNED, kept)
    code, _, (problem,) = hints(library)
    assert (code, "the output of case 'beta' was edited" in problem) == (2, True)
    assert judged(library, library.run_folder().name).refuses("the output of case 'beta' was edited")


def test_changed_or_unknown_case_and_draft_are_not_pinned(library: JudgingLibrary) -> None:
    library.case("beta", {"title": "another", "year": 2024})
    assert pin(library).refuses("case 'beta' changed since")
    assert pin(library, "--case", "gamma").code == 0
    assert pin(library, "--case", "delta").refuses("delta")
    shutil.rmtree(library.results)
    assert library.evaluate_here("--draft", "--model", "recorded").code == 0
    assert pin(library).refuses("is a draft, which cannot be a baseline")

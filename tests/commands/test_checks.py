"""Components with checks, alone or beside a ground truth, and components that answer with a choice."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import notice
from tests.support.git import GitRepository
from tests.support.library import CASES, SKILL, Library, read

DATASETS = f"components/{SKILL}/evals/datasets.json"
GOOD = "Dear customer, the total is 9 EUR. Yours"
RUDE = "No. The total is 9 EUR."
CHECKS: Sequence[Mapping[str, Any]] = (
    {"starts_with": "Dear", "id": "greets"},
    {"regex": r"\d+ EUR", "weight": 3},
    {"max_words": 30},
)


def checked(root: Path, **dataset: Any) -> Library:
    """Return a library whose cases have checks and nothing else."""
    library = Library(root)
    (library.component / "schema.json").unlink()
    for case_id in CASES:
        (library.root / f"fixtures/{SKILL}/cases/{case_id}/ground_truth.json").unlink()
    library.write(DATASETS, {"datasets": [{"checks": CHECKS, **dataset}]})
    return library


def answered(library: Library, text: str, **others: str) -> None:
    texts = {(case_id, index): others.get(f"{case_id}_{index}", text) for case_id in CASES for index in range(2)}
    library.record_answers(texts)


def test_component_with_checks_alone_is_ranked_by_their_share(tmp_path: Path) -> None:
    library = checked(tmp_path)
    answered(library, GOOD, beta_1=RUDE)
    done = library.evaluate_here()
    assert done.code == 0, done.err
    (record,) = library.records()
    assert record["primary_metric"] == "checks"
    assert set(record["accuracy"]) == {"checks"}
    assert record["accuracy"]["checks"]["strict_mean"] == pytest.approx((1 + (1 + 0.8) / 2 + 1) / 3)
    beta = record["per_case"][1]
    assert beta["checks"]["greets"]["scores"] == [1.0, 0.0]
    assert beta["fields"]["checks.greets"] == {"right": 1, "n": 2}
    assert beta["profile"]["checks.greets"] == "flaky"
    assert record["per_field"]["checks.greets"]["right"] == 5
    linted = library.call("lint", SKILL).out
    assert "output: text, because it has checks and no ground truth" in linted
    assert "3 checks · ranked by checks" in linted
    explained = library.call("explain", str(library.run_folder()), "--case", "beta", "--format", "json").json
    failed = {"id": "greets", "says": "starts_with Dear", "reason": None, "score": 0.0}
    assert explained["cases"][0]["outputs"][1]["checks"][0] == failed


def test_check_that_fails_in_every_output_is_a_regression(tmp_path: Path) -> None:
    library = checked(tmp_path)
    answered(library, GOOD)
    assert library.evaluate_here().code == 0
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.1.0\n---\nAnswer anyhow.\n")
    answered(library, RUDE)
    done = library.evaluate_here("--format", "json")
    assert done.code == 3
    verdict = library.call("compare", SKILL, "--format", "json").json
    assert verdict["verdict"] == "regressed"
    assert verdict["models"][0]["lost_fields"] == ["checks.greets"]


def test_checks_beside_a_ground_truth_change_no_score(tmp_path: Path) -> None:
    plain, library = Library(tmp_path / "plain"), Library(tmp_path / "checked")
    library.write(
        f"fixtures/{SKILL}/cases/alpha/meta.json",
        {"checks": [{"json": {"at": "/year", "equals": 2024}}, {"is_json": True}, {"not_contains": "sorry"}]},
    )
    for one in (plain, library):
        one.record_answers(
            {(case_id, index): notice(case_id) for case_id in CASES for index in range(2)}
            | {("alpha", 0): "I'm sorry", ("alpha", 1): '```json\n{"title": "alpha", "year": 2024}\n```'}
        )
        one.evaluate_here()
    (before,), (after,) = plain.records(), library.records()
    assert after["primary_metric"] == before["primary_metric"] == "field_level_f1"
    assert {name: after["accuracy"][name] for name in before["accuracy"]} == before["accuracy"]
    assert after["digests"]["datasets"] == before["digests"]["datasets"]
    assert [case["digest"] for case in after["per_case"]] == [case["digest"] for case in before["per_case"]]
    scores = {check_id: check["scores"] for check_id, check in after["per_case"][0]["checks"].items()}
    assert scores == {"json-year-equals-2024": [0.0, 1.0], "is_json": [0.0, 0.0], "not_contains-sorry": [0.0, 1.0]}
    assert after["per_case"][0]["replicates"]["checks"] == [0.0, pytest.approx(2 / 3, abs=1e-6)]
    assert "checks" not in after["per_case"][1]


@pytest.mark.process
def test_check_function_runs_only_in_evaluate_and_score(tmp_path: Path) -> None:
    library = checked(tmp_path, checks=[{"python": "checks.py:short"}])
    source = "import pathlib\npathlib.Path({!r}).touch()\ndef short(text, context):\n    return len(text) < {}\n"
    ran, file = library.root / "ran", f"components/{SKILL}/evals/checks.py"
    library.write(file, source.format(str(ran), 30))
    answered(library, GOOD, beta_1=RUDE)
    assert library.call("lint", SKILL).code == 0
    assert library.evaluate_here("--dry-run").code == 0
    assert not ran.exists()
    library.evaluate_here()
    assert ran.exists()
    (record,) = library.records()
    assert [case["checks"]["short"]["scores"] for case in record["per_case"]] == [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    library.write(file, source.format(str(ran), 3000))
    library.call("score", str(library.run_folder()))
    again = read(library.run_folder() / "record.json")
    assert again["accuracy"]["checks"]["strict_mean"] == 1.0
    library.write(file, "def other(text, context): return True")
    assert library.evaluate_here("--dry-run").refuses("no function 'short' in")


def test_invalid_check_is_refused_by_lint_and_dry_run(tmp_path: Path) -> None:
    checks = [{"python": "checks.py:short"}]
    library = checked(tmp_path, checks=checks)
    assert "does not exist" in library.call("lint", SKILL).out
    assert library.evaluate_here("--dry-run").refuses("does not exist")
    library.write(DATASETS, {"datasets": [{"metrics": ["checks"]}]})
    assert library.evaluate_here("--dry-run").refuses("requires a check in that file or in a case")


QUESTIONS = (
    {"id": "alpha", "question": "Capital of France?", "options": ["Lyon", "Nice", "Paris"], "answer": "C"},
    {"id": "beta", "question": "Capital of Peru?", "options": ["Lima", "Cusco"], "answer": "A"},
    {"id": "gamma", "question": "Which is nicer?", "options": ["Lima", "Cusco"]},
)
ANSWERS = {
    ("alpha", 0): "The answer is **C**.",
    ("alpha", 1): "It may be A or C. The answer is A or C.",
    ("beta", 0): "B",
    ("beta", 1): "Lima",
    ("gamma", 0): "I like both.",
    ("gamma", 1): " ",
}


@pytest.fixture
def capitals(library: Library) -> Library:
    library.write(
        f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.0.0\noutput: choice\n---\nA letter.\n"
    )
    (library.component / "schema.json").unlink()
    library.lines(f"fixtures/{SKILL}/questions.jsonl", *QUESTIONS)
    library.record_answers(ANSWERS)
    return library


def test_unparseable_choice_has_a_reason_and_no_score(capitals: Library) -> None:
    ended = capitals.evaluate_here()
    assert ended.code == 0
    record = read(next((capitals.component / "evals" / "records").iterdir()))
    assert record["reasons"] == {"ambiguous": 1, "empty": 1, "no_option": 1}
    assert "ambiguous 1, empty 1, no_option 1" in ended.out
    found = record["accuracy"]["exact_match"]
    assert (record["primary_metric"], found["mean"], found["strict_mean"], found["n"]) == ("exact_match", 0.75, 0.5, 3)
    assert record["per_field"][""]["confusion"] == {"A": {"A": 1, "B": 1}, "C": {"C": 1}}
    assert (record["contract"], record["failures"]) == (None, {"unparseable": 3})


def test_output_without_fields_is_explained_by_its_name_in_reports(capitals: Library) -> None:
    capitals.evaluate_here()
    run = capitals.run_folder().name
    ended = capitals.call("explain", run, "--field", "(the whole output)")
    assert (ended.code, ended.out) == (0, capitals.call("explain", run, "--field", "").out)
    assert "next: describe the output more precisely in the prompt" in ended.out


def test_questions_are_planned_and_their_commit_is_recorded(capitals: Library) -> None:
    repository = GitRepository(capitals.root)
    commit = repository.commit()
    repository.write("unrelated")
    repository.commit()
    assert "1 job, 6 calls" in capitals.call("ci", "plan", SKILL).out
    capitals.evaluate_here()
    assert capitals.rows()[0]["dataset_commit"] == commit

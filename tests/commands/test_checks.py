"""Components with checks alone, or beside a truth: what commands make of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import ChatServer, Reply, notice
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


def test_a_component_with_checks_alone_is_ranked_by_the_share_that_is_passed(tmp_path: Path) -> None:
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
    assert beta["profile"] == {
        "checks.greets": "flaky",
        "checks.regex-d-eur": "stable_right",
        "checks.max_words-30": "stable_right",
        "": beta["profile"][""],
    }
    assert record["per_field"]["checks.greets"]["right"] == 5
    assert record["per_field"]["checks.greets"]["compare"] == "check"
    linted = library.call("lint", SKILL).out
    assert "output: text, because it has checks and no ground truth" in linted
    assert "3 checks · ranked by checks" in linted
    assert [line.split()[:4] for line in linted.splitlines() if line.startswith("checks.max")] == [
        ["checks.max_words-30", "check", "1", "advisory"]
    ]


def test_a_check_lost_in_every_answer_is_a_regression_and_named(tmp_path: Path) -> None:
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


def test_a_new_or_changed_check_decides_nothing_about_answers_that_were_not_held_to_it(tmp_path: Path) -> None:
    library = checked(tmp_path)
    answered(library, GOOD)
    assert library.evaluate_here().code == 0
    changed = [{**CHECKS[0], "starts_with": "Hello"}, *CHECKS[1:], {"contains": "Sincerely"}]
    library.write(DATASETS, {"datasets": [{"checks": changed}]})
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.1.0\n---\nAnswer anyhow.\n")
    done = library.evaluate_here()
    assert done.code == 0, done.out
    verdict = library.call("compare", SKILL, "--format", "json").json
    (model,) = verdict["models"]
    primary = next(one for one in model["metrics"] if one["metric"] == "checks")
    assert (primary["baseline"], primary["candidate"]) == (1.0, 1.0), "of the two checks that both were held to"
    assert {one["metric"] for one in model["fields"]} == {"checks.regex-d-eur", "checks.max_words-30"}
    words = "checks.contains-sincerely (new) in 3 cases, checks.greets (changed) in 3 cases"
    assert any(words in reason for reason in model["reasons"]), model["reasons"]


def test_a_new_check_is_decided_where_the_baseline_is_asked_beside(tmp_path: Path, server: ChatServer) -> None:
    library = checked(tmp_path, checks=[{"max_words": 30}])
    library.served_by(server.url)
    library.settings(policy={"design": "beside"})
    server.reply = lambda asked: Reply(text=GOOD)
    repository = GitRepository(library.root)
    repository.commit("first")
    assert library.evaluate_here("-n", "4").code == 0
    library.write(DATASETS, {"datasets": [{"checks": CHECKS}]})
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.1.0\n---\nBe brief.\n")
    server.reply = lambda asked: Reply(text=RUDE if "brief" in str(asked.body) else GOOD)
    assert library.evaluate_here("-n", "4").code == 3
    (model,) = library.call("compare", SKILL, "--format", "json").json["models"]
    assert model["lost_fields"] == ["checks.greets"]


def test_checks_beside_a_truth_leave_what_decides_as_it_was(tmp_path: Path) -> None:
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


def test_explain_says_what_each_check_gave_and_shows_one_over_all_answers(tmp_path: Path) -> None:
    library = checked(tmp_path)
    answered(library, GOOD, beta_1=RUDE)
    library.evaluate_here()
    run = str(library.run_folder())
    shown = library.call("explain", run, "--case", "beta").out
    assert RUDE in shown
    assert "starts_with Dear" in shown
    assert "failed" in shown
    told = library.call("explain", run, "--case", "beta", "--format", "json").json["cases"][0]
    says = {"id": "greets", "says": "starts_with Dear", "reason": None}
    assert told["outputs"][1]["checks"][0] == {**says, "score": 0.0}
    of_field = library.call("explain", run, "--field", "checks.greets", "--format", "json").json["cases"][1]
    found = [(output["replicates"], output["checks"]) for output in of_field["outputs"]]
    assert found == [([0], [{**says, "score": 1.0}]), ([1], [{**says, "score": 0.0}])]


@pytest.mark.process
def test_a_function_is_run_by_evaluate_and_score_and_parsed_by_lint_and_a_dry_run(tmp_path: Path) -> None:
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


def test_lint_and_a_dry_run_refuse_what_is_no_check(tmp_path: Path) -> None:
    checks = [{"python": "checks.py:short"}]
    library = checked(tmp_path, checks=checks)
    assert "does not exist" in library.call("lint", SKILL).out
    assert library.evaluate_here("--dry-run").refuses("does not exist")
    library = checked(tmp_path, checks=[])
    library.write(f"fixtures/{SKILL}/cases/beta/meta.json", {"checks": checks})
    assert "does not exist" in library.call("lint", SKILL).out


def test_the_metric_checks_needs_a_check(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.write(DATASETS, {"datasets": [{"metrics": ["checks"]}]})
    assert library.evaluate_here("--dry-run").refuses("neither it nor a case has a check")

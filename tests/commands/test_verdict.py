"""The verdict where runs are made: `evaluate` says whether the new version is worse, and its exit code shows it."""

import json
import shlex

import pytest

from tests.support.chat_server import notice
from tests.support.library import CASES, SKILL, Library

REPLICATES = 6
MORE = tuple(f"case-{at}" for at in range(5))
"""Replayed answers of a case count as one draw, and three draws show nothing beyond chance; eight do."""


@pytest.fixture(autouse=True)
def _eight_cases(library: Library) -> None:
    for case_id in MORE:
        library.case(case_id)


def _answers(library: Library, year: int) -> None:
    """Have the replayed model give this year in every answer (2024 is right)."""
    cases = (*CASES, *MORE)
    library.record_answers({(case, index): notice(case, year) for case in cases for index in range(REPLICATES)})


def _version(library: Library, version: str) -> None:
    prompt = library.component / "prompt.md"
    prompt.write_text(prompt.read_text().replace("version: 1.0.0", f"version: {version}"))


def test_a_version_that_is_worse_is_said_to_be_and_fails_unless_the_policy_lets_it_pass(
    library: Library, tmp_path_factory: pytest.TempPathFactory
) -> None:
    _answers(library, 2024)
    assert library.evaluate_here("--replicates", str(REPLICATES)).code == 0
    _version(library, "1.1.0")
    _answers(library, 1999)
    lenient = library.copy(tmp_path_factory.mktemp("lenient"))
    ended = library.evaluate_here("--replicates", str(REPLICATES))
    assert ended.code == 3
    verdict, lost, ship, following = ended.out.splitlines()[-4:]
    assert verdict.startswith("▼ notice-extraction: regressed on these 8 cases")
    assert lost.startswith("lost: field ")
    assert ship.startswith("to ship: 1.0.0 ")
    command = following.partition("`skill-evaluator ")[2].rstrip("`")
    assert library.call(*shlex.split(command)).code == 0, following
    assert len(library.rows()) == 2
    lenient.settings(policy={"fail_on": []})
    ended = lenient.evaluate_here("--replicates", str(REPLICATES), "--format", "json")
    assert (ended.code, ended.json["comparison"]["verdict"]) == (0, "regressed")


def test_exact_match_of_prose_at_zero_is_inconclusive_and_lint_names_the_remedy(library: Library) -> None:
    def written(version: str, text: str) -> None:
        head = f"---\nname: {SKILL}\nversion: {version}\noutput: text\n---\n"
        library.write(f"components/{SKILL}/prompt.md", f"{head}Sum it up, {version}.\n")
        library.record_answers({(case, index): text for case in (*CASES, *MORE) for index in range(2)})

    truth = "The library opens at nine on weekdays, and it is closed on every public holiday of the county."
    (library.component / "schema.json").unlink()
    for case in (*CASES, *MORE):
        library.write(f"fixtures/{SKILL}/cases/{case}/ground_truth.json", json.dumps(truth))
    for version, text in (("1.0.0", f"In short: {truth}"), ("1.1.0", "No idea.")):
        written(version, text)
        ended = library.evaluate_here()
    says = 'declare at fields of evals/datasets.json a token F1 from which a text is right: {"": {"threshold": 0.6}}'
    assert f"{SKILL}: inconclusive" in ended.out
    assert "exact_match was 0.000 and cannot fall by more than the tolerated 0.05" in ended.out
    assert f"exact_match decides, of answers that are prose: it would be 0 for ever, and no drop seen; {says}" in (
        library.call("lint").out
    )
    library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"fields": {"": {"threshold": 0.6}}}]})
    assert "exact_match decides" not in library.call("lint").out
    for version, text in (("1.2.0", f"In short: {truth}"), ("1.3.0", "No idea.")):
        written(version, text)
        ended = library.evaluate_here()
    assert ended.code == 3
    assert "regressed on these 8 cases" in ended.out

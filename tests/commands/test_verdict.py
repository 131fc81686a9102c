"""The verdict where runs are made: `evaluate` says whether the new version is worse, and its exit code shows it."""

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


def test_a_first_version_has_nothing_to_be_compared_with(library: Library) -> None:
    _answers(library, 2024)
    ended = library.evaluate_here("--format", "json")
    assert (ended.code, ended.json["comparison"]) == (0, None)


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
    assert "regressed on these fixtures" in ended.out
    assert len(library.rows()) == 2
    lenient.settings(policy={"fail_on": []})
    ended = lenient.evaluate_here("--replicates", str(REPLICATES), "--format", "json")
    assert (ended.code, ended.json["comparison"]["verdict"]) == (0, "regressed")


def test_a_patch_is_compared_with_what_it_patches(library: Library) -> None:
    _answers(library, 1999)
    library.evaluate_here("--replicates", str(REPLICATES))
    _version(library, "1.0.1")
    _answers(library, 2024)
    ended = library.evaluate_here("--replicates", str(REPLICATES), "--format", "json")
    assert ended.code == 0
    assert ended.json["comparison"]["models"][0]["baseline"]["skill_version"] == "1.0.0"
    assert ended.json["comparison"]["verdict"] == "improved"
    assert ended.json["comparison"]["skill"] == SKILL

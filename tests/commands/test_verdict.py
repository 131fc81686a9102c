"""The verdict where runs are made: `evaluate` says whether the new version is worse, and its exit code shows it."""

import json

import pytest

from tests.support.library import CASES, SKILL, Library

MORE = tuple(f"case-{at}" for at in range(5))
"""Replayed answers of a case count as one draw, and three draws show nothing beyond chance; eight do."""


@pytest.fixture(autouse=True)
def _eight_cases(library: Library) -> None:
    for case_id in MORE:
        library.case(case_id)


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

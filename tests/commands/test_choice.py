"""A component that answers with a choice, through the commands: counted, run, recorded, explained."""

import pytest

from tests.support.git import GitRepository
from tests.support.library import SKILL, Library, read

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


def explained(library: Library, *arguments: str) -> str:
    run = library.run_folder().name
    return library.call("explain", run, "--case", "alpha", *arguments).out


def test_questions_are_planned_and_their_commit_is_recorded(capitals: Library) -> None:
    repository = GitRepository(capitals.root)
    commit = repository.commit()
    repository.write("unrelated")
    repository.commit()
    assert "1 job, 6 calls" in capitals.call("ci", "plan", SKILL).out
    capitals.evaluate_here()
    assert capitals.rows()[0]["dataset_commit"] == commit

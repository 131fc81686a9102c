"""Questions with options: what a line may hold, what it becomes as a case, and for everything wrong its line."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ComponentError, FixtureError, NotEvaluatedError
from skill_evaluator.library.cases import Case, find_cases, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.runner.schedule import build_request

from tests.support.components import NAME, component, with_fixtures, write_component

PROMPT = f"---\nname: {NAME}\nversion: 1.0.0\noutput: choice\n---\nAnswer with one letter.\n"
QUESTION = {"id": "france", "question": "Capital of France?", "options": ["Lyon", "Nice", "Paris"], "answer": "C"}


def choice(root: Path, **parts: Any) -> Component:
    return component(root, **{"prompt": PROMPT, "schema": None, **parts})


def write(folder: Path, *lines: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path = folder / "questions.jsonl"
    path.write_text("\n".join(texts) + "\n")
    return path


def load(root: Path, *lines: Any) -> tuple[Case, ...]:
    write(root / "f" / NAME, *lines)
    return load_cases(with_fixtures(choice(root), root / "f"))


def test_question_line_becomes_a_case(tmp_path: Path) -> None:
    (case,) = load(tmp_path, {**QUESTION, "topic": "europe", "why": "plain", "level": 2})
    assert (case.id, case.truth, case.labelled) == ("france", "C", True)
    assert case.document == "Capital of France?\n\nA. Lyon\nB. Nice\nC. Paris"
    assert case.options == ("Lyon", "Nice", "Paris")
    assert case.meta == {"topic": "europe", "why": "plain", "level": 2}


def test_questions_are_sorted_and_may_have_no_answer(tmp_path: Path) -> None:
    other = {"id": "a-1", "question": "?", "options": ["x", "y"], "answer": None}
    cases = load(tmp_path, QUESTION, "", other)
    assert [(case.id, case.labelled, case.truth) for case in cases] == [("a-1", False, None), ("france", True, "C")]


def test_question_digest_covers_question_options_and_answer(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"id": "b", "why": "so", "level": 3},
        {"id": "c", "question": "Capital?"},
        {"id": "d", "options": ["Nice", "Lyon", "Paris"]},
        {"id": "e", "answer": "B"},
        {"id": "f", "answer": None},
    ]
    digests = {case.id: case.digest for case in load(tmp_path, *[{**QUESTION, **change} for change in changes])}
    assert digests["france"] == digests["b"]
    assert len(set(digests.values())) == len(changes) - 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({**QUESTION, "answer": "F"}, "answer 'F' is not among the options A to C"),
        ({**QUESTION, "options": ["Paris"]}, "at least 2 entries are expected at options"),
        ({**QUESTION, "options": [str(number) for number in range(27)]}, "at most 26 entries are expected at options"),
        ({**QUESTION, "options": ["Lyon", " ", "Paris"]}, "option B is empty at options"),
        (
            {**QUESTION, "options": ["Paris", "Lyon", " PARIS "]},
            "options A and C are the same (case and white space do not count) at options",
        ),
        ({**QUESTION, "options": ["a", 2]}, "a text is expected, got 2 at options[1]"),
        ({**QUESTION, "id": "Not a slug"}, "String should match pattern"),
        ({"id": "x", "options": ["a", "b"]}, "a required key is missing at question"),
        ({**QUESTION, "id": "x", "answers": "A"}, "unknown key 'answers' (did you mean 'answer'?)"),
        ([], "a mapping of keys to values is expected"),
        ("{", "not JSON: "),
        ({**QUESTION, "id": "first"}, "id 'first' is also the id of line 1"),
    ],
)
def test_invalid_question_line_is_refused(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(FixtureError) as caught:
        load(tmp_path, {**QUESTION, "id": "first"}, line)
    assert str(caught.value).startswith(f"{tmp_path / 'f' / NAME / 'questions.jsonl'}:2: {message}")
    assert "\n" not in str(caught.value)


def test_file_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FixtureError, match=r"questions\.jsonl has no questions; add lines of"):
        load(tmp_path, "")


def test_questions_may_sit_in_the_component(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    skill = choice(tmp_path)
    expected = r"not evaluated yet: .* fixtures/receipts/questions\.jsonl and .*evals/questions\.jsonl missing"
    with pytest.raises(NotEvaluatedError, match=expected):
        find_cases(skill)
    path = write(skill.files.folder / "evals", QUESTION)
    assert find_cases(skill) == [path]
    assert [case.id for case in load_cases(skill, ["fr*"])] == ["france"]
    with pytest.raises(FixtureError, match="no case matches --case 'peru'"):
        load_cases(skill, ["peru"])


def test_choice_is_ranked_by_exact_match_and_sends_no_schema(tmp_path: Path) -> None:
    skill = choice(tmp_path)
    assert (list(skill.scoring.metrics), skill.scoring.primary_metric) == (["exact_match"], "exact_match")
    assert skill.contract.schema is None
    (case,) = load(tmp_path, QUESTION)
    request = build_request(skill, case)
    assert (request.schema, request.dialogue[0].text) == (None, case.document)


def test_other_metrics_may_be_declared(tmp_path: Path) -> None:
    metrics = ["field_level_f1", "exact_match", "jaccard"]
    scoring = choice(tmp_path, datasets={"metrics": metrics}).scoring
    assert (list(scoring.metrics), scoring.primary_metric) == (metrics, "exact_match")


def test_schema_of_a_choice_is_refused(tmp_path: Path) -> None:
    folder = write_component(tmp_path, prompt=PROMPT)
    with pytest.raises(ComponentError, match=r"schema\.json has no effect with `output: choice`"):
        load_component(folder.parent, NAME)

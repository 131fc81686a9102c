"""The bias mitigations of a criterion, in the question or in the choice of judges."""

import json
from typing import Any

import pytest
from skill_evaluator.judges.modes.pairwise import PairItem, make_matches
from skill_evaluator.judges.modes.scoring import score_questions
from skill_evaluator.judges.prompting.criteria import (
    NamedRubric,
    choose_criteria,
    families_of,
    family_of,
    family_warnings,
)
from skill_evaluator.judges.prompting.questions import OutputItem
from skill_evaluator.library.config import Model
from skill_evaluator.runner.journal import settings_digest

from tests.support.asked_judges import method, rubric_of

PAIRWISE, DIRECT = "pairwise_comparison", "direct_scoring"


def named(primary: str, *mitigations: str) -> NamedRubric:
    rubric = rubric_of({"method": method(primary, *mitigations)})
    return choose_criteria("rubric.yaml", rubric, (), (DIRECT, PAIRWISE, "reference_based"))


def told(primary: str, *mitigations: str) -> str:
    """All texts of the questions about one item."""
    rubric = named(primary, *mitigations)
    if primary == PAIRWISE:
        item = PairItem(id="a", output_1="one", output_2="other")
        questions = [question for match in make_matches(rubric, [item], 0)[0] for question in match.questions]
    else:
        single = OutputItem(id="a", output="one", source="other")
        questions = [asked.question for asked in score_questions(rubric, [single], 0)[0]]
    return json.dumps([[question.system, question.user, question.schema] for question in questions])


@pytest.mark.parametrize(
    ("mitigation", "primary", "sentence"),
    [
        ("require_justification_first", DIRECT, "Argue before you decide"),
        ("evidence_required", "reference_based", "copied word for word from the texts: a score without one"),
        ("evidence_required", PAIRWISE, "copied word for word from the outputs: a verdict without one"),
        ("ignore_length", PAIRWISE, "Length is no merit"),
        ("ignore_position", PAIRWISE, "Which output stands first says nothing"),
        ("ties_allowed", PAIRWISE, "the winner is `tie`"),
    ],
)
def test_mitigation_adds_its_sentence_to_the_question(mitigation: str, primary: str, sentence: str) -> None:
    assert sentence in told(primary, mitigation)
    assert sentence not in told(primary)


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("claude", ["vertex/anthropic.claude-3@001", "claude-opus-4-7"]),
        ("mistral", ["ollama/mixtral:8x7b", "codestral-2508", "pixtral-large-2411", "devstral-small"]),
        ("palmyra", ["palmyra-x5"]),
        ("gemini", ["text-palm-2"]),
        ("smollm", ["smollm2-135m-instruct-greedy"]),
    ],
)
def test_family_of_a_model_is_read_from_its_name(family: str, names: list[str]) -> None:
    assert {family_of(name) for name in names} == {family}


def test_family_declared_in_models_yaml_wins_over_the_name() -> None:
    ours = Model(id="gpt-ours", provider="openai", family="Mistral")
    tuned = Model(id="in-house", provider="openai", base_url="http://127.0.0.1:8000", family="tuned")
    assert families_of([ours, tuned]) == {"gpt-ours": "mistral", "in-house": "tuned"}
    large = Model(id="mistral-large", provider="replay")
    assert family_warnings([large], [ours], ["gpt-ours"], "", refuse=False)
    assert settings_digest(ours) == settings_digest(ours.model_copy(update={"family": None}))  # no setting of its calls


def test_text_of_an_item_may_be_any_json_value() -> None:
    item: Any = OutputItem.model_validate({"id": "a", "prompt": ["x"], "output": {"total": 1}, "label": 3})
    assert (item.input, item.output) == ('[\n  "x"\n]', '{\n  "total": 1\n}')

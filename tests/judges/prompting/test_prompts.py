"""Prompts with their slots and tags, bias mitigations, and the families of models."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.modes.pairwise import PairItem, match_questions, matches_of
from skill_evaluator.judges.modes.scoring import score_questions
from skill_evaluator.judges.prompting.criteria import (
    NamedRubric,
    choose_criteria,
    families_of,
    family_of,
    family_warnings,
)
from skill_evaluator.judges.prompting.questions import (
    Form,
    OutputItem,
    delimited,
    digest_of,
    fill,
    load_prompt,
    mark_of,
)
from skill_evaluator.library.config import Model
from skill_evaluator.library.rubrics import MITIGATIONS
from skill_evaluator.runner.journal import settings_digest

from tests.support.asked_judges import method, rubric_of

METHODS = {"direct": "direct_scoring", "reference": "reference_based", "pairwise": "pairwise_comparison"}
IN_THE_REDUCTION = {"position_swap", "length_normalization", "different_model_family"}


@pytest.mark.parametrize("name", [*METHODS, "regression", "rubric"])
def test_shipped_prompt_has_a_sentence_for_each_mitigation(name: str) -> None:
    prompt = load_prompt(name)
    assert prompt.identity.name == f"judge-{name}"
    assert re.fullmatch(r"\d+\.\d+\.\d+", prompt.identity.version)
    if name in METHODS:
        wanted = {mitigation for mitigation, methods in MITIGATIONS.items() if METHODS[name] in methods}
        assert prompt.mitigations.keys() == wanted - IN_THE_REDUCTION


def test_slots_are_filled_once_and_empty_lines_are_dropped() -> None:
    assert fill("{{ output }}", {"output": "{{ input }}", "input": "secret"}) == "{{ input }}"
    template = "Start\n\nIt answers:\n{{ b }}\n\nIt is from:\n{{ b }}\n{{ c }}\n\nend"
    assert fill(template, {"b": "", "c": "x\n\n\ny"}) == "Start\n\nIt is from:\nx\n\n\ny\n\nend"


HOSTILE = st.text(st.sampled_from("<>/ judged_outpt5fJU\n")) | st.text()


@given(HOSTILE)
def test_text_cannot_close_its_tags_or_open_others(text: str) -> None:
    mark = mark_of(0, "sha256:1")
    lines = delimited("output", f"{text}</judged_output {mark}>{mark}<JUDGED_input x>", mark).split("\n")
    inside = "\n".join(lines[1:-1])
    assert mark not in inside
    assert not re.search(r"<\s*/?\s*judged_", inside, re.IGNORECASE)
    assert (lines[0], lines[-1]) == (f"<judged_output {mark}>", f"</judged_output {mark}>")
    if "judged_" not in text.lower():
        assert text in inside


def test_items_share_the_system_text_and_differ_in_mark() -> None:
    assert len({mark_of(1, "a"), mark_of(1, "b"), mark_of(2, "a")}) == 3
    first, second = (
        load_prompt("direct").question(name, {"criteria": "Is it short?"}, texts, Form.text(), mark_of(0, name))
        for name in ("a", "b")
        for texts in [{"input": "", "output": name}]
    )
    assert first.system == second.system
    assert digest_of(first) != digest_of(second)
    orders = [replace(first, schema=dict.fromkeys(keys)) for keys in (("evidence", "score"), ("score", "evidence"))]
    assert digest_of(orders[0]) != digest_of(orders[1])


PAIRWISE, DIRECT = "pairwise_comparison", "direct_scoring"


def named(primary: str, *mitigations: str) -> NamedRubric:
    rubric = rubric_of({"method": method(primary, *mitigations)})
    return choose_criteria("rubric.yaml", rubric, (), (DIRECT, PAIRWISE, "reference_based"))


def told(primary: str, *mitigations: str) -> str:
    """All texts of the questions about one item."""
    rubric = named(primary, *mitigations)
    if primary == PAIRWISE:
        item = PairItem(id="a", output_1="one", output_2="other")
        questions = match_questions(rubric, matches_of([item]), 0)
    else:
        single = OutputItem(id="a", output="one", source="other")
        questions = score_questions(rubric, [single], 0)
    return json.dumps([[question.system, question.dialogue[0].text, question.schema] for question in questions])


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

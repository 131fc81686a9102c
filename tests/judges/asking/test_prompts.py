"""A judge's prompt is a file that people review; what is judged goes into it as data."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.questions import delimited, fill, load_prompt, make_question, mark_of
from skill_evaluator.library.rubrics import MITIGATIONS

PROMPTS = ("direct", "reference", "pairwise")
METHODS = {"direct": "direct_scoring", "reference": "reference_based", "pairwise": "pairwise_comparison"}
IN_THE_REDUCTION = {"position_swap", "length_normalization", "different_model_family"}


def test_a_shipped_prompt_has_a_version_a_digest_and_a_sentence_for_each_mitigation() -> None:
    """A mitigation of its method that has none works in the reduction."""
    for name in (*PROMPTS, "regression", "rubric"):
        prompt = load_prompt(name)
        assert prompt.identity.name == f"judge-{name}", name
        assert re.fullmatch(r"\d+\.\d+\.\d+", prompt.identity.version), name
        assert prompt.identity.digest.startswith("sha256:"), name
    for name in PROMPTS:
        wanted = {mitigation for mitigation, methods in MITIGATIONS.items() if METHODS[name] in methods}
        assert load_prompt(name).mitigations.keys() == wanted - IN_THE_REDUCTION, name


def test_slots_are_filled_once_and_without_a_gap_and_one_without_a_value_is_named() -> None:
    assert fill("{{ output }}", {"output": "{{ input }}", "input": "secret"}) == "{{ input }}"
    template = "Start\n\nIt answers:\n{{ b }}\n\nIt is from:\n{{ b }}\n{{ c }}\n\nend"
    assert fill(template, {"b": "", "c": "x\n\n\ny"}) == "Start\n\nIt is from:\nx\n\n\ny\n\nend"
    with pytest.raises(JudgeError, match="slot 'outptu'"):
        fill("{{ outptu }}", {"output": ""})


HOSTILE = st.text(st.sampled_from("<>/ judged_outpt5fJU\n")) | st.text()


@given(HOSTILE)
def test_no_text_can_close_its_tags_or_open_others(text: str) -> None:
    mark = mark_of(0, "sha256:1")
    lines = delimited("output", f"{text}</judged_output {mark}>{mark}<JUDGED_input x>", mark).split("\n")
    inside = "\n".join(lines[1:-1])
    assert mark not in inside
    assert not re.search(r"<\s*/?\s*judged_", inside, re.IGNORECASE)
    assert (lines[0], lines[-1]) == (f"<judged_output {mark}>", f"</judged_output {mark}>")


@given(st.text().filter(lambda text: "judged_" not in text.lower()))
def test_any_other_text_is_shown_as_it_is(text: str) -> None:
    assert text in delimited("output", text, mark_of(0, "sha256:1"))


def test_the_mark_and_the_digest_tell_items_apart_and_the_system_text_is_that_of_every_item() -> None:
    assert mark_of(1, "a") == mark_of(1, "a")
    assert len({mark_of(1, "a"), mark_of(1, "b"), mark_of(2, "a")}) == 3
    slots = {"criteria": "Is it short?", "form": "{}"}
    made = [
        make_question(name, load_prompt("direct"), slots, {"input": "", "output": name}, {}, mark_of(0, name))
        for name in ("a", "b")
    ]
    assert made[0].system == made[1].system
    assert made[0].user != made[1].user
    assert made[0].digest != made[1].digest
    slots = {"criteria": "Is it short?", "form": "{}"}
    texts = {"input": "", "output": "a"}
    first, second = (
        make_question("a", load_prompt("direct"), slots, texts, dict.fromkeys(keys), "mark")
        for keys in (("evidence", "score"), ("score", "evidence"))
    )
    assert first.digest != second.digest

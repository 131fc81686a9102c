"""What a model is asked: the request of each replicate, its seed, and how many tokens it may take."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.library.components import Component
from skill_evaluator.providers.base import Request
from skill_evaluator.runner.schedule import build_request, estimate_input_tokens, most_input_tokens, replicate_seed

from tests.support.components import SCHEMA, case, component
from tests.support.json_values import quick

SEEDS = [1547857389, 1351065849, 2017599904]  # of seed 7, case-1: a change would make no two runs comparable


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    return component(tmp_path_factory.mktemp("library"))


def request(skill: Component, replicate: int = 0, seed: int = 0, case_id: str = "a") -> Request:
    return build_request(skill, case(case_id), replicate=replicate, seed=seed, max_output_tokens=99)


def test_the_prompt_is_system_text_the_document_user_text_and_the_schema_the_contract(skill: Component) -> None:
    assert request(skill, replicate=3) == Request(
        case_id="a",
        replicate=3,
        system="Read the receipt.",
        user="receipt a",
        max_output_tokens=99,
        seed=replicate_seed(0, "a", 3),
        schema=SCHEMA,
        schema_name="receipts",
    )


def test_the_document_is_sent_as_it_is_and_the_prompt_is_no_template(tmp_path: Path) -> None:
    skill = component(
        tmp_path, prompt="---\nversion: 1.0.0\nplaceholders: literal\n---\nUse {document} and $x and {{ y }}.\n"
    )
    assert request(skill).system == "Use {document} and $x and {{ y }}."
    assert request(skill).user == "receipt a"


def test_a_schemas_name_is_one_that_vendors_take(tmp_path: Path) -> None:
    skill = component(tmp_path, name="notes.v2", prompt="---\nversion: 1.0.0\n---\nRead.\n")
    assert request(skill).schema_name == "notes-v2"


def test_a_text_component_sends_no_schema(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt="---\nversion: 1.0.0\noutput: text\n---\nSay.\n", schema=None)
    assert request(skill).schema is None


def test_replicates_of_a_case_differ_by_their_seed_alone(skill: Component) -> None:
    first, second = request(skill, replicate=0), request(skill, replicate=1)
    assert first.seed != second.seed
    assert (first.system, first.user, first.schema) == (second.system, second.user, second.schema)


def test_seeds_are_those_of_every_earlier_run() -> None:
    assert [replicate_seed(7, "case-1", index) for index in range(3)] == SEEDS


@quick
@given(seed=st.integers(), case_id=st.text("ab/0", max_size=3), replicate=st.integers(0, 10**6))
def test_a_seed_has_31_bits_and_depends_on_nothing_else(seed: int, case_id: str, replicate: int) -> None:
    found = replicate_seed(seed, case_id, replicate)
    assert 0 <= found < 2**31
    assert found == replicate_seed(seed, case_id, replicate)


def test_seeds_of_a_run_differ() -> None:
    seeds = {replicate_seed(0, f"case-{index}", replicate) for index in range(50) for replicate in range(20)}
    assert len(seeds) == 1000


@pytest.mark.parametrize(
    ("text", "estimate", "most"),
    [
        ("", 16, 512),
        ("abcdefgh", 18, 520),
        ("é" * 4, 18, 520),  # bytes, not letters
    ],
)
def test_input_tokens_by_the_bytes_of_the_texts(text: str, estimate: int, most: int) -> None:
    asked = Request(case_id="a", replicate=0, system="", user=text, max_output_tokens=9, seed=0)
    assert (estimate_input_tokens(asked), most_input_tokens(asked)) == (estimate, most)


def test_a_schema_is_read_by_the_model_too(skill: Component) -> None:
    asked = request(skill)
    assert most_input_tokens(asked) > estimate_input_tokens(asked) > len(asked.system + asked.user) // 4 + 16

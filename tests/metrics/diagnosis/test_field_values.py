"""Which values each field got and how often; the stability of a field follows from them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.metrics.agreement.field_stability import field_stability_by_path
from skill_evaluator.metrics.diagnosis.field_profile import field_values

from tests.support.json_values import answers, order_plan, orders, thorough


def test_every_parsed_answer_gives_every_field_one_value() -> None:
    found = field_values(answers({"a": 1}, {"a": 1.0}, {"a": None}, {"b": [1, 2]}, {"b": [2, 1]}, unparseable=3))
    assert {path: sorted(counts.values()) for path, counts in found.items()} == {"a": [2, 3], "b[]": [2, 3]}
    assert found["a"][None] == 3


@thorough
@given(outputs=st.lists(orders, min_size=2, max_size=4), unparseable=st.integers(0, 2))
def test_the_commonest_value_is_what_stability_counts(outputs: list[Any], unparseable: int) -> None:
    given_answers = answers(*outputs, plan=order_plan("best"), unparseable=unparseable)
    found = field_values(given_answers)
    shares = {path: max(counts.values(), default=0) / given_answers.n for path, counts in found.items()}
    assert shares == field_stability_by_path(given_answers)
    assert all(counts.total() == len(outputs) for counts in found.values())

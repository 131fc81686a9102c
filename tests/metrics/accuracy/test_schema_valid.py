"""Whether an answer keeps its contract, by the draft that the schema names."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.metrics.accuracy.schema_valid import schema_valid
from skill_evaluator.metrics.base import Comparison

from tests.support.components import component

TUPLE = {"type": "array", "items": [{"type": "string"}]}


@pytest.mark.parametrize(
    ("schema", "output", "expected"),
    [
        ({"type": "object", "required": ["a"]}, {"a": None}, 1.0),  # present: validity is not a comparison
        # an array of schemas in `items` is by place in draft 7
        ({"$schema": "http://json-schema.org/draft-07/schema#", **TUPLE}, ["x", 5], 1.0),
        ({"$schema": "http://json-schema.org/draft-07/schema#", **TUPLE}, [5], 0.0),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]}, [5], 0.0),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "string"}]}, [5], 1.0),
    ],
)
def test_the_contract_is_that_of_the_schemas_draft(tmp_path: Path, schema: Any, output: Any, expected: float) -> None:
    skill = component(tmp_path, schema=schema)
    assert schema_valid(Comparison(None, output, skill.plan, skill.contract.conforms)) == expected


def test_without_a_schema_every_answer_keeps_it(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt="---\nversion: 1.0.0\noutput: text\n---\nSay.\n", schema=None)
    assert schema_valid(Comparison(None, "anything", skill.plan, skill.contract.conforms)) == 1.0

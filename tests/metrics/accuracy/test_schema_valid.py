"""Whether an answer keeps its contract, by the draft that the schema names."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.metrics.accuracy.schema_valid import schema_valid
from skill_evaluator.metrics.base import Comparison

from tests.support.components import component

TUPLE = {"type": "array", "items": [{"type": "string"}]}
DAY = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}
NODE = {
    "type": "object",
    "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "output", "expected"),
    [
        ({"type": "object", "required": ["a"]}, {"a": 1}, 1.0),
        ({"type": "object", "required": ["a"]}, {}, 0.0),
        ({"type": "object", "required": ["a"]}, {"a": None}, 1.0),  # present: validity is not a comparison
        ({"type": "integer"}, 1.0, 1.0),
        ({"type": "integer"}, True, 0.0),
        ({"enum": ["a", None]}, None, 1.0),
        # formats are checked
        (DAY, {"day": "2024-02-29"}, 1.0),
        (DAY, {"day": "2023-02-29"}, 0.0),
        (DAY, {"day": "29/02/2024"}, 0.0),
        # references within the file are followed
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "x", 1.0),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, 5, 0.0),
        (NODE, {"children": [{"children": []}]}, 1.0),
        (NODE, {"children": [{"kids": []}]}, 0.0),
        # an array of schemas in `items` is by place in draft 7
        ({"$schema": "http://json-schema.org/draft-07/schema#", **TUPLE}, ["x", 5], 1.0),
        ({"$schema": "http://json-schema.org/draft-07/schema#", **TUPLE}, [5], 0.0),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]}, [5], 0.0),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "string"}]}, [5], 1.0),
        # what JSON can hold and few expect
        ({"type": "number"}, 10**400, 1.0),
        ({"type": "string", "maxLength": 1}, "\U0001f600", 1.0),
    ],
)
def test_the_contract_is_that_of_the_schemas_draft(tmp_path: Path, schema: Any, output: Any, expected: float) -> None:
    skill = component(tmp_path, schema=schema)
    assert schema_valid(Comparison(None, output, skill.plan, skill.conforms)) == expected


def test_without_a_schema_every_answer_keeps_it(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt="---\nversion: 1.0.0\noutput: text\n---\nSay.\n", schema=None)
    assert schema_valid(Comparison(None, "anything", skill.plan, skill.conforms)) == 1.0

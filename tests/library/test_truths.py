"""What ground truths tell: which strings are prose, and that prose is compared as text unless told otherwise."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.components import Component, load_component

from tests.support.components import NAME, write_component

LONG = "x" * 61
SHORT = "x" * 60


def loaded(root: Path, properties: Any, truths: list[Any], *, prompt: str | None = None, **fields: Any) -> Component:
    """A component whose cases have these truths; without `properties` it has no schema."""
    schema = None if properties is None else {"type": "object", "properties": properties}
    more = {} if prompt is None else {"prompt": prompt}
    folder = write_component(root, schema=schema, datasets={"fields": fields} if fields else None, **more)
    for number, truth in enumerate(truths):
        case = root / "fixtures" / NAME / "cases" / str(number)
        case.mkdir(parents=True, exist_ok=True)
        (case / "ground_truth.json").write_bytes(truth if isinstance(truth, bytes) else json.dumps(truth).encode())
    return load_component(folder.parent, NAME, fixtures_dir=root / "fixtures")


@pytest.mark.parametrize(
    ("node", "values", "is_prose"),
    [
        ({"type": "string"}, [LONG], True),
        ({"type": "string"}, [SHORT, LONG], True),  # a median of 60.5
        ({"type": "string"}, [SHORT], False),
        ({"type": "string"}, ["", LONG, "a"], False),
        ({"type": "string", "pattern": "^x"}, [LONG], False),
        ({"type": "string", "format": "uri"}, [LONG], False),
        ({"type": "string", "enum": [LONG]}, [LONG], False),
        ({"$ref": "#/properties/other"}, [LONG], False),
        ({}, [LONG], False),
    ],
)
def test_prose_is_free_text_with_a_median_above_60(
    tmp_path: Path, node: Any, values: list[Any], *, is_prose: bool
) -> None:
    properties = {"a": node, "other": {"type": "string", "pattern": "x"}}
    component = loaded(tmp_path, properties, [{"a": value} for value in values])
    assert list(component.scoring.prose) == (["a"] if is_prose else [])
    assert (component.scoring.plan.leaf("a", "").compare == "text") == is_prose


@pytest.mark.parametrize(
    ("rule", "compare", "counts"),
    [
        ({}, "text", False),
        ({"threshold": 0.8}, "text", True),
        ({"compare": "string"}, "string", True),
        ({"casefold": True}, "string", True),
        ({"compare": "ignore"}, "ignore", False),
    ],
)
def test_declared_comparison_of_prose_decides(tmp_path: Path, rule: Any, compare: str, *, counts: bool) -> None:
    component = loaded(tmp_path, {"a": {"type": "string"}}, [{"a": LONG}], a=rule)
    assert (component.scoring.plan.leaves["a"].compare, component.scoring.plan.leaves["a"].counts) == (compare, counts)


def test_array_items_are_one_field_of_prose(tmp_path: Path) -> None:
    item = {"type": "object", "properties": {"why": {"type": "string"}}}
    properties = {
        "parts": {"type": "array", "items": item},
        "notes": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    truth = {"parts": [{"why": LONG}, {"why": LONG}, {"why": "b"}], "notes": {"ann": LONG, "bob": LONG}}
    assert list(loaded(tmp_path, properties, [truth]).scoring.prose) == ["parts[].why"]
    assert set(loaded(tmp_path, properties, [truth], **{"notes.*": {}}).scoring.prose) == {"parts[].why", "notes.*"}


def test_strings_without_a_schema_may_be_prose(tmp_path: Path) -> None:
    truth = {"a": LONG, "b": {"c": LONG}, "d": "short", "e": 1}
    component = loaded(tmp_path, None, [truth], a={"compare": "string"})
    assert (list(component.scoring.prose), component.scoring.plan.leaf("b.c", "").compare) == (["b.c"], "text")
    with pytest.raises(ComponentError, match=r"field 'b\.d' in .* does not exist: no ground truth has it"):
        loaded(tmp_path, None, [truth], **{"b.d": {"weight": 2}})


TEXT = f"---\nname: {NAME}\nversion: 1.0.0\noutput: text\n---\nSay.\n"


def test_whole_text_is_the_field_of_the_empty_path(tmp_path: Path) -> None:
    component = loaded(tmp_path / "long", None, [LONG, LONG], prompt=TEXT)
    assert (component.scoring.prose, component.scoring.primary_metric) == ({"": 61.0}, "exact_match")
    component = loaded(tmp_path / "counted", None, [LONG], prompt=TEXT, **{"": {"threshold": 0.7}})
    assert (component.scoring.plan.leaves[""].threshold, component.scoring.primary_metric) == (0.7, "field_level_f1")
    component = loaded(tmp_path / "short", None, ["Paris"], prompt=TEXT)
    assert (component.scoring.prose, component.scoring.plan.leaf("", "").compare) == ({}, "string")
    with pytest.raises(ComponentError, match=r"the output is one text, and the path of the whole output is \"\""):
        loaded(tmp_path / "wrong", None, [LONG], prompt=TEXT, answer={"weight": 2})


def test_prose_is_part_of_the_digest(tmp_path: Path) -> None:
    properties = {"a": {"type": "string"}}
    short = loaded(tmp_path / "short", properties, [{"a": SHORT}])
    long = loaded(tmp_path / "long", properties, [{"a": LONG}, b"{broken"])
    assert short.digests["datasets"] == loaded(tmp_path / "none", properties, []).digests["datasets"]
    assert long.digests["datasets"] != short.digests["datasets"]
    (tmp_path / "secret.json").write_text(json.dumps({"a": LONG}))
    case = tmp_path / "short" / "fixtures" / NAME / "cases" / "0" / "ground_truth.json"
    case.unlink()
    case.symlink_to(tmp_path / "secret.json")
    assert loaded(tmp_path / "short", properties, []).scoring.prose == {}

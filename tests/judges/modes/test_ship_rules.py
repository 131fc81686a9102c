"""Dimensions: by preset, by name, of the team's own, and what is wrong with a wish."""

from typing import get_args

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.judges.modes.regression import regression_form
from skill_evaluator.judges.modes.ship_rules import PRESETS, blocking_sentence, dimensions_of
from skill_evaluator.library.config import ComponentJudge


def test_names_replace_the_dimensions_of_a_preset() -> None:
    for preset, names, blocking in (
        ("default", ["factuality", "completeness", "format_adherence"], "factuality"),
        ("chat", ["factuality", "completeness", "tone"], "factuality"),
        ("code", ["correctness", "format", "efficiency"], "correctness"),
        ("checklist", ["completeness", "format"], "no dimension"),
    ):
        dimensions = dimensions_of(preset=preset)
        assert [dimension.name for dimension in dimensions] == names, preset
        assert blocking_sentence(dimensions) == f"any regression of {blocking} blocks, whatever its impact", preset
        assert set(PRESETS) == set(get_args(ComponentJudge.model_fields["preset"].annotation)), preset
    dimensions = dimensions_of(["correctness, house style"], preset="code", blocking=["House-Style"])
    assert [(dimension.name, dimension.blocking) for dimension in dimensions] == [
        ("correctness", False),  # it blocks by the preset, which is not used
        ("house_style", True),
    ]


def test_invalid_dimension_is_an_error() -> None:
    for names, preset, complaint in (
        ((), "chatt", "unknown preset 'chatt' (did you mean 'chat'?)"),
        (["tone", "Tone"], "default", "the dimension 'tone' is named twice"),
        (["a\u202eb"], "default", "'a\\u202eb' is not a dimension: use at most 100 printable characters"),
        (["x" * 101], "default", f"'{'x' * 100}' is not a dimension: use at most 100 printable characters"),
    ):
        with pytest.raises(ConfigError) as caught:
            dimensions_of(names, preset)
        assert str(caught.value) == complaint, names


def test_form_has_the_findings_before_the_decision() -> None:
    schema, shown = regression_form(dimensions_of())
    keys = "per_dimension regression_detected regression_severity ship_decision ship_reason decision_basis"
    assert list(schema["properties"]) == list(shown) == keys.split()
    keys = "dimension verdict evidence_baseline evidence_candidate impact"
    assert list(schema["properties"]["per_dimension"]["items"]["properties"]) == keys.split()
    assert schema["required"] == list(schema["properties"])

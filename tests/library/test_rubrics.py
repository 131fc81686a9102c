"""Rubrics: both forms, and mistakes with file, line, key path and the nearest name."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.rubrics import Rubric, find_rubrics, load_rubric, read_rubric_text

from tests.support.rubrics import level, some_criterion, some_levels

ROOT = Path(__file__).parents[2]
SHAPE = """\
criteria:
  - name: "Right totals"
    id: "EVAL-001"
    type: "objective"
    description: "Whether the totals are the sums of the rows"
    rubric:
      1:
        label: "Wrong"
        description: "A total differs from the sum of its rows"
        characteristics:
          - "The last row is no sum"
      3:
        label: "Rounded"
        description: "Totals are the rounded sums"
      5:
        label: "Exact"
        description: "Totals are the sums"
        characteristics:
          - "Each total is the sum to the cent"
        examples:
          - "2.50 + 2.50 = 5.00"
    edge_cases:
      - situation: "A row is empty"
        guidance: "It counts as zero"
    method:
      primary: "direct_scoring"
      bias_mitigations:
        - "require_justification_first"
      confidence_threshold: 0.8
    weight: 2.0
"""


def _write(root: Path, content: Any, name: str = "totals.yaml") -> Path:
    path = root / name
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    return path


def rubric_of(**changed: Any) -> Rubric:
    return Rubric.model_validate({"criteria": [some_criterion(**changed)]})


def test_yaml_form_is_read(tmp_path: Path) -> None:
    (criterion,) = load_rubric(_write(tmp_path, SHAPE)).criteria
    assert (criterion.id, criterion.type, criterion.weight, criterion.highest) == ("EVAL-001", "objective", 2.0, 5)
    assert list(criterion.rubric) == [1, 3, 5]
    assert criterion.rubric[5].examples == ("2.50 + 2.50 = 5.00",)
    assert criterion.edge_cases[0].guidance == "It counts as zero"
    assert criterion.method is not None
    assert criterion.method.bias_mitigations == ("require_justification_first",)
    assert criterion.method.confidence_threshold == 0.8


def test_json_form_is_a_criterion_named_like_its_file(tmp_path: Path) -> None:
    levels = some_levels()
    del levels["type"]
    tabs = json.dumps(levels, indent="\t")  # YAML has no lines for it
    (criterion,) = load_rubric(_write(tmp_path, tabs, "right-totals.json")).criteria
    assert (criterion.name, criterion.id, criterion.type) == ("Right totals", "right-totals", None)
    assert criterion.description == "The totals are exact"
    assert [criterion.rubric[score].label for score in (1, 3, 5)] == ["wrong", "rounded", "exact"]
    assert criterion.edge_cases[0].situation == "A row is empty"
    assert (criterion.primary_method, criterion.highest) == ("direct_scoring", 5)


@pytest.mark.parametrize(
    ("levels", "scale", "highest"),
    [((1, 3), None, 3), ((1, 2, 5), None, 5), ((1, 6), None, 10), ((1, 3), "1-5", 5), ((1, 2), "1-10", 10)],
)
def test_scale_is_the_shortest_with_all_levels(levels: tuple[int, ...], scale: str | None, highest: int) -> None:
    rubric = {str(score): level("some") for score in levels}
    assert rubric_of(rubric=rubric, scale=scale).criteria[0].highest == highest


def test_type_decides_the_method() -> None:
    for kind, method in (("objective", "direct_scoring"), ("subjective", "pairwise_comparison")):
        assert rubric_of(type=kind, method=None).criteria[0].primary_method == method


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ("type:", "typ:", 4, "unknown key at criteria[0].typ (did you mean 'type'?)"),
        ('"objective"', '"objektive"', 4, "unknown value 'objektive' at criteria[0].type (did you mean 'objective'?)"),
        ('label: "Wrong"', 'lable: "Wrong"', 7, "a required key is missing at criteria[0].rubric[1].label"),
        ("      5:", "      12:", 15, "level 12 is not on a scale; levels are whole numbers from 1 to 3, 5 or 10"),
        ("require_justification_first", "positon_swap", 28, "(did you mean 'position_swap'?)"),
        ("weight: 2.0", "scale: 1-3", 2, "level 5 of `rubric` is above the scale 1-3 at criteria[0]"),
        ("      3:", "      1:", 12, "duplicate key '1', first on line 7"),
    ],
)  # fmt: skip
def test_mistake_has_line_key_path_and_nearest_name(
    before: str, after: str, line: int, message: str, tmp_path: Path
) -> None:
    path = _write(tmp_path, SHAPE.replace(before, after, 1))
    with pytest.raises(ConfigError) as caught:
        load_rubric(path)
    assert str(caught.value).startswith(f"{path}:{line}:")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"levels": [{"score": 1, **level("wrong")}]}, "at least 2 entries are expected at levels"),
        ({"levels": [{"score": 1, **level("a")}, {"score": 1, **level("b")}]}, "levels[0] and levels[1] have the same"),
        ({"levels": [{"score": 0, **level("a")}, {"score": 5, **level("b")}]}, "level 0 is not on a scale"),
        ({"edgeCase": []}, "unknown key at edgeCase (did you mean 'edgeCases'?)"),
        ({"criteria": [some_criterion(), some_criterion()]}, "criteria[0] and criteria[1] have the same id totals"),
    ],
)
def test_mistake_in_the_json_form_has_its_key_path(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = _write(tmp_path, changed if "criteria" in changed else some_levels(**changed), "totals.json")
    with pytest.raises(ConfigError, match=r"totals\.json:\d+: ") as caught:
        load_rubric(path)
    assert message in str(caught.value)


def test_rubric_mistakes_are_listed_by_line(tmp_path: Path) -> None:
    path = _write(tmp_path, {"criteria": [some_criterion(id="a", weight=-1), some_criterion(id="b", type="c")]})
    rubric, problems = read_rubric_text(path).check()
    assert rubric is None
    assert [problem.message.rpartition(" at ")[2].split()[0] for problem in problems] == [
        "criteria[0].weight",
        "criteria[1].type",
    ]


def test_digest_ignores_layout(tmp_path: Path) -> None:
    plain = load_rubric(_write(tmp_path, {"criteria": [some_criterion()]}))
    spaced = load_rubric(_write(tmp_path, "# a comment\n" + json.dumps({"criteria": [some_criterion()]})))
    other = load_rubric(_write(tmp_path, {"criteria": [some_criterion(weight=2)]}))
    assert plain.digest == spaced.digest != other.digest


def test_shipped_rubrics_describe_levels_and_name_the_schema() -> None:
    for path in find_rubrics(ROOT / ".evaluator"):
        assert path.read_text().startswith("# yaml-language-server: $schema=../schemas/rubric.json\n")
        for criterion in load_rubric(path).criteria:
            assert list(criterion.rubric) == [1, 2, 3, 4, 5]
            assert len(criterion.edge_cases) >= 3

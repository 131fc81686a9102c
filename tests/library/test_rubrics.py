"""Rubrics: both shapes are read, every mistake is named with file, line and key path, and names have a nearest one."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.rubrics import Mitigation, Rubric, find_rubrics, load_rubric, read_rubric_text

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


def test_the_yaml_shape_is_read_whole(tmp_path: Path) -> None:
    (criterion,) = load_rubric(_write(tmp_path, SHAPE)).criteria
    assert (criterion.id, criterion.type, criterion.weight, criterion.highest) == ("EVAL-001", "objective", 2.0, 5)
    assert list(criterion.rubric) == [1, 3, 5]
    assert criterion.rubric[5].examples == ("2.50 + 2.50 = 5.00",)
    assert criterion.edge_cases[0].guidance == "It counts as zero"
    assert criterion.method is not None
    assert criterion.method.bias_mitigations == ("require_justification_first",)
    assert criterion.method.confidence_threshold == 0.8


def test_levels_with_edge_cases_in_json_are_a_rubric_of_one_criterion_named_like_the_file(tmp_path: Path) -> None:
    levels = some_levels()
    del levels["type"]
    (criterion,) = load_rubric(_write(tmp_path, levels, "right-totals.json")).criteria
    assert (criterion.name, criterion.id, criterion.type) == ("Right totals", "right-totals", None)
    assert criterion.description == "The totals are exact"
    assert [criterion.rubric[score].label for score in (1, 3, 5)] == ["wrong", "rounded", "exact"]
    assert criterion.edge_cases[0].situation == "A row is empty"
    assert (criterion.primary_method, criterion.highest) == ("direct_scoring", 5)


def test_json_indented_by_tabs_is_read_although_yaml_has_no_lines_for_it(tmp_path: Path) -> None:
    path = tmp_path / "totals.json"
    path.write_text(json.dumps(some_levels(), indent="\t"))
    assert load_rubric(path).criteria[0].id == "totals"


@pytest.mark.parametrize(
    ("levels", "scale", "highest"),
    [((1, 3), None, 3), ((1, 2, 5), None, 5), ((1, 6), None, 10), ((1, 3), "1-5", 5), ((1, 2), "1-10", 10)],
)
def test_the_scale_is_the_shortest_that_has_all_levels_unless_one_is_named(
    levels: tuple[int, ...], scale: str | None, highest: int
) -> None:
    rubric = {str(score): level("some") for score in levels}
    read = Rubric.model_validate({"criteria": [some_criterion(rubric=rubric, scale=scale)]})
    assert read.criteria[0].highest == highest


@pytest.mark.parametrize(("kind", "method"), [("objective", "direct_scoring"), ("subjective", "pairwise_comparison")])
def test_the_type_decides_the_method_where_none_is_named(kind: str, method: str) -> None:
    read = Rubric.model_validate({"criteria": [some_criterion(type=kind, method=None)]})
    assert read.criteria[0].primary_method == method


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ("type:", "typ:", 4, "unknown key at criteria[0].typ (did you mean 'type'?)"),
        ('"objective"', '"objektive"', 4, "unknown value 'objektive' at criteria[0].type (did you mean 'objective'?)"),
        ('label: "Wrong"', 'lable: "Wrong"', 7, "a required key is missing at criteria[0].rubric[1].label"),
        ("      5:", "      12:", 15, "level 12 is on no scale; levels are whole numbers, from 1 to 3, 5 or 10"),
        ("examples:", "exampels:", 20, "unknown key at criteria[0].rubric[5].exampels (did you mean 'examples'?)"),
        ("guidance:", "guidence:", 23, "a required key is missing at criteria[0].edge_cases[0].guidance"),
        ("direct_scoring", "direct", 26, "(did you mean 'direct_scoring'?)"),
        ("require_justification_first", "positon_swap", 28, "(did you mean 'position_swap'?)"),
        ("0.8", "80", 29, "Input should be less than or equal to 1, got 80 at criteria[0].method.conf"),
        ("2.0", "0", 30, "Input should be greater than 0, got 0 at criteria[0].weight"),
        ("weight: 2.0", "scale: 1-3", 2, "level 5 of rubric is not on the scale 1-3 at criteria[0]"),
        ("      3:", "      1:", 12, "the key '1' is on line 7 already"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_line_key_path_and_the_nearest_name(
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
        ({"levels": [{"score": 0, **level("a")}, {"score": 5, **level("b")}]}, "level 0 is on no scale"),
        ({"edgeCase": []}, "unknown key at edgeCase (did you mean 'edgeCases'?)"),
    ],
)
def test_a_mistake_in_the_json_form_is_named_as_the_file_has_it(
    changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = _write(tmp_path, some_levels(**changed), "totals.json")
    with pytest.raises(ConfigError, match=r"totals\.json:\d+: ") as caught:
        load_rubric(path)
    assert message in str(caught.value)


def test_two_criteria_of_one_id_are_refused(tmp_path: Path) -> None:
    path = _write(tmp_path, {"criteria": [some_criterion(), some_criterion()]})
    with pytest.raises(ConfigError, match=r"criteria\[0\] and criteria\[1\] have the same id totals"):
        load_rubric(path)


def test_all_mistakes_of_a_file_are_found_in_the_order_of_their_lines(tmp_path: Path) -> None:
    path = _write(tmp_path, {"criteria": [some_criterion(id="a", weight=-1), some_criterion(id="b", type="c")]})
    rubric, problems = read_rubric_text(path).check()
    assert rubric is None
    assert [problem.message.rpartition(" at ")[2].split()[0] for problem in problems] == [
        "criteria[0].weight",
        "criteria[1].type",
    ]


def test_the_digest_follows_what_is_said_and_not_how_it_is_laid_out(tmp_path: Path) -> None:
    plain = load_rubric(_write(tmp_path, {"criteria": [some_criterion()]}))
    spaced = load_rubric(_write(tmp_path, "# a comment\n" + json.dumps({"criteria": [some_criterion()]})))
    other = load_rubric(_write(tmp_path, {"criteria": [some_criterion(weight=2)]}))
    assert plain.digest == spaced.digest != other.digest


def test_every_word_of_the_vocabulary_is_accepted() -> None:
    method = {"primary": "pairwise_comparison", "bias_mitigations": list(Mitigation.__args__)}  # type: ignore[attr-defined]
    read = Rubric.model_validate({"criteria": [some_criterion(method=method)]})
    assert read.criteria[0].method is not None
    assert len(read.criteria[0].method.bias_mitigations) == 8


def test_the_six_shipped_rubrics_describe_every_level_and_name_their_schema_first() -> None:
    paths = find_rubrics(ROOT / ".evaluator")
    assert [path.stem for path in paths] == [
        "code-correctness",
        "complete-summary",
        "faithful-rationale",
        "instruction-following",
        "readable-code",
        "support-reply",
    ]
    for path in paths:
        assert path.read_text().startswith("# yaml-language-server: $schema=../schemas/rubric.json\n")
        for criterion in load_rubric(path).criteria:
            assert list(criterion.rubric) == [1, 2, 3, 4, 5]
            assert all(found.characteristics for found in criterion.rubric.values())
            assert len(criterion.edge_cases) >= 3

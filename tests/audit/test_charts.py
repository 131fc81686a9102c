"""The charts of an audit: valid SVG with every name and figure, and no mark-up from names."""

import json
import re
from collections.abc import Mapping
from xml.etree import ElementTree

import pytest
from skill_evaluator.audit.charts import MAX_NAMED, box_chart, heat_map, quadrant_map
from skill_evaluator.audit.page import audit_page
from skill_evaluator.audit.results import AuditResult
from skill_evaluator.display import visible
from skill_evaluator.display.chart_style import svg
from skill_evaluator.display.pages import draw_charts

from tests.audit.cubes import an_audit
from tests.support.odd_texts import HOSTILE

ELEMENTS = {"svg", "defs", "g", "rect", "path", "line", "text", "tspan", "linearGradient", "stop"}


def drawn(result: AuditResult) -> Mapping[str, str]:
    return draw_charts(audit_page(result).blocks)


def words(chart: str) -> str:
    """All that a chart says, to eyes and to screen readers."""
    root = ElementTree.fromstring(chart)
    said = [one.get("aria-label") or "" for one in root.iter()]
    return "\n".join([*root.itertext(), *said])


@pytest.fixture(scope="module")
def charts() -> Mapping[str, str]:
    return drawn(an_audit())


def test_charts_are_white_and_load_nothing(charts: Mapping[str, str]) -> None:
    assert list(charts) == ["map.svg", "boxes.svg", "heat.svg"]
    for chart in charts.values():
        assert re.search(r'<rect width="\d+(\.\d+)?" height="\d+(\.\d+)?" fill="white"', chart)
        assert set(re.findall(r'font-family="([^"]+)"', chart)) == {"sans-serif"}
        assert "href" not in chart


def test_charts_hold_the_figures_of_the_result(charts: Mapping[str, str]) -> None:
    result = an_audit()
    for one in result.models:
        grade = one.grading.grade
        figures = f"{one.model}: ability {one.ability:.2f}, fluctuation {one.fluctuation:.2f}, grade {grade}"
        assert figures in words(charts["map.svg"])
        for scenario, score in one.scenarios.items():
            assert f"{one.model} in {scenario}: {score:.1f}" in words(charts["heat.svg"])
        assert one.model in words(charts["boxes.svg"])


def test_point_of_the_map_is_on_its_bar_and_quadrants_are_numbered(charts: Mapping[str, str]) -> None:
    intervals = {model.fluctuation: model.fluctuation_ci95 for model in an_audit().models}
    assert all(low <= point <= high for point, (low, high) in intervals.items())
    for name in ("Q1 safe default", "Q2 predictable baseline", "Q3 avoid", "Q4 strong but scenario-fragile"):
        assert name in words(charts["map.svg"])


def test_same_result_gives_the_same_chart(charts: Mapping[str, str]) -> None:
    assert svg(heat_map(an_audit())) == charts["heat.svg"]


def test_single_model_has_no_quadrant_and_many_have_no_names() -> None:
    alone = an_audit(models=("alone",))
    bare = alone.models[0].model_copy(update={"ability_ci95": None, "fluctuation_ci95": None})
    said = words(svg(quadrant_map(alone.model_copy(update={"models": [bare]}))))
    assert "alone: ability" in said
    assert not any(word in said for word in ("avoid", "median", "interval", "noise", "grade"))
    models = [f"vendor/model-{at:02}-instruct" for at in range(MAX_NAMED + 1)]
    chart = svg(quadrant_map(an_audit(models=models)))
    assert not set(models) & set(ElementTree.fromstring(chart).itertext())
    assert all(f"{name}: ability" in words(chart) for name in models)


def test_grade_has_one_colour_in_every_chart() -> None:
    """Of three models none has the third grade."""
    for chart in (quadrant_map, box_chart):
        specified = json.dumps(chart(an_audit(models=("ash", "birch", "cedar"))).to_dict(validate=False))
        assert {*re.findall(r'"domain": (\["AAA"[^]]*)], "range": \["#', specified)} == {'["AAA", "AA", "A", "BBB"'}


def test_name_is_no_mark_up_in_a_chart() -> None:
    models = [text for text in HOSTILE if set(text) & set("<&\x1b\ud800")]
    result = an_audit(models=models, scenarios=("<script>", "a&b", "]]>\x00"), benchmarks=("<b>&\ud800",))
    charts = drawn(result)
    for chart in charts.values():
        assert {one.tag.partition("}")[2] for one in ElementTree.fromstring(chart).iter()} <= ELEMENTS
    said = words(charts["map.svg"])
    assert all(f"{visible(name)}: ability" in said for name in models)

"""The charts of an audit: the map of ability and fluctuation, the heat map and the box plot."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from skill_evaluator.audit.results import AuditResult, ModelAudit
from skill_evaluator.audit.statistics import QUADRANT_OF, QUADRANTS, SCALES
from skill_evaluator.display import chart_style, name_text, visible

MAX_NAMED = 25  # models; more names would hide the points
_WIDTH, _HEIGHT = 780, 500
_MARGIN = 0.06
_TITLE_OFFSET = 52  # pixels from the axis to the name of a quadrant, below the axis title
_NAME_OFFSET = 9  # pixels from a point to its name
_TITLES = ("ability: % right, mean over scenarios →", "fluctuation: spread over scenarios, points →")
_UNGRADED = "no grade"
_BLUE = "#0072b2"
_COLOURS = (_BLUE, "#009e73", "#e69f00", "#d55e00")  # Okabe and Ito's
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
_ARIA = {"description": alt.Description("description:N"), "tooltip": alt.Tooltip("description:N")}
_CELL_HEIGHT, _WIDE_CELL, _NARROW_CELL, _MANY_SCENARIOS = 21, 54, 40, 14
_BOX_STEP, _BOX_WIDTH = 26, 640
_TEXT_ON_DARK, _TEXT_ON_LIGHT = "#fff", "#000"  # text on a cell, whose colour is the same in dark mode
_MAX_LABEL = 240  # pixels
_MAX_PALE_DEVIATION = 0.6  # share of the largest deviation; text on deeper colours is white


class _Axes:
    """The axes that all layers of `quadrant_map` share: x is a model's ability, and y its fluctuation (from 0)."""

    def __init__(self, points: Sequence[dict[str, Any]]) -> None:
        across = [value for point in points for value in (point["ability"], *point["ability_ci95"])]
        up = [value for point in points for value in (point["fluctuation"], *point["fluctuation_ci95"])]
        highest = max(up, default=1.0) or 1.0
        low, high = min(across, default=0.0), max(across, default=100.0)
        margin = max((high - low) * _MARGIN, 1.0)
        self.across = max(low - margin, 0.0), min(high + margin, 100.0)
        self.up = 0.0, highest * (1 + 2 * _MARGIN)

    def x(self, name: str) -> alt.X:
        scale = alt.Scale(domain=list(self.across), nice=False, zero=False)
        return alt.X(name, type="quantitative", scale=scale, title=_TITLES[0], axis=alt.Axis(tickCount=10))

    def y(self, name: str) -> alt.Y:
        scale = alt.Scale(domain=list(self.up), nice=False, zero=False)
        return alt.Y(name, type="quantitative", scale=scale, title=_TITLES[1])


def quadrant_map(result: AuditResult) -> alt.LayerChart:
    """Draw each model by its ability (x) and its fluctuation over scenarios (y), with confidence intervals."""
    shown = [_point(model) for model in result.best_first()]
    legend = ["Lower right is better."]
    if result.figures.medians is not None:
        legend.append("Grey lines: medians of the models.")
    if any(point["ability_ci95"] or point["fluctuation_ci95"] for point in shown):
        legend.append("Bars: 95 % confidence intervals.")
    if len(shown) > MAX_NAMED:
        legend.append("The table has the names.")
    axes = _Axes(shown)
    layers = [*_quadrants(result, axes), *_model_layers(shown, axes)]
    heading = chart_style.title("Ability and fluctuation", " ".join(legend))
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=heading)


def _point(model: ModelAudit) -> dict[str, Any]:
    grade = _grade_name(model)
    figures = f"ability {model.ability:.2f}, fluctuation {model.fluctuation:.2f}"
    graded = "" if model.grading.grade is None else f", grade {grade}"
    return {
        "ability": model.ability,
        "fluctuation": model.fluctuation,
        "name": chart_style.short_name(model.model),
        "grade": grade,
        "description": f"{visible(model.model)}: {figures}{graded}",
        "ability_ci95": model.ability_ci95 or (),
        "fluctuation_ci95": model.fluctuation_ci95 or (),
    }


def _grade_name(model: ModelAudit) -> str:
    return _UNGRADED if model.grading.grade is None else visible(model.grading.grade)


def _quadrants(result: AuditResult, axes: _Axes) -> list[Any]:
    if result.figures.medians is None:
        return []
    middle = {"x": result.figures.medians.ability, "y": result.figures.medians.fluctuation}
    best = {"left": middle["x"], "right": axes.across[1], "low": axes.up[0], "high": middle["y"]}
    tint = chart_style.drawn_from([best]).mark_rect(color=_BLUE, opacity=0.06, aria=False)
    lines = chart_style.drawn_from([middle]).mark_rule(color=chart_style.GREY, strokeWidth=1)
    layers = [
        tint.encode(x=axes.x("left"), x2="right", y=axes.y("low"), y2="high"),
        lines.encode(x=axes.x("x")),
        lines.encode(y=axes.y("y")),
    ]
    for (able, stable), name in QUADRANT_OF.items():  # names outside of the axes, clear of points
        corner = {"x": axes.across[able], "y": axes.up[not stable], "name": f"{QUADRANTS[name]} {name}"}
        style = {
            "baseline": "bottom",
            "fontStyle": "italic",
            "fontSize": chart_style.FONT_SIZE,
            "color": chart_style.GREY,
        }
        mark = chart_style.drawn_from([corner]).mark_text
        layer = mark(**style, align="right" if able else "left", dy=_TITLE_OFFSET if stable else -4)
        layers.append(layer.encode(axes.x("x"), axes.y("y"), text="name:N"))
    return layers


def _model_layers(shown: Sequence[dict[str, Any]], axes: _Axes) -> list[Any]:
    colour, shape = _grade_encodings(point["grade"] for point in shown)
    style = {"strokeWidth": 1.3, "opacity": 0.4 if len(shown) <= MAX_NAMED else 0.22, "aria": False}
    across, up = (
        chart_style.drawn_from(
            [{**point, "low": point[name][0], "high": point[name][1]} for point in shown if point[name]]
        )
        for name in ("ability_ci95", "fluctuation_ci95")
    )
    marks = chart_style.drawn_from(shown).mark_point(filled=True, size=75, opacity=1, stroke="white", strokeWidth=0.8)
    x, y = axes.x("ability"), axes.y("fluctuation")
    layers = [
        across.mark_rule(**style).encode(x=axes.x("low"), x2="high", y=y, color=colour),
        up.mark_rule(**style).encode(x=x, y=axes.y("low"), y2="high", color=colour),
        marks.encode(x=x, y=y, color=colour, shape=shape, **_ARIA),
    ]
    if len(shown) > MAX_NAMED:
        return layers
    middle = sum(axes.across) / 2
    for align, dx in (("left", _NAME_OFFSET), ("right", -_NAME_OFFSET)):  # names on the inner side, clear of the axes
        named_points = [point for point in shown if (point["ability"] <= middle) == (align == "left")]
        if named_points:
            text = chart_style.drawn_from(named_points).encode(x=x, y=y, text="name:N")
            label: dict[str, Any] = {"align": align, "baseline": "middle", "dx": dx, "fontSize": chart_style.FONT_SIZE}
            halo = text.mark_text(**label, stroke="white", strokeWidth=3, aria=False)
            layers += [halo, text.mark_text(**label, color=chart_style.INK)]
    return layers


def _grade_encodings(names: Iterable[str]) -> tuple[alt.Color, alt.Shape]:
    plain = {_UNGRADED}.intersection(shown := set(names))
    scale = next((list(scale) for scale in SCALES.values() if shown - plain <= {*scale}), sorted(shown - plain))
    graded = [*(scale if shown - plain else ()), *plain]
    colours = alt.Scale(domain=graded, range=_COLOURS[: len(graded)])
    if len(graded) > len(_COLOURS):
        colours = alt.Scale(domain=graded, scheme=alt.SchemeParams(name="viridis", extent=[0, 0.88]))
    shapes = alt.Scale(domain=graded, range=[_SHAPES[at % len(_SHAPES)] for at in range(len(graded))])
    legend = alt.Legend(title="grade", orient="top", direction="horizontal", symbolOpacity=1, offset=24)
    shared: dict[str, Any] = {"sort": graded, "legend": legend if shown - plain else None}
    return alt.Color("grade:N", scale=colours, **shared), alt.Shape("grade:N", scale=shapes, **shared)


def heat_map(result: AuditResult) -> Any:
    """Draw the score of each model in each scenario, coloured by its difference from the model's ability."""
    rows = [row for model in result.ablest_first() for row in _cells(model)]
    largest = max((abs(row["deviation"]) for row in rows), default=0.0) or 1.0
    rows = [{**row, "pale": abs(row["deviation"]) > _MAX_PALE_DEVIATION * largest} for row in rows]
    across, cell = _scenario_axis(result)
    width = cell * len(result.scenarios)
    base = chart_style.drawn_from(rows).encode(x=across, y=_model_axis(result.ablest_first()))
    colour = alt.Color(
        "deviation:Q",
        scale=alt.Scale(scheme="redblue", domain=[-largest, largest], domainMid=0),
        legend=alt.Legend(
            title="points from the model's ability", titleLimit=0, orient="bottom", gradientLength=240, format="+.1f"
        ),
    )
    text = base.mark_text(fontSize=chart_style.FONT_SIZE - 1, aria=False).encode(
        text="score:N", color=alt.condition("datum.pale", alt.value(_TEXT_ON_DARK), alt.value(_TEXT_ON_LIGHT))
    )
    heading = chart_style.title(
        "Score in each scenario",
        "% right in each scenario. Blue: better than the model's own ability; red: worse. The ablest model is on top.",
        width=width,
    )
    squares = base.mark_rect(stroke="white", strokeWidth=1).encode(color=colour, **_ARIA)
    height = _CELL_HEIGHT * len(result.models)
    return alt.layer(squares, text).properties(width=width, height=height, title=heading)


def _cells(model: ModelAudit) -> list[dict[str, Any]]:
    return [
        {
            "model": name_text(model.model),
            "scenario": name_text(scenario),
            "score": f"{score:.1f}",
            "deviation": score - model.ability,
            "description": f"{visible(model.model)} in {visible(scenario)}: {score:.1f}",
        }
        for scenario, score in model.scenarios.items()
    ]


def box_chart(result: AuditResult) -> Any:
    """Draw a box plot of each model's scores in the scenarios. The ablest model is on top."""
    rows = [
        {**row, "value": score, "grade": _grade_name(model)}
        for model in result.models
        for row, score in zip(_cells(model), model.scenarios.values(), strict=True)
    ]
    base = chart_style.drawn_from(rows).encode(
        x=alt.X("value:Q", title="% right in a scenario", scale=alt.Scale(zero=False)),
        y=_model_axis(result.ablest_first()),
    )
    boxes = base.mark_boxplot(
        extent="min-max",
        size=13,
        opacity=0.45,
        median={"color": chart_style.INK, "strokeWidth": 2},
        rule={"color": chart_style.GREY},
        box={"stroke": chart_style.GREY, "strokeWidth": 0.6},
    ).encode(color=_grade_encodings(row["grade"] for row in rows)[0])
    dots = base.mark_circle(color=chart_style.INK, opacity=0.5, size=16, aria=False)
    heading = chart_style.title(
        "Spread over the scenarios",
        "Box: the middle half; line: the median; whiskers: the worst and the best scenario; dots: scenarios.",
        width=_BOX_WIDTH,
    )
    height = _BOX_STEP * len(result.models)
    return alt.layer(boxes, dots).properties(width=_BOX_WIDTH, height=height, title=heading)


def _model_axis(models: Iterable[ModelAudit]) -> alt.Y:
    return alt.Y("model:N", sort=[name_text(model.model) for model in models], title=None, axis=_name_axis("left"))


def _scenario_axis(result: AuditResult) -> tuple[alt.X, int]:
    """Return the axis of scenario names, and the width of one scenario in pixels."""
    names = [name_text(name) for name in result.scenarios]
    width = _WIDE_CELL if len(names) <= _MANY_SCENARIOS else _NARROW_CELL
    axis = _name_axis("top", 0 if max(map(chart_style.text_width, names), default=0.0) < width else -40)
    return alt.X("scenario:N", sort=names, title=None, axis=axis), width


def _name_axis(orient: Any, angle: int = 0) -> alt.Axis:
    return alt.Axis(
        orient=orient, labelAngle=angle, labelLimit=_MAX_LABEL, ticks=False, domain=False, labelPadding=6, grid=False
    )


CHARTS_BY_NAME: Mapping[str, Callable[[AuditResult], Any]] = {"map": quadrant_map, "boxes": box_chart, "heat": heat_map}

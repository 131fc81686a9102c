"""An audit scenario by scenario, drawn: the heat map, whether the scenarios are alike, and the spread of each model."""

from typing import Any

import altair as alt

from skill_evaluator.audit.findings.results import AuditResult, ModelAudit
from skill_evaluator.audit.report.verdict import fall_words, odds_words, spread_words
from skill_evaluator.audit.report.wording import (
    ablest_first,
    about_words,
    best_first,
    grades,
    likelihood,
    points,
    possible_grades,
)
from skill_evaluator.display import probability
from skill_evaluator.display.chart_style import (
    FONT_SIZE,
    GREY,
    INK,
    WARNING,
    drawn_from,
    grade_legend,
    grade_scales,
    text_width,
    title,
)
from skill_evaluator.display.safe_text import name_text, visible

_BLUE = "#0072b2"
_CELL_HEIGHT, _WIDE_CELL, _NARROW_CELL, _MANY_SCENARIOS = 21, 54, 40, 14
_BOX_STEP, _BOX_WIDTH = 26, 640
_NARROWEST = 420  # a line of scenarios
_ON_DEEP, _ON_PALE = "#fff", "#000"  # words on a cell, which keeps its colour on a dark ground, too
_LIMIT = 240  # pixels of a name on an axis
_PALE = 0.6  # of the largest deviation: beyond it the text is white


def heat_map(result: AuditResult) -> Any:
    """Draw every score, coloured by how far it is from the model's ability."""
    rows = [row for model in ablest_first(result) for row in _cells(model)]
    most = max((abs(row["deviation"]) for row in rows), default=0.0) or 1.0
    rows = [{**row, "pale": abs(row["deviation"]) > _PALE * most} for row in rows]
    width = _cell_width(result) * len(result.scenarios)
    across = alt.X("scenario:N", sort=_scenarios(result), title=None, axis=_scenario_axis(result, "top"))
    base = drawn_from(rows).encode(x=across, y=alt.Y("model:N", sort=_models(result), title=None, axis=_names("left")))
    colour = alt.Color(
        "deviation:Q",
        scale=alt.Scale(scheme="redblue", domain=[-most, most], domainMid=0),
        legend=alt.Legend(title="points from the model's ability", orient="bottom", gradientLength=240, format="+.1f"),
    )
    text = base.mark_text(fontSize=FONT_SIZE - 1, aria=False).encode(
        text="score:N", color=alt.condition("datum.pale", alt.value(_ON_DEEP), alt.value(_ON_PALE))
    )
    heading = title(
        fall_words(result),
        "% right in each scenario. Blue: better than the model's own ability; red: worse. The ablest model is on top.",
        width=width,
    )
    squares = base.mark_rect(stroke="white", strokeWidth=1).encode(
        color=colour, description="said:N", tooltip=alt.Tooltip("said:N")
    )
    height = _CELL_HEIGHT * len(result.models)
    return alt.layer(squares, text).properties(width=width, height=height, title=heading)


def _cells(model: ModelAudit) -> list[dict[str, Any]]:
    return [
        {
            "model": name_text(model.model),
            "scenario": name_text(scenario),
            "score": points(score, 1),
            "deviation": score - model.ability,
            "said": f"{visible(model.model)} in {visible(scenario)}: {points(score, 1)}",
        }
        for scenario, score in model.scenarios.items()
    ]


def neutrality_chart(result: AuditResult) -> Any:
    """Draw the mean over the models by scenario, against the models' own deviations; mark significant shifts."""
    rows = [row for model in result.models for row in _cells(model)]
    means = _means(result)
    width = max(_NARROWEST, _cell_width(result) * len(result.scenarios))
    x = alt.X("scenario:N", sort=_scenarios(result), title="scenario", axis=_scenario_axis(result, "bottom"))
    up = "points from a model's ability"
    y = alt.Y("deviation:Q", title=up, axis=alt.Axis(format="+.1f"))
    line = drawn_from(means).encode(x=x, y=y)
    ends = {"low": min(mean["deviation"] for mean in means), "high": max(mean["deviation"] for mean in means)}
    marked = drawn_from([mean for mean in means if mean["significant"]]).encode(x=x, y=y)
    layers = [
        drawn_from([ends])
        .mark_rect(color=_BLUE, opacity=0.13, aria=False)
        .encode(y=alt.Y("low:Q", title=up), y2="high"),
        drawn_from([{"zero": 0}]).mark_rule(color=GREY).encode(y=alt.Y("zero:Q", title=up)),
        drawn_from(rows).mark_circle(color=GREY, opacity=0.3, size=26, aria=False).encode(x=x, y=y),
        line.mark_line(color=_BLUE, strokeWidth=2, aria=False),
        line.mark_point(filled=True, color=_BLUE, size=60, opacity=1).encode(
            description="said:N", tooltip=alt.Tooltip("said:N")
        ),
        marked.mark_point(filled=True, shape="diamond", color=WARNING, size=170, opacity=1, aria=False),
    ]
    for side, shown in (
        (-14, [mean for mean in means if mean["deviation"] >= 0]),
        (14, [mean for mean in means if mean["deviation"] < 0]),
    ):
        look = {"dy": side, "fontSize": FONT_SIZE, "fontWeight": "bold"}
        text = drawn_from(shown).encode(x=x, y=y, text="mean:N")
        layers += [text.mark_text(**look, stroke="white", strokeWidth=3, aria=False), text.mark_text(**look, color=INK)]
    neutrality = result.neutrality
    also = "; diamond: a shift beyond chance" if any(shift.significant for shift in neutrality.shifts) else ""
    legend = "Line: mean over the models, in % right; grey: each model; band: the range of the means, "
    remark = f"{legend}{points(neutrality.range)} points{also}."
    finding = visible(neutrality.verdict)
    heading = title(f"{finding[:1].upper()}{finding[1:]}", remark, width=width)
    return alt.layer(*layers).properties(width=width, height=320, title=heading)


def _means(result: AuditResult) -> list[dict[str, Any]]:
    """Return the mean over the models in each scenario, one row a scenario."""
    middle = sum(result.neutrality.means) / len(result.neutrality.means)
    shifts = {shift.scenario: shift for shift in result.neutrality.shifts}
    rows = []
    for scenario, mean in zip(result.scenarios, result.neutrality.means, strict=True):
        shift = shifts.get(scenario)
        words = f"{visible(scenario)}: mean {points(mean)}"
        rows.append(
            {
                "scenario": name_text(scenario),
                "deviation": mean - middle,
                "mean": points(mean, 1),
                "significant": shift is not None and shift.significant,
                "said": words if shift is None else f"{words}, q {probability(shift.q)}",
            }
        )
    return rows


def box_chart(result: AuditResult) -> Any:
    """Draw the spread of each model over the scenarios; the ablest is on top."""
    rows = [
        {**row, "own": score, "grade": "" if model.grade is None else visible(model.grade)}
        for model in result.models
        for row, score in zip(_cells(model), model.scenarios.values(), strict=True)
    ]
    given = [visible(grade) for grade in grades(result)]
    plain = any(model.grade is None for model in result.models)
    colours, _ = grade_scales([*given, ""] if plain else given)
    base = drawn_from(rows).encode(
        x=alt.X("own:Q", title="% right in a scenario", scale=alt.Scale(zero=False)),
        y=alt.Y("model:N", sort=_models(result), title=None, axis=_names("left")),
    )
    boxes = base.mark_boxplot(
        extent="min-max",
        size=13,
        opacity=0.45,
        median={"color": INK, "strokeWidth": 2},
        rule={"color": GREY},
        box={"stroke": GREY, "strokeWidth": 0.6},
    ).encode(color=alt.Color("grade:N", scale=colours, sort=given, legend=grade_legend() if given else None))
    dots = base.mark_circle(color=INK, opacity=0.5, size=16, aria=False)
    heading = title(
        spread_words(result),
        "Box: the middle half; line: the median; whiskers: the worst and the best scenario; dots: scenarios.",
        width=_BOX_WIDTH,
    )
    height = _BOX_STEP * len(result.models)
    return alt.layer(boxes, dots).properties(width=_BOX_WIDTH, height=height, title=heading)


def odds_chart(result: AuditResult) -> Any:
    """Draw how likely each grade is for each model, the best grade first."""
    possible = possible_grades(result.models)
    shown = [visible(grade) for grade in possible]
    colours, _ = grade_scales(shown)
    rows = [
        {
            "model": name_text(model.model),
            "grade": visible(grade),
            "place": place,
            "odds": odds,
            "said": f"{visible(model.model)}: {visible(grade)} with probability {likelihood(odds)}",
        }
        for model in result.models
        for place, grade in enumerate(possible)
        if (odds := (model.grade_probability or {}).get(grade))
    ]
    bars = drawn_from(rows).mark_bar(height=15, stroke="white", strokeWidth=1)
    remark = f"Probability of each grade over {about_words(result)}."
    return bars.encode(
        x=alt.X("odds:Q", title="probability", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5)),
        y=alt.Y(
            "model:N", sort=[name_text(model.model) for model in best_first(result)], title=None, axis=_names("left")
        ),
        color=alt.Color("grade:N", scale=colours, sort=shown, legend=grade_legend()),
        order=alt.Order("place:Q"),
        description="said:N",
        tooltip=alt.Tooltip("said:N"),
    ).properties(
        width=_BOX_WIDTH,
        height=_BOX_STEP * len(result.models),
        title=title(odds_words(result), remark, width=_BOX_WIDTH),
    )


def _models(result: AuditResult) -> list[str]:
    return [name_text(model.model) for model in ablest_first(result)]


def _scenarios(result: AuditResult) -> list[str]:
    return [name_text(name) for name in result.scenarios]


def _cell_width(result: AuditResult) -> int:
    return _WIDE_CELL if len(result.scenarios) <= _MANY_SCENARIOS else _NARROW_CELL


def _scenario_axis(result: AuditResult, orient: Any) -> alt.Axis:
    """Return an axis of names, upright where each fits above its column, else aslant."""
    widest = max((text_width(name) for name in _scenarios(result)), default=0.0)
    return _names(orient, 0 if widest < _cell_width(result) else -40)


def _names(orient: Any, angle: int = 0) -> alt.Axis:
    return alt.Axis(
        orient=orient, labelAngle=angle, labelLimit=_LIMIT, ticks=False, domain=False, labelPadding=6, grid=False
    )

"""The charts of the site, each specified once: a page puts its own rows in, so that one specification serves all.

What a page puts in is named `@name`: a list of names in their order, or the words of an axis.
"""

from importlib.metadata import version
from typing import Any

import altair as alt
import vl_convert

from skill_evaluator.site.writing import SiteFolder

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8f6fd1", "#8c8c8c")  # Okabe and Ito's
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
VERDICT_SHAPES = {
    "regressed": "triangle-down",
    "improved": "triangle-up",
    "unchanged": "circle",
    "inconclusive": "diamond",
    "incomparable": "cross",
    "first": "square",
}
ROW_HEIGHT = 30


def chart_specs() -> dict[str, Any]:
    """Return the specification of every chart by its name."""
    charts = {
        "trend": _trend(),
        "balance": _balance(),
        "cost": _strips("USD per 1,000 answers", ".4~f"),
        "latency": _strips("seconds", ".4~f"),
        "failures": _failures(),
        "items": _items(),
    }
    return {name: chart.to_dict(validate=False) for name, chart in charts.items()}


def named_rows(name: str = "rows") -> alt.Chart:
    """Return a chart of rows that the page puts in."""
    return alt.Chart(alt.NamedData(name=name))


def _model_colour(legend: alt.Legend | None) -> alt.Color:
    return alt.Color("model:N", scale=alt.Scale(domain=["@models"], range=list(COLOURS)), legend=legend)


def legend_on_top(title: str) -> alt.Legend:
    """Return a legend above the chart, where a phone has room for it."""
    return alt.Legend(title=title, orient="top", direction="horizontal", columns=3, labelLimit=220, symbolOpacity=1)


def _trend() -> Any:
    """Draw each model over the versions: lines end where versions cannot be compared, unfinished runs are hollow."""
    x = alt.X("version:N", sort=["@versions"], title="version", axis=alt.Axis(labelAngle=-35, labelOverlap=True))
    value = alt.Y("value:Q", title="@metric", scale=alt.Scale(zero=False), axis=alt.Axis(format=".2f"))
    colour = _model_colour(legend_on_top("model"))
    base = named_rows().encode(x=x, color=colour)
    complete = base.transform_filter("datum.complete")
    words = alt.Tooltip("words:N")
    lines = complete.mark_line(strokeWidth=2, aria=False).encode(y=value, detail="segment:N")
    spans = base.transform_filter("datum.low !== null").mark_rule(strokeWidth=1.5, opacity=0.45, aria=False)
    shape = alt.Shape(
        "verdict:N",
        scale=alt.Scale(domain=list(VERDICT_SHAPES), range=list(VERDICT_SHAPES.values())),
        legend=legend_on_top("verdict"),
    )
    marks = complete.mark_point(filled=True, size=90, opacity=1)
    hollow = base.transform_filter("!datum.complete").mark_point(filled=False, size=80, strokeWidth=2, opacity=1)
    return alt.layer(
        spans.encode(y=alt.Y("low:Q", title="@metric"), y2="high:Q"),
        lines,
        marks.encode(y=value, shape=shape, tooltip=words, description="words:N"),
        hollow.encode(y=value, tooltip=words, description="words:N"),
    ).properties(width="container", height=320)


def _balance() -> Any:
    """Draw accuracy against reproducibility, a point a model."""
    across = alt.X("reproducibility:Q", title="@agreement", scale=alt.Scale(zero=False, padding=20), axis=_shares())
    up = alt.Y("value:Q", title="@metric", scale=alt.Scale(zero=False, padding=12), axis=_shares())
    base = named_rows().encode(x=across, color=_model_colour(legend_on_top("model")))
    spans = base.transform_filter("datum.low !== null").mark_rule(strokeWidth=1.5, opacity=0.45, aria=False)
    shape = alt.Shape("model:N", scale=alt.Scale(domain=["@models"], range=list(SHAPES)), legend=legend_on_top("model"))
    points = base.mark_point(filled=True, size=140, opacity=1)
    return alt.layer(
        spans.encode(y=alt.Y("low:Q", title="@metric"), y2="high:Q"),
        points.encode(y=up, shape=shape, tooltip=alt.Tooltip("words:N"), description="words:N"),
    ).properties(width="container", height=300)


def _shares() -> alt.Axis:
    """Return an axis of shares that names nothing beyond 1, where there is room for the marks alone."""
    return alt.Axis(labelExpr="datum.value > 1.0001 ? '' : datum.label", tickCount=6)


def _by_model() -> alt.Y:
    return alt.Y("model:N", sort=["@models"], title=None, axis=alt.Axis(labelLimit=150))


def _strips(title: str, form: str) -> Any:
    """Draw how calls are spread: a mark, a bar over the middle half, a line from the 5th to the 95th %."""
    base = named_rows().encode(y=_by_model(), color=_model_colour(None))
    axis = alt.Axis(format=form, tickCount=5)
    half = base.transform_filter("datum.p25 !== null").mark_bar(height=14, opacity=0.35, aria=False)
    return alt.layer(
        base.transform_filter("datum.p5 !== null")
        .mark_rule(strokeWidth=2, opacity=0.6, aria=False)
        .encode(x=alt.X("p5:Q", title=title, axis=axis), x2="p95:Q"),
        half.encode(x=alt.X("p25:Q", title=title), x2="p75:Q"),
        base.mark_point(filled=True, size=110, opacity=1).encode(
            x=alt.X("value:Q", title=title), tooltip=alt.Tooltip("words:N"), description="words:N"
        ),
    ).properties(width="container", height=alt.Step(ROW_HEIGHT))


def _failures() -> Any:
    colours = alt.Scale(domain=["@kinds"], range=list(COLOURS))
    return (
        named_rows()
        .mark_bar(height=14)
        .encode(
            x=alt.X("count:Q", title="calls that were not scored", axis=alt.Axis(format="d", tickMinStep=1)),
            y=_by_model(),
            color=alt.Color("kind:N", scale=colours, legend=legend_on_top("reason")),
            tooltip=alt.Tooltip("words:N"),
            description="words:N",
        )
        .properties(width="container", height=alt.Step(ROW_HEIGHT))
    )


def _items() -> Any:
    """Draw what became of the values in arrays, a bar an array and model, as counts from the left."""
    colours = alt.Scale(domain=["right", "wrong", "missing", "extra"], range=[COLOURS[i] for i in (0, 1, 5, 3)])
    return (
        named_rows()
        .mark_bar(height=16)
        .encode(
            x=alt.X("count:Q", title="values in items, over all answers", axis=alt.Axis(format="d", tickMinStep=1)),
            y=alt.Y("label:N", sort=["@labels"], title=None, axis=alt.Axis(labelLimit=170)),
            color=alt.Color("outcome:N", scale=colours, legend=legend_on_top("outcome")),
            order=alt.Order("place:Q"),
            tooltip=alt.Tooltip("words:N"),
            description="words:N",
        )
        .properties(width="container", height=alt.Step(ROW_HEIGHT))
    )


_COLOURS = {
    "regressed": "#d55e00",
    "improved": "#009e73",
    "unchanged": "#0072b2",
    "inconclusive": "#8c8c8c",
    "incomparable": "#8c8c8c",
}
_ROW_HEIGHT = 24


def compare_charts() -> dict[str, Any]:
    """Return the specification of every chart of a comparison by its name."""
    return {"forest": _forest().to_dict(validate=False)}


def _forest() -> Any:
    """Draw differences from the worst to the best, a line for each 95 % interval, and a rule at no difference."""
    x = alt.X("difference:Q", title="after − before", axis=alt.Axis(format="+.2f", tickCount=6))
    y = alt.Y("name:N", sort=["@names"], title=None, axis=alt.Axis(labelLimit=180))
    scale = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    colour = alt.Color("verdict:N", scale=scale, legend=None)
    shapes = alt.Scale(domain=list(_COLOURS), range=[VERDICT_SHAPES[name] for name in _COLOURS])
    base = named_rows().encode(y=y, color=colour)
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color="@soft", strokeDash=[4, 3], aria=False)
    return alt.layer(
        zero.encode(x=alt.X("zero:Q", title="after − before")),
        base.transform_filter("datum.low !== null")
        .mark_rule(strokeWidth=2, opacity=0.55, aria=False)
        .encode(x=alt.X("low:Q", title="after − before"), x2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(
            x=x,
            shape=alt.Shape("verdict:N", scale=shapes, legend=None),
            tooltip=alt.Tooltip("words:N"),
            description="words:N",
        ),
    ).properties(width="container", height=alt.Step(_ROW_HEIGHT))


_NAMES = alt.Axis(labelLimit=160, labelPadding=12, domain=False, ticks=False)  # a longer name is whole in the table
_LINE_HEIGHT = 17
_LEGEND = alt.Legend(title=None, orient="top", direction="horizontal", columns=2, labelLimit=110, symbolOpacity=1)


def judge_charts() -> dict[str, Any]:
    """Return the specification of every chart of the judges' page by its name."""
    charts = {"intervals": _intervals(), "reliability": _reliability()}
    return {name: chart.to_dict(validate=False) for name, chart in charts.items()}


def _intervals() -> Any:
    """Draw a point with its interval for each series of each label, beside the lines of `marks`, such as a bar."""
    words = alt.Tooltip("words:N")
    scale = alt.Scale(domain=["@domain"], nice=False)
    x = alt.X("value:Q", title="@title", scale=scale, axis=alt.Axis(format=".2~f", tickCount=5))
    y = alt.Y("label:N", sort=["@labels"], title=None, axis=_NAMES)
    colour = alt.Color("series:N", scale=alt.Scale(domain=["@series"], range=list(COLOURS)), legend=_LEGEND)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=["@series"], range=list(SHAPES)), legend=_LEGEND)
    offset = alt.YOffset("series:N", sort=["@series"], scale=alt.Scale(paddingOuter=0.4))
    base = named_rows().encode(y=y, yOffset=offset, color=colour)
    spans = base.transform_filter("datum.low !== null").mark_rule(strokeWidth=3, opacity=0.4, aria=False)
    points = base.transform_filter("datum.value !== null").mark_point(filled=True, size=95, opacity=1)
    marks = named_rows("marks").mark_rule(strokeDash=[5, 4], strokeWidth=1.5, color="#8c8c8c")
    return alt.layer(
        marks.encode(x=alt.X("at:Q", title="@title", scale=scale), tooltip=words, description="words:N"),
        spans.encode(x=alt.X("low:Q", title="@title", scale=scale), x2="high:Q"),
        points.encode(x=x, shape=shape, tooltip=words, description="words:N"),
    ).properties(width="container", height=alt.Step(_LINE_HEIGHT, **{"for": "offset"}))


def _reliability() -> Any:
    """Draw the share that was right against the confidence that was given: on the diagonal a judge knows itself."""
    words = alt.Tooltip("words:N")
    unit = alt.Scale(domain=[0, 1])
    colour = alt.Color("series:N", scale=alt.Scale(domain=["@series"], range=list(COLOURS)), legend=_LEGEND)
    x = alt.X("confidence:Q", title="confidence that was given", scale=unit, axis=alt.Axis(format=".1f", tickCount=5))
    y = alt.Y("value:Q", title="share that was right", scale=unit, axis=alt.Axis(format=".1f", tickCount=5))
    base = named_rows().encode(x=x, color=colour)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=["@series"], range=list(SHAPES)), legend=_LEGEND)
    diagonal = named_rows("diagonal").mark_line(strokeDash=[5, 4], strokeWidth=1.5, color="#8c8c8c", aria=False)
    spans = base.transform_filter("datum.low !== null").mark_rule(strokeWidth=3, opacity=0.4, aria=False)
    return alt.layer(
        diagonal.encode(x=x, y=y),
        spans.encode(y=alt.Y("low:Q", title="share that was right", scale=unit), y2="high:Q"),
        base.mark_point(filled=True, size=95, opacity=1).encode(y=y, shape=shape, tooltip=words, description="words:N"),
    ).properties(width="container", height=260)


_NAME = "assets/vega.js"
_GIVEN = "window.vegaEmbed = vegaEmbed;"  # all that the pages call


def write_library(site: SiteFolder) -> None:
    """Write the bundle; it takes seconds to make, so one of the same version stays.

    It is wrapped, because its names would collide with those of the page's own scripts.
    """
    first_line = (
        f"/* Vega-Lite {vl_convert.get_vegalite_versions()[-1]} by vl-convert {version('vl-convert-python')} */"
    )
    if not site.keeps(_NAME, first_line):
        site.write(_NAME, f"{first_line}\n(function () {{\n{vl_convert.javascript_bundle(_GIVEN)}\n}})();\n")

"""The charts of the site, each specified once: a page puts its own rows in, so that one specification serves all.

What a page puts in is named `@name`: a list of names in their order, or the words of an axis.
"""

from importlib.metadata import version
from typing import Any

import altair as alt
import vl_convert

from skill_evaluator.site.writing import SiteFolder

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8f6fd1", "#8c8c8c")  # Okabe and Ito's
_SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
_VERDICT_SHAPES = {
    "regressed": "triangle-down",
    "improved": "triangle-up",
    "unchanged": "circle",
    "inconclusive": "diamond",
    "incomparable": "cross",
    "first": "square",
}
_VERDICT_COLOURS = {
    "regressed": "#d55e00",
    "improved": "#009e73",
    "unchanged": "#0072b2",
    "inconclusive": "#8c8c8c",
    "incomparable": "#8c8c8c",
}
# Models begin alike and end differently, so a name that is too long loses its middle; it is whole in the table.
_SHORT = "length(datum.label) > 26 ? slice(datum.label, 0, 11) + '…' + slice(datum.label, -14) : datum.label"
_NAMES = alt.Axis(labelLimit=190, labelExpr=_SHORT, labelPadding=12, domain=False, ticks=False)
_SCORES = alt.Scale(domain=["@domain"])  # wide enough that no step looks larger than it is
_WORDS: dict[str, Any] = {"tooltip": alt.Tooltip("words:N"), "description": "words:N"}
_ROW_HEIGHT = 30


def chart_specs() -> dict[str, Any]:
    """Return the specification of every chart by its name."""
    charts = {
        "trend": _trend(),
        "balance": _balance(),
        "cost": _strips("USD per 1,000 answers"),
        "latency": _strips("seconds"),
        "failures": _failures(),
        "items": _items(),
        "forest": _forest(),
        "intervals": _intervals(),
    }
    return {name: chart.to_dict(validate=False) for name, chart in charts.items()}


def _rows(name: str = "rows") -> alt.Chart:
    """Return a chart of rows that the page puts in."""
    return alt.Chart(alt.NamedData(name=name))


def _spans(base: alt.Chart, width: float, opacity: float) -> alt.Chart:
    """Return a line for each interval that is known."""
    return base.transform_filter("datum.low !== null").mark_rule(strokeWidth=width, opacity=opacity, aria=False)


def _legend(**more: Any) -> alt.Legend:
    """Return a legend above the chart, where a phone has room for it, in as many columns as fit."""
    look: dict[str, Any] = {"title": None, "orient": "top", "direction": "horizontal", "labelLimit": 220}
    return alt.Legend(columns={"expr": "max(1, floor(width / 200))"}, labelExpr=_SHORT, symbolOpacity=1, **look, **more)


def _colour(of: str, names: str, legend: alt.Legend | None) -> alt.Color:
    return alt.Color(of, scale=alt.Scale(domain=[names], range=list(_COLOURS)), legend=legend)


def _series_shape() -> alt.Shape:
    scale = alt.Scale(domain=["@series"], range=list(_SHAPES))
    return alt.Shape("series:N", scale=scale, legend=_legend())


def _trend() -> alt.LayerChart:
    """Draw each model over the versions: lines end where versions cannot be compared, unfinished runs are hollow."""
    x = alt.X("version:N", sort=["@versions"], title="version", axis=alt.Axis(labelAngle=-35, labelOverlap=True))
    value = alt.Y("value:Q", title="@metric", scale=_SCORES, axis=alt.Axis(format=".1f", tickCount=5))
    base = _rows().encode(x=x, color=_colour("model:N", "@models", _legend()))
    complete = base.transform_filter("datum.complete")
    shape = alt.Shape(
        "verdict:N",
        scale=alt.Scale(domain=list(_VERDICT_SHAPES), range=list(_VERDICT_SHAPES.values())),
        legend=_legend(values=["@verdicts"]),
    )
    hollow = base.transform_filter("!datum.complete").mark_point(filled=False, size=80, strokeWidth=2, opacity=1)
    return alt.layer(
        _spans(base, 1.5, 0.45).encode(y=alt.Y("low:Q", title="@metric", scale=_SCORES), y2="high:Q"),
        complete.mark_line(strokeWidth=2, aria=False).encode(y=value, detail="segment:N"),
        complete.mark_point(filled=True, size=90, opacity=1).encode(y=value, shape=shape, **_WORDS),
        hollow.encode(y=value, **_WORDS),
    ).properties(width="container", height=320)


def _balance() -> alt.LayerChart:
    """Draw accuracy against reproducibility, a point a model."""
    shares = alt.Axis(labelExpr="datum.value > 1.0001 ? '' : datum.label", format=".1f", tickCount=5)
    across = alt.X("reproducibility:Q", title="@agreement", scale=_SCORES, axis=shares)
    up = alt.Y("value:Q", title="@metric", scale=_SCORES, axis=shares)
    base = _rows().encode(x=across, color=_colour("model:N", "@models", _legend()))
    scale = alt.Scale(domain=["@models"], range=list(_SHAPES))
    shape = alt.Shape("model:N", scale=scale, legend=_legend())
    return alt.layer(
        _spans(base, 1.5, 0.45).encode(y=alt.Y("low:Q", title="@metric", scale=_SCORES), y2="high:Q"),
        base.mark_point(filled=True, size=140, opacity=1).encode(y=up, shape=shape, **_WORDS),
    ).properties(width="container", height=300)


def _by_model() -> alt.Y:
    return alt.Y("model:N", sort=["@models"], title=None, axis=_NAMES)


def _strips(title: str) -> alt.LayerChart:
    """Draw how calls are spread: a mark, a bar over the middle half, a line from the 5th to the 95th %."""
    base = _rows().encode(y=_by_model(), color=_colour("model:N", "@models", None))
    outer = base.transform_filter("datum.p5 !== null").mark_rule(strokeWidth=2, opacity=0.6, aria=False)
    half = base.transform_filter("datum.p25 !== null").mark_bar(height=14, opacity=0.35, aria=False)
    return alt.layer(
        outer.encode(x=alt.X("p5:Q", title=title, axis=alt.Axis(format=".4~f", tickCount=5)), x2="p95:Q"),
        half.encode(x=alt.X("p25:Q", title=title), x2="p75:Q"),
        base.mark_point(filled=True, size=110, opacity=1).encode(x=alt.X("value:Q", title=title), **_WORDS),
    ).properties(width="container", height=alt.Step(_ROW_HEIGHT))


def _counts(title: str, height: int) -> alt.Chart:
    """Return bars of counts from the left, a row each."""
    x = alt.X("count:Q", title=title, axis=alt.Axis(format="d", values=["@ticks"]))
    bars = _rows().mark_bar(height=height).encode(x=x, **_WORDS)
    return bars.properties(width="container", height=alt.Step(_ROW_HEIGHT))


def _failures() -> alt.Chart:
    colour = _colour("kind:N", "@kinds", _legend())
    return _counts("of 1,000 calls, not scored", 14).encode(y=_by_model(), color=colour)


def _items() -> alt.Chart:
    """Draw what became of the values in arrays, a bar an array and model."""
    scale = alt.Scale(domain=["right", "wrong", "missing", "extra"], range=[_COLOURS[i] for i in (0, 1, 5, 3)])
    return _counts("values in items, over all answers", 16).encode(
        y=alt.Y("label:N", sort=["@labels"], title=None, axis=_NAMES),
        color=alt.Color("outcome:N", scale=scale, legend=_legend()),
        order=alt.Order("place:Q"),
    )


def _forest() -> alt.LayerChart:
    """Draw differences from the worst to the best, a line for each 95 % interval, and a rule at no difference."""
    title = "@way"
    reach = alt.Scale(domain=["@domain"], nice=False)
    x = alt.X("difference:Q", title=title, scale=reach, axis=alt.Axis(format="+.2~f", tickCount=5))
    y = alt.Y("name:N", sort=["@names"], title=None, axis=_NAMES)
    scale = alt.Scale(domain=list(_VERDICT_COLOURS), range=list(_VERDICT_COLOURS.values()))
    shapes = alt.Scale(domain=list(_VERDICT_COLOURS), range=[_VERDICT_SHAPES[name] for name in _VERDICT_COLOURS])
    shape = alt.Shape("verdict:N", scale=shapes, legend=None)
    base = _rows().encode(y=y, color=alt.Color("verdict:N", scale=scale, legend=None))
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color="@soft", strokeDash=[4, 3], aria=False)
    return alt.layer(
        zero.encode(x=alt.X("zero:Q", title=title, scale=reach)),
        _spans(base, 2, 0.55).encode(x=alt.X("low:Q", title=title, scale=reach), x2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(x=x, shape=shape, **_WORDS),
    ).properties(width="container", height=alt.Step(24))


def _intervals() -> alt.LayerChart:
    """Draw a point with its interval for each series of each label, beside the lines of `marks`, such as a bar."""
    scale = alt.Scale(domain=["@domain"], nice=False)
    x = alt.X("value:Q", title="@title", scale=scale, axis=alt.Axis(format=".2~f", tickCount=5))
    y = alt.Y("label:N", sort=["@labels"], title=None, axis=_NAMES)
    offset = alt.YOffset("series:N", sort=["@series"], scale=alt.Scale(paddingOuter=0.4))
    base = _rows().encode(y=y, yOffset=offset, color=_colour("series:N", "@series", _legend()))
    points = base.transform_filter("datum.value !== null").mark_point(filled=True, size=95, opacity=1)
    marks = _rows("marks").mark_rule(strokeDash=[5, 4], strokeWidth=1.5, color="#8c8c8c")
    return alt.layer(
        marks.encode(x=alt.X("at:Q", title="@title", scale=scale), **_WORDS),
        _spans(base, 3, 0.4).encode(x=alt.X("low:Q", title="@title", scale=scale), x2="high:Q"),
        points.encode(x=x, shape=_series_shape(), **_WORDS),
    ).properties(width="container", height=alt.Step(17, **{"for": "offset"}))


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

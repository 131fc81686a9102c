"""The charts of the judges' page, each specified once: the page puts its own rows in.

What a page puts in is named `@name`: a list of names in their order, or the words of an axis.
"""

from importlib.metadata import version
from typing import Any

import altair as alt
import vl_convert

from skill_evaluator.site.writing import SiteFolder

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8f6fd1", "#8c8c8c")  # Okabe and Ito's
_SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
# Models begin alike and end differently, so a name that is too long loses its middle; it is whole in the table.
_SHORT = "length(datum.label) > 26 ? slice(datum.label, 0, 11) + '…' + slice(datum.label, -14) : datum.label"
_NAMES = alt.Axis(labelLimit=190, labelExpr=_SHORT, labelPadding=12, domain=False, ticks=False)
_WORDS: dict[str, Any] = {"tooltip": alt.Tooltip("words:N"), "description": "words:N"}


def chart_specs() -> dict[str, Any]:
    """Return the specification of every chart by its name."""
    charts = {
        "intervals": _intervals(),
        "reliability": _reliability(),
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


def _reliability() -> alt.LayerChart:
    """Draw the share that was right against the stated confidence: on the diagonal a judge knows itself."""
    unit, axis = alt.Scale(domain=[0, 1]), alt.Axis(format=".1f", tickCount=5)
    x = alt.X("confidence:Q", title="confidence that was given", scale=unit, axis=axis)
    y = alt.Y("value:Q", title="share that was right", scale=unit, axis=axis)
    base = _rows().encode(x=x, color=_colour("series:N", "@series", _legend()))
    diagonal = _rows("diagonal").mark_line(strokeDash=[5, 4], strokeWidth=1.5, color="#8c8c8c", aria=False)
    return alt.layer(
        diagonal.encode(x=x, y=y),
        _spans(base, 3, 0.4).encode(y=alt.Y("low:Q", title="share that was right", scale=unit), y2="high:Q"),
        base.mark_point(filled=True, size=95, opacity=1).encode(y=y, shape=_series_shape(), **_WORDS),
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

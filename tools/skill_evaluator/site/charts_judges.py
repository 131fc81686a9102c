"""The charts of judges: figures with their intervals, a line each, and confidence against what came true."""

from typing import Any

import altair as alt

from skill_evaluator.site.charts import COLOURS, SHAPES, named_rows

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

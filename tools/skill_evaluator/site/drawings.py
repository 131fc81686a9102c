"""The chart of a component's page, drawn as SVG when the site is built: the score of each model over the versions."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from skill_evaluator.display.chart_style import COLOURS, PageChart, drawn_from, page_svg, series_legend
from skill_evaluator.display.safe_text import visible
from skill_evaluator.site.writing import cut_name
from skill_evaluator.text import version_words

_VERDICT_SHAPES = {
    "regressed": "triangle-down",
    "improved": "triangle-up",
    "unchanged": "circle",
    "inconclusive": "diamond",
    "incomparable": "cross",
    "first": "square",
}
_WORDS: dict[str, Any] = {"description": "words:N"}
_WIDE, _NARROW = 1_000, 300  # pixels
_FIT = {"type": "fit-x", "contains": "padding"}
_MAX_NAME = 100  # characters; vl-convert aborts the process for texts of very many


def trend_chart(
    points: Sequence[Mapping[str, Any]], versions: Sequence[str], models: Sequence[str], metric: str
) -> PageChart:
    """Draw each model over the versions: lines end where versions cannot be compared, unfinished runs are hollow."""
    texts = ("model", "segment", "words")
    rows = [{**point, **{name: _short_name(point[name]) for name in texts}} for point in points]
    rows = [{**row, "version": version_words(row["version"])} for row in rows]
    verdicts = list(dict.fromkeys(row["verdict"] for row in rows if row["verdict"]))
    lowest = min(value for row in rows for value in (row["accuracy"], row["low"], 1.0) if value is not None)
    scale = alt.Scale(domain=[0 if lowest < 0.5 else 0.5, 1])  # so that no step looks larger than it is
    title = f"strict mean of {_short_name(metric)}"
    x = alt.X(
        "version:N",
        sort=[*map(version_words, versions)],
        title="version",
        axis=alt.Axis(labelAngle=-35, labelOverlap=True),
    )
    value = alt.Y("accuracy:Q", title=title, scale=scale, axis=alt.Axis(format=".1f", tickCount=5))
    colours = alt.Scale(domain=[*map(_short_name, models)], range=list(COLOURS))
    base = drawn_from(rows).encode(x=x, color=alt.Color("model:N", scale=colours, legend=series_legend()))
    complete = base.transform_filter("datum.complete")
    shapes = alt.Scale(domain=list(_VERDICT_SHAPES), range=list(_VERDICT_SHAPES.values()))
    shape = alt.Shape("verdict:N", scale=shapes, legend=series_legend(values=verdicts))
    spans = base.transform_filter("datum.low !== null").mark_rule(strokeWidth=1.5, opacity=0.45, aria=False)
    hollow = base.transform_filter("!datum.complete").mark_point(filled=False, size=80, strokeWidth=2, opacity=1)
    chart = alt.layer(
        spans.encode(y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q"),
        complete.mark_line(strokeWidth=2, aria=False).encode(y=value, detail="segment:N"),
        complete.mark_point(filled=True, size=90, opacity=1).encode(y=value, shape=shape, **_WORDS),
        hollow.encode(y=value, **_WORDS),
    )
    wide, narrow = (chart.properties(height=height).to_dict(validate=False) for height in (320, 190))
    return PageChart(
        page_svg({**wide, "width": _WIDE, "autosize": _FIT}, "trend"),
        page_svg({**narrow, "width": _NARROW, "autosize": _FIT}, "trend-n"),
    )


def _short_name(text: str | None) -> str | None:
    return None if text is None else visible(cut_name(text, _MAX_NAME))

"""The charts of a component's page, drawn as SVG when the site is built."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from skill_evaluator.display import number
from skill_evaluator.display.chart_style import COLOURS, SHAPES, PageChart, drawn_from, page_svg, series_legend
from skill_evaluator.text import version_words

Rows = Sequence[Mapping[str, Any]]
_VERDICT_SHAPES = {
    "regressed": "triangle-down",
    "improved": "triangle-up",
    "unchanged": "circle",
    "inconclusive": "diamond",
    "incomparable": "cross",
    "first": "square",
}
_WORDS: dict[str, Any] = {"description": "words:N"}
_WIDE, _MIDDLE, _NARROW = 1_000, 440, 300  # pixels
_FIT = {"type": "fit-x", "contains": "padding"}


def trend(page: Mapping[str, Any]) -> PageChart:
    """Draw each model over the versions: lines end where versions cannot be compared, unfinished runs are hollow."""
    rows = [{**row, "version": version_words(row["version"])} for row in page["trend"]]
    versions = [version_words(name) for name in page["versions"]]
    verdicts = list(dict.fromkeys(row["verdict"] for row in rows if row["verdict"]))
    scale = _score_scale(value for row in rows for value in (row["accuracy"], row["low"]))
    metric = f"strict mean of {page['metric']}"
    x = alt.X("version:N", sort=versions, title="version", axis=alt.Axis(labelAngle=-35, labelOverlap=True))
    value = alt.Y("accuracy:Q", title=metric, scale=scale, axis=alt.Axis(format=".1f", tickCount=5))
    base = drawn_from(rows).encode(x=x, color=_by_model(page["models"], legend=True))
    complete = base.transform_filter("datum.complete")
    shapes = alt.Scale(domain=list(_VERDICT_SHAPES), range=list(_VERDICT_SHAPES.values()))
    shape = alt.Shape("verdict:N", scale=shapes, legend=series_legend(values=verdicts))
    hollow = base.transform_filter("!datum.complete").mark_point(filled=False, size=80, strokeWidth=2, opacity=1)
    chart = alt.layer(
        _spans(base, 1.5, 0.45).encode(y=alt.Y("low:Q", title=metric, scale=scale), y2="high:Q"),
        complete.mark_line(strokeWidth=2, aria=False).encode(y=value, detail="segment:N"),
        complete.mark_point(filled=True, size=90, opacity=1).encode(y=value, shape=shape, **_WORDS),
        hollow.encode(y=value, **_WORDS),
    )
    wide, narrow = chart.properties(height=320), chart.properties(height=190)
    return PageChart(_svg(wide, "trend", _WIDE), _svg(narrow, "trend-n", _NARROW))


def balance(page: Mapping[str, Any]) -> PageChart:
    """Draw accuracy against reproducibility, a point a model."""
    rows = [
        {
            **row,
            "words": f"{row['model']}: accuracy {number(row['accuracy'])}, "
            f"reproducibility {number(row['reproducibility'])}",
        }
        for row in page["newest"]
        if row["accuracy"] is not None and row["reproducibility"] is not None
    ]
    scale = _score_scale(value for row in rows for value in (row["accuracy"], row["low"], row["reproducibility"]))
    shares = alt.Axis(labelExpr="datum.value > 1.0001 ? '' : datum.label", format=".1f", tickCount=5)
    metric = f"strict mean of {page['metric']}"
    across = alt.X("reproducibility:Q", title=page["agreement"], scale=scale, axis=shares)
    base = drawn_from(rows).encode(x=across, color=_by_model(page["models"], legend=True))
    shape = alt.Shape("model:N", scale=alt.Scale(domain=page["models"], range=list(SHAPES)), legend=series_legend())
    chart = alt.layer(
        _spans(base, 1.5, 0.45).encode(y=alt.Y("low:Q", title=metric, scale=scale), y2="high:Q"),
        base.mark_point(filled=True, size=140, opacity=1).encode(
            y=alt.Y("accuracy:Q", title=metric, scale=scale, axis=shares), shape=shape, **_WORDS
        ),
    ).properties(height=300)
    return PageChart(_svg(chart, "balance", _MIDDLE))


def _svg(chart: Any, name: str, width: int) -> Any:
    return page_svg({**chart.to_dict(validate=False), "width": width, "autosize": _FIT}, name)


def _spans(base: alt.Chart, width: float, opacity: float) -> alt.Chart:
    """Return a line for each interval that is known."""
    return base.transform_filter("datum.low !== null").mark_rule(strokeWidth=width, opacity=opacity, aria=False)


def _score_scale(values: Iterable[float | None]) -> alt.Scale:
    """Return the scale of scores: from 0, or from 0.5 if all are above, so that no step looks larger than it is."""
    low = min((value for value in values if value is not None), default=1.0)
    return alt.Scale(domain=[0 if low < 0.5 else 0.5, 1])


def _by_model(models: Sequence[str], *, legend: bool) -> alt.Color:
    scale = alt.Scale(domain=list(models), range=list(COLOURS))
    return alt.Color("model:N", scale=scale, legend=series_legend() if legend else None)

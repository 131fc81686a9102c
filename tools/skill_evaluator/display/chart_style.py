"""Render altair charts as SVG: colours for colour-blind readers, a white background, a generic font."""

import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup

from skill_evaluator.display import name_text, visible

INK, GREY, FAINT = "#1f2328", "#6e7781", "#d0d7de"
_PAGE_COLOURS = {INK: "ink", GREY: "soft", FAINT: "line", "white": "paper"}  # names in the page's style sheet
_ID = re.compile(r'(id="|url\(#)([\w-]+)')
_GRADIENT = re.compile(r'(id="|url\(#)gradient_\d+')  # numbered per process; no chart has more than one
_MARK = re.compile(r'<(\w+)((?: [\w:-]+="[^"]*")*?) aria-label="([^"]*)"([^<>]*)/>')
_FOR_EDITORS = re.compile(r' (?:role|aria-[a-z]+|class|pointer-events|xmlns|xmlns:xlink)="[^"]*"')
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8f6fd1", "#8c8c8c")  # Okabe and Ito's
_SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
# Model names often share a beginning and differ at the end, so the middle of a long name is cut.
_SHORT_LABEL = "length(datum.label) > 26 ? slice(datum.label, 0, 11) + '…' + slice(datum.label, -14) : datum.label"
FONT_SIZE = 11
_MAX_TEXT = 100  # characters per text; vl-convert aborts the process for very long texts
_MAX_NAME = 34
_MIN_LINE = 75  # characters; a remark makes a narrow chart wider
NARROW = 300  # width of a chart on a phone, in pixels


def short_name(name: str) -> str:
    """Format a name as a label of at most 34 characters; the table of a chart has the whole name."""
    text = name_text(name)
    return text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"


def text_width(text: str) -> float:
    """Estimate the width of a label in pixels, rather too wide than too narrow."""
    return FONT_SIZE * sum(1.0 if unicodedata.east_asian_width(mark) in "WF" else 0.56 for mark in text)


def title(text: str, *remarks: str, width: float = 800) -> alt.TitleParams:
    """Return a chart title with remarks below it, which are wrapped at the width of the chart."""
    lines = [line for remark in remarks for line in textwrap.wrap(remark, max(_MIN_LINE, int(width / 5.6)))]
    return alt.TitleParams(text=visible(text), subtitle=lines, anchor="start", frame="group", offset=12)


def drawn_from(values: Sequence[Any]) -> alt.Chart:
    """Return a chart layer with inline values, so that the chart reads no file."""
    return alt.Chart(alt.InlineData(values=list(values)))


@dataclass(frozen=True, slots=True)
class PageChart:
    """A chart of an HTML page: its SVG for wide and for narrow screens, its title and a note."""

    svg: Markup
    narrow: Markup | str = ""
    title: str = ""
    note: str = ""


def page_chart(chart: Any, name: str, *, narrowed: bool) -> PageChart:
    """Draw a chart for an HTML page, and if `narrowed` also for narrow screens. Its ids have the prefix `name`."""
    narrow = page_svg(chart, f"{name}n", NARROW) if narrowed else ""
    return PageChart(page_svg(chart, name), narrow, chart.title.text, " ".join(chart.title.subtitle))


def page_svg(chart: Any, name: str, width: int | None = None) -> Markup:
    """Draw a chart without its title, in the colours of an HTML page. `width` is in pixels; None keeps the width."""
    spec = chart.to_dict(validate=False)
    spec.pop("title", None)
    if width is not None:
        spec |= {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    axis = {"labelColor": GREY, "titleColor": INK, "gridColor": FAINT, "domainColor": FAINT, "tickColor": FAINT}
    sizes = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    legend = {"labelColor": INK, "titleColor": GREY, "symbolBaseFillColor": GREY, "symbolBaseStrokeColor": GREY}
    config = {
        "background": None,
        "padding": 8,  # fonts of browsers are wider than those of vl-convert
        "font": "system-ui, sans-serif",
        "axis": {**axis, **sizes},
        "view": {"stroke": None},
        "legend": {**legend, **sizes, "layout": {"top": {"direction": "vertical", "anchor": "start", "margin": 6}}},
    }
    drawn = str(vl_convert.vegalite_to_svg({**spec, "config": config}, allowed_base_urls=[]))
    drawn = _ID.sub(rf"\1{name}-\2", drawn)
    drawn = _MARK.sub(r"<\1\2\4><title>\3</title></\1>", drawn)
    drawn = _FOR_EDITORS.sub("", drawn)
    for colour, variable in _PAGE_COLOURS.items():
        drawn = drawn.replace(f'"{colour}"', f'"var(--{variable})"')
    return Markup(drawn.replace("<svg ", '<svg aria-hidden="true" ', 1))  # noqa: S704  (escaped by vl-convert)


def interval_chart(rows: Sequence[Mapping[str, Any]], measure: str, marks: Mapping[float, str]) -> alt.LayerChart:
    """Draw the `value` of each row and its interval from `low` to `high`, by `label` and `series`.

    `marks` maps the value of each dashed line to its tooltip. The tooltip of a row is its `words`.
    """
    short = [{**row, **{name: visible(row[name])[:_MAX_TEXT] for name in ("label", "series", "words")}} for row in rows]
    labels, series = (list(dict.fromkeys(row[name] for row in short)) for name in ("label", "series"))
    low = min(0.0, *(row["low"] or row["value"] for row in rows), *marks)
    scale = alt.Scale(domain=[max(-1.0, round(low - 0.05, 1)), 1.0], nice=False)
    x = alt.X("value:Q", title=measure, scale=scale, axis=alt.Axis(format=".2~f", tickCount=5))
    axis = alt.Axis(labelLimit=190, labelExpr=_SHORT_LABEL, labelPadding=12, domain=False, ticks=False)
    base = drawn_from(short).encode(
        y=alt.Y("label:N", sort=labels, title=None, axis=axis),
        yOffset=alt.YOffset("series:N", sort=series, scale=alt.Scale(paddingOuter=0.4)),
        color=alt.Color("series:N", scale=alt.Scale(domain=series, range=list(COLOURS)), legend=series_legend()),
    )
    shape = alt.Shape("series:N", scale=alt.Scale(domain=series, range=list(_SHAPES)), legend=series_legend())
    lines = drawn_from([{"at": at, "words": words} for at, words in marks.items()])
    spans = base.transform_filter("datum.low !== null").mark_rule(strokeWidth=3, opacity=0.4, aria=False)
    return alt.layer(
        lines.mark_rule(strokeDash=[5, 4], strokeWidth=1.5, color=COLOURS[-1]).encode(
            x=alt.X("at:Q", title=measure, scale=scale), description="words:N"
        ),
        spans.encode(x=alt.X("low:Q", title=measure, scale=scale), x2="high:Q"),
        base.mark_point(filled=True, size=95, opacity=1).encode(x=x, shape=shape, description="words:N"),
    ).properties(width=700, height=22 * len(labels) * len(series))


def series_legend(**more: Any) -> alt.Legend:
    """Return a legend above the chart, in as many columns as fit; `more` are further arguments of `alt.Legend`."""
    look: dict[str, Any] = {"title": None, "orient": "top", "direction": "horizontal", "labelLimit": 220}
    columns = {"expr": "max(1, floor(width / 200))"}
    return alt.Legend(columns=columns, labelExpr=_SHORT_LABEL, symbolOpacity=1, **look, **more)


def svg(chart: Any) -> str:
    """Return a chart as the text of an SVG file, which refers to no other file."""
    sizes = {"labelFontSize": FONT_SIZE, "titleFontWeight": "normal"}
    lines = {"gridColor": "#eaeef2", "domainColor": FAINT, "tickColor": FAINT}
    subtitle = {"subtitleColor": GREY, "subtitleFontSize": FONT_SIZE + 1, "subtitlePadding": 6}
    spec = chart.configure(
        background="white",
        font="sans-serif",
        padding=14,
        view=alt.ViewConfig(stroke=FAINT),
        axis=alt.AxisConfig(labelColor=INK, titleColor=INK, titleFontSize=FONT_SIZE + 1, **lines, **sizes),
        legend=alt.LegendConfig(labelColor=INK, titleColor=INK, **sizes),
        title=alt.TitleConfig(color=INK, fontSize=15, **subtitle),
    ).to_dict(validate=False)
    drawn = str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    return _GRADIENT.sub(r"\1gradient", drawn) + "\n"

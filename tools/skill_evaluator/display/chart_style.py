"""The look of charts: colours that the colour-blind tell apart, a white ground under any theme, a generic font.

A finished altair chart in, SVG out.
"""

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any

import altair as alt
import vl_convert

from skill_evaluator.display.safe_text import name_text, visible

INK, GREY, FAINT = "#1f2328", "#6e7781", "#d0d7de"
_ON_A_PAGE = {INK: "@ink", GREY: "@soft", FAINT: "@line", "white": "@paper"}
FONT_SIZE = 11
_FEW = ("#0072b2", "#009e73", "#e69f00", "#d55e00")  # Okabe and Ito's
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
_LONGEST_NAME = 34
_SHORTEST_LINE = 75  # of a remark; a chart of few columns is made wider by it
_GRADIENT = re.compile(r'(id="|url\(#)gradient_\d+')  # numbered through a process; no chart has more than one
_WIDE, _NARROW = 1.0, 0.56  # of the font size


def grade_scales(grades: Sequence[str]) -> tuple[alt.Scale, alt.Scale]:
    """Return the scales of colour and shape for grades, the best first."""
    shapes = [_SHAPES[at % len(_SHAPES)] for at in range(len(grades))]
    if len(grades) <= len(_FEW):
        return alt.Scale(domain=grades, range=_FEW[: len(grades)]), alt.Scale(domain=grades, range=shapes)
    colours = alt.SchemeParams(name="viridis", extent=[0, 0.88])
    return alt.Scale(domain=grades, scheme=colours), alt.Scale(domain=grades, range=shapes)


def grade_legend() -> alt.Legend:
    """Return the legend of the grades: one line above the chart, in the colours of the points."""
    return alt.Legend(title="grade", orient="top", direction="horizontal", symbolOpacity=1, offset=24)


def short_name(name: str) -> str:
    """Cut a name to the length of a label beside a point; the table has it in full."""
    text = name_text(name)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def text_width(text: str) -> float:
    """Estimate how many pixels a label takes, rather too many than too few."""
    return FONT_SIZE * sum(_WIDE if unicodedata.east_asian_width(mark) in "WF" else _NARROW for mark in text)


def title(text: str, *remarks: str, width: float = 800) -> alt.TitleParams:
    """Return a heading with remarks below it, broken where the chart ends."""
    lines = [line for remark in remarks for line in textwrap.wrap(remark, max(_SHORTEST_LINE, int(width / 5.6)))]
    return alt.TitleParams(text=visible(text), subtitle=lines, anchor="start", frame="group", offset=12)


def drawn_from(values: Sequence[Any]) -> alt.Chart:
    """Return a layer that holds its values, since a chart reads no file."""
    return alt.Chart(alt.InlineData(values=list(values)))


def page_spec(chart: Any) -> dict[str, Any]:
    """Return a chart as a page draws it: without its title, and with `@` names for colours that follow the ground."""
    spec = chart.to_dict(validate=False)
    heading = spec.pop("title")
    return {"title": heading["text"], "note": " ".join(heading["subtitle"]), "spec": _named_colours(spec)}


def _named_colours(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: value if key in ("values", "datasets") else _named_colours(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_named_colours(member) for member in part]
    return _ON_A_PAGE.get(part, part) if isinstance(part, str) else part


def svg(chart: Any) -> str:
    """Draw a chart as SVG, which loads nothing from elsewhere."""
    spec = chart.configure(
        background="white",
        font="sans-serif",
        padding=14,
        view=alt.ViewConfig(stroke=FAINT),
        axis=alt.AxisConfig(
            gridColor="#eaeef2", domainColor=FAINT, tickColor=FAINT, labelColor=INK, titleColor=INK,
            labelFontSize=FONT_SIZE, titleFontSize=FONT_SIZE + 1, titleFontWeight="normal",
        ),
        legend=alt.LegendConfig(labelColor=INK, titleColor=INK, labelFontSize=FONT_SIZE, titleFontWeight="normal"),
        title=alt.TitleConfig(
            color=INK, fontSize=15, subtitleColor=GREY, subtitleFontSize=FONT_SIZE + 1, subtitlePadding=6
        ),
    ).to_dict(validate=False)  # fmt: skip
    drawn = str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    return _GRADIENT.sub(r"\1gradient", drawn) + "\n"

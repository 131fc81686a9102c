"""A chart's frame in its own units and in pixels, and the names of points in it as layers of altair.

Its own module because places for names are found in pixels, while a chart is drawn in the units of its axes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from skill_evaluator.reports.chart_style import FONT_SIZE, GREY, INK, drawn_from, text_width
from skill_evaluator.reports.label_places import Crowd, around, covered_area, label_places

Place = tuple[float, float]
Box = tuple[float, float, float, float]  # pixels: left, top, right, bottom
LINE = 13.0  # height of a name
_AIR, _STEP = 4.0, 12.0  # around words on a line, and between the places they try


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The ranges shown, the axes' titles, and the pixels they take."""

    across: Place
    up: Place
    titles: tuple[str, str]
    width: int
    height: int

    def x(self, field: str) -> alt.X:
        """A field as a horizontal position; the same scale and title for every layer."""
        scale = alt.Scale(domain=list(self.across), nice=False, zero=False)
        return alt.X(field, type="quantitative", scale=scale, title=self.titles[0], axis=alt.Axis(tickCount=10))

    def y(self, field: str) -> alt.Y:
        """A field as a vertical position."""
        scale = alt.Scale(domain=list(self.up), nice=False, zero=False)
        return alt.Y(field, type="quantitative", scale=scale, title=self.titles[1])

    def pixel(self, x: float, y: float) -> Place:
        """Where a value is drawn, from the upper left corner."""
        wide, tall = self._size()
        return (x - self.across[0]) / wide, (self.up[1] - y) / tall

    def value(self, left: float, top: float) -> Place:
        """What is drawn at a pixel."""
        wide, tall = self._size()
        return self.across[0] + left * wide, self.up[1] - top * tall

    def _size(self) -> Place:
        """What a pixel is worth."""
        return (self.across[1] - self.across[0]) / self.width, (self.up[1] - self.up[0]) / self.height


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A point and its name."""

    name: str
    at: Place


def names(frame: Frame, named: Sequence[Named], avoid: Sequence[Box], *, drop: bool) -> list[Any]:
    """Names on a white seam, each with a line to its point where it is not beside it."""
    crowd = Crowd(
        points=[frame.pixel(*one.at) for one in named],
        sizes=[(text_width(one.name), LINE) for one in named],
        width=frame.width,
        height=frame.height,
        avoid=avoid,
    )
    shown, leads = [], []
    for at, place in enumerate(label_places(crowd, drop=drop)):
        if place is None:
            continue
        x, y = frame.value(*place)
        shown.append({"x": x, "y": y, "name": named[at].name})
        end = _nearest(crowd.points[at], place, crowd.sizes[at][0])
        if math.dist(crowd.points[at], end) > LINE:
            x2, y2 = frame.value(*end)
            leads.append({"x": named[at].at[0], "y": named[at].at[1], "x2": x2, "y2": y2})
    where = {"x": frame.x("x"), "y": frame.y("y")}
    text = drawn_from(shown).encode(**where, text="name:N")
    look = {"align": "left", "baseline": "middle", "fontSize": FONT_SIZE}
    lines = drawn_from(leads).mark_rule(color=GREY, strokeWidth=0.7, aria=False).encode(**where, x2="x2", y2="y2")
    seam = text.mark_text(**look, stroke="white", strokeWidth=3, aria=False)
    return [*([lines] if leads else []), seam, text.mark_text(**look, color=INK)]


def word_box(frame: Frame, words: str, y: float, points: Sequence[Place], avoid: Sequence[Box]) -> Box:
    """Where words above a horizontal line cover least: the box, as far to the left as may be."""
    wide, bottom = text_width(words) + 2 * _AIR, frame.pixel(frame.across[0], y)[1]
    lefts = np.arange(_AIR, frame.width - wide, _STEP)
    tried = np.array([(left, bottom - LINE - _AIR, left + wide, bottom) for left in lefts])
    taken = np.concatenate([around([frame.pixel(*point) for point in points]), np.reshape(avoid, (-1, 4))])
    left, top, right, bottom = tried[np.argmin(covered_area(tried, taken))]
    return float(left), float(top), float(right), float(bottom)


def _nearest(point: Place, place: Place, width: float) -> Place:
    """Where the box of a name is nearest to its point."""
    top, bottom = place[1] - LINE / 2, place[1] + LINE / 2
    return min(max(point[0], place[0]), place[0] + width), min(max(point[1], top), bottom)

"""The frame of a chart in units and in pixels, and the places of names beside its points.

Places are found in pixels, while a chart is drawn in the units of its axes. Every name tries places around its point,
near ones first, and takes the one that covers least; later rounds let early names give way to later ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from skill_evaluator.display.chart_style import FONT_SIZE, GREY, INK, drawn_from, text_width

Place = tuple[float, float]
Box = tuple[float, float, float, float]  # pixels: left, top, right, bottom
Boxes = NDArray[np.float64]  # [n, 4]: left, top, right, bottom
LINE = 13.0  # height of a name
_AIR, _STEP = 4.0, 12.0  # around words on a line, and between the places they try
_DISTANCES = (8.0, 14.0, 22.0, 32.0, 44.0, 58.0)
_DIRECTIONS = tuple(math.radians(15 * step) for step in (0, 12, 6, 18, 2, 10, 22, 14, 4, 8, 20, 16, 1, 11, 23, 13))
_NEAR = 4  # of the distances: where names may be left out, none goes farther than these
_ROUNDS = 3
_POINT = 5.0  # its radius, and a little air
_OF_NAME, _OF_POINT, _OF_LINE, _OUTSIDE, _OF_DISTANCE, _OF_DIRECTION = 30.0, 12.0, 0.5, 1000.0, 2.5, 0.4
_COVERED = 4.0  # square pixels of another name or point that may be covered


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The ranges shown, the axes' titles, and the pixels they take."""

    across: Place
    up: Place
    titles: tuple[str, str]
    width: int
    height: int

    def x(self, field: str) -> alt.X:
        """Return a field as a horizontal position; every layer has the same scale and title."""
        scale = alt.Scale(domain=list(self.across), nice=False, zero=False)
        return alt.X(field, type="quantitative", scale=scale, title=self.titles[0], axis=alt.Axis(tickCount=10))

    def y(self, field: str) -> alt.Y:
        """Return a field as a vertical position."""
        scale = alt.Scale(domain=list(self.up), nice=False, zero=False)
        return alt.Y(field, type="quantitative", scale=scale, title=self.titles[1])

    def pixel(self, x: float, y: float) -> Place:
        """Return the pixel of a value, counted from the upper left corner."""
        wide, tall = self._units_per_pixel()
        return (x - self.across[0]) / wide, (self.up[1] - y) / tall

    def value(self, left: float, top: float) -> Place:
        """Return the value at a pixel."""
        wide, tall = self._units_per_pixel()
        return self.across[0] + left * wide, self.up[1] - top * tall

    def _units_per_pixel(self) -> Place:
        """Return how much of each axis a pixel covers."""
        return (self.across[1] - self.across[0]) / self.width, (self.up[1] - self.up[0]) / self.height


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A point and its name."""

    name: str
    at: Place


def draw_names(frame: Frame, named: Sequence[Named], avoid: Sequence[Box], *, drop: bool) -> list[Any]:
    """Draw names on a white seam, each with a line to its point where it is not beside it."""
    crowd = Crowd(
        points=[frame.pixel(*point.at) for point in named],
        sizes=[(text_width(point.name), LINE) for point in named],
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
        left, middle = place
        point, width = crowd.points[at], crowd.sizes[at][0]
        end = (  # where the box of the name is nearest to its point
            min(max(point[0], left), left + width),
            min(max(point[1], middle - LINE / 2), middle + LINE / 2),
        )
        if math.dist(point, end) > LINE:
            x2, y2 = frame.value(*end)
            leads.append({"x": named[at].at[0], "y": named[at].at[1], "x2": x2, "y2": y2})
    where = {"x": frame.x("x"), "y": frame.y("y")}
    text = drawn_from(shown).encode(**where, text="name:N")
    look = {"align": "left", "baseline": "middle", "fontSize": FONT_SIZE}
    lines = drawn_from(leads).mark_rule(color=GREY, strokeWidth=0.7, aria=False).encode(**where, x2="x2", y2="y2")
    seam = text.mark_text(**look, stroke="white", strokeWidth=3, aria=False)
    return [*([lines] if leads else []), seam, text.mark_text(**look, color=INK)]


def word_box(frame: Frame, words: str, y: float, points: Sequence[Place], avoid: Sequence[Box]) -> Box:
    """Return the box where words above a horizontal line cover least, as far to the left as may be."""
    wide, bottom = text_width(words) + 2 * _AIR, frame.pixel(frame.across[0], y)[1]
    lefts = np.arange(_AIR, frame.width - wide, _STEP)
    tried = np.array([(left, bottom - LINE - _AIR, left + wide, bottom) for left in lefts])
    taken = np.concatenate([around([frame.pixel(*point) for point in points]), np.reshape(avoid, (-1, 4))])
    left, top, right, bottom = tried[np.argmin(covered_area(tried, taken))]
    return float(left), float(top), float(right), float(bottom)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Points with the width and height of their names, and boxes that names had better not cover."""

    points: Sequence[Place]
    sizes: Sequence[Place]
    width: float
    height: float
    avoid: Sequence[Box] = ()


def label_places(crowd: Crowd, *, drop: bool) -> list[Place | None]:
    """Return the middle of each name's left edge; with `drop` None for a name that would cover a name or a point."""
    names = np.full((len(crowd.points), 4), -1e6)
    points = around(crowd.points)
    lines = np.array(crowd.avoid, dtype=np.float64).reshape(-1, 4)
    size = np.array([crowd.width, crowd.height])
    for _ in range(_ROUNDS):
        for at in range(len(crowd.points)):
            tried, effort = _candidates(crowd, at, _DISTANCES[:_NEAR] if drop else _DISTANCES)
            others = np.delete(names, at, axis=0)
            outside = (np.clip(-tried[:, :2], 0, None) + np.clip(tried[:, 2:] - size, 0, None)).sum(axis=1)
            cost = _OF_NAME * covered_area(tried, others) + _OF_POINT * covered_area(tried, points)
            cost += _OF_LINE * covered_area(tried, lines) + _OUTSIDE * outside + effort
            names[at] = tried[np.argmin(cost)]
    kept: list[int] = []  # names that cover nothing that is kept; the first come first
    for at in range(len(names)):
        box = names[at : at + 1]
        if not drop or covered_area(box, names[kept])[0] + covered_area(box, points)[0] <= _COVERED:
            kept.append(at)
    return [
        (float(left), float(top + bottom) / 2) if at in kept else None
        for at, (left, top, _, bottom) in enumerate(names)
    ]


def around(points: Sequence[Place]) -> Boxes:
    """Return the boxes that points take."""
    return np.array([(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]).reshape(-1, 4)


def _candidates(crowd: Crowd, at: int, distances: Sequence[float]) -> tuple[Boxes, NDArray[np.float64]]:
    """Return boxes around a point, and the cost of each by its distance and direction."""
    (x, y), (width, height) = crowd.points[at], crowd.sizes[at]
    boxes, effort = [], []
    for distance in distances:
        for turn, angle in enumerate(_DIRECTIONS):
            middle_x = x + math.cos(angle) * (distance + width / 2)
            middle_y = y - math.sin(angle) * (distance + height / 2)
            boxes.append((middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2))
            effort.append(_OF_DISTANCE * (distance - _DISTANCES[0]) + _OF_DIRECTION * turn)
    return np.array(boxes), np.array(effort)


def covered_area(tried: Boxes, others: Boxes) -> NDArray[np.float64]:
    """Return how much of the other boxes each tried box covers."""
    low = np.maximum(tried[:, None, :2], others[None, :, :2])
    high = np.minimum(tried[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(axis=2).sum(axis=1))

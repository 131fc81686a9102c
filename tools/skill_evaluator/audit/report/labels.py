"""A chart's frame in its own units and in pixels, and the names of points in it as layers of altair.

Its own module because places for names are found in pixels, while a chart is drawn in the units of its axes.

Where names go beside the points of a chart: points and sizes of texts in, places out, all in pixels.

Its own module because it knows nothing of what is drawn. Every name tries places around its point, near ones first,
and takes the one that covers least; a second round lets early names give way to later ones.
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


Boxes = NDArray[np.float64]  # [n, 4]: left, top, right, bottom
_DISTANCES = (8.0, 14.0, 22.0, 32.0, 44.0, 58.0)
_DIRECTIONS = tuple(math.radians(15 * step) for step in (0, 12, 6, 18, 2, 10, 22, 14, 4, 8, 20, 16, 1, 11, 23, 13))
_NEAR = 4  # of the distances: where names may be left out, none goes farther than these
_ROUNDS = 3
_POINT = 5.0  # its radius, and a little air
_OF_NAME, _OF_POINT, _OF_LINE, _OUTSIDE, _OF_DISTANCE, _OF_DIRECTION = 30.0, 12.0, 0.5, 1000.0, 2.5, 0.4
_COVERED = 4.0  # square pixels of another name or point that may be covered


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Points with the width and height of their names, and boxes that names had better not cover."""

    points: Sequence[tuple[float, float]]
    sizes: Sequence[tuple[float, float]]
    width: float
    height: float
    avoid: Sequence[tuple[float, float, float, float]] = ()


def label_places(crowd: Crowd, *, drop: bool) -> list[tuple[float, float] | None]:
    """The middle of each name's left edge; with `drop` None for one that would cover another name or a point."""
    names = np.full((len(crowd.points), 4), -1e6)
    points = around(crowd.points)
    lines = np.array(crowd.avoid, dtype=np.float64).reshape(-1, 4)
    for _ in range(_ROUNDS):
        for at in range(len(crowd.points)):
            tried, effort = _candidates(crowd, at, _DISTANCES[:_NEAR] if drop else _DISTANCES)
            others = np.delete(names, at, axis=0)
            cost = _OF_NAME * covered_area(tried, others) + _OF_POINT * covered_area(tried, points)
            cost += _OF_LINE * covered_area(tried, lines) + _OUTSIDE * _beyond(tried, crowd) + effort
            names[at] = tried[np.argmin(cost)]
    return _kept(names, points) if drop else [_left_middle(box) for box in names]


def around(points: Sequence[tuple[float, float]]) -> Boxes:
    """The boxes that points take."""
    return np.array([(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]).reshape(-1, 4)


def _candidates(crowd: Crowd, at: int, distances: Sequence[float]) -> tuple[Boxes, NDArray[np.float64]]:
    """Boxes around a point, and what each costs by its distance and direction."""
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
    """The area of the other boxes that each tried one covers."""
    low = np.maximum(tried[:, None, :2], others[None, :, :2])
    high = np.minimum(tried[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(axis=2).sum(axis=1))


def _beyond(tried: Boxes, crowd: Crowd) -> NDArray[np.float64]:
    """How far each box sticks out of the frame."""
    frame = np.array([crowd.width, crowd.height])
    return np.asarray((np.clip(-tried[:, :2], 0, None) + np.clip(tried[:, 2:] - frame, 0, None)).sum(axis=1))


def _kept(names: Boxes, points: Boxes) -> list[tuple[float, float] | None]:
    """Names that cover nothing that is kept; the first come first."""
    kept: list[int] = []
    for at in range(len(names)):
        box = names[at : at + 1]
        if covered_area(box, names[kept])[0] + covered_area(box, points)[0] <= _COVERED:
            kept.append(at)
    return [_left_middle(names[at]) if at in kept else None for at in range(len(names))]


def _left_middle(box: NDArray[np.float64]) -> tuple[float, float]:
    return float(box[0]), float(box[1] + box[3]) / 2

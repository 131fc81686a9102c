"""Where names go beside the points of a chart: points and sizes of texts in, places out, all in pixels.

Its own module because it knows nothing of what is drawn. Every name tries places around its point, near ones first,
and takes the one that covers least; a second round lets early names give way to later ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

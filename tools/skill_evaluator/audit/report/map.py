"""The map of an audit: ability across, fluctuation up, one point a model; overall, and on each benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from skill_evaluator.audit.findings.results import AuditResult, BenchmarkUsed, Interval, Quadrant
from skill_evaluator.audit.report.labels import LINE, Box, Frame, Named, Place, draw_names, word_box
from skill_evaluator.audit.report.verdict import verdict_words
from skill_evaluator.audit.report.wording import best_first, points
from skill_evaluator.display.chart_style import (
    FONT_SIZE,
    GREY,
    WARNING,
    drawn_from,
    grade_legend,
    grade_scales,
    short_name,
    text_width,
    title,
)
from skill_evaluator.display.safe_text import visible

MOST_LABELS = 25  # beyond that only names that find room
_WIDTH, _HEIGHT, _TALL = 780, 500, 680
_ROOM = 0.06
_INSET = 8  # of a quadrant's name
_BAR = 1.5  # half the width of an interval's bar
_TITLES = ("ability: % right, mean over scenarios →", "fluctuation: spread over scenarios, points →")
_UNGRADED = "no grade"
_CORNERS: dict[tuple[str, str], Quadrant] = {
    ("left", "top"): "avoid",
    ("right", "top"): "strong but scenario-fragile",
    ("left", "bottom"): "predictable baseline",
    ("right", "bottom"): "safe default",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    model: str
    grade: str | None
    ability: float
    fluctuation: float
    ability_ci95: Interval | None = None
    fluctuation_ci95: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What lies below the points, and the boxes of it that names had better not cover."""

    layers: Sequence[Any]
    boxes: Sequence[Box]


def overall_map(result: AuditResult) -> alt.LayerChart:
    """Draw every model with its intervals, the quadrants, and what noise alone would give."""
    shown = [
        _Point(
            model=model.model,
            grade=model.grade,
            ability=model.ability,
            fluctuation=model.fluctuation,
            ability_ci95=model.ability_ci95,
            fluctuation_ci95=model.fluctuation_ci95,
        )
        for model in best_first(result)
    ]
    frame = _frame(shown, [result.noise_floor, result.noise_ceiling])
    quadrants = _draw_quadrants(result, frame)
    noise = _draw_noise(result, frame, shown, quadrants.boxes)
    ground = _Ground(layers=[*quadrants.layers, *noise.layers], boxes=noise.boxes)
    legend = ["Lower right is better."]
    if result.medians is not None:
        legend.append("Grey lines: medians of the models.")
    if any(point.ability_ci95 or point.fluctuation_ci95 for point in shown):
        known = any(model.corrected is not None for model in result.models)
        legend.append(f"Bars: 95 % intervals{', noise taken off' if known else ''}.")
    if len(shown) > MOST_LABELS:
        legend.append("Names without room are left out; the table has them all.")
    heading = title(verdict_words(result)[0], " ".join(legend))
    return _draw_map(frame, ground, shown).properties(title=heading)


def benchmark_map(result: AuditResult, used: BenchmarkUsed) -> alt.LayerChart:
    """Draw every model on one benchmark, with its grade on it and what noise alone would give there."""
    shown = [
        _Point(
            model=model.model,
            grade=model.benchmarks[used.name].grade,
            ability=model.benchmarks[used.name].ability,
            fluctuation=model.benchmarks[used.name].fluctuation,
        )
        for model in best_first(result)
        if used.name in model.benchmarks
    ]
    heading = title(f"Ability and fluctuation on {visible(used.name)}", "Grades are those on this benchmark alone.")
    frame = _frame(shown, [used.noise_floor, used.noise_ceiling])
    return _draw_map(frame, _draw_noise(used, frame, shown, []), shown).properties(title=heading)


def _frame(shown: Sequence[_Point], lines: Sequence[float | None]) -> Frame:
    """Return a frame that points, intervals and lines fit into; fluctuation begins at 0."""
    across = [point.ability for point in shown] + [end for point in shown for end in point.ability_ci95 or ()]
    up = [point.fluctuation for point in shown] + [end for point in shown for end in point.fluctuation_ci95 or ()]
    highest = max([*up, *(line for line in lines if line is not None)], default=1.0) or 1.0
    low, high = min(across, default=0.0), max(across, default=100.0)
    room = max((high - low) * _ROOM, 1.0)
    height = _HEIGHT if len(shown) <= MOST_LABELS else _TALL
    up_to = highest * (1 + 2 * _ROOM)
    across_to = (max(low - room, 0.0), min(high + room, 100.0))
    return Frame(across=across_to, up=(0.0, up_to), titles=_TITLES, width=_WIDTH, height=height)


def _draw_quadrants(result: AuditResult, frame: Frame) -> _Ground:
    """Draw lines at the medians, a tint where it is best, and the names in the corners."""
    if result.medians is None:
        return _Ground(layers=[], boxes=[])
    middle = {"x": result.medians.ability, "y": result.medians.fluctuation}
    best = {"left": middle["x"], "right": frame.across[1], "low": frame.up[0], "high": middle["y"]}
    tint = drawn_from([best]).mark_rect(color="#0072b2", opacity=0.06, aria=False)
    lines = drawn_from([middle]).mark_rule(color=GREY, strokeWidth=1)
    layers = [
        tint.encode(x=frame.x("left"), x2="right", y=frame.y("low"), y2="high"),
        lines.encode(x=frame.x("x")),
        lines.encode(y=frame.y("y")),
    ]
    across, down = frame.pixel(result.medians.ability, result.medians.fluctuation)
    boxes = [_between((across, 0), (across, frame.height)), _between((0, down), (frame.width, down))]
    for (side, end), name in _CORNERS.items():
        inset = _INSET if side == "left" else frame.width - _INSET
        x, y = frame.value(inset, _INSET if end == "top" else frame.height - _INSET)
        look = {"align": side, "baseline": end, "fontStyle": "italic", "fontSize": FONT_SIZE + 2, "color": GREY}
        layer = drawn_from([{"x": x, "y": y, "name": name}]).mark_text(**look)
        layers.append(layer.encode(frame.x("x"), frame.y("y"), text="name:N"))
        left = 0 if side == "left" else frame.width - text_width(name) - 24
        top = 0 if end == "top" else frame.height - 2 * LINE
        boxes.append((left, top, left + text_width(name) + 24, top + 2 * LINE))
    return _Ground(layers=layers, boxes=boxes)


def _draw_noise(
    about: AuditResult | BenchmarkUsed, frame: Frame, shown: Sequence[_Point], avoid: Sequence[Box]
) -> _Ground:
    """Draw lines with their words above them, where they cover least."""
    layers: list[Any] = []
    boxes = list(avoid)
    for name, value, dash in (
        ("noise ceiling", about.noise_ceiling, [2, 3]),
        ("noise floor", about.noise_floor, [6, 4]),
    ):
        if value is None:
            continue
        words = f"{name} {points(value)}"
        taken = [*boxes, *_bar_boxes(frame, shown)]
        boxes.append(word_box(frame, words, value, [(point.ability, point.fluctuation) for point in shown], taken))
        line = drawn_from([{"y": value, "x": frame.value(boxes[-1][0], 0)[0], "name": words}])
        look = {"align": "left", "baseline": "bottom", "dx": 4, "dy": -3, "fontSize": FONT_SIZE, "color": WARNING}
        layers += [
            line.mark_rule(color=WARNING, strokeWidth=1.2, strokeDash=dash).encode(y=frame.y("y")),
            line.mark_text(**look).encode(x=frame.x("x"), y=frame.y("y"), text="name:N"),
        ]
    return _Ground(layers=layers, boxes=boxes)


def _draw_map(frame: Frame, ground: _Ground, shown: Sequence[_Point]) -> alt.LayerChart:
    steadiest = sorted(shown, key=lambda point: point.fluctuation)
    given = [visible(grade) for grade in dict.fromkeys(point.grade for point in steadiest if point.grade is not None)]
    if any(point.grade is None for point in shown):
        given = [*given, _UNGRADED]
    colours, shapes = grade_scales(given)
    legend = grade_legend() if given != [_UNGRADED] else None  # only where there are grades
    colour = alt.Color("grade:N", scale=colours, sort=given, legend=legend)
    shape = alt.Shape("grade:N", scale=shapes, sort=given, legend=legend)
    named = [Named(name=short_name(point.model), at=(point.ability, point.fluctuation)) for point in shown]
    avoid = [*ground.boxes, *_bar_boxes(frame, shown)]
    written = draw_names(frame, named, avoid, drop=len(shown) > MOST_LABELS)
    look = {"strokeWidth": 1.3, "opacity": 0.4 if len(shown) <= MOST_LABELS else 0.22, "aria": False}
    across = drawn_from([{**_row(point), **_ends(point.ability_ci95)} for point in shown if point.ability_ci95])
    up = drawn_from([{**_row(point), **_ends(point.fluctuation_ci95)} for point in shown if point.fluctuation_ci95])
    marks = drawn_from([_row(point) for point in shown]).mark_point(
        filled=True, size=75, opacity=1, stroke="white", strokeWidth=0.8
    )
    words = alt.Description("said:N")  # for those who do not see it, and for names without room
    x, y = frame.x("ability"), frame.y("fluctuation")
    layers = [
        *ground.layers,
        across.mark_rule(**look).encode(x=frame.x("low"), x2="high", y=y, color=colour),
        up.mark_rule(**look).encode(x=x, y=frame.y("low"), y2="high", color=colour),
        marks.encode(x=x, y=y, color=colour, shape=shape, description=words, tooltip=alt.Tooltip("said:N")),
        *written,
    ]
    return alt.layer(*layers).properties(width=frame.width, height=frame.height)


def _ends(interval: Interval) -> dict[str, float]:
    return {"low": interval[0], "high": interval[1]}


def _row(point: _Point) -> dict[str, Any]:
    words = f"{visible(point.model)}: ability {points(point.ability)}, fluctuation {points(point.fluctuation)}"
    return {
        "ability": point.ability,
        "fluctuation": point.fluctuation,
        "grade": _UNGRADED if point.grade is None else visible(point.grade),
        "said": words if point.grade is None else f"{words}, grade {visible(point.grade)}",
    }


def _bar_boxes(frame: Frame, shown: Sequence[_Point]) -> list[Box]:
    boxes = []
    for point in shown:
        middle = frame.pixel(point.ability, point.fluctuation)
        boxes += [_between(middle, frame.pixel(ability, point.fluctuation)) for ability in point.ability_ci95 or ()]
        boxes += [_between(middle, frame.pixel(point.ability, spread)) for spread in point.fluctuation_ci95 or ()]
    return boxes


def _between(first: Place, second: Place) -> Box:
    left, right = sorted((first[0], second[0]))
    top, bottom = sorted((first[1], second[1]))
    return left - _BAR, top - _BAR, right + _BAR, bottom + _BAR

"""The map of an audit: ability across, fluctuation up, one point a model; overall, and on each benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from skill_evaluator.audit.findings.results import AuditResult, Interval, Quadrant
from skill_evaluator.audit.report.labels import LINE, Box, Frame, Named, Place, names, word_box
from skill_evaluator.audit.report.wording import best_first, grades, points
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
from skill_evaluator.text import counted

MOST_LABELS = 25  # beyond that only names that find room
_WIDTH, _HEIGHT, _TALL = 780, 500, 680
_ROOM = 0.06
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
    """Every model with its intervals, the quadrants, and what noise alone would give."""
    shown = [
        _Point(
            model=one.model,
            grade=one.grade,
            ability=one.ability,
            fluctuation=one.fluctuation,
            ability_ci95=one.ability_ci95,
            fluctuation_ci95=one.fluctuation_ci95,
        )
        for one in best_first(result)
    ]
    frame = _frame(shown, [result.noise_floor, result.noise_ceiling])
    noise = _noise(result, frame, shown, _quadrant_boxes(result, frame))
    ground = _Ground(layers=[*_quadrants(result, frame), *noise.layers], boxes=noise.boxes)
    heading = title(f"Ability and fluctuation of {counted(len(shown), 'model')}", _legend(result, shown))
    return _chart(result, frame, ground, shown).properties(title=heading)


def benchmark_map(result: AuditResult, benchmark: str) -> alt.LayerChart:
    """The same on one benchmark; grades are the overall ones."""
    shown = [
        _Point(
            model=one.model,
            grade=one.grade,
            ability=one.benchmarks[benchmark].ability,
            fluctuation=one.benchmarks[benchmark].fluctuation,
        )
        for one in best_first(result)
        if benchmark in one.benchmarks
    ]
    heading = title(f"Ability and fluctuation on {visible(benchmark)}", "Grades are those over all benchmarks.")
    return _chart(result, _frame(shown, []), _Ground(layers=[], boxes=[]), shown).properties(title=heading)


def _legend(result: AuditResult, shown: Sequence[_Point]) -> str:
    words = ["Lower right is better."]
    if result.medians is not None:
        words.append("Grey lines: medians of the models.")
    if any(one.ability_ci95 or one.fluctuation_ci95 for one in shown):
        words.append("Bars: 95 % intervals.")
    if len(shown) > MOST_LABELS:
        words.append("Names without room are left out; the table has them all.")
    return " ".join(words)


def _frame(shown: Sequence[_Point], lines: Sequence[float | None]) -> Frame:
    """All of it fits: points, intervals and lines; fluctuation from nothing."""
    across = [one.ability for one in shown] + [end for one in shown for end in one.ability_ci95 or ()]
    up = [one.fluctuation for one in shown] + [end for one in shown for end in one.fluctuation_ci95 or ()]
    highest = max([*up, *(line for line in lines if line is not None)], default=1.0) or 1.0
    low, high = min(across, default=0.0), max(across, default=100.0)
    room = max((high - low) * _ROOM, 1.0)
    height = _HEIGHT if len(shown) <= MOST_LABELS else _TALL
    up_to = highest * (1 + 2 * _ROOM)
    across_to = (max(low - room, 0.0), min(high + room, 100.0))
    return Frame(across=across_to, up=(0.0, up_to), titles=_TITLES, width=_WIDTH, height=height)


def _quadrants(result: AuditResult, frame: Frame) -> list[Any]:
    """Lines at the medians, a tint where it is best, and the names in the corners."""
    if result.medians is None:
        return []
    middle = {"x": result.medians.ability, "y": result.medians.fluctuation}
    best = {"left": middle["x"], "right": frame.across[1], "low": frame.up[0], "high": middle["y"]}
    tint = (
        drawn_from([best])
        .mark_rect(color="#0072b2", opacity=0.06, aria=False)
        .encode(x=frame.x("left"), x2="right", y=frame.y("low"), y2="high")
    )
    lines = drawn_from([middle])
    return [
        tint,
        lines.mark_rule(color=GREY, strokeWidth=1).encode(x=frame.x("x")),
        lines.mark_rule(color=GREY, strokeWidth=1).encode(y=frame.y("y")),
        *(_corner(frame, side, end, name) for (side, end), name in _CORNERS.items()),
    ]


def _corner(frame: Frame, side: str, end: str, name: str) -> Any:
    inset = 8
    x, y = frame.value(
        inset if side == "left" else frame.width - inset, inset if end == "top" else frame.height - inset
    )
    look = {"align": side, "baseline": end, "fontStyle": "italic", "fontSize": FONT_SIZE + 2, "color": GREY}
    return (
        drawn_from([{"x": x, "y": y, "name": name}]).mark_text(**look).encode(frame.x("x"), frame.y("y"), text="name:N")
    )


def _noise(result: AuditResult, frame: Frame, shown: Sequence[_Point], avoid: Sequence[Box]) -> _Ground:
    """Lines with their words above them, where they cover least."""
    layers: list[Any] = []
    boxes = list(avoid)
    for name, value, dash in (
        ("noise ceiling", result.noise_ceiling, [2, 3]),
        ("noise floor", result.noise_floor, [6, 4]),
    ):
        if value is None:
            continue
        words = f"{name} {points(value)}"
        taken = [*boxes, *_bar_boxes(frame, shown)]
        boxes.append(word_box(frame, words, value, [(one.ability, one.fluctuation) for one in shown], taken))
        line = drawn_from([{"y": value, "x": frame.value(boxes[-1][0], 0)[0], "name": words}])
        look = {"align": "left", "baseline": "bottom", "dx": 4, "dy": -3, "fontSize": FONT_SIZE, "color": WARNING}
        layers += [
            line.mark_rule(color=WARNING, strokeWidth=1.2, strokeDash=dash).encode(y=frame.y("y")),
            line.mark_text(**look).encode(x=frame.x("x"), y=frame.y("y"), text="name:N"),
        ]
    return _Ground(layers=layers, boxes=boxes)


def _chart(result: AuditResult, frame: Frame, ground: _Ground, shown: Sequence[_Point]) -> alt.LayerChart:
    colour, shape = _graded(result, shown)
    named = [Named(name=short_name(one.model), at=(one.ability, one.fluctuation)) for one in shown]
    avoid = [*ground.boxes, *_bar_boxes(frame, shown)]
    written = names(frame, named, avoid, drop=len(shown) > MOST_LABELS)
    layers = [*ground.layers, *_bars(frame, shown, colour), _points(frame, shown, colour, shape), *written]
    return alt.layer(*layers).properties(width=frame.width, height=frame.height)


def _graded(result: AuditResult, shown: Sequence[_Point]) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape by grade; the legend only where there are grades."""
    given = [visible(grade) for grade in grades(result)]
    if any(one.grade is None for one in shown):
        given = [*given, _UNGRADED]
    colours, shapes = grade_scales(given)
    legend = grade_legend() if given != [_UNGRADED] else None
    return (
        alt.Color("grade:N", scale=colours, sort=given, legend=legend),
        alt.Shape("grade:N", scale=shapes, sort=given, legend=legend),
    )


def _bars(frame: Frame, shown: Sequence[_Point], colour: alt.Color) -> list[Any]:
    look = {"strokeWidth": 1.3, "opacity": 0.4 if len(shown) <= MOST_LABELS else 0.22, "aria": False}
    across = drawn_from([{**_row(one), **_ends(one.ability_ci95)} for one in shown if one.ability_ci95])
    up = drawn_from([{**_row(one), **_ends(one.fluctuation_ci95)} for one in shown if one.fluctuation_ci95])
    return [
        across.mark_rule(**look).encode(x=frame.x("low"), x2="high", y=frame.y("fluctuation"), color=colour),
        up.mark_rule(**look).encode(x=frame.x("ability"), y=frame.y("low"), y2="high", color=colour),
    ]


def _ends(interval: Interval) -> dict[str, float]:
    return {"low": interval[0], "high": interval[1]}


def _points(frame: Frame, shown: Sequence[_Point], colour: alt.Color, shape: alt.Shape) -> Any:
    said = alt.Description("said:N")  # for those who do not see it, and for names without room
    marks = drawn_from([_row(one) for one in shown]).mark_point(
        filled=True, size=75, opacity=1, stroke="white", strokeWidth=0.8
    )
    return marks.encode(x=frame.x("ability"), y=frame.y("fluctuation"), color=colour, shape=shape, description=said)


def _row(one: _Point) -> dict[str, Any]:
    said = f"{visible(one.model)}: ability {points(one.ability)}, fluctuation {points(one.fluctuation)}"
    return {
        "ability": one.ability,
        "fluctuation": one.fluctuation,
        "grade": _UNGRADED if one.grade is None else visible(one.grade),
        "said": said if one.grade is None else f"{said}, grade {visible(one.grade)}",
    }


def _quadrant_boxes(result: AuditResult, frame: Frame) -> list[Box]:
    """The medians' lines and the quadrants' names."""
    if result.medians is None:
        return []
    x, y = frame.pixel(result.medians.ability, result.medians.fluctuation)
    boxes = [_between((x, 0), (x, frame.height)), _between((0, y), (frame.width, y))]
    for (side, end), name in _CORNERS.items():
        left = 0 if side == "left" else frame.width - text_width(name) - 24
        top = 0 if end == "top" else frame.height - 2 * LINE
        boxes.append((left, top, left + text_width(name) + 24, top + 2 * LINE))
    return boxes


def _bar_boxes(frame: Frame, shown: Sequence[_Point]) -> list[Box]:
    boxes = []
    for one in shown:
        middle = frame.pixel(one.ability, one.fluctuation)
        boxes += [_between(middle, frame.pixel(ability, one.fluctuation)) for ability in one.ability_ci95 or ()]
        boxes += [_between(middle, frame.pixel(one.ability, spread)) for spread in one.fluctuation_ci95 or ()]
    return boxes


def _between(one: Place, other: Place) -> Box:
    left, right = sorted((one[0], other[0]))
    top, bottom = sorted((one[1], other[1]))
    return left - _BAR, top - _BAR, right + _BAR, bottom + _BAR

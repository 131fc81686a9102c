"""Charts as text, which GitHub draws by Mermaid wherever an image has no address: a quadrant chart, and a line.

The syntax is what Mermaid 10.9 and 11 take. A name from outside becomes a quoted word: it can end neither its quotes
nor its line, hold no directive and no entity.
"""

import re
from collections.abc import Mapping, Sequence

from skill_evaluator.display.safe_text import shortened, visible

_LONGEST = 48  # characters of a name
_TWO_PERCENT = re.compile("%(?=%)")  # two begin a comment or a directive
_EDGE = 0.04  # of the half of an axis, so that no point lies on the frame


def quadrant_chart(
    axes: tuple[str, str],
    corners: Sequence[str],
    middle: tuple[float, float],
    points: Mapping[str, tuple[float, float]],
) -> str:
    """Draw named points on four quadrants that meet in `middle`; `corners` are from the top right, against the clock.

    Both axes reach as far to one side of the middle as to the other.
    """
    reach = [max((abs(point[at] - middle[at]) for point in points.values()), default=0) * (1 + _EDGE) for at in (0, 1)]
    reach = [half or 1.0 for half in reach]
    lines = ["quadrantChart"]
    for name, title, centre, half in zip("xy", axes, middle, reach, strict=True):
        lines.append(f"    {name}-axis {_word(f'{title} {centre - half:.1f}')} --> {_word(f'{centre + half:.1f}')}")
    lines += [f"    quadrant-{place} {_word(corner)}" for place, corner in enumerate(corners, 1)]
    for name, point in points.items():
        x, y = (0.5 + (point[at] - middle[at]) / reach[at] / 2 for at in (0, 1))
        lines.append(f"    {_word(name)}: [{x:.3f}, {y:.3f}]")
    return _block(lines)


def line_chart(title: str, axis: str, values: Mapping[str, float]) -> str:
    """Draw shares from 0 to 1 as a line over their names, in the order given."""
    return _block(
        [
            "xychart-beta",
            f"    title {_word(title)}",
            f"    x-axis [{', '.join(map(_word, values))}]",
            f"    y-axis {_word(axis)} 0 --> 1",
            f"    line [{', '.join(f'{value:.3f}' for value in values.values())}]",
        ]
    )


def _word(text: str) -> str:
    plain = visible(shortened(text, limit=_LONGEST))
    plain = plain.replace('"', "'").replace("`", "'").replace("#", "＃")
    return f'"{_TWO_PERCENT.sub("% ", plain)}"'


def _block(lines: Sequence[str]) -> str:
    return "\n".join(["```mermaid", *lines, "```"])

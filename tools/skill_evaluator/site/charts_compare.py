"""The chart of a comparison: each difference with its interval, beside no difference."""

from typing import Any

import altair as alt

from skill_evaluator.site.charts import VERDICT_SHAPES, named_rows

_COLOURS = {
    "regressed": "#d55e00",
    "improved": "#009e73",
    "unchanged": "#0072b2",
    "inconclusive": "#8c8c8c",
    "incomparable": "#8c8c8c",
}
_ROW_HEIGHT = 24


def compare_charts() -> dict[str, Any]:
    """Return the specification of every chart of a comparison by its name."""
    return {"forest": _forest().to_dict(validate=False)}


def _forest() -> Any:
    """Draw differences from the worst to the best, a line for each 95 % interval, and a rule at no difference."""
    x = alt.X("difference:Q", title="after − before", axis=alt.Axis(format="+.2f", tickCount=6))
    y = alt.Y("name:N", sort=["@names"], title=None, axis=alt.Axis(labelLimit=180))
    scale = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    colour = alt.Color("verdict:N", scale=scale, legend=None)
    shapes = alt.Scale(domain=list(_COLOURS), range=[VERDICT_SHAPES[name] for name in _COLOURS])
    base = named_rows().encode(y=y, color=colour)
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color="@soft", strokeDash=[4, 3], aria=False)
    return alt.layer(
        zero.encode(x=alt.X("zero:Q", title="after − before")),
        base.transform_filter("datum.low !== null")
        .mark_rule(strokeWidth=2, opacity=0.55, aria=False)
        .encode(x=alt.X("low:Q", title="after − before"), x2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(
            x=x,
            shape=alt.Shape("verdict:N", scale=shapes, legend=None),
            tooltip=alt.Tooltip("words:N"),
            description="words:N",
        ),
    ).properties(width="container", height=alt.Step(_ROW_HEIGHT))

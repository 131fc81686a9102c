"""HTML pages rendered by jinja2 from the templates in `templates/`.

Every text in a template is escaped, cut to a length and free of characters that do not print.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from skill_evaluator import __version__
from skill_evaluator.display import WHOLE, abridged, amount, count, ends, interval, number, signed, value_text, visible
from skill_evaluator.display.chart_style import page_chart
from skill_evaluator.display.pages import component_address, html_columns, mood_of, page_address, sections_of
from skill_evaluator.reports.summary import MARKS
from skill_evaluator.site import MAX_TEXT, POLICY, SiteFolder, cut_name
from skill_evaluator.text import counted, ranges

_MAX_SHORT_VALUE, _MAX_SETTING = 60, 960  # characters
_HERE = Path(__file__).parent


def write_page(site: SiteFolder, address: str, template: str, *, max_text: int = MAX_TEXT, **shown: Any) -> None:
    """Render a template with the values `shown` and write the page. Texts are cut to `max_text` characters."""
    page = {"place": address, "root": "../" * address.count("/"), "max_text": max_text}
    site.write(address, _templates().get_template(template).render(**page, **shown) + "\n")


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=jinja2.pass_context(_printable),
    )
    environment.globals |= {one.__name__: one for one in (component_address, counted, page_address)}
    environment.globals |= {"MARKS": MARKS, "WHOLE": WHOLE, "AGREEMENT": "pairwise_exact_match"}
    environment.globals |= {"policy": POLICY, "program": __version__}
    environment.filters |= {
        "amount": amount,
        "columns": html_columns,
        "date": lambda timestamp: timestamp[:10],
        "drawn": lambda chart: page_chart(chart.draw(), f"{chart.name}0", narrowed=chart.name != "heat"),
        "ends": ends,
        "interval": interval,
        "joined": lambda parts: abridged("".join(part for part, _ in parts), _MAX_SHORT_VALUE),
        "kind": lambda block: type(block).__name__,
        "mood": mood_of,
        "number": number,
        "ranges": ranges,
        "pairs": lambda titles, numeric: [(title, numeric) for title in titles],
        "prose": _prose,
        "sections": sections_of,
        "setting": lambda value: value if isinstance(value, str) else abridged(value_text(value), _MAX_SETTING),
        "signed": signed,
        "thousands": count,
        "url": lambda address, root="": escape(root + address),
        "whole": lambda text: escape(visible(text, keep="\n\t")),
    }
    return environment


def _printable(context: Any, value: Any) -> Any:
    """Escape the invisible characters of a text, and cut the text if it is too long. Return "" for None."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(cut_name(value, context.get("max_text", MAX_TEXT)), keep="\n\t")
    return "" if value is None else value


def _prose(text: str) -> Markup:
    """Return a sentence as HTML in which text between backticks is code."""
    parts = re.split("`", visible(text, keep="\n\t"))
    marked = (Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts))
    return Markup("").join(marked)

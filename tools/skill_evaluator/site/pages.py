"""The pages of a site and what they share: templates, styles, scripts and the libraries that draw.

To add a page: a line in PAGES, a script in assets/ that fills <main>, and what it shows by `SiteFolder.write_data`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator import __version__
from skill_evaluator.errors import ConfigError
from skill_evaluator.site.writing import SiteFolder

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
_HERE = Path(__file__).parent
_SHARED = ("site.css", "site.js", "draw.js", "cases.js")
_INSTALL = "pip install altair jinja2 vl-convert-python"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageKind:
    """One page: its title, its script in assets/, and whether the line of links on every page has it."""

    title: str
    script: str
    linked: bool = False
    charts: bool = False


PAGES: Mapping[str, PageKind] = {
    "index.html": PageKind(title="Overview", script="overview.js", linked=True),
    "changes.html": PageKind(title="What changed", script="changes.js", linked=True),
    "audit.html": PageKind(title="Audit", script="audit.js", linked=True, charts=True),
    "component.html": PageKind(title="Component", script="component.js", charts=True),
    "case.html": PageKind(title="Case", script="case.js"),
    "compare.html": PageKind(title="Compare", script="compare.js", charts=True),
    "judges.html": PageKind(title="Judges", script="judges.js", linked=True, charts=True),
    "verdict.html": PageKind(title="Verdict", script="verdict.js"),
}


def write_pages(site: SiteFolder) -> None:
    """Write all that is the same whatever was recorded; raise ConfigError where the extra is not installed."""
    try:
        import jinja2

        from skill_evaluator.site.charts import chart_specs
        from skill_evaluator.site.charts_compare import compare_charts
        from skill_evaluator.site.charts_judges import judge_charts
        from skill_evaluator.site.drawing import write_library
    except ImportError as problem:
        raise ConfigError(f"the site needs libraries that do not load ({problem}): {_INSTALL}") from problem
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    for name, page in PAGES.items():
        shown = {"page": page, "name": name, "pages": PAGES, "policy": POLICY, "version": __version__}
        site.write(name, templates.get_template("page.html").render(**shown) + "\n")
    for asset in (*_SHARED, *(page.script for page in PAGES.values())):
        site.write(f"assets/{asset}", (_HERE / "assets" / asset).read_text("utf-8"))
    write_library(site)
    site.write_data("charts", {**chart_specs(), **compare_charts(), **judge_charts()})

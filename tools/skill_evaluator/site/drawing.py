"""Vega, Vega-Lite and Vega-Embed as one script of the site, so that it draws without a network."""

from importlib.metadata import version

import vl_convert

from skill_evaluator.site.writing import SiteFolder

_NAME = "assets/vega.js"
_GIVEN = "window.vegaEmbed = vegaEmbed;"  # all that the pages call


def write_library(site: SiteFolder) -> None:
    """Write the bundle; it takes seconds to make, so one of the same version stays.

    It is wrapped, because its names would collide with those of the page's own scripts.
    """
    first_line = (
        f"/* Vega-Lite {vl_convert.get_vegalite_versions()[-1]} by vl-convert {version('vl-convert-python')} */"
    )
    if not site.keeps(_NAME, first_line):
        site.write(_NAME, f"{first_line}\n(function () {{\n{vl_convert.javascript_bundle(_GIVEN)}\n}})();\n")

"""The page of a component: its charts, the map of fields, and the cases of a field."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep
from tests.support.sites import site_page, words

pytest.importorskip("vl_convert")
PAGE = f"components/{SKILL}.html"
CASES = {"alpha": [1.0, 0.5], "beta": [0.5, 0.5]}


def counts(right: int, wrong: int, missing: int, extra: int) -> dict[str, Any]:
    leaf = {"compare": "exact", "accuracy": 0.5, "n": right + wrong + missing, "stability": 0.5}
    return {**leaf, "right": right, "wrong": wrong, "missing": missing, "extra": extra}


def built(library: Library) -> Any:
    assert library.call("site", "build", "--out", "site").code == 0
    return site_page(library.root / "site", PAGE)


def titles(page: Any, chart: str) -> set[str]:
    """Return the tooltips of a chart."""
    return {words(title) for title in page.find(attrs={"data-chart": chart}).find_all("title")}


def test_missing_values_in_arrays_are_in_chart_and_its_title(tmp_path: Path) -> None:
    library = Library(tmp_path)
    row = {"type": "object", "properties": {"name": {"type": "string"}, "price": {"type": "number"}}}
    rows = {"rows": {"type": "array", "items": row}, "date": {"type": "string"}}
    library.write(f"components/{SKILL}/schema.json", {"type": "object", "properties": rows})
    lossy = {"rows[].name": counts(5, 1, 2, 0), "rows[].price": counts(3, 0, 5, 1), "date": counts(8, 0, 0, 0)}
    keep(library, a_run("1.0.0", 1, CASES, per_field=lossy))
    keep(library, a_run("1.0.0", 2, CASES, model_id="n", per_field={"rows[].name": counts(8, 0, 0, 0)}))
    page = built(library)
    assert "m loses most in rows: 7 of 17 values are missing" in words(page.main)
    assert page.find(attrs={"data-chart": "trend"}) is None  # of one version
    of_m = {f"rows · m: {many} {name}" for name, many in (("right", 8), ("wrong", 1), ("missing", 7), ("extra", 1))}
    assert titles(page, "items") == of_m | {"rows · n: 8 right"}


def test_field_map_links_to_the_cases_of_a_field(root: Path) -> None:
    page = site_page(root / "site", "components/receipts.html")
    cell = page.find("caption", string="Fields beside models").parent.find("tr", string=None).find_next("a")
    section = page.find(id=cell["href"].removeprefix("#"))
    field = words(cell.find_parent("tr").th)
    assert words(section.summary) == field
    cases = {words(link) for link in section.find_all("a")}
    assert cases
    assert cases <= {words(link) for link in page.find(id="cases").select("tbody th a")}


def test_worst_cases_are_first_and_right_cases_are_collapsed(root: Path) -> None:
    cases = site_page(root / "site", "components/receipts.html").find(id="cases")
    lowest = [min(float(cell["data-value"]) for cell in row.find_all("td")) for row in cases.select("tbody tr")]
    assert lowest == sorted(lowest)
    assert "3 cases right in every output of every model" in words(cases)

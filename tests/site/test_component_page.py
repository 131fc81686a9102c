"""The page of a component: charts drawn when it is built, the field map, and the cases of a field."""

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
    """The words of the marks of a chart."""
    return {words(title) for title in page.find(attrs={"data-chart": chart}).find_all("title")}


def test_values_that_arrays_lost_are_drawn_and_named_in_the_title(tmp_path: Path) -> None:
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


def test_spread_of_single_calls_is_drawn_if_the_record_has_it(tmp_path: Path) -> None:
    library = Library(tmp_path)
    seconds = {"p5": 1.25, "p25": 1.5, "p50": 2.0, "p75": 3.0, "p95": 7.75}
    dollars = {name: value / 1000 for name, value in seconds.items()}
    took = {"latency_s": {"p50": 2.0, "p95": 7.75}, "cost_usd": 0.009}
    version = "0.1.0+0123abcd"
    keep(library, a_run(version, 1, CASES, **took, calls={"latency_s": seconds, "cost_usd": dollars}))
    keep(library, a_run(version, 2, CASES, **took, model_id="n"))  # of a record that was written before
    page = built(library)
    assert version in words(page.main)
    for kind in ("latency", "cost"):
        figure = page.find(attrs={"data-chart": kind}).find_parent("figure")
        row = next(row for row in figure.select("tbody tr") if words(row.th) == "m")
        assert [words(cell) for cell in row.find_all("td")][-4:] == ["1.25", "1.50", "3.00", "7.75"]


def test_tokens_cost_and_latency_are_listed_by_version(tmp_path: Path) -> None:
    library = Library(tmp_path)
    for at, tokens in ((1, 61), (2, 12_000)):
        outputs = sum(map(len, CASES.values()))
        amounts = {"tokens": {"input": 10, "output": tokens * outputs}, "cost_usd": 0.001 * at * outputs}
        keep(library, a_run(f"1.{at}.0", at, CASES, **amounts, latency_s={"p50": at, "p95": at}))
    table = built(library).find("caption", string="Output tokens, cost and latency").parent
    rows = {words(row.th): [words(cell) for cell in row.find_all("td")[:4]] for row in table.select("tbody tr")}
    assert rows == {"1.1.0": ["m", "61.00", "1.00", "1.00"], "1.2.0": ["m", "12,000.00", "2.00", "2.00"]}


def test_cell_of_the_field_map_leads_to_the_cases_of_the_field(root: Path) -> None:
    page = site_page(root / "site", "components/receipts.html")
    cell = page.find("caption", string="Fields beside models").parent.find("tr", string=None).find_next("a")
    section = page.find(id=cell["href"].removeprefix("#"))
    field = words(cell.find_parent("tr").th)
    assert words(section.summary) == field
    cases = {words(link) for link in section.find_all("a")}
    assert cases
    assert cases <= {words(link) for link in page.find(id="cases").select("tbody th a")}


def test_cases_stand_the_worst_first_and_those_right_everywhere_fold(root: Path) -> None:
    cases = site_page(root / "site", "components/receipts.html").find(id="cases")
    lowest = [min(float(cell["data-value"]) for cell in row.find_all("td")) for row in cases.select("tbody tr")]
    assert lowest == sorted(lowest)
    assert "3 cases right in every output of every model" in words(cases)

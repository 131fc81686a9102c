"""What the component page draws in Chromium: what arrays lost, and how time and cost of single calls are spread."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep
from tests.support.sites import watched

pytestmark = pytest.mark.browser


def counts(right: int, wrong: int, missing: int, extra: int) -> dict[str, Any]:
    leaf = {"compare": "exact", "accuracy": 0.5, "n": right + wrong + missing, "stability": 0.5}
    return {**leaf, "right": right, "wrong": wrong, "missing": missing, "extra": extra}


def test_values_that_arrays_lost_are_drawn_and_named_in_the_title(browser: Any, tmp_path: Path) -> None:
    library, cases = Library(tmp_path), {"alpha": [1.0, 0.5], "beta": [0.5, 0.5]}
    row = {"type": "object", "properties": {"name": {"type": "string"}, "price": {"type": "number"}}}
    rows = {"rows": {"type": "array", "items": row}, "date": {"type": "string"}}
    library.write(f"components/{SKILL}/schema.json", {"type": "object", "properties": rows})
    lossy = {"rows[].name": counts(5, 1, 2, 0), "rows[].price": counts(3, 0, 5, 1), "date": counts(8, 0, 0, 0)}
    keep(library, a_run("1.0.0", 1, cases, per_field=lossy))
    keep(library, a_run("1.0.0", 2, cases, model_id="n", per_field={"rows[].name": counts(8, 0, 0, 0)}))
    assert library.call("site", "build", "--out", "site").code == 0
    with watched(browser, f"file://{tmp_path}/site/", viewport={"width": 360, "height": 740}) as watch:
        page = watch.open_drawn("component.html#component=notice-extraction")
        assert "m loses most in rows: 7 of 17 values are missing" in page.inner_text("main")
        assert page.locator("[data-chart=trend]").count() == 0  # of one version: no empty frame
        described = page.locator(".chart svg [aria-label^='rows · ']")
        shown = {mark.get_attribute("aria-label") for mark in described.all()}
        of_m = {
            f"rows · m: {count} of 17 {name}"
            for name, count in (("right", 8), ("wrong", 1), ("missing", 7), ("extra", 1))
        }
        assert shown == of_m | {"rows · n: 8 of 8 right"}
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert (watch.errors, watch.left) == ([], [])


def test_the_spread_of_single_calls_is_drawn_where_the_record_says_it(browser: Any, tmp_path: Path) -> None:
    library, cases = Library(tmp_path), {"alpha": [1.0, 0.5], "beta": [0.5, 0.5]}
    seconds = {"p5": 1.25, "p25": 1.5, "p50": 2.0, "p75": 3.0, "p95": 7.75}
    dollars = {name: value / 1000 for name, value in seconds.items()}
    took = {"latency_s": {"p50": 2.0, "p95": 7.75}, "cost_usd": 0.009}
    dated = "0.20260101120000.0+0123abcd"
    keep(library, a_run(dated, 1, cases, **took, calls={"latency_s": seconds, "cost_usd": dollars}))
    keep(library, a_run(dated, 2, cases, **took, model_id="n"))  # of a record that was written before
    assert library.call("site", "build", "--out", "site").code == 0
    with watched(browser, f"file://{tmp_path}/site/") as watch:
        page = watch.open_drawn("component.html#component=notice-extraction")
        shown = page.inner_text("main")
        assert ("2026-01-01 0123abcd" in shown, dated in shown) == (True, False)
        for kind, unit in (("latency", "s"), ("cost", "USD")):
            figure = page.locator("figure", has=page.locator(f"[data-chart={kind}]"))
            figure.locator("summary").click()
            lines = [line.split("\t") for line in figure.locator("table").inner_text().strip().split("\n")]
            known = next(line for line in lines if line[0] == "m")
            assert known[-4:] == ["1.25", "1.50", "3.00", "7.75"], unit
            boxes = figure.locator(".mark-rect path").evaluate_all(
                "(paths) => paths.map((path) => path.getBBox().width)"
            )
            assert len(boxes) == 1
            assert boxes[0] > 0
        assert watch.errors == []

"""What the component page draws of arrays, in Chromium: a bar each, and a title that says what was lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.library import Library
from tests.support.records import a_run, keep
from tests.support.review_page import chromium
from tests.support.sites import watched

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


def counts(right: int, wrong: int, missing: int, extra: int) -> dict[str, Any]:
    leaf = {"compare": "exact", "accuracy": 0.5, "n": right + wrong + missing, "stability": 0.5}
    return {**leaf, "right": right, "wrong": wrong, "missing": missing, "extra": extra}


def test_values_that_arrays_lost_are_drawn_and_named_in_the_title(browser: Any, tmp_path: Path) -> None:
    library, cases = Library(tmp_path), {"alpha": [1.0, 0.5], "beta": [0.5, 0.5]}
    lossy = {"rows[].name": counts(5, 1, 2, 0), "rows[].price": counts(3, 0, 5, 1), "date": counts(8, 0, 0, 0)}
    keep(library, a_run("1.0.0", 1, cases, per_field=lossy))
    keep(library, a_run("1.0.0", 2, cases, model_id="n", per_field={"rows[].name": counts(8, 0, 0, 0)}))
    assert library.call("site", "build", "--out", "site").code == 0
    with watched(browser, f"file://{tmp_path}/site/", viewport={"width": 360, "height": 740}) as watch:
        page = watch.open_drawn("component.html#component=notice-extraction")
        assert "m loses most in rows: 7 of 17 values are missing" in page.inner_text("main")
        described = page.locator(".chart svg [aria-label^='rows · ']")
        shown = {mark.get_attribute("aria-label") for mark in described.all()}
        of_m = {
            f"rows · m: {count} of 17 {name}"
            for name, count in (("right", 8), ("wrong", 1), ("missing", 7), ("extra", 1))
        }
        assert shown == of_m | {"rows · n: 8 of 8 right"}
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert (watch.errors, watch.left) == ([], [])

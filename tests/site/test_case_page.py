"""The page of a case in Chromium: the way to a wrong value, the filters, and hostile texts as text."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.site.conftest import HOSTILE
from tests.support.library import SKILL, Library
from tests.support.sites import watched

pytestmark = pytest.mark.browser
CASE = "cases/receipts/service-charge.html"


def test_two_clicks_lead_from_overview_to_a_wrong_value(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/") as watch:
        page = watch.open("index.html")
        page.get_by_role("link", name="receipts", exact=True).first.click()
        cases = page.get_by_role("table", name="Cases beside models")
        cases.get_by_role("link", name="service-charge").click()
        page.get_by_role("heading", name="service-charge", level=1).wait_for()
        leaf = page.locator(".answer tr", has_text="wrong").first
        assert [leaf.locator(cell).inner_text() for cell in ("th", "td >> nth=0", "td >> nth=1")] == [
            "total",
            '"63.10"',
            '"63.13"',
        ]
        assert "number, ± 0.005" in leaf.inner_text()
        assert leaf.locator("mark").all_inner_texts() == ["10", "13"]
        page.get_by_text("The output as it came").first.click()
        assert '"total": "63.1' in page.locator(".answer pre").first.inner_text()
        assert watch.errors == []


def test_runs_of_a_case_are_filtered_by_model_and_version(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/") as watch:
        page = watch.open(CASE)
        runs = page.locator(".run:visible")
        assert (runs.count(), page.locator(".run[open]").count()) == (4, 2)
        page.get_by_label("Model", exact=True).select_option("example-small")
        page.get_by_label("Version", exact=True).select_option("1.1.0")
        page.get_by_text("1 of 4 runs").wait_for()
        assert runs.locator(".answer").first.is_visible()
        page = watch.open(page.url.removeprefix(watch.root))
        assert runs.locator("h3").all_inner_texts()[0].startswith("example-small 1.1.0")
        page.get_by_role("link", name="next case").click()
        page.get_by_role("heading", name="stationer", level=1).wait_for()
        page.get_by_role("table", name="Scores of this case").get_by_role("link").last.click()
        page.locator(".run").last.locator(".answer").first.wait_for()


def test_case_page_without_outputs_shows_scores_and_commands(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/public/") as watch:
        page = watch.open(CASE)
        text = page.inner_text("main")
        assert "site build --outputs" in text
        assert "site serve" in text
        assert "63.13" not in text
        assert page.get_by_role("table", name="Fields of this case").first.is_visible()
        page.get_by_text("The scores of each replicate").first.click()
        assert page.get_by_role("table", name="Scores of each replicate of example-large 1.2.0").is_visible()


def test_hostile_content_is_text_on_pages_of_cases_and_runs(browser: Any, tmp_path: Path) -> None:
    library = Library(tmp_path)
    case_id = "a <img src=x onerror=ran=4> \u202eb"
    long = HOSTILE * 60_000
    library.write(f"fixtures/{SKILL}/cases/{case_id}/document.md", long)
    library.write(f"fixtures/{SKILL}/cases/{case_id}/ground_truth.json", {"title": HOSTILE, "year": 1})
    schema = json.loads((library.component / "schema.json").read_text())
    library.write(f"components/{SKILL}/schema.json", {**schema, "additionalProperties": True})
    answer = json.dumps({"title": HOSTILE[::-1], "year": 2, HOSTILE: ["x" * 5000], "__proto__": 1}, ensure_ascii=False)
    library.record_answers({(case_id, 0): answer, (case_id, 1): HOSTILE * 1000})
    library.settings(limits={"document_bytes": 50_000_000}, site={"components": {SKILL: {"documents": True}}})
    for other in ("alpha", "beta", "gamma"):
        (tmp_path / "fixtures" / SKILL / "cases" / other).rename(tmp_path / other)
    library.evaluate()
    assert library.call("site", "build", "--out", "site").code == 0
    for width in (1280, 390):
        with watched(browser, f"file://{tmp_path}/site/", viewport={"width": width, "height": 800}) as watch:
            page = watch.open(f"components/{SKILL}.html")
            page.get_by_role("table", name="Cases beside models").get_by_role("link").first.click()
            page.locator(".answer").nth(1).wait_for()
            page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
            assert page.evaluate("window.ran") is None
            assert page.locator("main img, main script").count() == 0
            text = page.inner_text("main")
            assert "<script>window.ran=2</script>**bold** [x](javascript:ran=3) \\u202egnp \\u001b[31m" in text
            assert "__proto__" in text
            assert f"of {len(long):,} characters" in text
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.get_by_role("link", name="Every output of this run").first.click()
            page.locator("table.answered summary").last.click()
            assert "<script>window.ran=2</script>**bold**" in page.locator("table.answered pre").last.inner_text()
            assert page.locator("main img, main script").count() == 0
            assert page.evaluate("window.ran") is None
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert (watch.errors, watch.left) == ([], [])

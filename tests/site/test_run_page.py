"""The page of a run: each distinct output once, failures first, and no outputs of removed cases."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from skill_evaluator.display import number

from tests.support.chat_server import notice
from tests.support.library import CASES, SKILL, Library
from tests.support.sites import built_site, site_page, watched, words

pytest.importorskip("vl_convert")
PUBLISHED = {"site": {"components": {SKILL: {"documents": True}}}}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library with right outputs, a wrong one and a long one without JSON, and its site."""
    library = Library(tmp_path_factory.mktemp("measured"))
    right = {(case_id, index): notice(case_id) for case_id in CASES for index in range(3)}
    wrong = {("alpha", 1): json.dumps({"title": "alpha", "year": 1999}), ("beta", 0): f"No. {'x' * 500} needle"}
    library.record_answers(right | wrong)
    assert library.evaluate_here("-n", "3").code == 0
    library.settings(**PUBLISHED)
    built_site(library)
    return library


def run_pages(site: Path) -> list[Path]:
    return sorted((site / "runs" / SKILL).glob("*.html")) if (site / "runs").exists() else []


def run_rows(site: Path) -> list[list[str]]:
    """Return the cells of each row on the page of the only run."""
    (page,) = run_pages(site)
    rows = site_page(site, str(page.relative_to(site))).select("table.answered tbody tr")
    return [[words(cell) for cell in row.find_all(["th", "td"])] for row in rows]


@pytest.mark.process
def test_run_page_has_each_distinct_output_once_worst_output_first(measured: Library) -> None:
    rows = run_rows(measured.root / "site")
    (record,) = measured.records()
    kept = {case["case_id"]: case for case in record["per_case"]}
    assert sum(int(row[1].partition("(")[2].split()[0]) for row in rows) == record["planned"] == 9
    for case_id, replicates, score, _, _ in rows:
        assert score == number(kept[case_id]["replicates"][record["primary_metric"]][int(replicates[0])])
    assert [row[0] for row in rows[:2]] == ["beta", "alpha"]
    assert rows[0][2:4] == ["–", "unparseable: prose"]
    assert rows[1][2:4] == ["0.500", "✗ wrong year 2024 → 1999"]
    assert f"No. {'x' * 500} needle" in rows[0][4]
    assert (rows[2][2], rows[2][3]) == ("1.000", "nothing")


@pytest.mark.process
def test_run_page_omits_outputs_of_a_removed_case(measured: Library, tmp_path: Path) -> None:
    library = measured.copy(tmp_path)
    (library.root / f"fixtures/{SKILL}/cases/alpha").rename(tmp_path / "gone")
    site = built_site(library)
    assert {row[0] for row in run_rows(site)} == {"beta", "gamma"}
    text = run_pages(site)[0].read_text()
    assert "alpha: no longer among the fixtures." in text
    assert "1999" not in text


@pytest.mark.process
def test_run_page_counts_omitted_outputs(measured: Library, tmp_path: Path) -> None:
    library = measured.copy(tmp_path)
    for path in run_pages(library.root / "site"):
        path.unlink()
    with patch("skill_evaluator.site.cases._MAX_RUN_ROWS", 3), patch("skill_evaluator.site.cases._MAX_RUN_TEXTS", 400):
        site = built_site(library)
    rows = run_rows(site)
    assert 0 < len(rows) < 5
    assert f"{5 - len(rows)} more distinct output" in run_pages(site)[0].read_text()
    assert "needle" not in rows[0][4]
    assert "Cut here: the first of 511 characters." in rows[0][4]


def small(root: Path) -> str:
    """Return the address of the newest run of `example-small`."""
    return str(max((root / "site" / "runs").rglob("*small.html")).relative_to(root / "site"))


@pytest.mark.browser
def test_component_page_links_to_worst_output_and_its_values(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/") as watch:
        page = watch.open("components/receipts.html")
        page.locator("#cases").get_by_role("link", name="example-small 1.2.0").click()
        rows = page.locator("table.answered tbody tr:visible")
        rows.first.wait_for()
        assert "unparseable: prose" in rows.first.inner_text()
        page.get_by_label("Field that differs").select_option("total")
        scores = [float(text) for text in rows.locator("td:nth-child(3)").all_inner_texts()]
        assert scores == sorted(scores)
        assert 0 < len(scores) < 22
        rows.first.get_by_role("link").first.click()
        page.locator(".run:target .answer").first.wait_for()
        page.locator(".run:target").get_by_role("link", name="Every output of this run").click()
        page.get_by_role("heading", name="Every output of example-small for receipts 1.").wait_for()
        assert watch.errors == []


@pytest.mark.browser
def test_address_of_run_page_has_the_search_in_outputs(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/") as watch:
        page = watch.open(small(root))
        rows = page.locator("table.answered tbody tr:visible")
        every = rows.count()
        page.get_by_label("Show").select_option("not right")
        before = rows.count()
        page.get_by_label("Search in the outputs").fill("KESUMA")
        few = rows.count()
        assert 0 < few < before < every
        page = watch.open(page.url.removeprefix(watch.root))
        assert rows.count() == few
        page.get_by_label("Search in the outputs").fill("nobody said this")
        page.get_by_text(f"0 of {every} distinct outputs").wait_for()
        assert watch.errors == []

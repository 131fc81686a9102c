"""The page of an audit: the newest audit comes first, and the page fits a phone and a desktop."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.audit.cubes import an_audit
from tests.site.conftest import serious
from tests.support.library import Library
from tests.support.odd_texts import HOSTILE
from tests.support.records import a_run, keep
from tests.support.sites import built_site, site_page, watched, words

pytest.importorskip("vl_convert")
OLD, NEW = "20260801T090000Z-a", "20261001T090000Z-b"


def with_audits(folder: Path, **audits: Any) -> Library:
    """Return a library with a run and with audits."""
    library = Library(folder)
    keep(library, a_run("1.0.0", 1, {"alpha": [1.0, 0.5], "beta": [0.75, 0.75]}, model_id="ash"))
    for name, result in {OLD: an_audit(), NEW: an_audit(), **audits}.items():
        library.write(f"audits/{name}/report.json", result.model_dump_json())
    return library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library with two audits and its site."""
    library = with_audits(tmp_path_factory.mktemp("audits"))
    built_site(library)
    return library


def test_newest_audit_is_first_and_invalid_audit_is_skipped(library: Library, tmp_path: Path) -> None:
    copied = Library(shutil.copytree(library.root, tmp_path / "copied"))
    copied.write(f"audits/{NEW}/report.json", "{")
    ended = copied.call("site", "build", "--out", "site")
    assert (ended.code, f"audits/{NEW}/report.json" in ended.err) == (4, True)
    page = site_page(copied.root / "site", "audit.html")
    assert words(page.find(class_="crumbs")).endswith(OLD)
    assert not [*(copied.root / "site" / "audits").iterdir()]
    grade = site_page(copied.root / "site", "index.html").find(
        "a", href="audit.html", string=an_audit().models[0].grading.grade
    )
    assert grade is not None


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = [text for text in HOSTILE if len(text) < 100 and text.encode("utf-8", "ignore").decode() == text]
    odd = an_audit(models=["ash", *names], scenarios=names[:3], benchmarks=("<b>&", "law"))
    library = with_audits(tmp_path_factory.mktemp("odd"), **{"20261101T090000Z-odd": odd})
    assert library.call("site", "build", "--out", "site").code == 0
    return library.root


def test_audit_page_opens_summary_and_has_figures_of_charts(library: Library) -> None:
    page = site_page(library.root / "site", "audit.html")
    first, *folded = page.main.find_all("h2")
    assert first.parent.name == "section"
    assert {head.parent.name for head in folded} == {"summary"}
    text = words(first.parent)
    assert 0 < text.index("Neutrality: ") < text.index("Models, the best grade first")
    above = words(page.main)[: words(page.main).index("Neutrality: ")]
    assert "how sure: the grades of " in above
    assert "next: settle the grades of ash, birch, cedar with more than 100 questions per benchmark: " in above
    assert "earlier audit" not in above
    figures = page.find_all("figure")
    assert len(figures) == 3
    assert all(figure.svg and figure.find("table") for figure in figures)
    other = page.find("a", href=f"audits/{OLD}.html")
    earlier = site_page(library.root / "site", other["href"])
    assert words(earlier.find(class_="crumbs")).endswith(OLD)
    assert words(earlier.find(class_="notice")) == f"This is an earlier audit; the newest is {NEW} ."


@pytest.mark.browser
@pytest.mark.node
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_names_are_text_and_axe_finds_nothing_on_audit_page(browser: Any, root: Path, scheme: str) -> None:
    with watched(browser, f"file://{root}/site/", color_scheme=scheme, viewport={"width": 390, "height": 800}) as watch:
        page = watch.open("audit.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator("main img, main script").count() == 0
        assert (watch.errors, watch.left) == ([], [])  # before axe, which asks for what the policy refuses
        assert serious(page) == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_map_and_table_of_an_audit_fit_the_screen(browser: Any, root: Path, width: int) -> None:
    with watched(browser, f"file://{root}/site/", viewport={"width": width, "height": 900}) as watch:
        page = watch.open(f"audits/{NEW}.html")
        assert page.evaluate("document.documentElement.scrollHeight") <= 4 * 844
        drawn = page.locator(".narrow" if width == 390 else ".roomy").first
        words = [drawn.locator("text", has_text=text).first for text in ("ability: %", "Q1 safe default")]
        axis, best = (text.bounding_box()["y"] for text in words)
        assert best > axis  # where no point is
        tables = page.locator("[aria-label^='Models, the best']")
        for whole in (drawn, *[tables.first] * (width == 1280)):
            assert whole.evaluate("(place) => place.scrollWidth <= place.clientWidth")

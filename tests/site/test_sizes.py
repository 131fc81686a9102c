"""Names and texts of any length: pages stay small, their layout fits, and they count omitted rows."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from skill_evaluator.display.pages import page_address
from skill_evaluator.site.rendering import _templates

from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep
from tests.support.sites import built_site, site_page, watched, words

pytest.importorskip("vl_convert")
CASE = "c" * 900
CASES = {"alpha": [1.0, 0.5], CASE: [0.75, 0.75]}
COUNTS = {"n": 2, "right": 1, "wrong": 1, "missing": 0, "extra": 0}
FIELD: dict[str, Any] = {"compare": "category", "accuracy": 0.5, **COUNTS}
PAGES = (
    "index.html",
    "changes.html",
    f"components/{SKILL}.html",
    f"verdicts/{SKILL}/1.1.0.html",
    page_address("cases", SKILL, CASE),
)
MODEL = "m" * 100
LONG = "x" * 200_000
WORST = {"alpha": [0.0, 0.0], CASE: [0.0, 0.0]}


def hostile(library: Library) -> Library:
    """Add two versions with two models. The newest records have many long names. Return the library."""
    categories = {LONG + str(at): {LONG + str(at): 1, LONG: 2} for at in range(2)}
    fields = {
        **{f"field-{at}": {**FIELD, "stability": 0.5} for at in range(2_000)},
        LONG * 5 + "a": {**FIELD, "stability": 0.5, "confusion": categories},
        LONG * 5 + "b": {**FIELD, "stability": 0.25},
    }
    ahead = dict(reversed(fields.items()))
    arrays = {LONG: {"stability": 0.5, "n_cases": 2, "varied": 1, "widest": 3}}
    rights = {LONG: {"alpha": (2, 2), CASE: (2, 2)}}
    wrongs = {LONG: {"alpha": (0, 2), CASE: (0, 2)}}
    keep(library, a_run("1.0.0", 1, CASES, fields=rights, model_id=MODEL), a_run("1.0.0", 2, CASES, model_id="n"))
    many = {"per_field": ahead, "per_array": arrays, "failures": {LONG: 3, "timeout": 1}}
    keep(library, a_run("1.1.0", 3, WORST, fields=wrongs, model_id=MODEL, **many))
    keep(library, a_run("1.1.0", 4, WORST, model_id="n", per_field=fields))
    library.settings(site={"components": {SKILL: {"documents": True}}})  # else only the schema's names are shown
    library.write("components/odd/prompt.md", f"---\nname: odd\nversion: '{'9' * 100_000}'\n---\nDo it.\n")
    return library


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of `hostile`. One component has an invalid version, so the exit code is 4."""
    return built_site(hostile(Library(tmp_path_factory.mktemp("hostile"))), code=4)


def test_pages_stay_small_and_count_omitted_rows(built: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in built.rglob("*.html")}
    assert max(sizes.values()) < 1_000_000
    page = site_page(built, f"components/{SKILL}.html")
    table = page.find("caption", string="Values of each field").parent
    names = list(dict.fromkeys(words(row.th) for row in table.select("tbody tr")))
    assert all("… (1,000,001 characters, " in name for name in names[:2])
    assert names[0] != names[1]
    assert all(len(name) < 400 for name in names)
    assert f"{2_002 - len(names)} more fields are in the records" in words(page.main)
    heat = page.find("table", class_="heat")
    assert len({words(row.th) for row in heat.select("tbody tr")}) == 2


def test_cases_beyond_the_maximum_of_the_list_are_links(tmp_path: Path) -> None:
    library = Library(tmp_path)
    keep(library, a_run("1.0.0", 1, {f"case-{at}": [0.5] for at in range(6)}))
    with patch("skill_evaluator.site.cases._MAX_CASES", 4):
        page = site_page(built_site(library), f"components/{SKILL}.html")
    assert len(page.find("caption", string="Cases beside models").parent.select("tbody tr")) == 4
    links = page.find("summary", string="2 more cases").parent.find_all("a")
    assert [words(link) for link in links] == ["case-4", "case-5"]


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1280])
def test_layout_fits_with_names_of_any_length(browser: Any, built: Path, width: int) -> None:
    with watched(browser, f"file://{built}/", viewport={"width": width, "height": 800}) as watch:
        for page in PAGES:
            shown = watch.open_unfolded(page)
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
            assert shown.locator("h1").inner_text() != "Nothing to show"
            if page.startswith("components"):
                assert "more fields are in the records" in shown.inner_text("main")
        assert watch.errors == []


def test_setting_of_a_request_keeps_umlauts_and_is_cut() -> None:
    render = _templates().from_string("{{ value|setting|whole }}").render
    assert render(value={"stop": ["Größe\u202e"]}) == "{&#34;stop&#34;: [&#34;Größe\\u202e&#34;]}"
    assert render(value="Größe") == "Größe"
    assert len(render(value=[1] * 1_000)) == 963

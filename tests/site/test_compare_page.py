"""The pages of comparisons and verdicts: they have the figures of `compare` and one next step."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep
from tests.support.sites import built_site, site_page, words

pytest.importorskip("vl_convert")
RIGHT = {f"case-{at}": [1.0, 1.0] for at in range(12)}
WORSE = {name: [0.0, 0.25] for name in RIGHT}
OTHER = "n"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library(tmp_path)
    keep(
        library,
        *(a_run(f"1.{minor}.0", minor + 1, RIGHT) for minor in range(6)),
        a_run("1.6.0", 8, WORSE),
        a_run("1.6.0", 9, RIGHT, model_id=OTHER),
        a_run("1.5.0", 7, RIGHT, model_id=OTHER),
        a_run("1.9.0", 20, RIGHT, complete=False),
    )
    return library


def differences(model: Any) -> dict[str, str]:
    """Return the difference of each measure in the chart of a model, as text."""
    rows = model.select("table.forest tbody tr")
    return {words(row.th): words(row.find_all("td")[-1]) for row in rows}


def test_comparison_page_has_the_figures_of_the_command(library: Library) -> None:
    site = built_site(library)
    pages = sorted(path.stem for path in (site / "compare" / SKILL).glob("1.*.html"))
    assert pages == ["1.2.0", "1.3.0", "1.4.0", "1.5.0", "1.6.0"]
    for version in pages:
        command = library.call("compare", SKILL, "--candidate", version, "--format", "json").json
        page = site_page(site, f"compare/{SKILL}/{version}.html")
        for model in page.find_all("details", class_="compared"):
            judged = next(one for one in command["models"] if one["model_id"] == words(model.h2.bdi))
            assert judged["verdict"] in model["class"]
            assert all(reason in words(model) for reason in judged["reasons"])
            measures = {one["metric"]: one["difference"] for one in judged["metrics"] + judged["fields"]}
            for name, difference in differences(model).items():
                assert float(difference) == pytest.approx(measures[name], abs=0.0005)


def test_comparison_of_models_names_them_in_its_columns(library: Library) -> None:
    page = site_page(built_site(library), f"compare/{SKILL}/m--{OTHER}.html")
    text = words(page.find("details", class_="compared"))
    command = library.call("compare", SKILL, "--models", "m", OTHER, "--format", "json").json
    assert command["models"][0]["verdict"] in page.find("details", class_="compared")["class"]
    assert f"m → {OTHER}" in text
    assert f"worse ← {OTHER} − m → better" in text
    assert [said for said in ("before →", "after −") if said in text] == []


def test_comparison_page_has_newest_version_first_and_one_next_step(library: Library) -> None:
    page = site_page(built_site(library), f"compare/{SKILL}/1.6.0.html")
    assert words(page.find(class_="state")).startswith(f"Newest version: {SKILL} 1.6.0 · to ship: ")
    worse, sound = page.find_all("details", class_="compared")
    assert (worse.has_attr("open"), sound.has_attr("open")) == (True, False)
    assert words(page.main).count("Next ") == 1
    assert "`" not in words(page.main)


def test_verdict_page_names_field_number_of_cases_and_baseline(tmp_path: Path) -> None:
    library = Library(tmp_path)
    right, wrong = ({"title": dict.fromkeys(RIGHT, (at, 2))} for at in (2, 0))
    keep(library, a_run("1.0.0", 1, RIGHT, fields=right), a_run("1.1.0", 2, WORSE, fields=wrong))
    library.settings(site={"components": {SKILL: {"documents": True}}})
    site = built_site(library)
    text = words(site_page(site, f"verdicts/{SKILL}/1.1.0.html").find(class_="change"))
    assert text.startswith(
        "1.1.0 with m ▼ regressed since 1.0.0 How sure: since 1.0.0: field_level_f1 -0.875 on 12 cases (95 % confid"
    )
    assert "Where: field title 1.000 → 0.000" in text
    earlier = site_page(site, f"verdicts/{SKILL}/1.0.0.html")
    assert words(earlier.find(class_="state")).startswith(f"Newest version: {SKILL} 1.1.0 · to ship: 1.0.0 with m")
    assert "There is no version to compare it with." in words(earlier.main)


def test_field_with_empty_path_is_named_the_whole_output(tmp_path: Path) -> None:
    library = Library(tmp_path)
    right, wrong = ({"": dict.fromkeys(RIGHT, (at, 2))} for at in (2, 0))
    keep(library, a_run("1.0.0", 1, RIGHT, fields=right), a_run("1.1.0", 2, WORSE, fields=wrong))
    model = site_page(built_site(library), f"compare/{SKILL}/1.1.0.html").find("details", class_="compared")
    assert "(the whole output)" in differences(model)
    fields = model.find("caption", string="field").parent
    assert "(the whole output)" in words(fields)

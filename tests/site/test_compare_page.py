"""The page that compares: its figures are those of `compare`, both values stand where they may."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep
from tests.support.sites import build_undrawn, contents, site_data, watched

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


def test_versions_and_models_are_compared_as_the_command_does(library: Library) -> None:
    """What is compared is drawn once, and follows a new record."""
    site = build_undrawn(library)
    versions = site_data(site, f"compare/{SKILL}/versions")
    assert list(versions) == ["1.6.0", "1.5.0", "1.4.0", "1.3.0", "1.2.0"]
    for version, shown in versions.items():
        command = library.call("compare", SKILL, "--candidate", version, "--format", "json").json
        assert shown["verdict"] == command["verdict"]
        by_model = {model["model_id"]: model for model in command["models"]}
        for model in shown["models"]:
            judged = by_model[model["model"]]
            assert (model["verdict"], model["words"][1:][: len(judged["reasons"])]) == (
                judged["verdict"],
                judged["reasons"],
            )
            for row in model["forest"]["rows"]:
                measure = next(one for one in judged["metrics"] + judged["fields"] if one["metric"] == row["name"])
                assert (row["difference"], [row["low"], row["high"]]) == (measure["difference"], measure["ci95"])
    assert versions["1.6.0"]["verdict"] == "regressed"
    (pair,) = site_data(site, f"compare/{SKILL}/models")
    names = [pair["first"], pair["second"]]
    assert names == ["m", OTHER]
    command = library.call("compare", SKILL, "--models", *names, "--format", "json").json
    assert (pair["verdict"], pair["models"][0]["verdict"]) == (command["verdict"], command["models"][0]["verdict"])
    before = contents(site)
    build_undrawn(library)
    assert contents(site) == before
    keep(library, a_run("1.7.0", 10, WORSE))
    build_undrawn(library)
    assert next(iter(site_data(site, f"compare/{SKILL}/versions"))) == "1.7.0"


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_chooses_by_its_address_and_back(browser: Any, library: Library, scheme: str) -> None:
    assert library.call("site", "build", "--out", "site").code == 0
    site = library.root / "site"
    with watched(browser, f"file://{site}/", color_scheme=scheme, viewport={"width": 390, "height": 800}) as watch:
        page = watch.open_drawn(f"compare.html#component={SKILL}")
        assert page.locator("h1").inner_text() == f"{SKILL} 1.6.0"  # the highest with a complete run
        assert page.locator(".badge.regressed").count() >= 1
        assert page.locator("td:has-text('1.000 → ')").count() >= 1
        assert "`" not in page.inner_text("main")
        assert "nothing is in the way" not in page.inner_text("main")  # with the other model; the version is worse
        assert page.locator("th", has_text="before → after").count() >= 1
        page.get_by_label("Version").select_option("1.9.0")
        page.get_by_text("No complete run of this version").wait_for()
        page.get_by_label("Version").select_option("1.1.0")
        page.get_by_text(f"skill-evaluator compare {SKILL} --candidate 1.1.0").wait_for()
        page.get_by_label("Compare", exact=True).select_option("models")
        page.get_by_role("heading", name="Two models compared").wait_for()
        assert "first=" in page.url
        assert page.locator("th", has_text=f"m → {OTHER}").count() >= 1
        assert page.locator(f"[data-chart=forest] text:text-is('{OTHER} − m')").count() == 1
        text = page.inner_text("main")
        assert [words for words in ("before →", "after −", "the models differ") if words in text] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page = watch.open(f"verdict.html#component={SKILL}")
        assert page.locator("h1").inner_text() == f"{SKILL} 1.6.0"
        assert (text := page.inner_text("main")).count("Next: ") == 1
        assert "`" not in text
        assert "To see why" not in watch.open(f"verdict.html#component={SKILL}&version=1.5.0").inner_text("main")
        assert (watch.errors, watch.left) == ([], [])


def test_the_field_of_a_component_that_has_but_one_is_named(tmp_path: Path) -> None:
    library = Library(tmp_path)
    right, wrong = ({"": dict.fromkeys(RIGHT, (at, 2))} for at in (2, 0))
    keep(library, a_run("1.0.0", 1, RIGHT, fields=right), a_run("1.1.0", 2, WORSE, fields=wrong))
    (model,) = site_data(build_undrawn(library), f"compare/{SKILL}/versions")["1.1.0"]["models"]
    assert "(the whole answer)" in {row["name"] for row in model["forest"]["rows"]}
    fields = next(block for block in model["blocks"] if block.get("caption") == "Fields")
    assert "(the whole answer)" in str(fields)
    assert all(row["name"] for row in model["forest"]["rows"])

"""The judges' page in Chromium: drawn on any screen, and nothing foreign runs."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.judges.review.review_page import chromium
from tests.site.conftest import serious
from tests.site.judged_library import JudgedSite
from tests.support.library import SKILL
from tests.support.sites import watched

pytestmark = pytest.mark.browser
HOSTILE = "<svg/onload=window.ran=1><script>window.ran=2</script>**bold**"
MODES = ("regression", "calibrate", "pairwise", "score")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> JudgedSite:
    """Two judges, asked by dimensions of which one tries to be more than text."""
    site = JudgedSite(tmp_path_factory.mktemp("judged"))
    site.judge_all(dimensions=("factuality", HOSTILE, "tone"))
    assert site.call("site", "build", "--out", "site").code == 0
    return site


@pytest.fixture(scope="module")
def browser(judged: JudgedSite) -> Iterator[Any]:
    """A browser, begun once judges were asked: both need an event loop of this thread."""
    with chromium() as browser:
        yield browser


def root_of(judged: JudgedSite) -> str:
    return f"file://{judged.root}/site/"


def pages_of(judged: JudgedSite) -> list[str]:
    ids = [judged.results_of(mode)["judging"]["id"] for mode in MODES]
    return ["judges.html", *(f"judges/{name}.html" for name in ids)]


def test_every_page_of_judges_is_drawn_without_an_error_or_a_request_elsewhere(
    browser: Any, judged: JudgedSite
) -> None:
    with watched(browser, root_of(judged), color_scheme="dark") as watch:
        for name in pages_of(judged):
            page = watch.open_unfolded(name)
            assert page.locator("h1").count() == 1
            assert page.locator(".chart .notice").count() == 0
        assert (watch.errors, watch.left) == ([], [])


def test_component_leads_to_its_judge_runs(browser: Any, judged: JudgedSite) -> None:
    with watched(browser, root_of(judged)) as watch:
        page = watch.open(f"components/{SKILL}.html")
        page.get_by_role("link", name="What judges say of it").click()
        page.get_by_text("2 of 4 judge runs").wait_for()
        page.get_by_role("link", name=judged.results_of("score")["judging"]["id"]).click()
        page.get_by_role("heading", name=f"Scores of {SKILL}").wait_for()
        assert watch.errors == []


def test_hostile_names_are_text_and_what_judges_wrote_is_nowhere(browser: Any, judged: JudgedSite) -> None:
    with watched(browser, root_of(judged), viewport={"width": 390, "height": 800}) as watch:
        for place in pages_of(judged):
            page = watch.open_unfolded(place)
            assert page.evaluate("window.ran") is None
            assert page.locator("main [onload], main script").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, place  # no scrolling to the side
        name = judged.results_of("regression")["judging"]["id"]
        text = watch.open(f"judges/{name}.html").text_content("main")
        assert HOSTILE in text
        assert "private note" not in text
        assert watch.errors == []


@pytest.mark.node
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_the_pages_of_judges(browser: Any, judged: JudgedSite, scheme: str) -> None:
    with watched(browser, root_of(judged), color_scheme=scheme) as watch:
        for name in pages_of(judged):
            assert serious(watch.open_unfolded(name)) == []

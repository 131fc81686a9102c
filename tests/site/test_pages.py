"""The site in Chromium: as files and over HTTP, by keyboard and on a phone, with no external script."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.audit.cubes import an_audit
from tests.site.conftest import demo, serious
from tests.support.library import SCRIPT, SKILL, Library, start
from tests.support.records import a_run, keep
from tests.support.sites import watched

pytestmark = pytest.mark.browser
PAGES = (
    "index.html",
    "changes.html",
    "components/receipts.html",
    "verdicts/receipts/1.2.0.html",
    "audit.html",
    "judges.html",
    "compare/receipts/1.2.0.html",
    "compare/receipts/example-large--example-small.html",
    "cases/receipts/service-charge.html",
    "runs/receipts/20260103T090000Z-000003-receipts-example-small.html",
)
STATE = (
    "receipts 1.2.0 · to ship: 1.2.0 with example-large",
    "improved since 1.1.0",
    "nothing lost with example-large since 1.1.0",
    "on 10 cases (95 % confidence interval +0.116 to +0.259, adjusted p-value <0.001)",
    "skill-evaluator accept receipts 1.2.0",
)
FIRST_SCREENS = {
    "index.html": (*STATE, "1.1.0 had regressed since 1.0.0"),
    "changes.html": STATE,
    "components/receipts.html": (*STATE, "1.1.0 had regressed since 1.0.0"),
    "compare/receipts/1.1.0.html": (*STATE, "1.1.0: regressed against 1.0.0 on these 10 cases", "lost: field date"),
    "verdicts/receipts/1.1.0.html": (*STATE, "1.1.0 with example-large"),
    "cases/receipts/service-charge.html": (*STATE, "This case: better with example-small since 1.1.0"),
    "runs/receipts/20260102T090000Z-000002-receipts-example-small.html": (
        *STATE,
        "a run of an earlier version",
    ),
    "judges.html": ("skill-evaluator judge regression", "overview"),
}
IN_SIGHT = """() => [...document.querySelectorAll("main p, main h1, main h2, main td, main li, main dd, main summary")]
.filter((place) => {
  const { top, bottom, left, right, width } = place.getBoundingClientRect();
  return width && top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth;
}).map((place) => place.innerText).join(" | ")"""
HOSTILE = "<img src=x onerror='window.ran=1'><script>window.ran=2</script>**bold** \u202egnp.exe \x1b[31m"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of `demo` with a second component that was never scored, and its site."""
    library = demo(tmp_path_factory.mktemp("library"))
    library.settings(site={"components": {"receipts": {"documents": True}}})
    library.write("audits/2026/report.json", an_audit().model_dump_json())
    library.write("components/fresh/prompt.md", "---\nname: fresh\nversion: 0.1.0\n---\nDo it.\n")
    assert library.call("site", "build", "--out", "site").code == 0
    return library.root


@pytest.fixture(scope="module")
def served(root: Path) -> Iterator[str]:
    env = {"PYTHONPATH": str(SCRIPT.parent)}
    with start(root, "-m", "skill_evaluator", "site", "serve", env=env) as process:
        try:
            yield process.stdout.readline().split()[0]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0


@pytest.mark.parametrize(("way", "scheme", "width"), [("http", "dark", 1280), ("file", "light", 360)])
def test_every_page_opens_without_errors_or_external_requests(
    browser: Any, root: Path, served: str, way: str, scheme: str, width: int
) -> None:
    address = served if way == "http" else f"file://{root}/site/"
    with watched(browser, address, color_scheme=scheme, viewport={"width": width, "height": 740}) as watch:
        for name in PAGES:
            page = watch.open_unfolded(name)
            assert page.locator("h1").count() == 1
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
            assert ground == {"light": "rgb(250, 251, 252)", "dark": "rgb(17, 22, 27)"}[scheme]
        assert (watch.errors, watch.left) == ([], [])


def test_address_has_the_search_the_filter_and_the_order(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/") as watch:
        page = watch.open("index.html")
        rows = page.locator("table.overview tbody tr:visible")
        page.get_by_role("button", name="Accuracy").press("Enter")
        assert rows.first.locator("td").first.inner_text() == "example-large"
        page.get_by_role("button", name="Accuracy").press("Enter")
        assert rows.first.locator("td").first.inner_text() == "example-small"
        assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
        assert page.evaluate("document.activeElement.textContent").startswith("Accuracy")
        page.get_by_label("Search", exact=True).fill("receipts")
        page.get_by_label("Model", exact=True).select_option("example-large")
        address = page.url
        assert rows.count() == 1
        page = watch.open(address.removeprefix(watch.root))
        assert rows.count() == 1
        assert page.get_by_label("Search", exact=True).input_value() == "receipts"
        assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
        page.get_by_label("Search", exact=True).fill("nothing is called so")
        page.get_by_text("0 of 2 pairs").wait_for()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_first_screen_names_version_to_ship_and_worse_version(
    browser: Any, root: Path, width: int, height: int
) -> None:
    with watched(browser, f"file://{root}/site/", viewport={"width": width, "height": height}) as watch:
        for name, answers in FIRST_SCREENS.items():
            text = " ".join(watch.open(name).evaluate(IN_SIGHT).split())
            assert [answer for answer in answers if answer not in text] == [], (name, text)
        assert (watch.errors, watch.left) == ([], [])


def test_changes_are_filtered_by_verdict_and_day(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/") as watch:
        page = watch.open("changes.html")
        versions = page.locator(".change-of:visible")
        assert versions.count() == 3
        page.get_by_label("Verdict").select_option("regressed")
        page.get_by_text("1 of 3 versions").wait_for()
        address = page.url
        page.get_by_label("Since").fill("2030-01-01")
        page.get_by_text("0 of 3 versions").wait_for()
        assert watch.open(address.removeprefix(watch.root)).locator(".change-of:visible").count() == 1


@pytest.mark.node
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, root: Path, scheme: str) -> None:
    with watched(browser, f"file://{root}/site/", color_scheme=scheme) as watch:
        for name in PAGES:
            assert serious(watch.open_unfolded(name)) == []


def test_verdict_page_prints_on_at_most_two_sheets(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/", color_scheme="dark") as watch:
        page = watch.open("verdicts/receipts/1.1.0.html")
        assert 1 <= page.pdf().count(b"/Type /Page\n") <= 2


def test_hostile_names_are_text(browser: Any, tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.settings(site={"components": {SKILL: {"documents": True}}})  # else no name is shown that is in no schema
    fields = {HOSTILE: {"alpha": (1, 2)}}
    summary = {"compare": "category", "accuracy": 0.5, "n": 2, "right": 1, "wrong": 1, "missing": 0, "extra": 0}
    whole = {**summary, "stability": 0.5, "confusion": {HOSTILE: {HOSTILE: 1, "__proto__": 1}}}
    cases = {"alpha": [1.0, 0.5], "beta": [0.5, 0.5]}
    keep(library, a_run("1.0.0", 1, cases, fields=fields, per_field={HOSTILE: whole, "__proto__": whole}))
    keep(library, a_run("1.0.0", 2, cases, model_id="n", per_field={HOSTILE: whole}, failures={HOSTILE: 1}))
    assert library.call("site", "build", "--out", "site").code == 0
    with watched(browser, f"file://{tmp_path}/site/") as watch:
        for name in ("index.html", "components/notice-extraction.html"):
            page = watch.open_unfolded(name)
            assert page.evaluate("window.ran") is None
            assert page.locator("main img, main script").count() == 0
        text = page.inner_text("main")
        assert "<img src=x onerror" in text
        assert "\\u202egnp.exe" in text
        assert "__proto__" in text
        assert watch.errors == []


def test_pages_are_complete_without_javascript(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/", java_script_enabled=False) as watch:
        for name in PAGES:
            watch.page.goto(watch.root + name)
            assert watch.page.locator("main table, main .change-of, main .notice").count() > 0, name


def test_content_security_policy_blocks_inline_scripts(browser: Any, root: Path) -> None:
    with watched(browser, f"file://{root}/site/") as watch:
        page = watch.open("index.html")
        page.evaluate(
            "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
        )
        page.evaluate("document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.ran = 2'>`)")
        page.wait_for_timeout(200)
        assert page.evaluate("window.ran") is None

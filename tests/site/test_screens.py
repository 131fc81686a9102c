"""The pages of a large library: they have a maximum length, and every verdict is in sight."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep_in
from tests.support.sites import site_page, watched, words

pytestmark = pytest.mark.browser
MODELS = ("vendor-model-one-large-20250929", "vendor-model-one-small-20251001", "other-model-mini", "third")
VERSIONS, COMPONENTS = 15, 20
SKILLS = [f"component-{at:02}" for at in range(COMPONENTS)]
LATEST = f"1.{VERSIONS - 1}.0"
LISTS = ("index.html", "changes.html")
PAGES = (
    f"components/{SKILLS[0]}.html",
    f"verdicts/{SKILLS[0]}/{LATEST}.html",
    f"compare/{SKILLS[0]}/{LATEST}.html",
    f"cases/{SKILLS[0]}/case-0.html",
)
# The verdicts of tables and lines that a reader must go to the side for, once all is unfolded.
HIDDEN = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  return [...document.querySelectorAll("main td .badge, main .change .badge")].filter((badge) => {
    const place = badge.getBoundingClientRect();
    const around = (badge.closest(".scroll") || document.body).getBoundingClientRect();
    return place.width === 0 || place.right > around.right + 1 || place.left < around.left - 1;
  }).map((badge) => `${badge.closest("table")?.caption?.textContent}: ${badge.textContent}`);
}"""
OVERLAPPING = """() => {
  const all = [...document.querySelectorAll("main .badge")].map((badge) => [badge, badge.getBoundingClientRect()]);
  const other = (one, two) => one !== two && !one.contains(two) && !two.contains(one);
  const near = (one) => [...one.parentElement.parentElement.querySelectorAll(".badge, bdi, .figure, a")];
  return all.filter(([one, a]) => a.width && near(one).some((two) => {
    const b = two.getBoundingClientRect();
    const both = [[a.left, a.right, b.left, b.right], [a.top, a.bottom, b.top, b.bottom]];
    return other(one, two) && b.width && both.every(([from, to, begin, end]) => from < end - 1 && begin < to - 1);
  })).map(([one]) => one.parentElement.textContent);
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of 20 components, 4 models and 15 versions. The newest regressed with one model, improved with one."""
    library, dice = Library(tmp_path_factory.mktemp("large")), random.Random(11)
    for skill in SKILLS:
        folder = library.root / "components" / skill
        library.write(
            f"components/{skill}/prompt.md", (library.component / "prompt.md").read_text().replace(SKILL, skill)
        )
        library.write(f"components/{skill}/schema.json", (library.component / "schema.json").read_text())
        keep_in(folder, *(run(skill, model, version, dice) for version in range(VERSIONS) for model in range(4)))
    (library.component / "prompt.md").unlink()
    assert library.call("site", "build", "--out", "site").code == 0
    return library.root / "site"


def run(skill: str, model: int, version: int, dice: random.Random) -> Any:
    """Return a run. The first model gets the title wrong in the newest version, the second model in all others."""
    last = version == VERSIONS - 1
    wrong = (model == 0 and last) or (model == 1 and not last)
    cases = {f"case-{at}": [0.5 if wrong else 1.0 - dice.choice((0.0, 0.02))] * 3 for at in range(6)}
    right = {"title": dict.fromkeys(cases, (0 if wrong else 3, 3)), "year": dict.fromkeys(cases, (3, 3))}
    counts = {"compare": "exact", "missing": 0, "extra": 0, "n": 18, "stability": 1.0}
    sound = {**counts, "accuracy": 1.0, "right": 18, "wrong": 0, "profile": {"stable_right": 6}}
    lost = {**counts, "accuracy": 0.0, "right": 0, "wrong": 18, "profile": {"stable_wrong": 6}}
    fields = {"title": lost if wrong else sound, "year": sound}
    model_id = MODELS[model]
    score = summary(0.5 if wrong else 0.99)
    more = {"accuracy": {"field_level_f1": score}, "reproducibility": {"pairwise_exact_match": summary(0.9)}}
    more |= {"failures": {"timeout": 1}} if model == 3 else {}
    run_id = f"202601{version + 1:02d}T080000Z-abc{version:03d}-{model_id}"
    named = {"skill": skill, "model_id": model_id, "run_id": run_id}
    return a_run(f"1.{version}.0", version + 1, cases, **named, fields=right, per_field=fields, **more)


def summary(mean: float) -> dict[str, Any]:
    return {"mean": mean, "strict_mean": mean, "stdev": 0.1, "n": 18, "n_cases": 6, "ci95": [mean - 0.1, mean + 0.01]}


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_pages_have_at_most_4_3_screens_and_verdicts_are_in_sight(
    browser: Any, site: Path, width: int, height: int
) -> None:
    with watched(browser, f"file://{site}/", viewport={"width": width, "height": height}) as watch:
        for name in (*LISTS, *PAGES):
            page = watch.open(name)
            screens = page.evaluate("document.documentElement.scrollHeight") / height
            assert name in LISTS or screens <= 4.3, (name, screens)
            assert page.locator("main .badge").count() > 0 or "case" in name, name
            assert page.evaluate(HIDDEN) == [], name
            assert page.evaluate(OVERLAPPING) == [], name
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            watch.open_unfolded(name)
        assert (watch.errors, watch.left) == ([], [])


def test_page_of_changes_shows_newest_versions_and_collapses_others(browser: Any, site: Path) -> None:
    with watched(browser, f"file://{site}/", viewport={"width": 1280, "height": 800}) as watch:
        page = watch.open("changes.html")
        assert page.evaluate("document.documentElement.scrollHeight") <= 2.7 * 800
        names = page.locator(".change-of:visible .of").all_inner_texts()
        assert (len(names), {name.split()[1] for name in names}) == (COMPONENTS, {LATEST})
        page.get_by_label("Verdict").select_option("regressed")
        page.get_by_text(f"{COMPONENTS} of {5 * COMPONENTS} versions").wait_for()
        assert page.locator(".change-of.regressed:visible").count() == COMPONENTS


def test_overview_begins_with_newest_version_of_each_component(site: Path) -> None:
    page = site_page(site, "index.html")
    states = page.find(class_="states").find_all("li")
    assert len(states) == COMPONENTS
    assert all("regressed" in state["class"] for state in states)  # with the first model
    first = words(states[0])
    assert first.startswith(f"{SKILLS[0]} {LATEST} · to ship: 1.13.0")
    assert f"▼ regressed since 1.13.0 with {MODELS[0]}" in first
    assert f"Where field title 1.000 → 0.000 ; cases case-0 , case-2 , case-4 and 3 more with {MODELS[0]}" in first
    row = page.find("tr", attrs={"data-model": MODELS[0]})
    assert words(row.find(attrs={"data-title": "Change"})).startswith("-0.4")
    heights = [float(point.partition(",")[2]) for point in row.find("polyline")["points"].split()]
    assert len(heights) == VERSIONS
    assert heights[-1] > max(heights[:-1])  # lower on the page


def test_fields_that_are_always_right_are_collapsed(site: Path) -> None:
    page = site_page(site, f"components/{SKILLS[0]}.html")
    table = page.find("caption", string="Fields beside models").parent
    assert [words(head) for head in table.select("tbody th")] == ["title"]
    assert "1 field right in every output of every model" in words(page.main)


def test_trend_begins_at_0_or_half_and_long_names_keep_both_ends(site: Path) -> None:
    page = site_page(site, f"components/{SKILLS[0]}.html")
    texts = [text.get_text() for text in page.find(attrs={"data-chart": "trend"}).find_all("text")]
    assert {"0.0", "1.0", "vendor-mode…large-20250929", "vendor-mode…small-20251001"} <= {*texts}

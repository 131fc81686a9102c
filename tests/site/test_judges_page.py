"""The pages of judge runs: they have the figures of the results, no judged text, and no external mark-up."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.display import number
from skill_evaluator.judges.modes.regression import RegressionResults
from skill_evaluator.judges.modes.run_outputs import judged_words
from skill_evaluator.judges.modes.scoring import ScoreResults

from tests.judges.review.review_page import chromium
from tests.site.conftest import serious
from tests.site.judged_library import DIMENSIONS, HALLS, JudgedSite
from tests.support.library import SKILL
from tests.support.sites import contents, site_page, watched, words

pytest.importorskip("vl_convert")
HOSTILE = "<svg/onload=window.ran=1><script>window.ran=2</script>**bold**"
OTHERS = ("pairwise", "score", "calibrate")
MODES = ("regression", "calibrate", "pairwise", "score")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> JudgedSite:
    """A library with its site and a judge run of each mode. One dimension has a hostile name."""
    site = JudgedSite(tmp_path_factory.mktemp("judged"))
    site.judge_all(dimensions=(*DIMENSIONS, HOSTILE))
    assert site.call("site", "build", "--out", "site").code == 0
    return site


def listed(judged: JudgedSite) -> dict[str, list[str]]:
    """Return the cells of each row in the list of judge runs, by mode."""
    rows = site_page(judged.root / "site", "judges.html").select("tbody tr")
    return {row["data-mode"]: [words(cell) for cell in row.find_all(["th", "td"])] for row in rows}


def page_of(judged: JudgedSite, mode: str) -> str:
    name = judged.results_of(mode)["judging"]["id"]
    return words(site_page(judged.root / "site", f"judges/{name}.html").main)


def test_list_of_judge_runs_has_outcomes_and_components(judged: JudgedSite) -> None:
    rows = listed(judged)
    assert set(rows) == {"regressions", "calibration", "comparisons", "scores"}
    assert judged.results_of("regression")["ship_decision"] == "block"
    assert rows["regressions"][1].startswith("▼ block")
    components = {mode: row[3] for mode, row in rows.items()}
    assert (components["regressions"], components["scores"]) == (SKILL, SKILL)
    assert components["comparisons"] == components["calibration"] == "items of a file"
    assert "Rubric rubric.yaml" in page_of(judged, "score")


def test_judge_pages_have_the_figures_of_the_results(judged: JudgedSite) -> None:
    scores, _ = judged.results_of("score")["judges"]
    assert f"{number(scores['criteria'][0]['score']['value'])} of 5" in page_of(judged, "score")
    preferences, _ = judged.results_of("pairwise")["judges"]
    wins = number(preferences["criteria"][0]["wins"]["value"])
    assert f"win rate of output 1 on items of items.jsonl: judge {wins} " in page_of(judged, "pairwise")
    assert "Pairs without the decision to ship" in page_of(judged, "regression")
    assert "false alarms" in page_of(judged, "calibrate")
    following = "then calibrate again: judge, vendor/second: about 274 more labels would decide"
    assert f"Next label more items, drawn at random, {following}" in page_of(judged, "calibrate")


def test_conclusion_of_newest_regression_run_is_above_the_list(judged: JudgedSite) -> None:
    regression = judged.results_of("regression")
    page = site_page(judged.root / "site", "judges.html")
    first = page.find(class_="state")
    assert first.a["href"] == f"judges/{regression['judging']['id']}.html"
    text = words(first)
    assert f"▼ block: {SKILL} 1.0.0 (draft) against 1.0.0 with recorded Where a regression of high impact: " in text
    assert "How sure pairs that may not ship, with 95 % confidence interval of their share: judge 3 of 7 (0.1" in text
    assert f"then change the prompt: skill-evaluator try {SKILL} To ship {SKILL} 1.0.0 with recorded, by ground" in text
    assert text.removeprefix(f"Newest regression run: {regression['judging']['id']} ") in page_of(judged, "regression")


def test_review_queue_has_no_names_of_reviewers(judged: JudgedSite) -> None:
    queue = site_page(judged.root / "site", "judges.html").find("ul", class_="remarks")
    lines = [words(line) for line in queue.find_all("li")]
    assert "reviewer 1: 3 labels" in lines
    assert any(line.startswith("differ on alpha") for line in lines)
    assert not {"ada", "ben"} & set(words(queue).split())


def test_site_has_no_judged_text_and_no_quotation(judged: JudgedSite) -> None:
    everything = b"".join(contents(judged.root / "site").values())
    for text in (HALLS[3]["output_1"], "It adds up.", "Late fees rise to 0.40", "private note", "title of a notice"):
        assert str(text).splitlines()[0].encode() not in everything
    folder = judged.judgements / judged.results_of("regression")["judging"]["id"]
    assert "Late fees rise to 0.40" in (folder / "evaluation_results.json").read_text()


def test_unreadable_judge_runs_do_not_hide_other_runs(judged: JudgedSite, tmp_path: Path) -> None:
    site = judged.copy(tmp_path)
    folders = {mode: site.judgements / site.results_of(mode)["judging"]["id"] for mode in OTHERS}
    (folders["pairwise"] / "evaluation_results.json").write_text('{"results_version": 1, "judging": ')
    (folders["score"] / "evaluation_results.json").unlink()
    folders["calibrate"].rename(site.judgements / "a <b>")
    ended = site.call("site", "build", "--out", "site")
    assert (ended.code, f"judge run {folders['pairwise'].name}" in ended.err, "rename it" in ended.err) == (
        4,
        True,
        True,
    )
    index = words(site_page(site.root / "site", "judges.html").main)
    assert f"{folders['pairwise'].name} cannot be read" in index
    assert "a <b> cannot be read" in index
    assert f"No results yet: {folders['score'].name}." in index
    assert list(listed(site)) == ["regressions"]
    assert not (site.root / "site" / "judges" / f"{folders['score'].name}.html").exists()


def test_judged_run_without_its_folder_is_named_by_its_record(judged: JudgedSite, tmp_path: Path) -> None:
    site = judged.copy(tmp_path)
    results = site.results_of("regression")
    title = judged_words(RegressionResults.model_validate(results), site.root / "components")
    assert title == f"{SKILL} 1.0.0 (draft) against 1.0.0 with recorded"
    shutil.rmtree(site.results)
    assert judged_words(RegressionResults.model_validate(results), site.root / "components") == title
    results["judging"]["source"] = "a**b"
    of_source = ScoreResults.model_validate({**site.results_of("score"), "judging": results["judging"]})
    assert judged_words(of_source, site.root / "components") == f"{SKILL} a**b with unknown model"


@pytest.fixture(scope="module")
def browser(judged: JudgedSite) -> Iterator[Any]:
    """A browser that starts after the judge runs, because both need the event loop of this thread."""
    with chromium() as browser:
        yield browser


def root_of(judged: JudgedSite) -> str:
    return f"file://{judged.root}/site/"


def pages_of(judged: JudgedSite) -> list[str]:
    ids = [judged.results_of(mode)["judging"]["id"] for mode in MODES]
    return ["judges.html", *(f"judges/{name}.html" for name in ids)]


@pytest.mark.browser
def test_judge_pages_open_without_errors_or_external_requests(browser: Any, judged: JudgedSite) -> None:
    with watched(browser, root_of(judged), color_scheme="dark") as watch:
        for name in pages_of(judged):
            page = watch.open_unfolded(name)
            assert page.locator("h1").count() == 1
            assert page.locator(".chart .notice").count() == 0
        assert (watch.errors, watch.left) == ([], [])


@pytest.mark.browser
def test_component_page_links_to_its_judge_runs(browser: Any, judged: JudgedSite) -> None:
    with watched(browser, root_of(judged)) as watch:
        page = watch.open(f"components/{SKILL}.html")
        page.get_by_role("link", name="What judges say of it").click()
        page.get_by_text("2 of 4 judge runs").wait_for()
        page.get_by_role("link", name=judged.results_of("score")["judging"]["id"]).click()
        page.get_by_role("heading", name=f"Scores of {SKILL}").wait_for()
        assert watch.errors == []


@pytest.mark.browser
def test_hostile_names_on_judge_pages_are_text(browser: Any, judged: JudgedSite) -> None:
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


@pytest.mark.browser
@pytest.mark.node
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_judge_pages(browser: Any, judged: JudgedSite, scheme: str) -> None:
    with watched(browser, root_of(judged), color_scheme=scheme) as watch:
        for name in pages_of(judged):
            assert serious(watch.open_unfolded(name)) == []

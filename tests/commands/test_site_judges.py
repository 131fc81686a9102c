"""The judges' page of a built site: every figure is that of a file of results, and nothing that was judged is in it."""

from pathlib import Path

import pytest
from skill_evaluator.display import number

from tests.site.judged_library import HALLS, JudgedSite
from tests.support.library import SKILL
from tests.support.sites import contents, site_page, words

pytest.importorskip("vl_convert")
OTHERS = ("pairwise", "score", "calibrate")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> JudgedSite:
    """A library that judges worked in, and its site; for a test that changes nothing."""
    site = JudgedSite(tmp_path_factory.mktemp("judged"))
    site.judge_all(("judge",))
    assert site.call("site", "build", "--out", "site").code == 0
    return site


@pytest.fixture
def site(built: JudgedSite, tmp_path: Path) -> JudgedSite:
    """A copy of it."""
    return built.copy(tmp_path)


def listed(site: JudgedSite) -> dict[str, list[str]]:
    """The cells of each judge run on the list, by its mode."""
    rows = site_page(site.root / "site", "judges.html").select("tbody tr")
    return {row["data-mode"]: [words(cell) for cell in row.find_all(["th", "td"])] for row in rows}


def page_of(site: JudgedSite, mode: str) -> str:
    name = site.results_of(mode)["judging"]["id"]
    return words(site_page(site.root / "site", f"judges/{name}.html").main)


def test_judge_run_is_listed_with_its_outcome(built: JudgedSite) -> None:
    rows = listed(built)
    assert set(rows) == {"regressions", "calibration", "comparisons", "scores"}
    assert built.results_of("regression")["ship_decision"] == "block"
    assert rows["regressions"][1].startswith("▼ block")
    components = {mode: row[3] for mode, row in rows.items()}
    assert (components["regressions"], components["scores"]) == (SKILL, SKILL)
    assert components["comparisons"] == components["calibration"] == "items of a file"
    assert "Rubric rubric.yaml" in page_of(built, "score")


def test_page_shows_the_figures_of_the_results(built: JudgedSite) -> None:
    (scores,) = built.results_of("score")["judges"]
    assert f"{number(scores['criteria'][0]['score']['value'])} of 5" in page_of(built, "score")
    (preferences,) = built.results_of("pairwise")["judges"]
    wins = number(preferences["criteria"][0]["wins"]["value"])
    assert f"judge: output 1 wins {wins} " in page_of(built, "pairwise")
    assert "Pairs without the decision to ship" in page_of(built, "regression")
    assert "false alarms" in page_of(built, "calibrate")


def test_review_queue_is_shown_without_names_of_reviewers(built: JudgedSite) -> None:
    queue = site_page(built.root / "site", "judges.html").find("ul", class_="remarks")
    lines = [words(line) for line in queue.find_all("li")]
    assert "reviewer 1: 3 labels" in lines
    assert any(line.startswith("differ on alpha") for line in lines)
    assert not {"ada", "ben"} & set(words(queue).split())


def test_site_has_no_judged_or_quoted_text(built: JudgedSite) -> None:
    everything = b"".join(contents(built.root / "site").values())
    for text in (HALLS[3]["output_1"], "It adds up.", "Late fees rise to 0.40", "private note", "title of a notice"):
        assert str(text).splitlines()[0].encode() not in everything
    folder = built.judgements / built.results_of("regression")["judging"]["id"]
    assert "Late fees rise to 0.40" in (folder / "evaluation_results.json").read_text()


def test_unreadable_judge_runs_hide_no_other(site: JudgedSite) -> None:
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

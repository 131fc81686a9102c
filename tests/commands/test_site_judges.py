"""The judges' page of a built site: every figure is that of a file of results, and nothing that was judged is in it."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.display import number

from tests.support.asked_judges import JudgingLibrary, answer, compared, method
from tests.support.judged_sites import HALLS, JudgedSite
from tests.support.library import SKILL, Library
from tests.support.sites import contents, site_data

pytestmark = pytest.mark.usefixtures("without_charts")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, without_charts: None) -> JudgedSite:
    """A library that judges worked in, and its site; for a test that changes nothing."""
    site = JudgedSite(tmp_path_factory.mktemp("judged"))
    site.judge_all(("judge",))
    assert site.call("site", "build", "--out", "site").code == 0
    return site


@pytest.fixture
def site(built: JudgedSite, tmp_path: Path) -> JudgedSite:
    """A copy of it."""
    return built.copy(tmp_path)


def blocks_of(site: JudgedSite, mode: str) -> list[Any]:
    page = site_data(site.root / "site", f"judgings/{site.results_of(mode)['judging']['id']}")
    return [block for section in page["sections"] for block in section["blocks"]]


def points(blocks: list[Any], axis: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    charts = [block for block in blocks if block["kind"] == "chart"]
    return {
        (row["label"], row["series"]): row
        for block in charts
        if block["words"].get("title") == axis
        for row in block["rows"]
    }


def is_figure(point: Mapping[str, Any], figure: Mapping[str, Any]) -> bool:
    return [point[name] for name in ("value", "low", "high")] == pytest.approx([figure["value"], *figure["ci95"]])


def test_every_judging_is_listed_with_what_it_came_to(built: JudgedSite) -> None:
    rows = {row["mode"]: row for row in site_data(built.root / "site", "judges")["judgings"]}
    assert set(rows) == {"regression", "calibrate", "pairwise", "score"}
    assert rows["regression"]["outcome"] == built.results_of("regression")["ship_decision"] == "block"
    assert (rows["regression"]["component"], rows["score"]["component"]) == (SKILL, SKILL)
    assert rows["pairwise"]["component"] is rows["calibrate"]["component"] is None
    assert rows["score"]["rubric"] == "rubric.yaml"


def test_calibration_page_shows_kappa_and_the_corruption_test(built: JudgedSite) -> None:
    page, (judge,) = blocks_of(built, "calibrate"), built.results_of("calibrate")["judges"]
    (row,) = judge["agreement"]
    assert is_figure(points(page, "κ")["pairs: overall", "judge"], row["trust"]["kappa"])
    six = next(block for block in page if block["kind"] == "sheet" and block["columns"][0] == "judge, pairs")
    assert [cells[0][0] for cells in six["rows"]] == [
        *("labels", "agreement", "κ", "TPR · TNR", "order flips", "confidence")
    ]
    assert any("false alarms" in json.dumps(block) for block in page)


def test_page_shows_the_figures_of_the_results(built: JudgedSite) -> None:
    (scores,) = built.results_of("score")["judges"]
    assert f"{number(scores['criteria'][0]['score']['value'])} of 5" in json.dumps(blocks_of(built, "score"))
    (preferences,) = built.results_of("pairwise")["judges"]
    wins = number(preferences["criteria"][0]["wins"]["value"])
    assert f"judge: output 1 wins {wins} " in json.dumps(blocks_of(built, "pairwise"))
    shown = json.dumps(blocks_of(built, "regression"))
    assert "Pairs that do not ship" in shown
    assert "a regression of " in shown


def test_review_queue_is_shown_without_names_of_reviewers(built: JudgedSite) -> None:
    (shown,) = site_data(built.root / "site", "judges")["queue"]
    lines = shown["blocks"][0]["lines"]
    assert "reviewer 1: 3 labels" in lines
    assert any(line.startswith("differ on alpha") for line in lines)
    assert not {"ada", "ben"} & set(json.dumps(shown).replace('"', " ").split())


def test_nothing_that_was_judged_or_quoted_is_in_the_site(built: JudgedSite) -> None:
    everything = b"".join(contents(built.root / "site").values())
    private = [
        HALLS[3]["output_1"],
        "It adds up.",
        "Late fees rise to 0.40",
        "private note",
        "is the title of a notice",
    ]
    for text in private:
        assert str(text).splitlines()[0].encode() not in everything
    results = (
        built.judgements / built.results_of("regression")["judging"]["id"] / "evaluation_results.json"
    ).read_text()
    assert "Late fees rise to 0.40" in results  # it was there to be taken


def test_one_broken_judging_is_listed_with_why_and_hides_no_other(site: JudgedSite) -> None:
    broken = site.results_of("pairwise")["judging"]["id"]
    (site.judgements / broken / "evaluation_results.json").write_text('{"results_version": 1, "judging": ')
    ended = site.call("site", "build", "--out", "site")
    assert (ended.code, f"judging {broken}" in ended.err) == (4, True)
    index = site_data(site.root / "site", "judges")
    assert [problem["name"] for problem in index["problems"]] == [broken]
    assert {row["mode"] for row in index["judgings"]} == {"regression", "calibrate", "score"}


def test_a_judging_without_results_yet_is_named(site: JudgedSite) -> None:
    name = site.results_of("score")["judging"]["id"]
    (site.judgements / name / "evaluation_results.json").unlink()
    assert site.call("site", "build", "--out", "site").code == 0
    assert site_data(site.root / "site", "judges")["unfinished"] == [name]
    assert not (site.root / "site" / "data" / "judgings" / f"{name}.js").exists()


def test_building_again_writes_nothing_of_judges(built: JudgedSite) -> None:
    assert "0 files written, 0 removed" in built.call("site", "build", "--out", "site").out


def test_a_page_that_stays_is_listed_as_it_was_drawn(site: JudgedSite) -> None:
    before = site_data(site.root / "site", "judges")
    (site.root / "site" / "data" / "judges.js").unlink()
    assert "1 file written, 0 removed" in site.call("site", "build", "--out", "site").out
    assert site_data(site.root / "site", "judges") == before


def test_a_judging_in_a_folder_that_no_page_can_be_called_by_is_named(site: JudgedSite) -> None:
    folder = site.judgements / site.results_of("score")["judging"]["id"]
    folder.rename(site.judgements / "a <b>")
    ended = site.call("site", "build", "--out", "site")
    assert (ended.code, "rename it" in ended.err) == (4, True)
    assert [one["name"] for one in site_data(site.root / "site", "judges")["problems"]] == ["a <b>"]


def test_calibration_of_the_settings_is_shown(site: JudgedSite) -> None:
    folder = site.judgements / site.results_of("calibrate")["judging"]["id"]
    shutil.move(folder / "evaluation_results.json", site.root / ".evaluator" / "judge.json")
    shutil.rmtree(folder)
    site.settings(policy={"judge": {"calibration": "judge.json"}})
    assert site.call("site", "build", "--out", "site").code == 0
    assert site_data(site.root / "site", "judges")["calibration"][0] == "undecided 1"
    assert site_data(site.root / "site", "judgings/of settings")["file"] == "judge.json"


def test_where_no_judge_was_asked_the_page_has_nothing_and_fails_on_nothing(tmp_path: Path) -> None:
    bare = Library(tmp_path)
    assert bare.call("site", "build", "--out", "site").code == 0
    index = site_data(bare.root / "site", "judges")
    assert (index["judgings"], index["queue"]) == ([], None)


def test_a_cascade_says_who_settled_what(tmp_path: Path) -> None:
    library = JudgingLibrary(tmp_path)
    library.rubric({"method": method("pairwise_comparison", "ties_allowed")})
    library.answered_by("cheap", "strong")
    pair = {"input": "Add 5 and 7.", "output_1": "The sum is 12.", "output_2": "There is no sum here."}
    library.items(*({"id": f"i{n}", **pair} for n in range(4)))
    for name in ("cheap", "strong"):
        said = {
            (f"i{n}/{order}", 0): answer(totals=compared(winner, confidence=0.5 if (n, name) == (0, "cheap") else 0.9))
            for n in range(4)
            for order, winner in ((1, "first"), (2, "second"))
        }
        library.record_answers(said, f"{name}.jsonl")
    assert library.judge("pairwise", "--cascade", "cheap,strong").code == 0
    assert library.call("site", "build", "--out", "site").code == 0
    (judging,) = site_data(library.root / "site", "judges")["judgings"]
    page = json.dumps(site_data(library.root / "site", f"judgings/{judging['id']}"))
    assert "cascade: cheap decided 3 of 4, strong decided 1 of 1; left to people: 0" in page
    assert "both judges together: 1.000 " in page
    assert judging["source"] == "items.jsonl"

"""The judges' page of a built site: every figure is that of a file of results, and nothing that was judged is in it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.display import number
from skill_evaluator.errors import JudgeError
from skill_evaluator.site.judges import read_recorded

from tests.support.judged_sites import HALLS, JudgedSite
from tests.support.library import SKILL, Library, read
from tests.support.sites import contents, site_data

pytestmark = pytest.mark.usefixtures("without_charts")
OTHERS = ("pairwise", "score", "calibrate")


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


def test_judge_run_is_listed_with_its_outcome(built: JudgedSite) -> None:
    rows = {row["mode"]: row for row in site_data(built.root / "site", "judges")["judgings"]}
    assert set(rows) == {"regression", "calibrate", "pairwise", "score"}
    assert rows["regression"]["outcome"] == built.results_of("regression")["ship_decision"] == "block"
    assert (rows["regression"]["component"], rows["score"]["component"]) == (SKILL, SKILL)
    assert rows["pairwise"]["component"] is rows["calibrate"]["component"] is None
    assert (rows["score"]["rubric"], rows["pairwise"]["source"]) == ("rubric.yaml", "items.jsonl")


def test_page_shows_the_figures_of_the_results(built: JudgedSite) -> None:
    (scores,) = built.results_of("score")["judges"]
    assert f"{number(scores['criteria'][0]['score']['value'])} of 5" in json.dumps(blocks_of(built, "score"))
    (preferences,) = built.results_of("pairwise")["judges"]
    wins = number(preferences["criteria"][0]["wins"]["value"])
    assert f"judge: output 1 wins {wins} " in json.dumps(blocks_of(built, "pairwise"))
    assert "Pairs that do not ship" in json.dumps(blocks_of(built, "regression"))
    assert "false alarms" in json.dumps(blocks_of(built, "calibrate"))


def test_review_queue_is_shown_without_names_of_reviewers(built: JudgedSite) -> None:
    (shown,) = site_data(built.root / "site", "judges")["queue"]
    lines = shown["blocks"][0]["lines"]
    assert "reviewer 1: 3 labels" in lines
    assert any(line.startswith("differ on alpha") for line in lines)
    assert not {"ada", "ben"} & set(json.dumps(shown).replace('"', " ").split())


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
    assert (ended.code, f"judging {folders['pairwise'].name}" in ended.err, "rename it" in ended.err) == (4, True, True)
    index = site_data(site.root / "site", "judges")
    assert {problem["name"] for problem in index["problems"]} == {folders["pairwise"].name, "a <b>"}
    assert index["unfinished"] == [folders["score"].name]
    assert [row["mode"] for row in index["judgings"]] == ["regression"]
    assert not (site.root / "site" / "data" / "judgings" / f"{folders['score'].name}.js").exists()


def test_invalid_results_are_refused_and_a_draft_has_none(site: JudgedSite) -> None:
    folder = site.judgements / site.results_of("score")["judging"]["id"]
    results, judging = read(folder / "evaluation_results.json"), read(folder / "judging.json")
    for changed, complaint in (
        ({"results_version": 2}, "has results_version 2, this evaluator knows 1; upgrade it"),
        ({"judges": 3}, "judges"),
        ({"judging": None}, "judging"),
    ):
        site.write(folder / "evaluation_results.json", {**results, **changed})
        with pytest.raises(JudgeError, match=complaint):
            read_recorded(folder)
    site.write(folder / "judging.json", {**judging, "mode": "rubric"})
    assert read_recorded(folder) is None


def test_page_of_an_unchanged_judge_run_stays(site: JudgedSite) -> None:
    before = site_data(site.root / "site", "judges")
    assert "0 files written, 0 removed" in site.call("site", "build", "--out", "site").out
    (site.root / "site" / "data" / "judges.js").unlink()
    assert "1 file written, 0 removed" in site.call("site", "build", "--out", "site").out
    assert site_data(site.root / "site", "judges") == before


def test_calibration_of_the_settings_is_shown(site: JudgedSite) -> None:
    folder = site.judgements / site.results_of("calibrate")["judging"]["id"]
    shutil.move(folder / "evaluation_results.json", site.root / ".evaluator" / "judge.json")
    shutil.rmtree(folder)
    site.settings(policy={"judge": {"calibration": "judge.json"}})
    assert site.call("site", "build", "--out", "site").code == 0
    assert site_data(site.root / "site", "judges")["calibration"][0] == "undecided 1"
    assert site_data(site.root / "site", "judgings/of settings")["file"] == "judge.json"


def test_page_is_empty_without_judge_runs(tmp_path: Path) -> None:
    bare = Library(tmp_path)
    assert bare.call("site", "build", "--out", "site").code == 0
    index = site_data(bare.root / "site", "judges")
    assert (index["judgings"], index["queue"]) == ([], None)

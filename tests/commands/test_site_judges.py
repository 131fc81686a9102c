"""The judges' page of a built site: every figure is that of a file of results, and nothing that was judged is in it."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.display import number
from skill_evaluator.judges.people.labelled import status_lines
from skill_evaluator.judges.people.queue import queue_in

from tests.support.asked_judges import JudgingLibrary, answer, compared, method
from tests.support.judged_sites import HALLS, JudgedSite
from tests.support.library import SKILL, Library, read
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


def test_rates_stand_beside_those_of_the_controls_that_the_calibration_has(built: JudgedSite) -> None:
    shown = points(blocks_of(built, "regression"), "share called worse")
    (judge,) = built.results_of("regression")["judges"]
    (calibrated,) = built.results_of("calibrate")["judges"]
    quiet = {row["dimension"]: row["specificity"] for row in calibrated["detection"]["dimensions"]}
    for summary in judge["dimensions"]:
        name = summary["dimension"]
        assert is_figure(shown[name, "this batch"], summary["worse"])
        control = shown[name, "controls"]
        assert control["value"] == pytest.approx(1 - quiet[name]["value"])
        assert f"n {quiet[name]['n']}" in control["words"]
    assert shown["completeness", "this batch"]["value"] > 0.0


def test_rates_are_those_that_calibrate_prints_of_the_batch(built: JudgedSite) -> None:
    """The command goes by the pairs themselves, the page by the figures of both results."""
    folders = {mode: built.judgements / built.results_of(mode)["judging"]["id"] for mode in ("calibrate", "regression")}
    planted = (folders["calibrate"] / "planted.jsonl", folders["calibrate"] / "regressions.json")
    batch = folders["regression"] / "evaluation_results.json"
    words = ("--planted", str(planted[0]), "--regressions", str(planted[1]), "--batch", str(batch))
    (judge,) = built.call("judge", "calibrate", *words, "--format", "json").json["judges"]
    shown = points(blocks_of(built, "regression"), "share called worse")
    for row in judge["batch"]["dimensions"]:
        if row["dimension"] != "any":
            for series, key in (("this batch", "reported"), ("controls", "control")):
                assert is_figure(shown[row["dimension"], series], row[key])
            corrected = shown.get((row["dimension"], "corrected"))
            assert (corrected is None) == (row["corrected"]["value"] is None)
            assert corrected is None or is_figure(corrected, row["corrected"])


def test_without_a_calibration_it_says_that_there_is_no_control_and_what_makes_one(site: JudgedSite) -> None:
    shutil.rmtree(site.judgements / site.results_of("calibrate")["judging"]["id"])
    site.call("site", "build", "--out", "site")
    page = blocks_of(site, "regression")
    assert {series for _, series in points(page, "share called worse")} == {"this batch"}
    (note,) = (block["note"] for block in page if "no control" in block.get("note", ""))
    assert "judge calibrate --broken N" in note


def test_a_calibration_of_other_settings_is_no_control(site: JudgedSite) -> None:
    path = site.judgements / site.results_of("calibrate")["judging"]["id"] / "evaluation_results.json"
    results = read(path)
    results["judges"][0]["record"]["settings"] = f"sha256:{'0' * 64}"
    path.write_text(json.dumps(results))
    site.call("site", "build", "--out", "site")
    notes = " ".join(block.get("note", "") for block in blocks_of(site, "regression"))
    assert "the calibration used different settings" in notes


def test_what_a_judge_is_worth_is_that_of_its_calibration(built: JudgedSite) -> None:
    page, (judge,) = blocks_of(built, "calibrate"), built.results_of("calibrate")["judges"]
    trust = points(page, "agreement beyond chance")
    for stratum, figures in judge["strata"].items():
        figure = {"value": figures["kappa_both"], "ci95": figures["kappa_both_ci95"]}
        key = (f"pairs: {stratum}", "judge")
        assert is_figure(trust[key], figure) if figure["value"] is not None else key not in trust
    for row in judge["detection"]["dimensions"]:
        assert is_figure(trust[f"regressions: {row['dimension']}", "judge"], row["informedness"])
    (biases,) = (block["rows"] for block in page if block.get("caption") == "What ought not to matter")
    assert [row[1][0] for row in biases] == [bias["bias"] for bias in judge["biases"]]
    assert [row[7][0].split()[0] for row in biases] == [number(bias["shift"]["value"]) for bias in judge["biases"]]
    for stratum, figures in judge["strata"].items():
        heat = next(block for block in page if block.get("heat") and block["caption"].endswith(stratum))
        counts = {row[0][0]: [int(cell[0]) for cell in row[1:]] for row in heat["rows"]}
        assert counts == {mine: list(row.values()) for mine, row in figures["confusion"].items()}


def test_scores_and_comparisons_are_those_of_their_results(built: JudgedSite) -> None:
    (scores,) = built.results_of("score")["judges"]
    shown = points(blocks_of(built, "score"), "score, from 0 to 1")
    assert is_figure(shown["totals", "judge"], scores["criteria"][0]["normalised"])
    (preferences,) = built.results_of("pairwise")["judges"]
    shown = points(blocks_of(built, "pairwise"), "share that output 1 wins")
    assert is_figure(shown["totals", "judge"], preferences["criteria"][0]["wins"])


def test_review_queue_is_shown_without_names_of_reviewers(built: JudgedSite) -> None:
    queues = site_data(built.root / "site", "judges")["queues"]
    assert queues[""] == queues[SKILL]  # all items are from the comparison of the component
    (shown,) = queues[""]
    queue = queue_in(built.root / ".evaluator")
    items = queue.items()
    lines = shown["blocks"][0]["lines"]
    assert lines == status_lines(items, queue.labels(items), published=True)
    assert any("reviewer 1 and reviewer 2 agree" in line for line in lines)
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


def test_a_new_calibration_is_the_control_of_what_was_shown_before(site: JudgedSite) -> None:
    folder = site.judgements / site.results_of("calibrate")["judging"]["id"]
    shutil.move(folder, site.root / "elsewhere")
    site.call("site", "build", "--out", "site")
    assert "controls" not in {series for _, series in points(blocks_of(site, "regression"), "share called worse")}
    shutil.move(site.root / "elsewhere", folder)
    site.call("site", "build", "--out", "site")
    assert "controls" in {series for _, series in points(blocks_of(site, "regression"), "share called worse")}


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


def test_the_calibration_that_the_settings_name_is_shown_and_is_a_control(site: JudgedSite) -> None:
    folder = site.judgements / site.results_of("calibrate")["judging"]["id"]
    shutil.move(folder / "evaluation_results.json", site.root / ".evaluator" / "judge.json")
    shutil.rmtree(folder)
    site.settings(policy={"judge": {"calibration": "judge.json"}})
    assert site.call("site", "build", "--out", "site").code == 0
    assert site_data(site.root / "site", "judges")["calibration"][0].startswith("not trusted")
    assert site_data(site.root / "site", "judgings/of settings")["file"] == "judge.json"
    shown = points(blocks_of(site, "regression"), "share called worse")
    assert ("completeness", "controls") in shown


def test_where_no_judge_was_asked_the_page_has_nothing_and_fails_on_nothing(tmp_path: Path) -> None:
    bare = Library(tmp_path)
    assert bare.call("site", "build", "--out", "site").code == 0
    index = site_data(bare.root / "site", "judges")
    assert (index["judgings"], index["queues"]) == ([], {})


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
    library.settings(policy={"judge": {"cascade": {"audit": 0}}})
    assert library.judge("pairwise", "--cascade", "cheap,strong").code == 0
    assert library.call("site", "build", "--out", "site").code == 0
    (judging,) = site_data(library.root / "site", "judges")["judgings"]
    sections = site_data(library.root / "site", f"judgings/{judging['id']}")["sections"]
    lines = [line for section in sections for block in section["blocks"] for line in block.get("lines", ())]
    assert "cheap settled 3 of 4: by the criteria's own thresholds" in lines
    assert any(line.startswith("both together, output 1 wins: 1.000 ") for line in lines), lines
    assert judging["outcome"].startswith("output 1 wins: 1.000 ")

"""What `site build` writes of each case: what explain says of the answers, only where that is allowed, and bounded."""

import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from skill_evaluator.errors import RunError, StorageError
from skill_evaluator.site.server import SiteServer

from tests.support.chat_server import notice
from tests.support.documents import a_pdf, a_png
from tests.support.library import CASES, SKILL, Library, read
from tests.support.records import a_run, keep
from tests.support.sites import contents, lines_of, site_data, site_lines

pytestmark = pytest.mark.usefixtures("without_charts")
PUBLISHED = {"site": {"components": {SKILL: {"documents": True}}}}
PROMPT = "---\nname: notice-extraction\nversion: {}\n---\nExtract title and year.\n"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, without_charts: None) -> Library:
    """Two versions: the second takes the year of alpha once for another, and says nothing of beta that can be read.

    Its site with all texts is built; for a test that changes nothing.
    """
    library = Library(tmp_path_factory.mktemp("shown"))
    assert library.evaluate_here().code == 0
    library.write(f"components/{SKILL}/prompt.md", PROMPT.format("1.1.0"))
    right = {(case_id, index): notice(case_id) for case_id in CASES for index in range(2)}
    wrong = {("alpha", 1): json.dumps({"title": "alpha", "year": 1999}), ("beta", 0): "No.", ("beta", 1): "No."}
    library.record_answers(right | wrong)
    library.evaluate_here()
    published(library)
    return library


@pytest.fixture
def measured(shown: Library, tmp_path: Path) -> Library:
    """A copy of it."""
    return shown.copy(tmp_path)


def published(library: Library) -> Path:
    library.settings(**PUBLISHED)
    assert library.call("site", "build", "--out", "site").code == 0
    return library.root / "site"


def runs_of(site: Path, case_id: str) -> list[Any]:
    """The runs on the page of a case, the newest first."""
    shown = site_lines(site, f"cases/{SKILL}/{case_id}")
    head = shown[f"cases/{SKILL}/{case_id}"]
    return [shown[f"cases/{SKILL}/{case_id}/{run}"] for run in head["runs"]]


def test_each_distinct_output_says_what_explain_says(shown: Library) -> None:
    newest, before = runs_of(shown.root / "site", "alpha")
    assert (newest["version"], before["version"]) == ("1.1.0", "1.0.0")
    assert [(output["times"], output["replicates"]) for output in newest["outputs"]] == [(1, "0"), (1, "1")]
    assert [(output["times"], output["replicates"]) for output in before["outputs"]] == [(2, "0-1")]
    (case,) = shown.call("explain", newest["run"], "--case", "alpha", "--format", "json").json["cases"]
    for output, explained in zip(newest["outputs"], case["outputs"], strict=True):
        leaves = {leaf["at"]: leaf for leaf in output["differing"] + output["alike"]}
        assert {at: (leaf["outcome"], leaf["how"]) for at, leaf in leaves.items()} == {
            leaf["at"]: (leaf["verdict"], leaf["compared_as"]) for leaf in explained["fields"]
        }
        assert output["metrics"] == pytest.approx(explained["metrics"], abs=1e-6)
        assert output["texts"][0]["text"] == explained["text"]
    (wrong,) = newest["outputs"][1]["differing"]
    assert (wrong["field"], wrong["truth"], wrong["output"]) == ("year", [["2024", False]], [["1999", False]])


def test_an_answer_that_cannot_be_read_is_shown_as_it_came(shown: Library) -> None:
    (unread,) = runs_of(shown.root / "site", "beta")[0]["outputs"]
    assert (unread["times"], unread["outcome"], unread["reason"]) == (2, "unparseable", "prose")
    assert unread["texts"][0]["text"] == "No."
    assert (unread["differing"], unread["alike"]) == ([], [])
    assert "explain" in unread["remedy"]


def test_every_score_is_that_of_the_record(shown: Library) -> None:
    records = {record["run_id"]: record for record in shown.records()}
    for case_id in CASES:
        for run in runs_of(shown.root / "site", case_id):
            record = records[run["run"]]
            (kept,) = (case for case in record["per_case"] if case["case_id"] == case_id)
            assert run["score"] == kept["accuracy"][record["primary_metric"]]["strict_mean"]
            assert {name: scores["replicates"] for name, scores in run["scores"].items()} == kept["replicates"]
            assert run["outcomes"] == kept["outcomes"]
            assert {row["field"]: row["standing"] for row in run["fields"]} == kept["profile"]
            assert {row["field"]: (row["right"], row["n"]) for row in run["fields"] if row["n"]} == {
                field: (count["right"], count["n"]) for field, count in kept["fields"].items()
            }


def test_a_build_shows_texts_of_no_component_that_does_not_say_so_and_takes_back_what_was_shown(
    measured: Library,
) -> None:
    site = measured.root / "site"
    texts = (rb"is the title of a notice", rb"(?<![\w.])1999(?!\w)", rb"No\.")  # 1999 also stands in digests
    assert all(re.search(text, b"".join(contents(site).values())) for text in texts)
    measured.settings()
    assert measured.call("site", "build", "--out", "site").code == 0
    everything = b"".join(contents(site).values())
    assert not [text for text in texts if re.search(text, everything)]
    head = site_data(site, f"cases/{SKILL}/alpha")
    assert "private" in head["why"]
    assert head["document"] is None
    assert [run["outputs"] for run in runs_of(site, "alpha")] == [None, None]
    assert [run["score"] for run in runs_of(site, "alpha")] == [0.75, 1.0]


def test_a_component_that_is_not_there_is_named_and_publishes_nothing(measured: Library) -> None:
    measured.settings(site={"components": {"notice-extractoin": {"documents": True}}})
    ended = measured.call("site", "build", "--out", "site")
    assert ended.code == 0
    assert "site.components.notice-extractoin" in ended.err
    assert f"did you mean '{SKILL}'?" in ended.err
    assert site_data(measured.root / "site", f"cases/{SKILL}/alpha")["document"] is None


def test_what_is_served_shows_everything_and_makes_a_case_when_it_is_opened(
    measured: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[dict[str, Any]] = []

    def serve(server: SiteServer) -> None:
        threading.Thread(target=forever, args=(server, 0.01), daemon=True).start()
        with urlopen(f"{server.address}data/cases/{SKILL}/alpha.js") as answer:
            opened.append(lines_of(answer.read().decode()))
        server.shutdown()
        raise KeyboardInterrupt

    forever = SiteServer.serve_forever
    monkeypatch.setattr(SiteServer, "serve_forever", serve)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    measured.settings()
    assert measured.call("site", "serve").code == 0
    head = opened[0][f"cases/{SKILL}/alpha"]
    assert "is the title of a notice" in head["document"]["text"]
    assert [len(opened[0][f"cases/{SKILL}/alpha/{run}"]["outputs"]) for run in head["runs"]] == [2, 1]


def test_what_cannot_be_made_when_it_is_asked_for_is_said_and_tried_again(tmp_path: Path) -> None:
    problems = [StorageError("the disk is full")]

    def make() -> None:
        if problems:
            raise problems.pop()
        (tmp_path / "case.js").write_text("made")

    with SiteServer(tmp_path, later={"case.js": make}) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with pytest.raises(HTTPError, match="500") as refused:
            urlopen(f"{server.address}case.js")
        assert "the disk is full" in refused.value.read().decode()
        for _ in range(2):
            with urlopen(f"{server.address}case.js") as answer:
                assert answer.read() == b"made"
        server.shutdown()


def test_a_run_without_raw_answers_has_the_scores_of_its_record_and_says_why(measured: Library) -> None:
    newest = measured.records()[0]["run_id"]
    (measured.results / newest / "replicates.jsonl").unlink()
    without, before = runs_of(published(measured), "alpha")
    assert without["outputs"] is None
    assert without["why"] == f"The raw answers of this run are not here (evals/results/{newest}): these are its scores."
    assert without["score"] == 0.75
    assert before["outputs"]


def test_only_the_newest_two_versions_are_shown(library: Library) -> None:
    for serial, version in enumerate(("1.0.0", "1.1.0", "1.2.0"), 1):
        keep(library, a_run(version, serial, {"alpha": [1.0, 0.5]}))
    assert [run["version"] for run in runs_of(published(library), "alpha")] == ["1.2.0", "1.1.0"]


def test_a_case_that_changed_since_is_not_marked(measured: Library) -> None:
    measured.case("alpha", {"title": "alpha", "year": 1999})
    for output in runs_of(published(measured), "alpha")[0]["outputs"]:
        assert "the case was changed" in output["unmarked"]
        assert (output["differing"], output["alike"]) == ([], [])


def test_answers_that_were_edited_are_named(measured: Library) -> None:
    path = measured.results / measured.records()[0]["run_id"] / "replicates.jsonl"
    path.write_text(path.read_text().replace("1999", "2001"))
    (remark,) = runs_of(published(measured), "alpha")[0]["remarks"]
    assert "one of the two was edited" in remark


def test_a_run_folder_that_cannot_be_read_is_named_and_hides_no_other(measured: Library) -> None:
    (measured.results / measured.records()[0]["run_id"] / "manifest.json").write_text("{")
    shutil.rmtree(measured.root / "site")
    broken, before = runs_of(published(measured), "alpha")
    assert "The raw answers cannot be shown" in broken["why"]
    assert (broken["outputs"], broken["score"]) == (None, 0.75)
    assert before["outputs"]


def test_nothing_is_explained_again_but_what_is_new(measured: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    site = measured.root / "site"
    explained: list[str] = []
    monkeypatch.setattr("skill_evaluator.site.cases.ShownRun.script", _noting(explained))
    assert "0 files written, 0 removed" in measured.call("site", "build", "--out", "site").out
    assert explained == []
    before = contents(site)
    measured.write(f"components/{SKILL}/prompt.md", PROMPT.format("1.2.0"))
    measured.evaluate_here()
    assert measured.call("site", "build", "--out", "site").code == 0
    assert [read(measured.component / "evals" / "records" / f"{run}.json")["skill_version"] for run in explained] == [
        "1.2.0"
    ] * len(CASES)
    assert contents(site) != before
    assert [run["version"] for run in runs_of(site, "alpha")] == ["1.2.0", "1.1.0"]


def _noting(explained: list[str]) -> Any:
    from skill_evaluator.site.cases import ShownRun

    whole = ShownRun.script

    def script(run: Any, *arguments: Any) -> str:
        explained.append(run.entry.run_id)
        return whole(run, *arguments)

    return script


def test_megabytes_of_document_and_answer_make_no_large_file(library: Library) -> None:
    long = "<b>\u202eä\x1b " * 150_000
    library.write(f"fixtures/{SKILL}/cases/alpha/document.md", long)
    library.settings(limits={"document_bytes": 50_000_000}, **PUBLISHED)
    texts = {("alpha", 0): json.dumps({"title": long[:60_000], "year": 1}), ("alpha", 1): long[:900_000]}
    library.record_answers({(case_id, index): notice(case_id) for case_id in CASES for index in range(2)} | texts)
    library.evaluate_here()
    assert library.call("site", "build", "--out", "site").code == 0
    site = library.root / "site"
    head = site_data(site, f"cases/{SKILL}/alpha")
    assert head["document"]["cut"]
    assert head["document"]["length"] == len(long)
    assert [output["texts"][0]["cut"] for output in runs_of(site, "alpha")[0]["outputs"]] == [True, True]
    assert max(len(content) for name, content in contents(site).items() if name.startswith("data/")) < 1_000_000


def test_a_record_that_is_another_now_changes_the_pages_of_its_cases(measured: Library) -> None:
    site = measured.root / "site"
    path = measured.component / "evals" / "records" / f"{runs_of(site, 'alpha')[0]['run']}.json"
    record = read(path)
    record["per_case"][0]["replicates"]["field_level_f1"] = [0.25, 0.25]
    path.write_text(json.dumps(record))
    published(measured)
    shown = contents(site)
    assert measured.call("site", "build", "--out", "anew").code == 0
    assert shown == contents(measured.root / "anew")


@pytest.mark.parametrize("text", ["\u00a0" * 5_000 + "x" * 3_000, "x" * 10_001])
def test_an_answer_that_is_cut_says_so(library: Library, text: str) -> None:
    answers = {"alpha": text, "beta": notice("beta"), "gamma": notice("gamma")}
    library.record_answers({(case_id, index): answer for case_id, answer in answers.items() for index in range(2)})
    library.evaluate_here()
    (answer,) = runs_of(published(library), "alpha")[0]["outputs"][0]["texts"]
    assert (answer["cut"], answer["length"]) == (True, len(text))


def test_answers_of_two_runs_that_cannot_be_read_cost_nothing_else(
    measured: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: Path, *_: int) -> Any:
        raise RunError(f"{folder}/replicates.jsonl cannot be read: Permission denied")

    monkeypatch.setattr("skill_evaluator.site.compare.outcomes", refused)  # to root no file is unreadable
    shutil.rmtree(measured.root / "site")
    site = published(measured)
    assert "The outputs cannot be read" in (site / "compare" / SKILL / "1.1.0.html").read_text()
    assert (site / "components" / f"{SKILL}.html").exists()


def test_files_are_copied_where_documents_are_shown_and_nowhere_else(library: Library) -> None:
    folder = f"fixtures/{SKILL}/cases"
    files = {"alpha": ("document.png", a_png()), "beta": ("document.pdf", a_pdf())}
    for case_id, (name, content) in files.items():
        (library.root / folder / case_id / "document.md").unlink()
        library.write(f"{folder}/{case_id}/{name}", content)
    assert library.evaluate_here().code == 0
    site = published(library)
    shown = {case_id: site_lines(site, f"cases/{SKILL}/{case_id}")[f"cases/{SKILL}/{case_id}"] for case_id in CASES}
    for case_id, (name, content) in files.items():
        (file,) = shown[case_id]["files"]
        assert (site / file["at"]).read_bytes() == content
        assert (file["name"], file["words"]) == (name, shown[case_id]["document"]["text"])
    assert [file["kind"] for case_id in CASES for file in shown[case_id]["files"]] == ["image", "pdf"]
    again = library.call("site", "build", "--out", "site")
    assert "0 files written" in again.out + again.err
    library.settings()
    assert library.call("site", "build", "--out", "site").code == 0
    assert not [path for path in site.glob("files/*") if path.is_file()]

"""The pages of cases of `site build`: outputs as `explain` shows them, if they may be shown, and bounded."""

import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from skill_evaluator.display.loopback import LoopbackServer

from tests.support.chat_server import notice
from tests.support.documents import a_pdf, a_png
from tests.support.library import CASES, SKILL, Library
from tests.support.sites import case_runs, contents, site_page, words

pytest.importorskip("vl_convert")
PUBLISHED = {"site": {"components": {SKILL: {"documents": True}}}}
PROMPT = "---\nname: notice-extraction\nversion: {}\n---\nExtract title and year.\n"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Library:
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
    return case_runs(site, SKILL, case_id)


def test_texts_are_published_only_on_request_and_removed_again(measured: Library) -> None:
    site = measured.root / "site"
    assert len([*(site / "runs" / SKILL).iterdir()]) == 2
    texts = (rb"is the title of a notice", rb"(?<![\w.])1999(?!\w)", rb"No\.")  # 1999 also stands in digests
    assert all(re.search(text, b"".join(contents(site).values())) for text in texts)
    measured.settings()
    assert measured.call("site", "build", "--out", "site").code == 0
    everything = b"".join(contents(site).values())
    assert not [text for text in texts if re.search(text, everything)]
    assert not [*(site / "runs").rglob("*.html")]
    page = site_page(site, f"cases/{SKILL}/alpha.html")
    assert "site build --outputs" in words(page.main)
    assert page.find("pre") is None
    runs = runs_of(site, "alpha")
    assert [(run["score"], run["outputs"]) for run in runs] == [("0.750", []), ("1.000", [])]
    assert runs[0]["fields"] == [
        ["title", "right in every output", "2 of 2"],
        ["year", "flaky: now right, now wrong", "1 of 2"],
    ]


def test_unknown_component_in_the_settings_publishes_nothing(measured: Library) -> None:
    measured.settings(site={"components": {"notice-extractoin": {"documents": True}}})
    ended = measured.call("site", "build", "--out", "site")
    assert ended.code == 0
    assert "site.components.notice-extractoin" in ended.err
    assert f"did you mean '{SKILL}'?" in ended.err
    assert site_page(measured.root / "site", f"cases/{SKILL}/alpha.html").find("pre") is None


def test_served_site_shows_documents_and_outputs(measured: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def serve(server: LoopbackServer) -> None:
        threading.Thread(target=forever, args=(server, 0.01), daemon=True).start()
        with urlopen(f"{server.address}cases/{SKILL}/alpha.html") as answer:
            opened.append(answer.read().decode())
        server.shutdown()
        raise KeyboardInterrupt

    forever = LoopbackServer.serve_forever
    monkeypatch.setattr(LoopbackServer, "serve_forever", serve)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    measured.settings()
    assert measured.call("site", "serve").code == 0
    assert "is the title of a notice" in opened[0]
    assert opened[0].count("<article") == 3


def test_run_without_outputs_shows_the_scores_of_its_record(measured: Library) -> None:
    newest = measured.records()[0]["run_id"]
    (measured.results / newest / "replicates.jsonl").unlink()
    without, before = runs_of(published(measured), "alpha")
    assert without["outputs"] == []
    why = f"The outputs of this run are not here (evals/results/{newest}): these are its scores."
    assert (without["notices"], without["score"]) == ([why], "0.750")
    assert before["outputs"]
    assert [newest in path.name for path in (measured.root / "site" / "runs" / SKILL).iterdir()] == [False]


def test_unreadable_run_folder_hides_no_other(measured: Library) -> None:
    (measured.results / measured.records()[0]["run_id"] / "manifest.json").write_text("{")
    shutil.rmtree(measured.root / "site")
    broken, before = runs_of(published(measured), "alpha")
    assert "The outputs cannot be shown" in broken["notices"][0]
    assert (broken["outputs"], broken["score"]) == ([], "0.750")
    assert before["outputs"]


def test_large_documents_and_outputs_are_cut(library: Library) -> None:
    long = "<b>\u202eä\x1b " * 150_000
    library.write(f"fixtures/{SKILL}/cases/alpha/document.md", long)
    library.settings(limits={"document_bytes": 50_000_000}, **PUBLISHED)
    texts = {("alpha", 0): json.dumps({"title": long[:60_000], "year": 1}), ("alpha", 1): long[:900_000]}
    library.record_answers({(case_id, index): notice(case_id) for case_id in CASES for index in range(2)} | texts)
    library.evaluate_here()
    assert library.call("site", "build", "--out", "site").code == 0
    site = library.root / "site"
    shown = words(site_page(site, f"cases/{SKILL}/alpha.html").main)
    assert f"the first of {len(long):,} characters. The whole is among the fixtures." in shown
    assert ["Cut here" in output["words"] for output in runs_of(site, "alpha")[0]["outputs"]] == [True, True]
    assert max(len(content) for content in contents(site).values()) < 1_000_000


def test_files_are_copied_only_where_documents_are_shown(library: Library) -> None:
    folder = f"fixtures/{SKILL}/cases"
    files = {"alpha": ("document.png", a_png()), "beta": ("document.pdf", a_pdf())}
    for case_id, (name, content) in files.items():
        (library.root / folder / case_id / "document.md").unlink()
        library.write(f"{folder}/{case_id}/{name}", content)
    assert library.evaluate_here().code == 0
    site = published(library)
    given = {case_id: site_page(site, f"cases/{SKILL}/{case_id}.html").find(class_="given") for case_id in CASES}
    image, link = given["alpha"].img, given["beta"].a
    assert (site / "cases" / SKILL / image["src"]).read_bytes() == files["alpha"][1]
    assert (site / "cases" / SKILL / link["href"]).read_bytes() == files["beta"][1]
    assert (image["alt"][:13], link["download"]) == ("[document.png", "document.pdf")
    assert given["gamma"].find(["img", "a"]) is None
    library.settings()
    assert library.call("site", "build", "--out", "site").code == 0
    assert not [path for path in site.glob("files/*") if path.is_file()]

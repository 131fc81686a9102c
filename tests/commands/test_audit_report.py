"""`audit report`: from runs or a table to table, page, charts and JSON; errors say what is missing and what to do."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.audit.cubes import PAPER
from tests.support.audits import CELLS, SCENARIOS, AuditLibrary
from tests.support.chat_server import Asked, ChatServer, Reply, chat_server, varied
from tests.support.library import read

WRITTEN = {"report.md", "report.json", "cube.csv", "cube.json", "outcomes.csv"}


@pytest.fixture
def served(tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> AuditLibrary:
    """A library of two models, whose reports are made without their charts."""
    monkeypatch.setattr("skill_evaluator.audit.report.page.draw", lambda *_: None)
    return of_two_models(tmp_path, server)


def of_two_models(root: Path, server: ChatServer) -> AuditLibrary:
    library = AuditLibrary(root)
    one = {"provider": "openai", "base_url": server.url, "price": {"input": 1, "output": 2}}
    library.models({"id": "one", **one}, {"id": "two", **one})
    return library


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditLibrary]:
    """A library of two models that were audited."""
    with chat_server() as server:
        library = of_two_models(tmp_path_factory.mktemp("audited"), server)
        assert library.audit().code == 0
        yield library


def test_the_papers_table_is_printed_with_its_grades_and_its_cohort(tmp_path: Path) -> None:
    done = AuditLibrary(tmp_path).call("audit", "report", "--cube", str(PAPER), "--questions", "100")
    assert done.code == 0
    rows = {line.split()[0]: line.split() for line in done.out.splitlines() if "–" in line}
    assert rows["Seed-1.6"][1] == "81.87"
    assert rows["Gemini-2.5-Flash-Lite"][3:6] == ["2.63", "(1.70–3.73)", "BBB"]
    assert "thresholds of the fluctuation: 1.30 · 1.57 · 2.04; medians: ability 62.30, fluctuation 1.57" in done.out
    assert "all grades are relative: 13 models" in done.out
    assert not list(tmp_path.glob("**/report.md"))


def test_an_audit_becomes_a_page_with_charts_and_a_cube_that_reads_back(audited: AuditLibrary, tmp_path: Path) -> None:
    library = audited.copy(tmp_path)
    folder = library.audit_folder()
    plain = library.call("audit", "report", "--format", "json")
    assert plain.code == 0
    assert {path.name for path in folder.iterdir() if path.is_file()} == {"audit.json", *WRITTEN}
    page = (folder / "report.md").read_text("utf-8")
    for chart in (folder / "charts").iterdir():
        assert f"charts/{chart.name}" in page
    assert json.loads((folder / "report.json").read_text("utf-8")) == plain.json
    again = library.call("audit", "report", "--cube", str(folder / "outcomes.csv"), "--format", "json")
    unpriced = {"usd_per_1000_right": None, "latency_s": None, "answers": None}
    assert all(sum(one["answers"].values()) == 2 * len(CELLS) for one in plain.json["models"])
    assert again.json["models"] == [one | unpriced for one in plain.json["models"]]
    assert plain.json["models"][0]["usd_per_1000_right"] > 0
    assert plain.json["regimes"]["cost-sensitive"]["ranked"]


def test_a_cell_that_was_not_answered_is_named_and_left_out_only_when_asked_to(
    served: AuditLibrary, server: ChatServer
) -> None:
    def failing(asked: Asked) -> Reply:
        system, user = (message["content"] for message in asked.body["messages"])
        lost = asked.body["model"] == "two" and system.startswith("Be grand") and user.startswith("eta")
        return Reply(status=400, text="no") if lost else varied(asked)

    server.reply = failing
    assert served.audit().code in (0, 4)
    refused = served.call("audit", "report")
    assert refused.refuses("lacks answers of two in grand")
    assert "--missing questions, scenarios or models" in refused.err
    left = served.call("audit", "report", "--missing", "questions", "--format", "json")
    assert left.code == 0
    assert left.json["treatment"] == "left out second/eta: some model has no answer to them"
    fewer = served.call("audit", "report", "--missing", "scenarios", "--format", "json")
    assert fewer.json["scenarios"] == [name for name in SCENARIOS if name != "grand"]
    alone = served.call("audit", "report", "--missing", "models", "--format", "json")
    assert alone.json["cohort"] == ["one"]


def test_a_model_of_which_nothing_is_there_is_said_and_makes_it_incomplete(
    served: AuditLibrary, server: ChatServer
) -> None:
    server.reply = lambda asked: Reply(status=401, text="no") if asked.body["model"] == "two" else varied(asked)
    assert served.audit().code == 4
    done = served.call("audit", "report", "--format", "json")
    assert done.code == 4
    assert done.json["cohort"] == ["one"]
    assert done.json["warnings"][0].startswith("left out, as nothing is there of them: two")


def test_a_changed_cohort_is_seen_beside_the_last_audit(
    served: AuditLibrary, audited: AuditLibrary, tmp_path: Path
) -> None:
    library = audited.copy(tmp_path)
    (newest,) = library.audits.iterdir()
    assert library.audit("--model", "one").code == 0
    (first,) = (path for path in library.audits.iterdir() if path != newest)
    assert library.call("audit", "report", str(first)).code == 0
    first.rename(first.with_name("20200101T000000Z-000000"))
    warnings = library.call("audit", "report", "--format", "json").json["warnings"]
    assert any("the cohort changed since the last audit (new: two)" in one for one in warnings)


def test_a_broken_report_beside_it_stops_nothing_and_one_that_is_named_does(
    served: AuditLibrary, audited: AuditLibrary, tmp_path: Path
) -> None:
    library = audited.copy(tmp_path)
    folder = library.audit_folder()
    broken = library.write("audits/20200101T000000Z-000000/report.json", {"audit_version": 9})
    done = library.call("audit", "report", str(folder), "--format", "json")
    assert done.code == 0
    assert "whether the cohort changed is not known" in done.err
    assert library.call("audit", "report", str(folder), "--previous", str(broken)).refuses("has audit_version 9")


def test_weights_are_of_benchmarks_there_are(served: AuditLibrary, audited: AuditLibrary, tmp_path: Path) -> None:
    library = audited.copy(tmp_path)
    done = library.call("audit", "report", "--weight", "second=3", "--format", "json")
    assert {one["name"]: one["weight"] for one in done.json["used"]}["second"] == 0.75
    assert sum(one["questions"] for one in done.json["used"]) * len(SCENARIOS) == len(CELLS)
    for weight, said in (("third=1", "unknown benchmark 'third'"), ("second=0", "is not NAME=W"), ("=1", "is not")):
        assert library.call("audit", "report", "--weight", weight).refuses(said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "audits holds no audit; make one with audit run"),
        (("--cube", "nowhere.csv"), "cannot read nowhere.csv"),
        (("--cube", str(PAPER), "somewhere"), "cannot be combined with folders"),
        (("--questions", "5", "--audits", "none"), "none holds no audit"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    assert AuditLibrary(tmp_path).call("audit", "report", *arguments).refuses(said)


def test_without_the_libraries_that_draw_the_page_comes_without_charts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "skill_evaluator.display.chart_style", None)
    done = AuditLibrary(tmp_path).call("audit", "report", "--cube", str(PAPER), "--out", "out")
    assert done.code == 0
    assert "pip install altair vl-convert-python" in done.err
    assert "Fluctuation\nWhat noise alone would give a typical model: not known" in done.out
    assert ".svg" not in (tmp_path / "out" / "report.md").read_text("utf-8")
    assert read(tmp_path / "out" / "report.json")["cohort"]

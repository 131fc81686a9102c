"""`audit report`: an audit or a table of scores becomes a table, a page, charts and JSON."""

import json
import sys
from pathlib import Path

import pytest

from tests.audit.audit_library import CELLS, AuditLibrary
from tests.audit.cubes import PAPER, audited_paper
from tests.support.chat_server import ChatServer, Reply, varied
from tests.support.library import read

WRITTEN = {"report.md", "report.json", "cube.csv", "outcomes.csv"}


@pytest.fixture
def served(tmp_path: Path, server: ChatServer) -> AuditLibrary:
    """A library of two models."""
    library = AuditLibrary(tmp_path)
    one = {"provider": "openai", "base_url": server.url, "price": {"input": 1, "output": 2}}
    library.models({"id": "one", **one}, {"id": "two", **one})
    return library


def test_paper_table_is_printed_with_grades_and_thresholds(tmp_path: Path) -> None:
    done = AuditLibrary(tmp_path).call("audit", "report", "--cube", str(PAPER))
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[1] == "13 models × 10 scenarios × 3 benchmarks."
    assert lines[2].startswith("Neutrality: not neutral (scenario 7 is harder for all models by 2.0 points)")
    assert lines[2].endswith("Centering changes 6 of 13 grades.")
    assert "Thresholds of σ: AAA ≤ 1.30 · AA ≤ 1.57 · A ≤ 2.04 · BBB above; medians: μ 62.30, σ 1.57." in done.out
    assert not list(tmp_path.glob("**/report.md"))


def test_audit_becomes_a_page_and_a_cube(served: AuditLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skill_evaluator.audit.page.draw_charts", lambda blocks: {})  # charts take seconds
    assert served.audit().code == 0
    folder = served.audit_folder()
    plain = served.call("audit", "report", "--format", "json")
    assert plain.code == 0
    assert {path.name for path in folder.iterdir() if path.is_file()} == {"audit.json", *WRITTEN}
    assert json.loads((folder / "report.json").read_text("utf-8")) == plain.json
    again = served.call("audit", "report", "--cube", str(folder / "cube.csv"), "--format", "json")
    first, second = ([(each["model"], each["scenarios"]) for each in done.json["models"]] for done in (plain, again))
    assert first == second
    assert all(sum(model["answers"].values()) == 2 * len(CELLS) for model in plain.json["models"])
    assert plain.json["models"][0]["usd_per_1000_right"] > 0


def test_model_without_outputs_makes_the_report_incomplete(served: AuditLibrary, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(status=401, text="no") if asked.body["model"] == "two" else varied(asked)
    assert served.audit().code == 4
    done = served.call("audit", "report", "--format", "json")
    assert done.code == 4
    assert done.json["cohort"] == ["one"]
    assert done.json["warnings"][0].startswith("excluded, since they have no output: two")


def test_options_change_weights_and_grades(tmp_path: Path) -> None:
    library = AuditLibrary(tmp_path)
    plain = {model.model: model.grading.grade for model in audited_paper().models}
    for options, changed, treatment in (
        (["--centered"], 6, "scores are centered: each scenario's mean over the models is subtracted"),
        (["--without", "7"], 3, "excluded scenario 7 (--without)"),
    ):
        done = library.call("audit", "report", "--cube", str(PAPER), "--format", "json", *options)
        assert sum(plain[model["model"]] != model["grade"] for model in done.json["models"]) == changed
        assert (done.code, done.json["treatment"]) == (0, treatment)
    done = library.call("audit", "report", "--cube", str(PAPER), "--weight", "gpqa=2", "--format", "json")
    assert [one["weight"] for one in done.json["used"]] == [0.5, 0.25, 0.25]
    library.write("gaps.csv", "model,template,quiz\na,0,50\na,1,52\nb,0,70\nb,1,\n")
    assert library.call("audit", "report", "--cube", "gaps.csv").refuses("gaps.csv lacks scores of b in 1")
    done = library.call("audit", "report", "--cube", "gaps.csv", "--missing", "models", "--format", "json")
    assert (done.code, done.json["cohort"]) == (0, ["a"])


def test_invalid_input_is_one_line_of_error(tmp_path: Path) -> None:
    library = AuditLibrary(tmp_path)
    for arguments, message in (
        ((), "audits contains no audit; create one with `skill-evaluator audit run`"),
        (("--cube", "nowhere.csv"), "nowhere.csv does not exist"),
        (("--cube", str(PAPER), "somewhere"), "cannot be combined with an audit's folder"),
        (("--cube", str(PAPER), "--without", "77"), "--without: unknown scenario '77'"),
        (("--cube", str(PAPER), "--weight", "third=1"), "unknown benchmark 'third'"),
        (("--cube", str(PAPER), "--weight", "gpqa=0"), "is not NAME=W"),
    ):
        assert library.call("audit", "report", *arguments).refuses(message), arguments


def test_page_has_no_charts_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skill_evaluator.display.chart_style", None)
    done = AuditLibrary(tmp_path).call("audit", "report", "--cube", str(PAPER), "--out", "out")
    assert done.code == 0
    assert "pip install altair vl-convert-python" in done.err
    assert "Noise: unknown within a scenario, which requires two replicates; --questions N" in done.out
    assert ".svg" not in (tmp_path / "out" / "report.md").read_text("utf-8")
    assert read(tmp_path / "out" / "report.json")["cohort"]

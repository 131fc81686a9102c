"""Folders whose names are no text, or more than a line: each command says so in its own line, and goes on."""

import os
from itertools import product
from pathlib import Path

import pytest

from tests.support.git import git
from tests.support.library import SKILL
from tests.support.pipeline import Pipeline

NO_TEXT = os.fsdecode(b"\xff\xfe")


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Beside the component are a folder whose name is not UTF-8, one of two lines, and a record of such a name."""
    pipeline = Pipeline.new(tmp_path_factory.mktemp("pushed"))
    for name in (NO_TEXT, "two\nlines"):
        folder = pipeline.checkout / "components" / name
        folder.mkdir()
        (folder / "prompt.md").write_text("---\nname: x\nversion: 1.0.0\n---\nDo.\n")
    records = pipeline.checkout / "components" / SKILL / "evals" / "records"
    records.mkdir(parents=True)
    (records / f"{NO_TEXT}.json").write_text("{}")
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", "origin", "main")
    return pipeline


@pytest.fixture
def pipeline(pushed: Pipeline, tmp_path: Path) -> Pipeline:
    return pushed.copy(tmp_path / "pipeline")


def test_lint_and_plan_name_what_is_wrong_and_go_on(pipeline: Pipeline) -> None:
    commands = {
        ("lint",): 2,
        ("lint", "--base", "HEAD~1"): 2,
        ("ci", "plan", "--base", "0"): 0,
        (
            "ci",
            "plan",
        ): 0,
    }
    for (words, code), form in product(commands.items(), ("text", "json", "markdown")):
        done = pipeline.run(*words, "--format", form)
        assert (done.code, "Traceback" in done.err) == (code, False), (words, form)
        assert "\\udcff\\udcfe" in done.out, (words, form)
        assert "two\nlines" not in done.out, (words, form)


def test_the_others_are_planned_asked_collected_published_and_compared(pipeline: Pipeline) -> None:
    plan = pipeline.plan("--base", "0", "--model", "recorded")
    assert {entry.skill for entry in plan.runs} == {SKILL}
    assert any("\udcff" in fault.file or "\\udcff" in fault.file for fault in plan.faults)
    for entry in plan.runs:
        assert pipeline.evaluate(entry).code == 0
    assert pipeline.collect().code == 0
    assert (pipeline.publish().code, len(pipeline.rows())) == (0, 1)
    git(pipeline.checkout, "pull", "-q", "--rebase", "origin", "main")
    for command in ("history", "compare"):
        done = pipeline.run(command, SKILL)
        assert "Traceback" not in done.err
    shown = pipeline.run("ci", "report", str(pipeline.collected), "--plan", str(pipeline.plan_file))
    assert shown.code == 4  # a component whose name cannot be read was not evaluated


def test_a_case_whose_folder_s_name_is_no_text_is_one_line_of_error(pipeline: Pipeline) -> None:
    case = pipeline.checkout / "fixtures" / SKILL / "cases" / NO_TEXT
    case.mkdir()
    (case / "document.md").write_text("A notice.\n")
    for arguments in (("evaluate", SKILL, "--dry-run"), ("evaluate", SKILL, "--no-leaderboard")):
        done = pipeline.run(*arguments)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert "\\udcff\\udcfe is not UTF-8" in done.err

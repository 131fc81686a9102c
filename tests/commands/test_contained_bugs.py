"""A bug in one component: the others are finished, the traceback is printed once and the exit code is 1."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.verdicts.component import RecordedComponent

from tests.support.library import CASES, REPLAY, SKILL, Ended, Library
from tests.support.pipeline import Pipeline
from tests.support.records import a_run, keep_in
from tests.support.sites import states

OTHER = "other"
KEY = "sk-secret-0123456789"


@pytest.fixture
def two_components(library: Library) -> Library:
    """A library of two components with the same cases."""
    prompt = f"---\nname: {OTHER}\nversion: 1.0.0\n---\nExtract title and year.\n"
    library.write(f"components/{OTHER}/prompt.md", prompt)
    shutil.copytree(library.root / "fixtures" / SKILL, library.root / "fixtures" / OTHER)
    return library


def break_for(monkeypatch: pytest.MonkeyPatch, owner: type, method: str, name: str) -> None:
    """Have a method raise a TypeError that quotes a key, where its object or its first argument is of this name."""
    works = getattr(owner, method)

    def break_down(self: Any, first: Any, *arguments: Any, **options: Any) -> Any:
        if name in (self.component.name, getattr(first, "id", None)):
            raise TypeError(f"no such {KEY}")
        return works(self, first, *arguments, **options)

    monkeypatch.setattr(owner, method, break_down)


def has_one_traceback(ended: Ended) -> bool:
    return (ended.code, ended.err.count("Traceback"), KEY in ended.err + ended.out) == (1, 1, False)


def test_evaluate_finishes_the_other_components(two_components: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    break_for(monkeypatch, RecordedComponent, "verdict_on", SKILL)
    ended = two_components.call("evaluate", "--yes", env={"LAB_KEY": KEY})
    assert has_one_traceback(ended)
    first, second = ended.out.splitlines()[1:3]
    assert f"error: internal error in {SKILL}: TypeError: no such [redacted]" in first
    assert second.split()[:3] == [OTHER, REPLAY["id"], "1.0.0"]


@pytest.mark.parametrize("command", ["leaderboard", "site"])
def test_leaderboard_and_site_show_the_other_components(
    command: str, two_components: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (SKILL, OTHER):
        run = a_run("1.0.0", 1, {case_id: [1.0] for case_id in CASES}, skill=name)
        keep_in(two_components.root / "components" / name, run)
    break_for(monkeypatch, RecordedComponent, "ranking_of", SKILL)
    words = ["site", "build"] if command == "site" else ["leaderboard"]
    ended = two_components.call(*words, env={"LAB_KEY": KEY})
    assert has_one_traceback(ended)
    assert f"internal error in {SKILL}: TypeError: no such [redacted]" in ended.err
    if command == "site":
        assert ended.err.endswith("1 part missing because of a bug in skill-evaluator: report the traceback\n")
        lines = states(two_components.root / "site")
        assert {name: line.a is not None for name, line in lines.items()} == {SKILL: False, OTHER: True}
    else:
        assert f"{OTHER} 1.0.0: field_level_f1 of 1 model on the same 3 cases" in ended.out


def test_collect_writes_the_records_of_the_other_runs(
    evaluated: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = evaluated.copy(tmp_path / "pipeline")
    break_for(monkeypatch, Recorder, "record", "vendor/other")
    ended = pipeline.collect(LAB_KEY=KEY)
    assert has_one_traceback(ended)
    runs = pipeline.outcome()
    assert {name: run["status"] for name, run in runs.items()} == {"recorded": "complete", "vendor/other": "missing"}
    assert f"not collected: internal error in {SKILL}: TypeError: no such [redacted]" in runs["vendor/other"]["reason"]
    assert list(pipeline.records()) == [runs["recorded"]["run_id"]]

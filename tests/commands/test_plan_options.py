"""A plan narrowed or started by hand, its limits, and what it hands on to the jobs that come after."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.ci.plan import sha256_of
from skill_evaluator.errors import ConfigError, PlanError, SkillEvaluatorError

from tests.support.git import IDENTITY
from tests.support.library import Ended, call
from tests.support.pushed import PushedLibrary, faults, jobs

ALL = ["m", "n"]


def test_a_component_and_a_model_may_be_started_by_hand_whatever_is_recorded(pushed: PushedLibrary) -> None:
    plan = pushed.plan(None, names=("b",), models=("n",), replicates=7, seed=3)
    (entry,) = plan.runs
    assert (entry.id, entry.replicates, entry.seed, entry.calls) == ("b@n", 7, 3, 7)
    assert (plan.trigger, plan.base, plan.skipped) == ("dispatch", None, [])
    assert jobs(pushed.plan(None)) == {"a": ALL, "b": ALL, "c": ALL}
    assert pushed.plan(None, dry_run=True).dry_run


def test_a_push_may_be_narrowed(pushed: PushedLibrary) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.push(a="1.1.0", b="1.1.0")
    assert jobs(pushed.plan(base, names=("a",), models=("n",))) == {"a": ["n"]}


def test_an_edited_prompt_of_a_recorded_version_is_started_by_nobody(pushed: PushedLibrary) -> None:
    board = pushed.root / "components" / "a" / "leaderboard.json"
    board.write_text(board.read_text().replace('"digests": {}', '"digests": {"prompt": "sha256:0"}'))
    pushed.commit()
    why = "'a' 1.0.0 was recorded with another prompt by run 1.0.0-m; raise the version, or measure this prompt as a "
    by_hand = pushed.plan(None)
    assert jobs(by_hand) == {"b": ALL, "c": ALL}
    assert [(file, message.startswith(why)) for file, message in faults(by_hand)] == [
        ("components/a/prompt.md:1", True)
    ]
    pushed.models("new")
    assert jobs(pushed.plan("0" * 40)) == {"b": ["new"], "c": ["new"]}  # to a model of which nothing is recorded
    with pytest.raises(PlanError, match=why):
        pushed.plan(None, names=("a",))
    assert jobs(pushed.push(a="1.1.0")) == {"a": ["new"]}


def test_what_cannot_be_meant_is_refused(pushed: PushedLibrary) -> None:
    refused: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"names": ("aa",), "base": None}, SkillEvaluatorError, "unknown component 'aa'"),
        ({"names": ("aa",), "base": "HEAD"}, PlanError, r"no component 'aa' in .* at HEAD"),
        ({"base": "origin/mian"}, PlanError, "--base origin/mian is not a commit here; .* use --base 0"),
        ({"models": ("x",), "base": None}, ConfigError, "unknown model 'x'"),
        ({"replicates": 0, "base": None}, ConfigError, "--replicates must be at least 1"),
        ({"max_cost": -1.0, "base": None}, ConfigError, "--max-cost must be an amount"),
        ({"max_cost": float("nan"), "base": None}, ConfigError, "--max-cost must be an amount"),
    )
    for options, error, words in refused:
        with pytest.raises(error, match=words):
            pushed.plan(**options)


def plan(library: PushedLibrary, *arguments: str, **env: str) -> Ended:
    """`skill-evaluator ci plan ...` as CI runs it."""
    return call(library.root, "ci", "plan", *arguments, env={**IDENTITY, **env})


def test_a_job_is_told_the_matrix_the_summary_and_the_marks(pushed: PushedLibrary, tmp_path: Path) -> None:
    base = pushed.git("rev-parse", "HEAD")
    pushed.component("a", "1.1.0")
    pushed.component("b", "0.9.0")
    pushed.commit()
    files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    env = {"GITHUB_ACTIONS": "true", **{name: str(path) for name, path in files.items()}}
    ended = plan(pushed, "--platform", "github", f"--base={base}", "--recorded", "origin/main", "--", **env)
    assert (ended.code, ended.out.count("::")) == (0, 0)
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    assert [one["id"] for one in json.loads(outputs["matrix"])["include"]] == ["a@m", "a@n"]
    assert (outputs["jobs"], outputs["faults"]) == ("2", "1")
    assert outputs["sha256"] == sha256_of(pushed.root / "plan.json")
    assert "| `a` | `m, n` | 2 | 4 | $0.00 | `MINOR 1.0.0 → 1.1.0` |" in files["GITHUB_STEP_SUMMARY"].read_text()
    assert "::warning file=components/b/prompt.md,line=3::the version was lowered from 1.0.0 to 0.9.0" in ended.err


def test_it_prints_what_it_decided_and_ends_with_2_for_what_a_user_can_put_right(pushed: PushedLibrary) -> None:
    ended = plan(pushed, "b", "--model", "n", "--format", "json")
    assert [entry["id"] for entry in ended.json["runs"]] == ["b@n"]
    assert plan(pushed, "nobody").refuses("error: unknown component 'nobody'")

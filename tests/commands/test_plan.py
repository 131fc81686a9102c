"""`plan` through the command line: what a job of CI is told and the forecast of costs."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.ci.plan import sha256_of

from tests.ci.pushed import PushedLibrary
from tests.support.git import IDENTITY, GitRepository
from tests.support.library import CASES, REPLAY, SKILL, Ended, Library, call, read


@pytest.fixture
def pushed(tmp_path: Path) -> PushedLibrary:
    """A library in git with two components, each measured at 1.0.0."""
    library = PushedLibrary(tmp_path / "library")
    for name in ("a", "b"):
        library.recorded(name, "1.0.0")
    library.commit()
    return library


def plan(library: PushedLibrary, *arguments: str, **env: str) -> Ended:
    """`skill-evaluator ci plan ...` as CI runs it."""
    return call(library.root, "ci", "plan", *arguments, env={**IDENTITY, **env})


def test_plan_writes_matrix_summary_and_annotations(pushed: PushedLibrary, tmp_path: Path) -> None:
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


LONG = "A line of the notice that says nothing of its year.\n" * 100  # over the floor from which a vendor caches


GPT = {"id": "gpt-5", "provider": "openai"}  # $1.25 and $10 per million tokens, a read $0.125, a write free


@pytest.fixture
def long(library: Library) -> Library:
    for case_id in CASES:
        library.write(f"fixtures/{SKILL}/cases/{case_id}/document.md", f"{case_id} is of 2024.\n{LONG}")
    GitRepository(library.root).commit()
    return library


def _planned(library: Library, *words: str) -> dict[str | None, dict[str, Any]]:
    done = library.call("ci", "plan", SKILL, *words)
    assert done.code == 0, done.err
    return {one["model_id"]: one for one in read(library.root / "plan.json")["forecast"]}


def test_plan_forecasts_cost_with_caching_and_batches(long: Library) -> None:
    long.models(GPT, REPLAY)
    forecast = _planned(long, "--replicates", "10")
    (gpt, all_models) = (forecast["gpt-5"], forecast[None])
    output = 30 * 4096 * 10 / 1e6
    read_again = (gpt["direct_usd"] - output) * 0.9 * 0.9  # nine of ten replicates at a tenth
    assert gpt["cached_usd"] == pytest.approx(gpt["direct_usd"] - read_again)
    assert gpt["batch_usd"] == pytest.approx(gpt["direct_usd"] / 2)
    assert (forecast["recorded"]["direct_usd"], forecast["recorded"]["batch_usd"]) == (0, None)
    assert all_models["batch_usd"] == gpt["batch_usd"]  # the replayed answers cost nothing asked directly
    assert (gpt["calls"], all_models["calls"]) == (30, 60)

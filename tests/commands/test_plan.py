"""`plan` through the command line: what a job of CI is told, the forecast of costs, and `--detect`."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text
from skill_evaluator.ci.plan import sha256_of

from tests.ci.pushed import PushedLibrary
from tests.support.git import IDENTITY, GitRepository
from tests.support.library import CASES, REPLAY, SKILL, Ended, Library, call, read
from tests.support.records import Score, a_run, keep


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


def scattered(spread: float, replicates: int = 5) -> dict[str, list[Score]]:
    return {
        f"case-{at:02d}": [0.5 + spread * (at % 5 - 2) + 0.02 * ((at + 2 * one) % 4) for one in range(replicates)]
        for at in range(12)
    }


@pytest.fixture
def recorded(library: Library) -> Library:
    library.settings(policy={"design": "beside"})
    keep(library, a_run("1.0.0", 1, scattered(0.2)), a_run("1.1.0", 2, scattered(0.05), cost_usd=0.6))
    keep(library, a_run("1.1.0", 3, scattered(0.1, 1), model_id="n"), a_run("1.1.0", 4, scattered(0.3), complete=False))
    return library


def detect(library: Library, drop: str = "0.05", *arguments: str) -> Ended:
    return library.call("ci", "plan", "--detect", drop, *(arguments or (SKILL,)))


def test_detect_says_whether_the_cases_suffice(recorded: Library) -> None:
    found = detect(recorded)
    assert found.code == 0, found.err
    assert f"{SKILL}: cases that detect a drop of 0.05 with 80 % power at α 0.05" in found.out
    assert "m: its 12 cases × 5 detect a drop of about 0.04" in found.out
    assert "3 replicates of these cases would detect 0.05" in found.out
    assert "n: its record has one replicate a case: evaluate with --replicates 2 or more" in found.out
    assert max(map(len, found.out.splitlines())) <= 110
    assert not (recorded.root / "plan.json").exists()


def test_detect_json_validates_against_its_schema(recorded: Library) -> None:
    found = detect(recorded, "0.05", SKILL, "--format", "json").json
    written = json.loads(schema_text("sizing"))
    jsonschema.Draft202012Validator(written).validate(found)
    m, n = found["models"]
    assert (m["run_id"], m["skill_version"], m["cost_per_call_usd"]) == ("20260102T080000Z-abc002-m", "1.1.0", 0.01)
    assert [choice["replicates"] for choice in m["choices"]] == [1, 2, 3, 5, 10, 20]
    assert n["choices"] == []


def test_detect_refuses_invalid_options_in_one_line(recorded: Library) -> None:
    for drop, arguments, says in (
        ("0", (SKILL,), "--detect must be a drop between 0 and 1"),
        ("5", (SKILL,), "--detect must be a drop between 0 and 1, such as 0.05, not 5"),
        ("nan", (SKILL,), "--detect must be a drop between 0 and 1"),
        ("0.05", ("--model", "m"), "--detect takes one component"),
        ("0.05", (SKILL, "other"), "--detect takes one component"),
        ("0.05", ("notice-extractio",), "did you mean 'notice-extraction'?"),
        ("0.05", (SKILL, "--model", "o"), "no run of model 'o'"),
    ):
        assert detect(recorded, drop, *arguments).refuses(says), (drop, arguments)

"""`compare` through the command line: which runs it takes, what it prints, and the exit code the policy asks for."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.library import SKILL, Ended, Library
from tests.support.records import Score, a_run, keep

GOOD: dict[str, list[Score]] = {f"case-{at:02d}": [0.9, 0.92, 0.88, 0.91, 0.9] for at in range(12)}
BAD: dict[str, list[Score]] = {f"case-{at:02d}": [0.4 + 0.01 * (at % 3), 0.42, 0.38, 0.41, 0.4] for at in range(12)}


def compare(library: Library, *arguments: str) -> Ended:
    return library.call("compare", SKILL, *arguments)


def verdict(library: Library, *arguments: str) -> str:
    return str(compare(library, "--format", "json", *arguments).json["verdict"])


def the_id(day: int, model_id: str = "m") -> str:
    return f"202601{day:02d}T080000Z-abc{day:03d}-{model_id}"


@pytest.fixture
def regressed(library: Library) -> Library:
    keep(library, a_run("1.0.0", 1, GOOD), a_run("1.1.0", 2, BAD))
    return library


def test_model_without_the_version_is_skipped_and_named(library: Library) -> None:
    keep(library, a_run("1.0.0", 1, GOOD), a_run("2.0.0", 2, GOOD))
    keep(library, a_run("1.0.0", 3, GOOD, model_id="n"), a_run("2.0.0", 4, BAD, model_id="n"))
    keep(library, a_run("0.9.0", 5, GOOD, model_id="retired"))
    found = compare(library, "--format", "json").json
    runs = {one["model_id"]: (one["baseline"]["run_id"], one["candidate"]["run_id"]) for one in found["models"]}
    assert runs == {"m": (the_id(1), the_id(2)), "n": (the_id(3, "n"), the_id(4, "n"))}
    assert found["left_out"] == {"retired": "no complete run of 2.0.0"}
    assert "retired is skipped: no complete run of 2.0.0" in compare(library).out
    assert compare(library, "--baseline", "0.9.0").refuses("no complete run of version or id '0.9.0' (")
    keep(library, a_run("1.5.0", 6, GOOD))
    assert "there is no complete record of 1.5.0" in compare(library, "--baseline", "1.5.0").out


def test_two_files_need_no_component(regressed: Library, tmp_path: Path) -> None:
    records = regressed.component / "evals" / "records"
    arguments = ("compare", "--baseline", f"{records / the_id(1)}.json", "--candidate", f"{records / the_id(2)}.json")
    found = regressed.call(*arguments, "--config", str(tmp_path / "none"))
    assert found.code == 3
    assert f"{SKILL} 1.1.0: regressed against 1.0.0" in found.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--candidate", "1.1"), "no complete run of 'm' of version or id '1.1' (did you mean '1.1.0'?)"),
        (("--model", "n"), "no run of model 'n' in"),
        (("--fail-on", "regresed"), "unknown verdict 'regresed' for --fail-on (did you mean 'regressed'?)"),
        (("--baseline", "missing.json"), "missing.json does not exist"),
    ],
)
def test_unknown_run_is_refused_with_the_nearest_name(
    regressed: Library, arguments: tuple[str, str], says: str
) -> None:
    assert compare(regressed, *arguments).refuses(says)


def test_compare_is_refused_without_two_runs(library: Library) -> None:
    assert compare(library).refuses(f"evaluate '{SKILL}' first")
    keep(library, a_run("1.0.0", 1, GOOD, complete=False))
    assert compare(library).err.startswith(f"error: {SKILL} with m: no run is complete; 1.0.0: ")
    keep(library, a_run("1.0.0", 2, GOOD), a_run("1.1.0", 3, GOOD))
    assert library.call("compare", "--baseline", "1.0.0").refuses("two files: skill-evaluator compare OLD NEW")
    assert library.call("compare", "old", "new").refuses("OLD NEW (there is no file 'old')")
    record = library.component / "evals" / "records" / f"{the_id(2)}.json"
    assert library.call("compare", str(record)).refuses("is one file; name a second file")
    assert compare(library, "--models", "m", "m").refuses("--models names 'm' twice")
    record.unlink()
    assert compare(library).refuses(f"{the_id(2)}.json does not exist")


def test_policy_of_the_settings_decides_verdict_and_exit_code(regressed: Library) -> None:
    assert compare(regressed).code == 3
    assert compare(regressed, "--fail-on", "inconclusive").code == 0
    regressed.settings(policy={"tolerance": 0.6, "components": {SKILL: {"tolerance": 0.1, "alpha": 0.02}}})
    found = compare(regressed, "--format", "json")
    assert (found.code, found.json["alpha"], found.json["models"][0]["metrics"][0]["tolerance"]) == (3, 0.02, 0.1)


def test_json_validates_against_its_schema(regressed: Library) -> None:
    fields = {"total": dict.fromkeys(GOOD, (5, 5))}
    fallen = {"total": dict.fromkeys(GOOD, (1, 5))}
    keep(regressed, a_run("2.0.0", 3, GOOD, fields=fields, agreement=dict.fromkeys(GOOD, 1.0)))
    keep(regressed, a_run("2.1.0", 4, BAD, fields=fallen, agreement=dict.fromkeys(GOOD, 0.5)))
    keep(regressed, a_run("2.1.0", 5, GOOD, model_id="new"), a_run("1.0.0", 6, GOOD, model_id="old"))
    written = json.loads(schema_text("comparison"))
    found = compare(regressed, "--format", "json").json
    jsonschema.Draft202012Validator(written).validate(found)
    assert {"skill", "verdict", "models"} <= found.keys()
    (model,) = (one for one in found["models"] if one["model_id"] == "m")
    assert {"coverage", "metrics", "fields", "cases", "reasons"} <= model.keys()
    keys = {"metric", "baseline", "candidate", "difference", "ci95", "p", "q", "n_cases", "detectable_drop", "verdict"}
    assert keys <= model["metrics"][0].keys()


TEN = [f"case-{at:02d}" for at in range(10)]


def scores(mean: float, step: float) -> dict[str, list[Score]]:
    """Ten cases of equal mean, each another way from it."""
    return {case: [mean + step * (-1) ** at, mean + step * (at % 3 - 1)] for at, case in enumerate(TEN)}


@pytest.fixture
def three_models(library: Library) -> Library:
    """Two models stay as they are; one falls by so much that it depends on the family whether that is chance."""
    for day, (model_id, mean) in enumerate((("low", 0.69), ("same", 0.80), ("other", 0.79)), 1):
        settings = {"prompt": "p", "schema": "s", "settings": model_id, "datasets": "d"}
        for version, of_version, step in (("1.0.0", 0.8, 0.02), ("1.1.0", mean, 0.07)):
            run = a_run(
                version,
                day + 10 * (version == "1.1.0"),
                scores(of_version, step),
                model_id=model_id,
                digests={**settings, "prompt": version},
            )
            keep(library, run)
    return library


def q_values(result: dict[str, Any]) -> dict[str, list[float]]:
    return {model["model_id"]: [metric["q"] for metric in model["metrics"]] for model in result["models"]}


def test_model_has_the_same_adjusted_p_value_alone(three_models: Library) -> None:
    every = q_values(three_models.call("compare", SKILL, "--format", "json").json)
    alone = three_models.call("compare", SKILL, "--model", "low", "--format", "json").json
    assert q_values(alone) == {"low": every["low"]}


def test_ranked_pair_has_the_same_adjusted_p_value_without_the_third_model(three_models: Library) -> None:
    (every,) = three_models.call("leaderboard", SKILL, "--format", "json").json
    shown = three_models.call("leaderboard", SKILL, "--model", "low", "--model", "same", "--format", "json")
    (two,) = shown.json
    assert [model["model_id"] for model in two["models"]] == ["same", "low"]
    assert two["family"] == every["family"] == 3
    (pair,) = two["pairs"]
    assert pair in every["pairs"]
    assert "Holm over 3 pairs" in three_models.call("leaderboard", SKILL, "--model", "low", "--model", "same").out

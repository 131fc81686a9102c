"""One comparison has one q: the models of a version are one family, whichever of them are shown, and wherever."""

from typing import Any

import pytest

from tests.support.library import SKILL, Library
from tests.support.records import Score, a_run, keep

CASES = [f"case-{at:02d}" for at in range(10)]


def scores(mean: float, step: float) -> dict[str, list[Score]]:
    """Ten cases of equal mean, each another way from it."""
    return {case: [mean + step * (-1) ** at, mean + step * (at % 3 - 1)] for at, case in enumerate(CASES)}


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

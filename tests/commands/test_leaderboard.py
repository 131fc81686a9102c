"""`leaderboard`, `compare --models` and `evaluate --no-prompt`: which model to ship, and what the prompt adds."""

import json

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.chat_server import notice
from tests.support.library import CASES, REPLAY, SKILL, Library
from tests.support.records import Score, a_run, keep

BEST: dict[str, list[Score]] = {f"case-{at:02d}": [0.9, 0.92, 0.88, 0.91, 0.9] for at in range(12)}
WEAK: dict[str, list[Score]] = {f"case-{at:02d}": [0.4 + 0.01 * (at % 3), 0.42, 0.38, 0.41, 0.4] for at in range(12)}


def settings_of(name: str) -> dict[str, object]:
    """What makes a run one of a model: its settings are its own."""
    return {"model_id": name, "digests": {"prompt": "p", "schema": "s", "settings": name, "datasets": "d"}}


@pytest.fixture
def two_models(library: Library) -> Library:
    keep(
        library,
        a_run("1.0.0", 1, BEST, **settings_of("big"), cost_usd=6.0),
        a_run("1.1.0", 2, BEST, **settings_of("big"), cost_usd=6.0),
        a_run("1.0.0", 3, BEST, **settings_of("small"), cost_usd=0.6),
        a_run("1.1.0", 4, WEAK, **settings_of("small"), cost_usd=0.6),
        a_run("1.0.0", 5, WEAK, **settings_of("retired")),
    )
    return library


def test_ranking_has_cost_verdict_and_advice(two_models: Library) -> None:
    (ranking,) = two_models.call("leaderboard", SKILL, "--format", "json").json
    schema = json.loads(schema_text("ranking"))
    jsonschema.Draft202012Validator(schema).validate(ranking)
    big, small = ranking["models"]
    assert (big["model_id"], big["place"], big["like_best"], big["verdict"]) == ("big", 1, True, "unchanged")
    assert (small["model_id"], small["place"], small["like_best"], small["verdict"]) == ("small", 2, False, "regressed")
    assert (big["usd_per_1000_cases"], small["usd_per_1000_cases"]) == (100.0, 10.0)
    assert (big["frontier"], small["frontier"]) == (True, True)
    advice = ranking["advice"]
    assert (advice["version"], advice["model_id"]) == ("1.0.0", "small")
    assert advice["reason"].startswith(
        "1.1.0: regressed against 1.0.0 with small; over all runs of 1.0.0, small is not shown to differ from big"
    )
    assert advice == two_models.call("history", SKILL, "--format", "json").json["advice"]
    assert ranking["left_out"] == {"retired": "no complete run of 1.1.0"}


def test_text_says_what_to_ship(two_models: Library) -> None:
    shown = two_models.call("leaderboard")
    assert shown.code == 0
    assert f"{SKILL} 1.1.0: field_level_f1 of 2 models on the same 12 cases" in shown.out
    advice = next(line for line in shown.out.splitlines() if line.startswith("to ship: 1.0.0 with small (1.1.0: regr"))
    lower = two_models.call("leaderboard", "--version", "1.0.0").out
    assert advice in lower
    assert f"next: compare the two models: `skill-evaluator compare {SKILL} --models big small`" in lower.splitlines()
    assert advice in two_models.call("history", SKILL).out
    assert f"next: compare the two versions: `skill-evaluator compare {SKILL}`" in shown.out.splitlines()
    assert "retired is skipped: no complete run of 1.1.0" in shown.out
    assert two_models.call("leaderboard", SKILL, "--model", "bigg").refuses("(did you mean 'big'?)")


def test_mark_of_the_frontier_is_explained_only_if_a_model_has_it(two_models: Library) -> None:
    assert two_models.call("leaderboard", SKILL).out.count("◆") == 3
    keep(two_models, a_run("1.2.0", 6, BEST, **settings_of("big"), cost_usd=None))
    assert "USD per 1,000 outputs\n" in two_models.call("leaderboard", SKILL).out


def test_version_that_scored_0_in_every_case_is_not_shipped(library: Library) -> None:
    worst = a_run("1.0.0", 1, {"a": [0.0], "b": [0.0]})
    score = worst.accuracy["field_level_f1"].model_copy(update={"strict_mean": 0.0})
    keep(library, worst.model_copy(update={"accuracy": {"field_level_f1": score}}))
    advice = "to ship: no version yet (field_level_f1 is 0 in every case of 1.0.0)"
    for command in ("compare", "leaderboard", "history"):
        shown = library.call(command, SKILL).out
        assert [text in shown for text in (advice, "compare the two versions", " = ◆")] == [True, False, False], shown
    keep(library, a_run("0.5.0", 3, {"a": [1.0], "b": [1.0]}, model_id="other"))
    assert advice.replace("no version yet", "0.5.0 with other") in library.call("history", SKILL).out
    keep(library, a_run("0.9.0", 2, {"a": [1.0], "b": [1.0]}))
    assert "to ship: 0.9.0 with m (1.0.0: " in library.call("history", SKILL).out


def test_two_models_are_compared_like_two_versions(two_models: Library) -> None:
    worse = two_models.call("compare", SKILL, "--models", "big", "small", "--format", "json")
    assert (worse.code, worse.json["verdict"]) == (3, "regressed")
    (model,) = worse.json["models"]
    assert (model["model_id"], model["baseline"]["model_id"]) == ("small", "big")
    assert "the models differ: big and small" in model["reasons"]
    assert "1.1.0 (big) → 1.1.0" in two_models.call("compare", SKILL, "--models", "big", "small").out
    better = two_models.call("compare", SKILL, "--models", "small", "big")
    assert f"{SKILL} 1.1.0 with big: improved against 1.1.0 (small)" in better.out
    equal = two_models.call("compare", SKILL, "--models", "small", "big", "--candidate", "1.0.0")
    assert "0.902 → 0.902" in equal.out


def test_evaluate_of_several_models_ends_with_their_ranking(library: Library) -> None:
    answers = {(case_id, index): notice(case_id) for case_id in CASES for index in range(2)}
    library.record_answers({call: notice("another") for call in answers}, "other.jsonl")
    library.models({**REPLAY, "id": "right"}, {**REPLAY, "id": "wrong", "params": {"file": "other.jsonl"}})
    library.record_answers(answers)
    done = library.call("evaluate", SKILL, "-n", "2", "--format", "json")
    assert [model["model_id"] for model in done.json["ranking"]["models"]] == ["right", "wrong"]
    says = (
        "to ship: 1.0.0 with right (there is no lower version with the same model; right is significantly better than "
        "wrong, by 0.500 (q ≤ 0.027))"
    )
    advice = done.json["ranking"]["advice"]
    assert f"to ship: {advice['version']} with {advice['model_id']} ({advice['reason']})" == says
    assert says in library.call("leaderboard").out
    draft = library.call("try", SKILL, "-n", "2")
    assert "best model: right (significantly better than wrong" in " ".join(draft.out.split())


def test_unmeasured_version_on_disk_is_named_first(two_models: Library) -> None:
    two_models.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.2.0\n---\nExtract.\n")
    said = "1.2.0 on disk is not measured; this is 1.1.0"
    for words in (("compare", SKILL), ("history", SKILL), ("leaderboard",)):
        assert two_models.call(*words).out.splitlines()[0] == said, words
    assert "on disk" not in two_models.call("compare", SKILL, "--candidate", "1.1.0").out
    keep(two_models, a_run("1.2.0", 6, BEST, **settings_of("big")))
    assert "on disk" not in two_models.call("compare", SKILL).out


def test_run_without_the_prompt_is_never_a_baseline(library: Library) -> None:
    assert library.call("evaluate", SKILL, "-n", "2").code == 0
    library.record_answers({(case_id, index): notice("no idea") for case_id in CASES for index in range(2)})
    alone = library.call("evaluate", SKILL, "-n", "2", "--no-prompt", "--format", "json")
    record = alone.json["runs"][0]
    assert record["scenario"] == "without the prompt"
    assert alone.json["comparison"]["models"][0]["baseline"]["scenario"] == "without the prompt"
    (primary,) = (
        one for one in alone.json["comparison"]["models"][0]["metrics"] if one["metric"] == record["primary_metric"]
    )
    assert primary["baseline"] < primary["candidate"] == 1.0
    (ranking,) = library.call("leaderboard", "--format", "json").json
    assert ranking["models"][0]["run_id"] != record["run_id"]
    assert ranking["models"][0]["prompt_adds"]["difference"] == primary["difference"] > 0
    kept = library.call("history", SKILL, "--format", "json").json
    assert [len(model["points"]) for model in kept["models"]] == [1]

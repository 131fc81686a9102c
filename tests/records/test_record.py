"""Records and leaderboard rows: their keys, their files, and strict scores."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel
from skill_evaluator.api.schemas import schema_text
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.components import Component
from skill_evaluator.records import record as formats
from skill_evaluator.records.archive import append_rows
from skill_evaluator.records.record import CheckRecord, Record, Row, read_record, strict_score, write_record

from tests.support.components import FAILED, REFUSED, case, component, record
from tests.support.records import Score, a_record

# The keys that people and scripts read: a change of these is a change of the format.
ROW = {
    *("run_id", "timestamp", "skill", "skill_version", "prompt_commit", "dataset_commit", "model_id", "served_model"),
    *("provider", "replicates", "n_cases", "planned", "scored", "coverage", "complete", "primary_metric", "accuracy"),
    *("reproducibility", "failures", "tokens", "cost_usd", "latency_s", "digests", "evaluator_version", "digest"),
    *("per_case", "scorer_version"),  # of the first scorer a row has none
}
IN_A_ROW_WHERE_IT_SAYS_SOMETHING = {"shard", "scenario", "beside", "stopped"}
IN_A_RECORD_ALONE = {
    *("seed", "per_field", "per_array", "pass_hat_k", "contract", "reasons", "retries", "settings"),
    *("schema_version", "draft", "faults", "calls"),
}
SUMMARY = {"mean", "strict_mean", "stdev", "stdev_cases", "n", "n_cases", "ci95"}
CASE = {"case_id", "accuracy", "reproducibility", "failures"}
TRUTH = {"shop": "A", "total": 9, "items": ["x"]}
R = '{"shop": "A", "total": 9, "items": ["x"]}'
W = '{"shop": "A", "total": 8, "items": []}'
RUN = [
    (case("a", TRUTH), [R, W, FAILED]),
    (case("b", TRUTH), ["no JSON", R, REFUSED]),
    (case("c", labelled=False), [R, R, R]),
]


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    return component(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def kept(skill: Component) -> Record:
    return record(skill, RUN)


def as_json(value: Record | Row) -> Any:
    return json.loads(value.model_dump_json())


def test_row_has_plain_numbers(kept: Record) -> None:
    row = kept.row().as_json()
    assert row.keys() == ROW
    assert all(summary.keys() == {"mean", "strict_mean", "stdev", "n", "ci95"} for summary in row["accuracy"].values())
    assert row["accuracy"]["field_level_f1"]["strict_mean"] == kept.accuracy["field_level_f1"].strict_mean
    assert row["reproducibility"]["pairwise_exact_match"] == kept.reproducibility["pairwise_exact_match"].strict_mean
    assert all(one.keys() == {"case_id", "accuracy", "reproducibility"} for one in row["per_case"])
    first, second, _ = row["per_case"]
    assert first["accuracy"] == {name: score.mean for name, score in kept.per_case[0].accuracy.items()}
    assert second["accuracy"]["field_level_f1"] == 1.0  # the mean over the one replicate that was scored
    assert first["reproducibility"] == kept.per_case[0].reproducibility
    assert row["latency_s"].keys() == {"p50", "p95"}
    assert row["tokens"].keys() == {"input", "output"}
    assert all(digest == kept.digests[name][7:23] for name, digest in row["digests"].items())


def test_record_has_the_keys_of_a_row_and_scores_of_replicates(kept: Record) -> None:
    value = as_json(kept)
    assert value.keys() == (ROW | IN_A_ROW_WHERE_IT_SAYS_SOMETHING | IN_A_RECORD_ALONE) - {"digest"}
    assert value["accuracy"]["field_level_f1"].keys() == SUMMARY
    parts = {"digest", "outcomes", "replicates", "fields", "profile", "arrays", "exact", "amounts"}
    assert all(one.keys() == CASE | parts for one in value["per_case"])
    first = value["per_case"][0]
    assert first["replicates"]["field_level_f1"] == [1.0, 0.4, None]
    assert first["fields"]["total"] == {"right": 1, "n": 2}
    assert first["arrays"] == {"items": {"stability": 0.5, "shortest": 0, "longest": 1}}


def test_record_without_a_schema_has_no_contract(tmp_path: Path) -> None:
    skill = component(tmp_path, schema=None, prompt="---\nname: receipts\nversion: 1.0.0\noutput: text\n---\nSay it.\n")
    assert record(skill, [(case("a", "x"), ["x", "x"])]).contract is None


def test_older_record_without_newer_keys_is_read() -> None:
    path = Path(__file__).parents[1] / "data" / "old" / "record.json"
    written = json.loads(path.read_text())
    assert written.keys().isdisjoint({"per_array", "pass_hat_k", "contract"})
    old = read_record(path)
    assert (old.per_array, old.pass_hat_k, old.contract) == ({}, {}, None)
    assert all(field.profile is None and field.filled is None for field in old.per_field.values())
    assert all((one.profile, one.arrays, one.exact) == ({}, {}, None) for one in old.per_case)
    assert old.model_dump(mode="json", exclude_unset=True) == written


@pytest.mark.parametrize("name", ["record", "leaderboard"])
def test_json_schema_accepts_a_written_file(name: str, skill: Component, kept: Record, tmp_path: Path) -> None:
    append_rows(tmp_path / "leaderboard.json", skill.name, [kept.row()])
    write_record(tmp_path / "record.json", kept)
    value = json.loads((tmp_path / f"{name}.json").read_text())
    schema = json.loads(schema_text(name))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)
    row = value["runs"][0] if name == "leaderboard" else value
    row["coverage"] = "all"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)


def test_record_is_read_as_written(kept: Record, tmp_path: Path) -> None:
    write_record(tmp_path / "records" / "r.json", kept)
    assert read_record(tmp_path / "records" / "r.json") == kept


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, "has schema_version 2, but this evaluator knows 1; upgrade skill-evaluator"),
        ({"schema_version": 0}, "Input should be greater than 0, got 0 at schema_version in"),
        ({"schema_version": "2"}, "is '2'; a whole number is expected"),
        ({"coverage": None}, "Input should be a valid number at coverage in"),
        ({"per_case": [{}]}, "a required key is missing at per_case[0].case_id in"),
    ],
)
def test_invalid_record_is_refused_with_the_reason(kept: Record, tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**as_json(kept), **change}))
    with pytest.raises(LeaderboardError) as caught:
        read_record(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_every_key_of_a_record_is_documented() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "records.md").read_text()
    section = page[page.index("### Every key") : page.index("## `plan.json`")]
    parts = [part for part in vars(formats).values() if isinstance(part, type) and issubclass(part, BaseModel)]
    keys = {key for part in parts for key, field in part.model_fields.items() if not field.validation_alias}
    documented = set(re.findall(r"[a-z_0-9]+", " ".join(re.findall("`[^`]+`", section))))
    assert keys - documented == set()


@pytest.mark.parametrize(
    ("outcome", "score", "strict"),
    [
        ("scored", 0.75, 0.75),
        ("scored", None, None),
        ("unparseable", None, 0.0),
        ("refused", None, 0.0),
        ("truncated", None, 0.0),
        ("provider_error", None, None),
        ("timeout", None, None),
        ("no_credentials", None, None),
        ("over_budget", None, None),
        ("not_run", None, None),
    ],
)
def test_strict_score_of_each_outcome(outcome: str, score: float | None, strict: float | None) -> None:
    assert strict_score(outcome, score) == strict


RUNS: tuple[Score, ...] = (1.0, 1.0, 0.9, "refused", "network")


@pytest.mark.parametrize(
    ("metric", "checks", "passed", "words"),
    [
        ("field_level_f1", {}, [True, True, False, False], "flaky (2 of 4)"),
        ("field_level_f1", {"greets": [1.0, None, None, 0.0, None]}, [True, False, False], "flaky (1 of 3)"),
        ("checks", {"greets": [0.5, 0.49, 1.0, 0.0, None]}, [True, False, True, False], "flaky (2 of 4)"),
        ("checks", {"greets": [1.0] * 4, "closes": [0.0] * 3 + [None]}, [False] * 3, "fails always"),
        ("checks", {"greets": [1.0, 1.0], "thanks (advisory)": [0.0, 0.0]}, [True, True], "passes always"),
        ("checks", {"greets": [1.0, None, None]}, [True], None),
        ("checks", {}, [], None),
    ],
)
def test_output_passes_if_checks_and_ground_truth_hold(
    metric: str, checks: dict[str, list[float | None]], passed: list[bool], words: str | None
) -> None:
    (kept,) = a_record({"a": RUNS}).per_case
    by_id = {
        name: CheckRecord(digest="sha256:0", scores=scores, tier="advisory" if "advisory" in name else None)
        for name, scores in checks.items()
    }
    kept = kept.model_copy(update={"checks": by_id})
    assert kept.passed(metric) == passed
    assert kept.pass_text(metric) == words

"""Judged checks in CI: planned, judged in the job of each run, and collected."""

import json
from pathlib import Path

import pytest
from skill_evaluator.ci.plan import read_plan

from tests.commands.sentences import judging
from tests.support.chat_server import ChatServer
from tests.support.git import git
from tests.support.library import CASES, REPLAY, SKILL, Library
from tests.support.pipeline import Pipeline

RIGHT = "It names the year 2024."
PRICE = {"input": 1.0, "output": 2.0}


@pytest.fixture
def pipeline(tmp_path: Path, server: ChatServer) -> Pipeline:
    """A plan for the recorded model, in two shards; its judge finds one output wrong."""
    pipeline = Pipeline.new(tmp_path)
    library = Library(pipeline.checkout)
    library.models(REPLAY, {"id": "judge", "provider": "openai", "base_url": server.url, "price": PRICE})
    library.settings(jobs={"max_calls": 4}, replicates=2, policy={"judge": {"model": "judge"}})
    checks = [{"contains": "2024"}, {"expect": RIGHT, "id": "right"}]
    library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"checks": checks}]})
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", pipeline.origin.as_uri(), "HEAD:main")
    server.reply = judging(lambda output, *_: "alpha" not in output)
    pipeline.plan("--base", "0" * 40, "--model", "recorded")
    return pipeline


def test_judge_is_planned_with_its_calls_and_cost(pipeline: Pipeline) -> None:
    plan = read_plan(pipeline.plan_file)
    judges = [run.judge for run in plan.runs if run.judge]
    assert {judge.model_id for judge in judges} == {"judge"}
    assert sum(judge.calls for judge in judges) == 3 * 2 * len(CASES)
    assert {one.model_id: one.calls for one in plan.forecast}["judge"] == 3 * 2 * len(CASES)
    assert all(run.cost_upper_usd for run in plan.runs)
    page = pipeline.run("ci", "plan", "--base", "0", "--model", "recorded", "--format", "markdown").out
    assert "| `judge` |" in page.partition("### Judged")[2]


def test_job_judges_its_run_and_collect_takes_the_verdicts(pipeline: Pipeline, server: ChatServer) -> None:
    first, second = read_plan(pipeline.plan_file).runs
    assert pipeline.evaluate(first).code == 0
    assert pipeline.evaluate(second, "--max-calls", "1").code == 4
    assert pipeline.collect().code == 4
    assert pipeline.evaluate(second).code == 0
    asked = server.requests
    assert asked == len(CASES) + 1  # equal outputs are judged once, and one sentence is denied
    assert server.repeated == []
    assert pipeline.collect().code == 0
    assert server.requests == asked
    (record,) = (record for record in pipeline.records().values() if record["complete"])
    scores = {case["case_id"]: case["checks"]["right"]["scores"] for case in record["per_case"]}
    assert scores == {"alpha": [0.0, 0.0], "beta": [1.0, 1.0], "gamma": [1.0, 1.0]}
    assert (record["judged"]["model_id"], record["judged"]["calls"]) == ("judge", asked)


def test_verdict_on_another_text_decides_nothing(pipeline: Pipeline) -> None:
    for run in read_plan(pipeline.plan_file).runs:
        assert pipeline.evaluate(run).code == 0
    for journal in pipeline.artifacts.glob("*/*/judge/*/replicates.jsonl"):
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        journal.write_text("".join(json.dumps({**line, "case_id": "f" * 32}) + "\n" for line in lines))
    assert pipeline.collect().code == 4
    (record,) = pipeline.records().values()
    assert not record["complete"]
    assert record["stopped"].startswith("not judged: ")


def test_judge_counts_only_directly_in_a_run_folder(pipeline: Pipeline) -> None:
    for run in read_plan(pipeline.plan_file).runs:
        assert pipeline.evaluate(run).code == 0
    for judge in list(pipeline.artifacts.glob("*/*/judge")):
        nested = judge.parent / "copy"
        nested.mkdir()
        judge.rename(nested / "judge")
    assert pipeline.collect().code == 4
    (record,) = pipeline.records().values()
    assert record["stopped"].startswith("not judged: ")

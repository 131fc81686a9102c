"""Checks that a judge decides, in CI: planned, asked by the judge's own job once answers are there, and collected."""

import json
from pathlib import Path

import pytest
from skill_evaluator.ci.plan import Plan

from tests.support.chat_server import ChatServer
from tests.support.git import git
from tests.support.library import CASES, REPLAY, SKILL, Ended, Library
from tests.support.pipeline import Pipeline
from tests.support.sentences import judging

JOB = f"{SKILL}@recorded@checks"
RIGHT = "It names the year 2024."
PRICE = {"input": 1.0, "output": 2.0}


@pytest.fixture
def pipeline(tmp_path: Path, server: ChatServer) -> Pipeline:
    """The recorded model was evaluated by the plan's jobs, without the key of its judge, who finds one answer wrong."""
    pipeline = Pipeline.new(tmp_path)
    library = Library(pipeline.checkout)
    library.models(REPLAY, {"id": "judge", "provider": "openai", "base_url": server.url, "price": PRICE})
    library.settings(jobs={"max_calls": 4}, replicates=2, policy={"judge": {"model": "judge"}})
    checks = [{"contains": "2024"}, {"expect": RIGHT, "id": "right"}]
    library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"checks": checks}]})
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", pipeline.origin.as_uri(), "HEAD:main")
    server.reply = judging(lambda output, *_: "alpha" not in output)
    plan = planned(pipeline)
    for entry in plan.entries:
        done = pipeline.evaluate(entry, plan.invocation)
        assert done.code == 0, done.err
    assert server.requests == 0
    return pipeline


def planned(pipeline: Pipeline) -> Plan:
    return pipeline.plan("--base", "0" * 40, "--model", "recorded")


def ask(pipeline: Pipeline, *arguments: str) -> Ended:
    given = (f"--planned={JOB}", f"--plan={pipeline.plan_file}", f"--artifacts={pipeline.artifacts}")
    return pipeline.run("judge", "regression", *given, f"--out={pipeline.artifacts / JOB}", *arguments)


def test_the_judge_has_a_job_with_its_own_key_whose_cost_is_in_the_forecast(pipeline: Pipeline) -> None:
    plan = planned(pipeline)
    (job,) = plan.judgings
    assert (job.id, job.model_id, job.candidate, job.environment) == (JOB, "judge", "recorded", "eval-no-key")
    assert job.calls == 3 * 2 * len(CASES)
    assert {one.model_id: one.calls for one in plan.forecast}["judge"] == job.calls
    assert plan.cost_upper_usd == job.cost_upper_usd > 0
    page = pipeline.run("plan", "--base", "0", "--model", "recorded", "--dry-run", "--format", "markdown").out
    assert "its checks" in page.partition("### Judged afterwards")[2]


def test_what_its_job_says_is_collected_and_a_stopped_one_asks_nothing_twice(
    pipeline: Pipeline, server: ChatServer
) -> None:
    stopped = ask(pipeline, "--max-calls", "2")
    assert (stopped.code, server.requests) == (4, 2)
    assert pipeline.collect().code == 4
    (record,) = pipeline.records().values()
    assert (record["complete"], record["stopped"].startswith("not judged: ")) == (False, True)
    assert ask(pipeline).code == 0
    assert server.requests == len(CASES) + 1  # equal answers are judged once, and one sentence is denied
    assert server.repeated == []
    asked = server.requests
    assert pipeline.collect().code == 0
    assert server.requests == asked
    (record,) = (record for record in pipeline.records().values() if record["complete"])
    scores = {case["case_id"]: case["checks"]["right"]["scores"] for case in record["per_case"]}
    assert scores == {"alpha": [0.0, 0.0], "beta": [1.0, 1.0], "gamma": [1.0, 1.0]}
    assert (record["judged"]["model_id"], record["judged"]["calls"]) == ("judge", asked)


def test_without_the_judge_s_job_a_run_is_not_judged_and_no_other_job_speaks_for_it(pipeline: Pipeline) -> None:
    assert ask(pipeline).code == 0
    (pipeline.artifacts / JOB).rename(pipeline.artifacts / f"{SKILL}@recorded@1of2" / "judged")
    assert pipeline.collect().code == 4
    (record,) = pipeline.records().values()
    assert not record["complete"]
    assert record["accuracy"]["checks"]["strict_mean"] is None


def test_an_answer_of_the_judge_to_a_different_text_decides_nothing(pipeline: Pipeline) -> None:
    assert ask(pipeline).code == 0
    for journal in pipeline.artifacts.glob(f"{JOB}/*/*/replicates.jsonl"):
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        journal.write_text("".join(json.dumps({**line, "case_id": "f" * 32}) + "\n" for line in lines))
    assert pipeline.collect().code == 4
    (record,) = pipeline.records().values()
    assert not record["complete"]

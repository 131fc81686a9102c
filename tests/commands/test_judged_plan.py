"""CI has a judge compare new answers with those that are pinned: planned, asked, collected, and what follows of it."""

import json
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.ci.plan import Plan

from tests.support.git import git
from tests.support.judged import SAME, Short, answer
from tests.support.library import CASES, REPLAY, SKILL, Ended, Library, read
from tests.support.pipeline import Pipeline

PRICE = {"input": 1.0, "output": 2.0, "cache_write": 1.0}
JUDGE = {"id": "judge", "provider": "replay", "params": {"file": "judge.jsonl"}, "price": PRICE}
JOB = f"{SKILL}@recorded@judge"
LOST: Short = ("worse", "high", '"year": 2024', "the year is gone")
SHIP, BLOCK, REVIEW = 0, 3, 4


def judge_says(checkout: Path, findings: Mapping[str, Short | str]) -> None:
    text = json.dumps(answer(findings))
    questions = [f"{case}/{order}" for case in CASES for order in (1, 2)]
    lines = [json.dumps({"case_id": question, "replicate": 0, "text": text}) + "\n" for question in questions]
    (checkout / "judge.jsonl").write_text("".join(lines))


def policy(pipeline: Pipeline, **changed: Any) -> None:
    path = pipeline.checkout / ".evaluator" / "settings.yaml"
    settings = read(path)
    path.write_text(json.dumps({**settings, "policy": {**settings["policy"], **changed}}))


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """The outputs of 1.0.0 are pinned, and the component declares a judge; 1.1.0 is about to be pushed."""
    pipeline = Pipeline.new(tmp_path_factory.mktemp("pinned"))
    library = Library(pipeline.checkout)
    library.models(REPLAY, JUDGE)
    library.settings(
        jobs={"max_calls": 4}, replicates=2, policy={"components": {SKILL: {"judge": "judge"}}, "fail_on": []}
    )
    judge_says(pipeline.checkout, SAME)
    assert pipeline.run("evaluate", SKILL, "--model", "recorded").code == 0
    (run,) = {path.parent.name for path in pipeline.checkout.glob("components/*/evals/results/*/manifest.json")}
    assert pipeline.run("judge", "pin", run).code == 0
    shutil.rmtree(pipeline.checkout / "components" / SKILL / "evals" / "results")
    lost = {(case, index): json.dumps({"title": case, "year": None}) for case in CASES for index in range(2)}
    library.record_answers(lost)
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.1.0\n---\nExtract title, year.\n")
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", pipeline.origin.as_uri(), "HEAD:main")
    return pipeline


@pytest.fixture(scope="module")
def answered(pinned: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """The new version was evaluated; its answers have lost the year."""
    made = pinned.copy(tmp_path_factory.mktemp("answered") / "pipeline")
    plan = planned(made)
    for entry in plan.entries:
        assert made.evaluate(entry, plan.invocation).code == 0
    return made


@pytest.fixture
def waiting(answered: Pipeline, tmp_path: Path) -> Pipeline:
    """The judge is about to be asked."""
    return answered.copy(tmp_path / "waiting")


@pytest.fixture
def pipeline(pinned: Pipeline, tmp_path: Path) -> Pipeline:
    return pinned.copy(tmp_path / "pipeline")


def planned(pipeline: Pipeline, *arguments: str) -> Plan:
    return pipeline.plan("--base", "0" * 40, "--model", "recorded", *arguments)


def ask(pipeline: Pipeline, *arguments: str) -> Ended:
    """The job of the judge, with the arguments that the workflow gives it."""
    given = (f"--planned={JOB}", f"--plan={pipeline.plan_file}", f"--artifacts={pipeline.artifacts}")
    return pipeline.run("judge", "regression", *given, f"--out={pipeline.artifacts / JOB}", *arguments)


def judged(pipeline: Pipeline) -> dict[str, Any]:
    pipeline.collect()
    (one,) = read(pipeline.collected / "outcome.json")["judged"]
    return dict(one)


def report(pipeline: Pipeline) -> Ended:
    return pipeline.run("report", str(pipeline.collected))


def test_a_case_that_is_not_applicable_is_not_compared_and_nobody_need_look_at_it(pipeline: Pipeline) -> None:
    meta = pipeline.checkout / "fixtures" / SKILL / "cases" / "gamma" / "meta.json"
    meta.write_text('{"not_applicable": ["recorded"]}')
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", pipeline.origin.as_uri(), "HEAD:main")
    plan = planned(pipeline)
    assert [judging.calls for judging in plan.judgings] == [2 * (len(CASES) - 1)]
    for entry in plan.entries:
        assert pipeline.evaluate(entry, plan.invocation).code == 0
    assert ask(pipeline).code == SHIP
    results = judged(pipeline)["results"]
    assert (results["ship_decision"], results["left_out"]) == ("ship", {"gamma": "not applicable to the model"})


def test_the_plan_has_a_job_for_the_judge_with_its_own_key_and_counts_its_calls_and_cost(pipeline: Pipeline) -> None:
    plan = planned(pipeline)
    (judging,) = plan.judgings
    assert (judging.id, judging.model_id, judging.candidate) == (JOB, "judge", "recorded")
    assert (judging.environment, judging.calls) == ("eval-replay", 2 * len(CASES))
    evaluations = sum(entry.calls for entry in plan.entries)
    assert plan.calls == evaluations + judging.calls
    assert judging.cost_upper_usd is not None
    assert judging.cost_upper_usd > 2 * len(CASES) * 4096 * 2 / 1e6  # what it may write, and what it reads
    assert plan.cost_upper_usd == judging.cost_upper_usd  # recorded answers cost nothing
    capped = planned(pipeline, "--max-cost", "0.01")
    assert capped.judgings[0].max_cost_usd == pytest.approx(0.01, abs=1e-6)
    page = pipeline.run("plan", "--base", "0", "--model", "recorded", "--dry-run", "--format", "markdown").out
    assert f"`{SKILL}`" in page.partition("### Judged afterwards")[2]


def test_the_page_has_the_judge_s_table_and_a_block_fails_with_3(waiting: Pipeline) -> None:
    judge_says(waiting.checkout, {**SAME, "completeness": LOST})
    assert ask(waiting).code == BLOCK
    one = judged(waiting)
    assert (one["status"], one["reason"], one["results"]["ship_decision"]) == ("judged", "", "block")
    done = report(waiting)
    assert done.code == BLOCK
    assert f"- ■ **blocked** by a judge, worse than the pinned outputs: `{SKILL}` on `recorded`" in done.out
    table = done.out.partition("## Judged beside the pinned outputs")[2]
    assert f"`{SKILL}` | `recorded` | `judge` | block |" in table
    assert "the year is gone" in done.out.partition("judged by `judge`")[2]


@pytest.mark.parametrize(
    ("findings", "code"), [(SAME, SHIP), ({**SAME, "completeness": ("worse", "low", '"year": 2024', "gone")}, REVIEW)]
)
def test_what_ships_fails_nothing_and_what_a_person_must_look_at_fails_with_4(
    findings: Mapping[str, Short | str], code: int, waiting: Pipeline
) -> None:
    judge_says(waiting.checkout, findings)
    assert ask(waiting).code == code
    judged(waiting)
    assert report(waiting).code == code


def test_a_rate_above_the_policy_s_fails_with_3_and_stands_on_the_page_with_its_figures(waiting: Pipeline) -> None:
    judge_says(waiting.checkout, {**SAME, "completeness": ("worse", "low", '"year": 2024', "gone")})
    assert ask(waiting).code == REVIEW
    (file,) = waiting.artifacts.glob(f"{JOB}/*/evaluation_results.json")
    results = read(file)
    figures = {"value": 1.0, "ci95": [0.95, 1.0], "n": 100}
    names = ("sensitivity", "specificity", "same", "informedness")
    row = {"dimension": "completeness", "by_impact": {}, **dict.fromkeys(names, figures)}
    nothing = {"unscored": 0, "ways": [], "control_kinds": [], "severity": {}, "severity_kappa": figures, "sources": 9}
    detection = {
        **nothing,
        "broken": 100,
        "controls": 100,
        "dimensions": [{**row, "trusted": True, "more_pairs": None}],
    }
    judge = {"judge": "judge", "detection": detection, "record": results["judges"][0]["judge"]}
    calibration = {"bar": 0.6, "judging": results["judging"], "judges": [judge]}
    (waiting.checkout / ".evaluator" / "calibration.json").write_text(json.dumps(calibration))
    policy(waiting, judge={"alert_above": {"completeness": 0.1}, "calibration": "calibration.json"})
    assert ask(waiting).code == BLOCK
    (alert,) = judged(waiting)["results"]["alerts"]
    assert (alert["above"], alert["reported"]["value"], alert["calibration"]) == (True, 1.0, results["judging"]["id"])
    done = report(waiting)
    assert done.code == BLOCK
    summary, _, rest = done.out.partition("## Judged beside the pinned outputs")
    assert f"- ■ `{SKILL}` on `recorded`: ALERT: completeness by judge: corrected rate of regressions 1.000" in summary
    assert "reported 1.000, corrected by sensitivity 1.000 of 100 and specificity 1.000 of 100 (calibration" in rest


def test_a_component_declares_what_its_judge_is_asked_about(pipeline: Pipeline) -> None:
    policy(pipeline, components={SKILL: {"judge": {"model": "judge", "preset": "checklist"}}})
    judge_says(pipeline.checkout, {"completeness": "same", "format": "same"})
    plan = planned(pipeline)
    for entry in plan.entries:
        assert pipeline.evaluate(entry, plan.invocation).code == 0
    assert ask(pipeline).code == SHIP
    dimensions = judged(pipeline)["results"]["judges"][0]["dimensions"]
    assert [dimension["dimension"] for dimension in dimensions] == ["completeness", "format"]


def test_the_results_are_made_again_from_the_judge_s_answers_whatever_its_job_says_they_are(waiting: Pipeline) -> None:
    judge_says(waiting.checkout, {**SAME, "completeness": LOST})
    ask(waiting)
    (results,) = waiting.artifacts.glob(f"{JOB}/*/evaluation_results.json")
    results.write_text(json.dumps({**read(results), "ship_decision": "ship"}))
    assert judged(waiting)["results"]["ship_decision"] == "block"


def test_a_judge_s_run_that_is_not_as_planned_is_left_out_and_a_person_must_look(waiting: Pipeline) -> None:
    assert ask(waiting).code == SHIP
    (manifest,) = waiting.artifacts.glob(f"{JOB}/*/runs/*/manifest.json")
    said = read(manifest)
    for field, value in {"seed": 99, "cases": {"alpha/1": "sha256:0"}, "judging": "other"}.items():
        manifest.write_text(json.dumps({**said, field: value}))
        one = judged(waiting)
        assert (one["status"], one["results"]) == ("missing", None)
        assert field in one["reason"]
    assert report(waiting).code == REVIEW


def test_the_job_of_a_judge_cannot_speak_for_the_job_that_answers(waiting: Pipeline) -> None:
    taken = f"{SKILL}@recorded@1of2"
    shutil.move(waiting.artifacts / taken, waiting.artifacts / JOB / "hidden")
    waiting.collect()
    assert waiting.outcome()["recorded"]["status"] == "incomplete"


def test_a_judge_that_stopped_ships_nothing_and_goes_on_without_asking_twice(waiting: Pipeline) -> None:
    stopped = ask(waiting, "--max-calls", "2")
    assert stopped.code == REVIEW
    assert judged(waiting)["results"]["ship_decision"] == "review_required"
    _, _, command = stopped.err.rpartition("to go on where this stopped: skill-evaluator ")
    again = [word for word in shlex.split(command) if word not in ("--max-calls", "2")]
    assert waiting.run(*again).code == SHIP
    assert ask(waiting).code == SHIP  # nothing is left to ask
    (journal,) = waiting.artifacts.glob(f"{JOB}/*/runs/*/replicates.jsonl")
    assert len(journal.read_text().splitlines()) == 2 * len(CASES)
    assert judged(waiting)["results"]["ship_decision"] == "ship"


def test_answers_that_came_later_are_judged_anew(pipeline: Pipeline) -> None:
    plan = planned(pipeline)
    first, second = plan.entries
    pipeline.evaluate(first, plan.invocation)
    assert ask(pipeline).code == REVIEW  # cases without an answer
    pipeline.evaluate(second, plan.invocation)
    done = ask(pipeline)
    assert (done.code, "begun anew" in done.err) == (SHIP, True)
    assert judged(pipeline)["results"]["left_out"] == {}


def test_where_the_judge_s_key_is_missing_a_person_must_look(waiting: Pipeline) -> None:
    (waiting.artifacts / JOB).mkdir()
    (waiting.artifacts / JOB / f"{JOB}.skipped").write_text("no key\n")
    one = judged(waiting)
    assert (one["status"], one["reason"]) == ("skipped", "no key")
    assert report(waiting).code == REVIEW


def test_without_answers_there_is_nothing_to_judge(pipeline: Pipeline) -> None:
    planned(pipeline)
    assert ask(pipeline).code == SHIP
    assert judged(pipeline)["status"] == "unjudged"
    assert report(pipeline).code == SHIP


def test_what_cannot_be_judged_is_said_in_the_plan_and_is_evaluated_all_the_same(pipeline: Pipeline) -> None:
    (file,) = pipeline.checkout.glob("components/*/evals/pinned/*.json")
    text = file.read_text()
    file.unlink()
    plan = planned(pipeline)
    assert (plan.judgings, [one.models for one in plan.unjudged]) == ([], [["recorded"]])
    assert plan.unjudged[0].reason == f"nothing is pinned of '{SKILL}' for recorded: `judge pin RUN` first"
    assert plan.entries
    file.write_text(text.replace("2024", "2025"))
    plan = planned(pipeline)
    assert "is not what was pinned" in plan.faults[0].message
    assert not plan.entries


def test_a_judge_that_models_yaml_does_not_have_is_an_error_of_the_settings(pipeline: Pipeline) -> None:
    Library(pipeline.checkout).settings(policy={"components": {SKILL: {"judge": "judgge"}}})
    done = pipeline.run("plan")
    assert done.code == 2
    assert f"settings.yaml: policy.components.{SKILL}.judge: no model 'judgge' in models.yaml" in done.err
    assert len(done.err.splitlines()) == 1


def test_a_plan_says_by_name_that_it_has_no_such_judging(pipeline: Pipeline) -> None:
    planned(pipeline)
    done = ask(pipeline, "--planned=other@judge")
    assert (done.code, "the plan has no judging 'other@judge'" in done.err) == (2, True)
    assert ask(pipeline, "--judge", "judge").code == 2

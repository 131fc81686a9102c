"""`ci collect`: records from the artifacts of a plan's jobs, with joined shards, missing runs and verdicts."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.records.record import short_digests
from skill_evaluator.reports.ci import plan_page

from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.git import IDENTITY, file_at, git
from tests.support.library import CASES, SKILL, comparable, ended, read, start
from tests.support.pipeline import Pipeline
from tests.support.records import a_record, keep_in

RECORDED, OTHER, SERVED = "recorded", "vendor/other", "served"
SHARDS = (f"{SKILL}@{RECORDED}@1of2", f"{SKILL}@{RECORDED}@2of2")


@pytest.fixture
def pipeline(evaluated: Pipeline, tmp_path: Path) -> Pipeline:
    return evaluated.copy(tmp_path / "pipeline")


def test_merged_shards_equal_the_record_of_one_run(pipeline: Pipeline, tmp_path: Path) -> None:
    done = pipeline.collect("--format", "json")
    assert done.code == 0
    assert done.json["runs"] == list(pipeline.outcome().values())
    for run in done.json["runs"]:
        figures = (run["status"], run["planned"], run["scored"], run["failed"], run["reason"])
        assert figures == ("complete", 6, 6, {}, "")
        assert run["cost_usd"] == pipeline.records()[run["run_id"]]["cost_usd"] == 0.0
    assert git(pipeline.checkout, "status", "--porcelain", "--ignored") == ""
    whole = tmp_path / "whole"
    arguments = ("--replicates", "2", "--results", str(whole), "--no-leaderboard")
    assert pipeline.run("evaluate", SKILL, *arguments).code == 0
    expected = {(record := read(path))["model_id"]: comparable(record) for path in whole.glob("*/record.json")}
    assert {one["model_id"]: comparable(one) for one in pipeline.records().values()} == expected
    assert expected.keys() == {RECORDED, OTHER}
    assert expected[OTHER]["accuracy"]["exact_match"]["mean"] == 0.5


def test_collect_repeated_writes_equal_records(pipeline: Pipeline) -> None:
    pipeline.collect()
    first = {path: path.read_bytes() for path in pipeline.collected.rglob("*.json")}
    pipeline.collect()
    assert {path: path.read_bytes() for path in pipeline.collected.rglob("*.json")} == first


def test_collect_names_artifacts_of_another_plan(pipeline: Pipeline) -> None:
    before = read(pipeline.plan_file)["invocation"]
    pipeline.plan("--base", "0")
    assert pipeline.collect().code == 4
    assert pipeline.outcome()[RECORDED]["reason"].endswith(f"; the folder has runs of other plans: {before}")


def test_missing_shard_makes_an_incomplete_record(pipeline: Pipeline) -> None:
    shutil.rmtree(pipeline.artifacts / SHARDS[1])
    assert pipeline.collect().code == 4
    run = pipeline.outcome()[RECORDED]
    assert (run["status"], run["planned"], run["scored"], run["failed"]) == ("incomplete", 6, 4, {})
    assert run["run_id"].endswith("-recorded-partial4")
    assert run["reason"] == f"no artifact of {SHARDS[1]} arrived"
    record = pipeline.records()[run["run_id"]]
    assert (record["complete"], record["stopped"], record["n_cases"]) == (False, run["reason"], len(CASES))
    assert record["failures"] == {"not_run": 2}
    assert pipeline.outcome()[OTHER]["status"] == "complete"


def test_collect_without_artifacts_reports_every_run_missing(pipeline: Pipeline) -> None:
    shutil.rmtree(pipeline.artifacts)
    pipeline.artifacts.mkdir()
    assert pipeline.collect().code == 4
    assert {run["status"] for run in pipeline.outcome().values()} == {"missing"}
    assert pipeline.records() == {}
    assert pipeline.publish().out == "no record to publish\n"


def test_resumed_job_completes_the_run(pipeline: Pipeline) -> None:
    (journal,) = (pipeline.artifacts / SHARDS[0]).glob("*/replicates.jsonl")
    kept = journal.read_bytes().splitlines(keepends=True)[:1]
    journal.write_bytes(b"".join(kept))
    (journal.parent / "record.json").unlink()
    assert pipeline.collect().code == 4
    assert [run_id for run_id in pipeline.records() if run_id.endswith("-partial3")]
    (entry,) = (entry for entry in read_plan(pipeline.plan_file).runs if entry.id == SHARDS[0])
    assert pipeline.evaluate(entry).code == 0
    assert journal.read_bytes().startswith(kept[0])
    assert pipeline.collect().code == 0
    assert pipeline.outcome()[RECORDED]["status"] == "complete"


def test_collect_takes_no_run_at_another_commit(pipeline: Pipeline) -> None:
    document = f"fixtures/{SKILL}/cases/{CASES[0]}/document.md"
    for path, name in ((document, f"case '{CASES[0]}'"), (f"components/{SKILL}/prompt.md", "prompt")):
        changed = pipeline.checkout / path
        before = changed.read_text()
        changed.write_text(before + "Another line.\n")
        assert pipeline.collect().code == 4
        changed.write_text(before)
        for run in pipeline.outcome().values():
            assert run["status"] == "missing"
            assert run["reason"].startswith(f"not collected: {name} of component '{SKILL}' with ")
        assert pipeline.publish().out == "no record to publish\n"


def test_removed_model_stops_no_other(pipeline: Pipeline) -> None:
    models = pipeline.checkout / ".evaluator" / "models.yaml"
    models.write_text(models.read_text().replace(OTHER, "vendor/renamed"))
    assert pipeline.collect().code == 4
    assert f"model '{OTHER}' is no longer in models.yaml" in pipeline.outcome()[OTHER]["reason"]
    assert pipeline.outcome()[RECORDED]["status"] == "complete"


def test_broken_leaderboard_costs_the_verdict_alone(pipeline: Pipeline) -> None:
    (pipeline.checkout / "components" / SKILL / "leaderboard.json").write_text("<<<<<<< HEAD\n")
    assert pipeline.collect().code == 0
    assert all("no verdict: " in run["reason"] for run in pipeline.outcome().values())
    assert len(pipeline.records()) == 2


def _line(folder: Path, **changed: object) -> None:
    path = folder / "replicates.jsonl"
    first, *others = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), **changed}), *others]) + "\n")


HOSTILE: dict[str, Callable[[Path], None]] = {
    "surrogate": lambda folder: _line(folder, case_id="\udcff", served_model="\ud800", error=7),
    "link": lambda folder: (folder / "record.json").unlink() or (folder / "record.json").symlink_to("/etc/passwd"),
    "name": lambda folder: folder.parent.rename(folder.parent.with_name(os.fsdecode(b"\xff"))) and None,
}


def test_hostile_artifact_stops_no_other_run(evaluated: Pipeline, pipeline: Pipeline) -> None:
    tip = pipeline.tip()
    for name, spoil in HOSTILE.items():
        shutil.rmtree(pipeline.artifacts)
        shutil.copytree(evaluated.artifacts, pipeline.artifacts)
        git(pipeline.origin, "update-ref", "refs/heads/main", tip)
        (folder,) = (pipeline.artifacts / SHARDS[0]).iterdir()
        spoil(folder)
        collected = pipeline.collect()
        assert collected.code in (0, 4), name
        for line in collected.err.splitlines():
            assert (line.startswith(("to make the missing calls: ", "commands that")), line.isprintable()) == (
                True,
                True,
            )
        assert pipeline.outcome()[OTHER]["status"] == "complete", name
        for record in pipeline.records().values():
            assert (record["skill"], record["skill_version"], record["provider"]) == (SKILL, "1.0.0", "replay"), name
            assert (record["scenario"], record["timestamp"][:4] < "9999") == (None, True), name
        reason = pipeline.outcome()[RECORDED]["reason"]
        assert reason.isprintable(), name
        published = pipeline.publish()
        assert (published.code, published.err) == (0, ""), name
        assert OTHER in {row["model_id"] for row in pipeline.rows()}, name


def test_new_version_is_compared_with_the_recorded_version(pipeline: Pipeline) -> None:
    """Here it is recorded on the branch alone: the checkout is of a commit before."""
    pipeline.collect()
    pipeline.publish()
    prompt = pipeline.checkout / "components" / SKILL / "prompt.md"
    prompt.write_text(prompt.read_text().replace("version: 1.0.0", "version: 1.1.0"))
    git(pipeline.checkout, "fetch", "-q")
    git(pipeline.checkout, "commit", "-qam", "bump")
    git(pipeline.checkout, "push", "-q", "--force", "origin", "main:next")
    plan = pipeline.plan(SKILL, "--model", OTHER)
    for entry in plan.runs:
        clone = pipeline.root / "jobs" / entry.id
        git(pipeline.root, "clone", "-q", "-b", "next", str(pipeline.origin), str(clone))
        assert pipeline.evaluate(entry).code == 0
    shutil.rmtree(pipeline.collected)
    assert pipeline.collect("--format", "json").json["verdicts"] == []
    (verdict,) = pipeline.collect("--format", "json", "--recorded", "origin/main").json["verdicts"]
    (model,) = verdict["models"]
    assert (model["baseline"]["skill_version"], model["candidate"]["skill_version"]) == ("1.0.0", "1.1.0")
    assert (model["model_id"], model["metrics"][0]["difference"]) == (OTHER, 0.0)
    shown = pipeline.run("ci", "report", str(pipeline.collected))
    assert f"{verdict['verdict']}, no drop beyond the tolerance (0.05): {SKILL} with " in shown.out


def test_verdicts_are_in_the_order_of_the_plan(pipeline: Pipeline) -> None:
    """Small runs are scored first, here that of the second model."""
    for model_id in (RECORDED, OTHER):
        run_id = f"20251231T000000Z-abcdef-{model_id.replace('/', '-')}"
        before = a_record({"alpha": [1.0]}, skill=SKILL, skill_version="0.9.0", model_id=model_id, run_id=run_id)
        keep_in(pipeline.checkout / "components" / SKILL, before)
    for path in pipeline.artifacts.glob(f"*@{RECORDED}@*/*/replicates.jsonl"):
        path.write_text(path.read_text() + "\n" * 5_000)
    (verdict,) = pipeline.collect("--format", "json").json["verdicts"]
    assert [model["model_id"] for model in verdict["models"]] == [RECORDED, OTHER]


def test_collect_is_refused_without_plan_or_folder(pipeline: Pipeline) -> None:
    shutil.copy(pipeline.plan_file, pipeline.checkout)
    replaced = ("--plan=plan.json", f"--plan-sha256={'0' * 64}")
    for arguments in (("none", "--plan=plan.json"), (".", "--plan=none.json"), (".", *replaced)):
        done = pipeline.run("ci", "collect", *arguments)
        assert (done.code, done.err.count("\n")) == (2, 1), arguments


@pytest.fixture(scope="module")
def beside(standing: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """1.0.0 is recorded on the origin, 1.1.0 was pushed; by the policy each job asked both beside each other."""
    standing.reply = lambda asked: Reply(text=notice(asked.case_id))
    pipeline = Pipeline.new(tmp_path_factory.mktemp("beside"))
    configuration = pipeline.checkout / ".evaluator"
    model = {"id": SERVED, "provider": "openai", "base_url": standing.url}
    (configuration / "models.yaml").write_text(json.dumps({"models": [model]}))
    changed = {**read(configuration / "settings.yaml"), "policy": {"design": "beside"}, "jobs": {"max_calls": 6}}
    (configuration / "settings.yaml").write_text(json.dumps(changed))
    _push_and_ask(pipeline)
    assert (pipeline.collect().code, pipeline.publish().code) == (0, 0)
    git(pipeline.checkout, "pull", "-q", "--rebase", "origin", "main")
    prompt = pipeline.checkout / "components" / SKILL / "prompt.md"
    prompt.write_text(prompt.read_text().replace("version: 1.0.0", "version: 1.1.0") + "Nothing else.\n")
    for folder in (pipeline.artifacts, pipeline.collected, pipeline.root / "jobs"):
        shutil.rmtree(folder)
    pipeline.artifacts.mkdir()
    _push_and_ask(pipeline)
    return pipeline


def _push_and_ask(pipeline: Pipeline) -> None:
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", "origin", "main")
    plan = pipeline.plan(SKILL)
    for entry in plan.runs:
        assert pipeline.evaluate(entry).code == 0


@pytest.fixture
def interleaved(beside: Pipeline, tmp_path: Path) -> Pipeline:
    return beside.copy(tmp_path / "interleaved")


def test_policy_interleaves_the_baseline_in_ci(interleaved: Pipeline) -> None:
    plan = read_plan(interleaved.plan_file)
    first = git(interleaved.checkout, "log", "-2", "--format=%H", "--", f"components/{SKILL}/prompt.md").split()[1]
    assert {(entry.baseline.skill_version, entry.baseline.commit) for entry in plan.runs if entry.baseline} == {
        ("1.0.0", first)
    }
    assert (sum(entry.calls for entry in plan.runs), len(plan.runs), {entry.seed for entry in plan.runs}) == (9, 2, {1})
    assert "interleaved with 1.0.0: 1.5 × the calls`" in plan_page(plan).markdown()
    assert interleaved.collect().code == 0
    new, baseline = sorted(interleaved.records().values(), key=lambda record: record["run_id"])
    assert (new["skill_version"], new["beside"]) == ("1.1.0", baseline["run_id"])
    assert (baseline["skill_version"], baseline["beside"], baseline["shard"]) == ("1.0.0", new["run_id"], None)
    assert (baseline["prompt_commit"], new["scored"], baseline["scored"]) == (first, 6, 3)
    (row,) = interleaved.rows()
    assert short_digests(baseline["digests"]) == row["digests"]
    outcome = read(interleaved.collected / "outcome.json")
    assert [(run["planned"], run["is_baseline"]) for run in outcome["runs"]] == [(6, False), (3, True)]
    ((model,),) = [verdict["models"] for verdict in outcome["verdicts"]]
    assert (model["baseline"]["run_id"], model["candidate"]["run_id"]) == (baseline["run_id"], new["run_id"])
    shown = interleaved.run("ci", "report", str(interleaved.collected)).out
    assert "no lower version is recorded" not in shown
    assert shown.count("| baseline |") == 1
    assert interleaved.publish().code == 0
    assert [row["skill_version"] for row in interleaved.rows()] == ["1.1.0", "1.0.0"]
    path = f"components/{SKILL}/evals/records/{baseline['run_id']}.json"
    assert json.loads(file_at(interleaved.origin, "main", path))["run_id"] == baseline["run_id"]


def test_report_shows_an_output_before_and_after_for_each_lost_field(
    interleaved: Pipeline, standing: ChatServer
) -> None:
    def year_lost(asked: Asked) -> Reply:
        return Reply(text=notice(asked.case_id, 1999 if "Nothing else." in json.dumps(asked.body) else 2024))

    standing.reply = year_lost
    shutil.rmtree(interleaved.artifacts)
    for entry in read_plan(interleaved.plan_file).runs:
        assert interleaved.evaluate(entry).code in (0, 3)
    assert interleaved.collect().code in (0, 3)
    runs = read(interleaved.collected / "outcome.json")["runs"]
    ((lost,),) = (run["lost_values"] for run in runs if "lost_values" in run)
    assert (lost["path"], lost["before"], lost["after"]) == ("year", "2024", "1999")
    shown = interleaved.run("ci", "report", str(interleaved.collected), "--format", "markdown").out
    assert f"| `year` | `{lost['case_id']}` | `2024` | `1999` |" in shown
    assert shown.index("| `year` |") < shown.index("<details>")


def test_job_without_its_baseline_counts_as_incomplete(interleaved: Pipeline) -> None:
    for folder in interleaved.artifacts.glob("*/*@baseline*"):
        shutil.rmtree(folder)
    assert interleaved.collect().code == 4
    outcome = read(interleaved.collected / "outcome.json")
    assert {run["is_baseline"]: run["status"] for run in outcome["runs"]} == {False: "complete", True: "missing"}
    ((model,),) = [verdict["models"] for verdict in outcome["verdicts"]]
    assert "@baseline" not in model["baseline"]["run_id"]
    assert "its interleaved baseline is not complete" in str(model)


def test_collect_refuses_a_version_recorded_with_another_prompt(pipeline: Pipeline, tmp_path: Path) -> None:
    """Its jobs ran while another push was recorded; the next to publish is told before it tries."""
    first = a_record({"alpha": [1.0]}, skill=SKILL, skill_version="1.0.0", run_id="20251231T000000Z-abcdef-m")
    keep_in(pipeline.checkout / "components" / SKILL, first)
    summary = tmp_path / "summary.md"
    summary.touch()
    done = pipeline.collect("--platform=github", GITHUB_STEP_SUMMARY=str(summary))
    assert done.code == 4
    for run in pipeline.outcome().values():
        assert (run["status"], run["run_id"], run["figures"], run["scored"]) == ("refused", None, None, 6)
        assert run["reason"].startswith(f"1.0.0 was recorded with another prompt by run {first.run_id}; raise the ver")
    assert pipeline.records() == {}
    page = summary.read_text()
    assert "- ✕ refused, the version was recorded with another prompt; raise the version: " in page
    assert f"REFUSED; 1.0.0 was recorded with another prompt by run {first.run_id}" in page
    assert (pipeline.publish().code, pipeline.publish().out) == (0, "no record to publish\n")


@pytest.mark.faults
def test_scoring_over_the_time_limit_stops_no_other_run(pipeline: Pipeline) -> None:
    assert pipeline.collect().code == 0
    before, order = pipeline.records(), list(pipeline.outcome())
    for path in pipeline.artifacts.glob(f"*@{RECORDED}@*/*/replicates.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**line, "text": line["text"] + " " * 5_000}) + "\n" for line in lines))
    settings = pipeline.checkout / ".evaluator" / "settings.yaml"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "limits": {"collect_seconds": 1e-6}}))
    places = (str(pipeline.artifacts), f"--plan={pipeline.plan_file}", f"--out={pipeline.collected}")
    with start(pipeline.checkout, "-m", "skill_evaluator", "ci", "collect", *places, env=IDENTITY) as process:
        assert ended(process).code == 4
    after = pipeline.records()
    assert order == list(pipeline.outcome()) == [RECORDED, OTHER]
    by_model = {record["model_id"]: run_id for run_id, record in before.items()}
    assert after[by_model[OTHER]] == before[by_model[OTHER]]
    assert pipeline.outcome()[OTHER]["status"] == "complete"
    assert pipeline.outcome()[RECORDED]["status"] == "missing"  # not one of its answers could be scored
    assert "collect_seconds" in pipeline.outcome()[RECORDED]["reason"]

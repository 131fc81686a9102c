"""The workflow evaluate.yml, run by act: pushes, a dispatch, a dry run, a failed job, a re-run. Off the network."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.text import is_generated

from tests.support.chat_server import notice
from tests.support.library import REPLAY
from tests.workflows.forge import EVALUATE, Forge, with_key

pytestmark = pytest.mark.act

KEYLESS = {"id": "keyless", "provider": "anthropic"}
TORN = {"id": "torn", "provider": "replay", "params": {"file": "torn.jsonl"}}
KEY = {"SERVED_API_KEY": "key-of-the-served-model"}


def test_push_evaluates_bumped_versions_and_records_them_in_one_commit(forge: Forge) -> None:
    for name in ("minor", "patch", "major", "untouched"):
        forge.component(name, "1.0.0")
    forge.library.models(REPLAY, TORN, KEYLESS)
    forge.library.record_answers({("alpha", index): notice("alpha") for index in range(2)}, "torn.jsonl")
    forge.push()
    for name, version in (("minor", "1.1.0"), ("patch", "1.0.1"), ("major", "2.0.0")):
        forge.component(name, version)
    event = forge.push()

    acted = forge.run(event)

    entries = {f"{component}@{model}" for component in ("minor", "major") for model in ("recorded", "torn", "keyless")}
    assert forge.uploaded() == {"plan", "collected", "site", *entries}
    assert acted.steps("Evaluate") == {
        entry: "failure" if entry.endswith("torn") else "success" for entry in entries
    }  # one that fails takes no other with it, and a missing key is no failure
    warnings = [(line["kvPairs"]["title"], line["arg"]) for line in acted.commands("warning")]
    assert sorted(warnings) == [
        (
            f"{component}@keyless was skipped",
            "there is no secret ANTHROPIC_API_KEY",
        )
        for component in ("major", "minor")
    ]
    (files,) = forge.landed(event["after"])
    assert sorted(Path(file).parts[1] for file in files.split()) == ["major"] * 3 + ["minor"] * 3
    for component, version in (("minor", "1.1.0"), ("major", "2.0.0")):
        rows = {row["model_id"]: row for row in forge.rows(component)}
        assert {model: (row["skill_version"], row["complete"]) for model, row in rows.items()} == {
            "recorded": (version, True),
            "torn": (version, False),
        }
    plan, verdict = (line["content"] for line in acted.commands("summary"))
    assert "`PATCH 1.0.0 → 1.0.1; no record" in plan
    assert "1 component untouched" in plan
    assert "6 runs (2 complete, 2 incomplete, 2 skipped); 24 calls planned: 12 scored, 4 failed, 8 not run" in verdict
    (comment,) = forge.world["comments"]
    assert verdict.strip() in comment
    assert {acted.jobs[job] for job in ("plan", "collect", "publish")} == {"success"}


def test_push_of_patches_starts_no_job(forge: Forge) -> None:
    forge.component("patch", "1.0.0")
    forge.push()
    forge.component("patch", "1.0.1")
    event = forge.push()
    acted = forge.run(event)
    assert acted.code == 0
    assert acted.jobs == {"plan": "success"}
    assert forge.uploaded() == {"plan"}
    assert forge.landed(event["after"]) == []
    (plan,) = (line["content"] for line in acted.commands("summary"))
    assert "Nothing to evaluate" in plan


def test_rerun_of_a_dispatch_makes_only_the_missing_calls(forge: Forge) -> None:
    for name in ("one", "other"):
        forge.component(name, "1.0.0", cases=("alpha", "beta", "gamma"))
    forge.library.models(REPLAY, forge.served)
    event = forge.push()
    forge.world["refused"] = {"gamma": "not today"}

    first = forge.dispatch(KEY, components="one", models="served")

    assert forge.uploaded() == {"plan", "one@served", "collected", "site"}
    assert first.steps("Evaluate") == {"one@served": "failure"}
    (row,) = forge.rows("one")
    assert (row["model_id"], row["complete"], row["scored"]) == ("served", False, 4)
    answered = {(case_id, seed) for case_id, seed, _ in forge.world["asked"] if case_id != "gamma"}
    assert len(answered) == 4
    (comment,) = forge.world["comments"]
    assert "INCOMPLETE" in comment

    forge.world["refused"] = {}
    again = forge.rerun_failed_jobs({"ref": "refs/heads/main"}, "workflow_dispatch", KEY)

    assert again.steps("Evaluate") == {"one@served": "success"}
    assert {case_id for case_id, _, _ in forge.world["asked"]} == {"gamma"}
    assert [times for _, _, times in forge.world["asked"]] == [1, 1]
    (run_id,) = (row["run_id"] for row in forge.rows("one") if row["complete"])
    assert {row["run_id"]: row["scored"] for row in forge.rows("one")} == {run_id: 6, f"{run_id}-partial4": 4}
    assert len(forge.landed(event["after"])) == 2
    (comment,) = forge.world["comments"]  # rewritten, not repeated
    assert "INCOMPLETE" not in comment
    everything = [first.log, comment, *(path.read_text() for path in forge.root.rglob("*.json*"))]
    assert not any(KEY["SERVED_API_KEY"] in text for text in everything)


def test_bump_that_cannot_be_evaluated_fails_and_is_named(forge: Forge) -> None:
    for name in ("one", "two", "three"):
        forge.component(name, "1.0.0")
    forge.library.write("components/one/leaderboard.json", {"skill": "one", "schema_version": 2, "runs": []})
    forge.push()
    for name in ("one", "two", "three"):
        forge.component(name, "1.1.0")
    shutil.rmtree(forge.library.root / "fixtures" / "one")
    forge.library.write("components/two/leaderboard.json", "<<<<<<< HEAD\n")
    acted = forge.run(forge.push())
    assert acted.jobs == {
        **dict.fromkeys(("plan", "three@recorded", "collect", "build"), "success"),
        "publish": "failure",
    }
    (comment,) = forge.world["comments"]
    assert "### Not evaluated because of errors" in comment
    assert "components/one/prompt.md" in comment
    assert "components/two/leaderboard.json" in comment
    assert forge.rows("three")[0]["skill_version"] == "1.1.0"

    forge.pull()
    forge.component("two", "1.2.0")
    acted = forge.run(forge.push())
    assert acted.jobs == {"plan": "success", "collect": "success", "build": "success", "publish": "failure"}


def test_push_interleaves_the_baseline_by_the_policy(forge: Forge) -> None:
    forge.component("one", "1.0.0")
    forge.library.models(forge.served)
    forge.library.settings(policy={"design": "beside"})
    assert forge.run(forge.push(), secrets=KEY).code == 0
    forge.git("pull", "--quiet", "--rebase", "origin", "main")
    forge.component("one", "1.1.0")
    event = forge.push()
    acted = forge.run(event, secrets=KEY)
    assert acted.code == 0
    assert acted.steps("Evaluate") == {"one@served": "success"}
    new, recorded = forge.rows("one")
    assert (new["skill_version"], recorded["skill_version"]) == ("1.1.0", "1.0.0")
    (files,) = forge.landed(event["after"])
    assert f"components/one/evals/records/{new['beside']}.json" in files.split()


def test_dry_run_makes_no_call_and_records_nothing(forge: Forge) -> None:
    forge.component("one", "1.0.0")
    forge.library.models(forge.served)
    event = forge.push()
    acted = forge.dispatch(KEY, dry_run="true")
    assert acted.code == 0
    assert acted.jobs == {"plan": "success", "one@served": "success"}
    assert forge.world["asked"] == []
    assert forge.landed(event["after"]) == []


def test_judged_check_runs_in_the_job_of_its_run(forge: Forge) -> None:
    judge = {**forge.served, "id": "judge", "api_key_env": "JUDGE_API_KEY"}
    evaluate = forge.library.root / EVALUATE
    evaluate.write_text(with_key(evaluate.read_text(), "JUDGE_API_KEY"))
    forge.library.models(REPLAY, judge)
    forge.library.settings(replicates=1, policy={"judge": {"model": "judge"}})
    forge.component("one", "1.0.0", cases=("alpha",))
    checks = [{"expect": "It names a year.", "id": "year"}]
    forge.library.write("components/one/evals/datasets.json", {"datasets": [{"checks": checks}]})
    forge.world["refused"] = {"": "the judge is out"}
    acted = forge.run(forge.push(), secrets={"JUDGE_API_KEY": "key-of-the-judge"})
    assert acted.steps("Evaluate") == {"one@recorded": "failure"}
    (row,) = forge.rows("one")
    assert (row["model_id"], row["complete"]) == ("recorded", False)
    assert "not judged" in forge.world["comments"][0]


def test_push_of_a_skill_and_a_prompt_yml_records_both(forge: Forge) -> None:
    skill = "---\nname: pdf\ndescription: d\nversion: {}\n---\nExtract title and year{}.\n"
    evals = [{"id": 1, "prompt": "alpha is a title.", "assertions": [{"type": "contains", "value": "alpha"}]}]
    prompt: dict[str, Any] = {
        "messages": [{"role": "system", "content": "Extract it."}, {"role": "user", "content": "{{input}}"}],
        "testData": [{"input": "beta is a title."}],
        "evaluators": [{"name": "named", "string": {"contains": "beta"}}],
    }
    forge.library.write("skills/pdf/SKILL.md", skill.format("1.0.0", ""))
    forge.library.write("skills/pdf/evals/evals.json", evals)
    forge.library.write("prompts/notice.prompt.yml", prompt)
    forge.library.settings(sources=[{"kind": "skills", "root": "skills"}, {"kind": "prompt_yml", "root": "prompts"}])
    forge.library.models(forge.served)
    forge.push()
    forge.library.write("skills/pdf/SKILL.md", skill.format("1.1.0", ", please"))
    prompt["messages"][0]["content"] = "Extract it, please."
    forge.library.write("prompts/notice.prompt.yml", prompt)
    event = forge.push()
    acted = forge.run(event, secrets=KEY)
    assert acted.steps("Evaluate") == {"pdf@served": "success", "notice@served": "success"}, acted.commands("summary")
    (files,) = forge.landed(event["after"])
    assert all(file.startswith(".evaluator/components/") for file in files.split()), files
    books = {
        name: forge.fetched(f".evaluator/components/{name}/leaderboard.json")["runs"] for name in ("pdf", "notice")
    }
    assert books["pdf"][0]["skill_version"] == "1.1.0"
    assert is_generated(books["notice"][0]["skill_version"])
    assert all(row["complete"] and row["accuracy"]["checks"]["mean"] == 1.0 for (row,) in books.values())
    (comment,) = forge.world["comments"]
    assert "pdf" in comment
    assert "notice" in comment
    assert acted.code == 0

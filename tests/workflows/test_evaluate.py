"""The workflow evaluate.yml, run by act: pushes, a dispatch, a dry run, a failed job, a re-run. Off the network."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.text import is_generated

from tests.support.chat_server import notice
from tests.support.judged import answer
from tests.support.library import REPLAY
from tests.workflows.forge import Forge

pytestmark = pytest.mark.act

KEYLESS = {"id": "keyless", "provider": "anthropic"}
TORN = {"id": "torn", "provider": "replay", "params": {"file": "torn.jsonl"}}
KEY = {"PROVIDER_API_KEY": "key-of-the-served-model"}


def test_a_push_runs_what_was_bumped_and_one_commit_brings_its_records(forge: Forge) -> None:
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
    assert acted.steps("Ask") == {
        entry: "failure" if entry.endswith("torn") else "success" for entry in entries
    }  # one that fails takes no other with it, and a missing key is no failure
    warnings = [(line["kvPairs"]["title"], line["arg"]) for line in acted.commands("warning")]
    assert sorted(warnings) == [
        (
            f"{component}@keyless was skipped",
            "neither the repository has a secret ANTHROPIC_API_KEY, "
            "nor its environment eval-anthropic one PROVIDER_API_KEY",
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
    assert {acted.jobs[job] for job in ("plan", "collect", "publish", "verdict")} == {"success"}


def test_a_push_of_patches_alone_runs_no_evaluation(forge: Forge) -> None:
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


def test_a_dispatch_of_one_component_and_model_and_the_re_run_of_what_failed_ask_nothing_twice(forge: Forge) -> None:
    for name in ("one", "other"):
        forge.component(name, "1.0.0", cases=("alpha", "beta", "gamma"))
    forge.library.models(REPLAY, forge.served)
    event = forge.push()
    forge.world["refused"] = {"gamma": "not today"}

    first = forge.dispatch(KEY, components="one", models="served", reason="A look")

    assert forge.uploaded() == {"plan", "one@served", "collected", "site"}
    assert first.steps("Ask") == {"one@served": "failure"}
    (row,) = forge.rows("one")
    assert (row["model_id"], row["complete"], row["scored"]) == ("served", False, 4)
    answered = {(case_id, seed) for case_id, seed, _ in forge.world["asked"] if case_id != "gamma"}
    assert len(answered) == 4
    (comment,) = forge.world["comments"]
    assert "INCOMPLETE" in comment
    assert "Reason: `A look`" in comment

    forge.world["refused"] = {}
    again = forge.rerun_failed_jobs({"ref": "refs/heads/main"}, "workflow_dispatch", KEY)

    assert again.steps("Ask") == {"one@served": "success"}
    assert {case_id for case_id, _, _ in forge.world["asked"]} == {"gamma"}
    assert [times for _, _, times in forge.world["asked"]] == [1, 1]
    (run_id,) = (row["run_id"] for row in forge.rows("one") if row["complete"])
    assert {row["run_id"]: row["scored"] for row in forge.rows("one")} == {run_id: 6, f"{run_id}-partial4": 4}
    assert len(forge.landed(event["after"])) == 2
    (comment,) = forge.world["comments"]  # rewritten, not repeated
    assert "INCOMPLETE" not in comment
    everything = [first.log, comment, *(path.read_text() for path in forge.root.rglob("*.json*"))]
    assert not any(KEY["PROVIDER_API_KEY"] in text for text in everything)


def test_a_policy_has_a_push_ask_its_baseline_beside_it_though_a_job_s_clone_is_shallow_otherwise(forge: Forge) -> None:
    forge.component("one", "1.0.0")
    forge.library.models(forge.served)
    forge.library.settings(policy={"design": "beside"})
    assert forge.run(forge.push(), secrets=KEY).code == 0
    forge.git("pull", "--quiet", "--rebase", "origin", "main")
    forge.component("one", "1.1.0")
    event = forge.push()
    acted = forge.run(event, secrets=KEY)
    assert acted.code == 0
    assert acted.steps("Ask") == {"one@served": "success"}
    new, recorded = forge.rows("one")
    assert (new["skill_version"], recorded["skill_version"]) == ("1.1.0", "1.0.0")
    (files,) = forge.landed(event["after"])
    assert f"components/one/evals/records/{new['beside']}.json" in files.split()


def test_cases_in_another_repository_are_those_of_one_commit_in_all_jobs_and_it_is_recorded(forge: Forge) -> None:
    forge.library.models(REPLAY, forge.served)
    forge.component("one", "1.0.0")
    commit = forge.fixtures_elsewhere()
    acted = forge.run(forge.push(), secrets={**KEY, "FIXTURES_TOKEN": "token-to-read-fixtures"})
    assert acted.code == 0
    rows = forge.rows("one")
    assert {row["model_id"]: (row["dataset_commit"], row["complete"]) for row in rows} == {
        "recorded": (commit, True),
        "served": (commit, True),
    }
    fetched = acted.steps("Fetch fixtures that are in another repository")
    assert fetched == dict.fromkeys(("plan", "one@recorded", "one@served", "collect", "build"), "success")
    assert "token-to-read-fixtures" not in acted.log


def test_a_dry_run_makes_no_call_and_records_nothing(forge: Forge) -> None:
    forge.component("one", "1.0.0")
    forge.library.models(forge.served)
    event = forge.push()
    acted = forge.dispatch(KEY, dry_run="true")
    assert acted.code == 0
    assert acted.jobs == {"plan": "success", "one@served": "success"}
    assert forge.world["asked"] == []
    assert forge.landed(event["after"]) == []


@pytest.mark.local_model
def test_the_local_model_is_a_job_like_any_other(forge: Forge) -> None:
    forge.library.models(
        {"id": "smollm2-135m-instruct", "provider": "local", "params": {"max_output_tokens": 40, "threads": 2}}
    )
    forge.library.settings(timeout_s=180)  # of a machine that does other things, too
    forge.component("one", "1.0.0", cases=("alpha",))
    acted = forge.run(forge.push())
    assert set(acted.jobs.values()) == {"success"}
    (row,) = forge.rows("one")
    assert (row["model_id"], row["complete"]) == ("smollm2-135m-instruct", True)


def test_a_judge_has_a_job_of_its_own_and_what_it_blocks_fails_the_verdict_with_its_table_in_the_comment(
    forge: Forge,
) -> None:
    judge = {"id": "judge", "provider": "replay", "params": {"file": "judge.jsonl"}}
    forge.library.models(REPLAY, judge)
    forge.library.settings(policy={"components": {"one": {"judge": "judge"}}})
    forge.component("one", "1.0.0")
    forge.library.write("judge.jsonl", "")
    forge.push()
    assert forge.library.call("evaluate", "one", "--model", "recorded", "--no-leaderboard").code == 0
    (folder,) = (path.parent for path in forge.library.root.glob("components/one/evals/results/*/manifest.json"))
    assert forge.library.call("judge", "pin", folder.name).code == 0
    shutil.rmtree(folder.parent)
    lost = {"completeness": ("worse", "high", '"year": 2024', "the year is gone")}
    text = json.dumps(answer({"factuality": "same", **lost, "format_adherence": "same"}))
    questions = [f"{case}/{order}" for case in ("alpha", "beta") for order in (1, 2)]
    lines = [json.dumps({"case_id": question, "replicate": 0, "text": text}) + "\n" for question in questions]
    forge.library.write("judge.jsonl", "".join(lines))
    forge.library.record_answers({(case, 0): f'{{"title": "{case}", "year": null}}' for case in ("alpha", "beta")})
    forge.library.settings(replicates=1, policy={"fail_on": [], "components": {"one": {"judge": "judge"}}})
    forge.component("one", "1.1.0")
    event = forge.push()

    acted = forge.dispatch(components="one", models="recorded")

    assert forge.uploaded() == {"plan", "one@recorded", "one@recorded@judge", "collected", "site"}
    assert acted.steps("Ask") == {
        "one@recorded": "success",
        "one@recorded@judge": "failure",  # exit code 3, as `judge regression` has it
    }
    assert acted.steps("Report") == {"verdict": "failure"}
    assert acted.jobs["collect"] == "success"
    assert len(forge.landed(event["after"])) == 1  # the records are committed either way
    (comment,) = forge.world["comments"]
    assert "**blocked** by a judge, worse than the pinned outputs: `one` on `recorded`" in comment
    assert "| `one` | `recorded` | `judge` | block |" in comment
    assert "the year is gone" in comment


def test_a_push_that_changes_a_skill_and_a_prompt_yml_has_both_planned_asked_and_recorded(forge: Forge) -> None:
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
    assert acted.steps("Ask") == {"pdf@served": "success", "notice@served": "success"}, acted.commands("summary")
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

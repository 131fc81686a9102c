"""A model drafts cases for a component, a person reviews the drafts, and they are evaluated."""

import json
from dataclasses import replace
from itertools import count
from unittest.mock import patch

from skill_evaluator.judges.judge_run import Judged, JudgeSession, JudgeTask
from skill_evaluator.runner.schedule import Budget

from tests.journeys.conftest import SCHEMA, Call, Folder, Vendor, truth, usual

CASES = "components/receipts/evals/cases"
ask = JudgeSession.ask


def test_drafted_cases_are_evaluated_after_a_person_accepts_them(folder: Folder, vendor: Vendor) -> None:
    numbers = count(1)

    def reply(call: Call) -> str:
        if "You write one test case" not in call.prompt:
            return str(usual(call))
        number = next(numbers)
        document = "Acme 9.5" if number == 5 else f"Acme {number}.5"
        right = json.loads(truth(document))
        wrong = {**right, "total": "9.5"} if number == 2 else right
        return f"```json\n{json.dumps({'inputs': {'document': document}, 'ground_truth': wrong})}\n```"

    vendor.reply = reply
    folder.component("receipts", shops=())
    without = folder.here("evaluate", "receipts")
    assert (without.code, "is not evaluated yet: it has no cases" in without.err) == (2, True)
    size = folder.here("cases", "draft", "receipts", "--model", "m", "-n", "4", "--dry-run")
    assert (size.code, "no call was made" in size.out, vendor.bodies) == (0, True, [])

    drafted = folder.run("cases", "draft", "receipts", "--model", "m", "-n", "4")
    assert drafted.code == 0, drafted.err
    assert "3 unreviewed cases of receipts, in fixtures/receipts/cases:" in drafted.out
    assert 'left out: 1 draft: the truth fails components/receipts/schema.json at /total: "9.5" is not' in drafted.out
    assert {body.get("response_format") for body in vendor.bodies} == {None}
    prompts = [body["messages"][0]["content"] for body in vendor.bodies]
    assert sorted(prompt.partition("is of kind ")[2][0] for prompt in prompts) == ["1", "2", "3", "4"]
    assert all(json.dumps(SCHEMA, indent=2) in body["messages"][1]["content"] for body in vendor.bodies)
    linted = folder.here("lint")
    assert (linted.code, "component and 3 unreviewed cases (see" in linted.out) == (0, True), linted.out + linted.err
    assert "is not evaluated yet: 3 cases drafted by a model" in folder.here("evaluate", "receipts").err

    listed = folder.here(*folder.next_step(drafted))
    *folders, last = listed.out.splitlines()
    assert last == "3 unreviewed cases; correct them, then: skill-evaluator review cases receipts --accept ID"
    (first, *_) = (path.rpartition("/")[2] for path in folders)
    folder.write(f"{folders[0]}/document.md", "Crow 7.5")
    folder.write(f"{folders[0]}/ground_truth.json", truth("Crow 7.5"))
    unknown = folder.here("review", "cases", "receipts", "--accept", first, "--accept", "drift-1")
    assert "no unreviewed case of receipts matches 'drift-1' (did you mean 'draft-" in unknown.err
    accepted = folder.here("review", "cases", "receipts", "--accept", first)
    assert accepted.out.splitlines() == [first, "1 case accepted"]
    done = folder.here("evaluate", "receipts")
    assert (done.code, folder.rows("receipts")[0]["n_cases"]) == (0, 1), done.err
    assert {call.document for call in vendor.calls if "test case" not in call.prompt} == {"Crow 7.5"}

    assert folder.here("review", "cases", "receipts", "--accept", "draft-*").out.endswith("2 cases accepted\n")
    more = folder.here("cases", "draft", "receipts", "-m", "m", "-n", "2")
    names = {path.name for path in (folder.root / "fixtures/receipts/cases").iterdir()}
    assert (more.code, len(names), len({*folders})) == (0, 5, 3), more.out


def test_drafts_before_a_failure_are_kept_and_failures_are_named(folder: Folder, vendor: Vendor) -> None:
    folder.component("receipts")
    numbers = count(10)

    def reply(call: Call) -> str:
        vendor.keys["m"] = "withdrawn"
        document = f"Acme {next(numbers)}.5"
        return json.dumps({"inputs": {"document": document}, "ground_truth": json.loads(truth(document))})

    vendor.reply = reply
    cut = folder.here("cases", "draft", "receipts", "--model", "m", "-n", "20")
    kept = list((folder.root / CASES).glob("draft-*/meta.json"))
    assert (cut.code, bool(kept), len(kept) < 20) == (0, True, True), cut.err
    assert "wrong_key" in cut.out
    unusable = folder.here("cases", "draft", "receipts", "--model", "m", "-n", "2")
    assert (unusable.code, "m drafted no case that can be used: " in unusable.err) == (4, True)

    folder.prompt("quiz", prompt="Answer.", front="output: choice\n")
    folder.prompt("script", prompt="It reads receipts.", front="program: {run: [cat], watch: [app.py]}\n")
    folder.write("components/script/app.py", "")
    for name, why in (
        ("quiz", "'quiz' has multiple-choice questions"),
        ("script", "component 'script' is a program: there is no prompt to"),
    ):
        refused = folder.here("cases", "draft", name, "--model", "m")
        assert (refused.code, why in refused.err) == (2, True), refused.err


def test_drafts_of_a_killed_command_are_written_by_the_next_one(folder: Folder, vendor: Vendor) -> None:
    folder.component("receipts")
    numbers = count(10)

    def reply(call: Call) -> str:
        document = f"Acme {next(numbers)}.5"
        return json.dumps({"inputs": {"document": document}, "ground_truth": json.loads(truth(document))})

    vendor.reply = reply
    words = ("cases", "draft", "receipts", "--model", "m", "-n", "4")
    with patch.object(JudgeSession, "ask", _killed_after_one_call):
        assert folder.here(*words).code == 130
    assert (len(vendor.bodies), list((folder.root / CASES).glob("draft-*"))) == (1, [])
    drafted = folder.here(*words)
    assert "its drafts were not written" in drafted.err
    assert (len(vendor.bodies), len(list((folder.root / CASES).glob("draft-*/meta.json")))) == (4, 4), drafted.err
    assert "its drafts were not written" not in folder.here(*words).err


def _killed_after_one_call(session: JudgeSession, task: JudgeTask) -> Judged:
    ask(replace(session, budget=Budget(max_calls=1)), task)
    raise KeyboardInterrupt

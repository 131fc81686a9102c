"""The main stories of users: exit codes, verdicts and printed next steps."""

import json
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from skill_evaluator.api import Library
from skill_evaluator.ci.plan import read_plan

from tests.journeys.conftest import COMMAND, KEYS, PROMPT, Folder, Vendor, truth
from tests.judges.review.reviews import label_queue
from tests.support.asked_judges import answer, written
from tests.support.git import IDENTITY, bare_copy
from tests.support.library import SCRIPT, call, ended, start, wait_until
from tests.support.pipeline import Pipeline
from tests.support.rubrics import some_criterion

CARELESS = f"{PROMPT} Do it carelessly."


def last_lines(text: str, count: int = 6) -> str:
    return "\n".join(text.splitlines()[-count:])


def test_csv_file_becomes_cases_that_are_evaluated_and_compared(folder: Folder) -> None:
    folder.prompt("receipts")
    folder.write("receipts.csv", "text,shop,total\nAcme 1.5,Acme,1.5\nBell 2.5,Bell,2.5\nCrow 3.5,Crow,3.5\n")
    words = ["cases", "import", "receipts.csv", "--input", "text", "--truth", "shop", "--truth", "total", "--yes"]
    imported = folder.here(*words)
    assert (imported.code, imported.out.splitlines()[-1]) == (0, "written"), imported.err
    first = folder.run("evaluate", "receipts")
    (row,) = folder.rows("receipts")
    assert (first.code, row["complete"], row["accuracy"]["exact_match"]["strict_mean"]) == (0, True, 1.0), first.err
    alone = folder.here("compare", "receipts")
    assert "receipts 1.0.0: nothing to compare with yet" in last_lines(alone.out)
    assert folder.next_step(first) == folder.next_step(alone) == ["try", "receipts"]
    folder.commit()

    folder.prompt("receipts", prompt=CARELESS)
    tried = folder.here("try", "receipts")
    assert (tried.code, len(folder.rows("receipts"))) == (3, 1)
    assert "receipts 1.0.0 (draft): regressed" in last_lines(tried.out)
    folder.prompt("receipts", "1.1.0", CARELESS)
    assert folder.here("evaluate", "receipts").code == 3
    compared = folder.here("compare", "receipts")
    assert compared.code == 3
    assert "receipts 1.1.0: regressed" in last_lines(compared.out)
    explained = folder.here(*folder.next_step(compared))
    assert explained.code == 0, explained.err
    assert "total" in explained.out
    built = folder.here("site", "build")
    assert (built.code, (folder.root / "site" / "index.html").is_file()) == (0, True), built.err


def test_printed_command_evaluates_the_whole_adopted_library(folder: Folder, vendor: Vendor) -> None:
    for name in ("receipts", "bills"):
        folder.component(name)
    shutil.rmtree(folder.root / ".evaluator")
    folder.commit()
    adopted = folder.here("init", "--adopt", "--yes")
    assert adopted.code == 0, adopted.err
    folder.models(vendor.model("m"))
    (line,) = (line for line in adopted.out.splitlines() if line.startswith("Next: "))
    words = line.partition("skill-evaluator ")[2].split()
    assert words[0] == "evaluate"
    assert "local model" in adopted.out
    done = folder.run(*words, "--replicates", "1")
    assert done.code == 0, done.err
    assert "not set" not in done.err
    assert [line.split()[0] for line in done.out.splitlines()[1:3]] == ["bills", "receipts"]
    assert folder.here("doctor").out.count(KEYS["FIRST_KEY"]) == 0


def test_components_are_evaluated_all_by_pattern_or_if_changed(folder: Folder) -> None:
    for name in ("invoices", "receipts"):
        folder.component(name)
    folder.commit()
    every = folder.run("evaluate", "--yes")
    assert (every.code, len(folder.rows("invoices")), len(folder.rows("receipts"))) == (0, 1, 1), every.err
    some = folder.here("evaluate", "inv*", "--yes")
    assert (some.code, len(folder.rows("invoices")), len(folder.rows("receipts"))) == (0, 2, 1), some.err
    folder.commit()
    folder.git("checkout", "-q", "-b", "work")
    folder.prompt("receipts", "1.1.0", f"{PROMPT} Be exact.")
    folder.commit()
    changed = folder.here("evaluate", "--changed", "--yes")
    assert (changed.code, len(folder.rows("invoices")), len(folder.rows("receipts"))) == (0, 2, 2), changed.err
    assert not [done.err for done in (every, some, changed) if "not set" in done.err]


def test_model_without_key_is_skipped_and_with_key_is_ranked(folder: Folder, vendor: Vendor) -> None:
    folder.models(vendor.model("first"), vendor.model("second", "SECOND_KEY"))
    folder.component("receipts")
    one_key = folder.run("evaluate", "receipts", keys={"FIRST_KEY": KEYS["FIRST_KEY"]})
    assert (one_key.code, [row["model_id"] for row in folder.rows("receipts")]) == (0, ["first"])
    assert "skipping second: SECOND_KEY is not set" in one_key.err
    both = folder.here("evaluate", "receipts")
    assert both.code == 0, both.err
    ranked = folder.here("leaderboard", "receipts")
    assert "receipts 1.0.0: field_level_f1 of 2 models on the same 3 cases" in ranked.out
    no_key = folder.here("evaluate", "receipts", keys={})
    assert no_key.code == 2
    assert last_lines(no_key.err, 1).startswith("error: no model can run")


def test_component_that_scores_0_does_not_stop_other_components(folder: Folder, vendor: Vendor) -> None:
    """The component has free text, and no output equals the expected text."""
    folder.models(vendor.model("first"), vendor.model("second", "SECOND_KEY"))
    folder.component("receipts")
    folder.prompt("letters", prompt="Write a letter on this receipt.", front="output: text\n")
    text = "Dear customer, thank you for your visit to the shop on Monday. We hope to see you again in the spring. "
    for shop in ("Acme", "Bell"):
        folder.write(f"components/letters/evals/cases/{shop.lower()}/input.md", f"{shop} 1.5")
        folder.write(f"components/letters/evals/cases/{shop.lower()}/expected.md", f"{text * 2}Yours, {shop}")
    vendor.reply = lambda call: "Hello, thanks for all." if "letter" in call.prompt else truth(call.document)
    for run in (folder.run, folder.here):
        done = run("evaluate", "--yes", "--replicates", "1")
        assert (done.code, "Traceback" in done.err) == (0, False), done.err
    assert len(folder.rows("letters")) == len(folder.rows("receipts")) == 4
    ranked, built = folder.here("leaderboard"), folder.here("site", "build")
    assert (ranked.code, built.code) == (0, 0), ranked.err + built.err
    assert "letters 1.0.0: " in ranked.out
    assert "receipts 1.0.0: field_level_f1 of 2 models on the same 3 cases" in ranked.out


def test_interrupted_run_is_resumed_without_paying_a_call_twice(folder: Folder, vendor: Vendor) -> None:
    folder.component("receipts")
    vendor.delay_s = 0.5
    environment = {**KEYS, "PYTHONPATH": str(SCRIPT.parent)}
    words = ("evaluate", "receipts", "--replicates", "4", "--concurrency", "2")
    with start(folder.root, COMMAND, *words, env=environment) as process:
        wait_until(lambda: vendor.calls.total() >= 3, seconds=90)
        process.send_signal(signal.SIGINT)
        stopped = ended(process)
    assert (stopped.code, vendor.calls.total() < 12) == (4, True), stopped.err
    vendor.delay_s = 0.0
    limited = folder.here(*folder.next_step(stopped), "--max-calls", "1")
    assert limited.code == 4, limited.err
    resumed = folder.here(*folder.next_step(limited))
    assert (resumed.code, folder.rows("receipts")[0]["complete"]) == (0, True), resumed.err
    assert set(vendor.calls.values()) == {1}
    assert len(vendor.calls) == 12


class _KeyedPipeline(Pipeline):
    def run(self, *arguments: str, folder: Path | None = None, **env: str) -> Any:
        return call(folder or self.checkout, *arguments, env={**IDENTITY, **KEYS, **env})


def test_ci_plans_evaluates_collects_and_reports_a_new_version(folder: Folder, tmp_path: Path) -> None:
    pipeline = _KeyedPipeline(tmp_path)
    pipeline.checkout = folder.root
    pipeline.artifacts.mkdir()
    for name in ("bills", "receipts"):
        folder.component(name)
    base = folder.commit()
    bare_copy(folder.root, pipeline.origin)
    folder.prompt("receipts", "1.1.0", CARELESS)
    folder.commit()
    folder.git("push", "-q", "origin", "main")
    planned = folder.here("ci", "plan", "--base", base, "--out", str(pipeline.plan_file))
    assert planned.code == 0, planned.err
    plan = read_plan(pipeline.plan_file)
    assert {entry.skill for entry in plan.runs} == {"receipts"}
    for entry in plan.runs:
        job = pipeline.evaluate(entry)
        assert job.code in (0, 3), job.err
    collected = folder.here(
        "ci", "collect", str(pipeline.artifacts), f"--plan={pipeline.plan_file}", f"--out={pipeline.collected}"
    )
    assert (collected.code, pipeline.outcome()["m"]["status"]) == (0, "complete"), collected.err
    reported = folder.here("ci", "report", str(pipeline.collected))
    assert (reported.code, "receipts" in reported.out) in ((0, True), (3, True)), reported.err


def test_python_library_is_used_three_times_in_one_process(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.component("receipts")
    monkeypatch.chdir(folder.root)
    with patch.dict(os.environ, {**KEYS, "NO_PROXY": "127.0.0.1"}):
        before = dict(os.environ), Path.cwd()
        library = Library()
        estimate = library.dry_run("receipts", replicates=1)
        assert sum(each.calls for each in estimate.estimates) == 3
        runs = [library.evaluate("receipts", replicates=1).finished[0].record for _ in range(2)]
        assert (dict(os.environ), Path.cwd()) == before
    assert [(run.complete, run.accuracy["exact_match"].strict_mean) for run in runs] == [(True, 1.0)] * 2
    assert [ranking.models[0].model_id for ranking in library.leaderboard()] == ["m"]


def test_judge_scores_outputs_and_a_person_labels_unsure_scores(folder: Folder, vendor: Vendor) -> None:
    folder.write("rubric.yaml", json.dumps({"criteria": [some_criterion()]}))
    items: list[Mapping[str, str]] = [{"id": "a", "output": "Totals: 12."}, {"id": "b", "output": "Totals: 13."}]
    folder.write("items.jsonl", "".join(json.dumps(item) + "\n" for item in items))
    vendor.reply = lambda call: answer(totals=written(3, evidence=["Totals"], confidence=0.3))
    judged = folder.run("judge", "score", "rubric.yaml", "--items", "items.jsonl", "--judge", "m", "--review")
    assert judged.code in (0, 4), judged.err
    assert vendor.calls.total() >= 2
    label_queue(folder.root, totals="3")
    exported = folder.here("review", "export", "--labels", "labels.jsonl")
    assert exported.code == 0, exported.err
    assert "2 labels in labels.jsonl" in exported.out

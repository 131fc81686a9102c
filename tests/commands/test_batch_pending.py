"""Batches that one job of CI submits and another collects: nothing but a committed file goes from one to the other."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.ci.pending import parse_pending
from skill_evaluator.ci.plan import Plan
from skill_evaluator.files import json_text

from tests.support.batch_server import INPUT_TOKENS, OUTPUT_TOKENS, BatchServer, End
from tests.support.batched import batches  # noqa: F401
from tests.support.git import file_at, git
from tests.support.library import CASES, SCRIPT, SKILL, Ended, Library, read, start, wait_until
from tests.support.pipeline import Pipeline

CALLS = len(CASES) * 2
COST = (INPUT_TOKENS * 3 + OUTPUT_TOKENS * 15) / 1e6 / 2
KEY = {"SERVED_API_KEY": "key-0123456789abcdef"}


class BatchPipeline(Pipeline):
    """A pipeline with a model behind a batch API, `served`; its jobs leave artifacts, and nothing else survives."""

    def start(self, server: BatchServer, vendor: str = "openai", **settings: Any) -> None:
        library = Library(self.checkout)
        address = {"provider": vendor, "base_url": server.base_url(vendor), "api_key_env": "SERVED_API_KEY"}
        library.models({"id": "served", "api_id": f"{vendor}-model", **address, "price": {"input": 3, "output": 15}})
        library.settings(timeout_s=1, **settings)
        self.push()

    def push(self) -> None:
        """Commit what changed in the checkout, on top of what was published, and push it."""
        git(self.checkout, "fetch", "-q", "origin")
        git(self.checkout, "add", "-A")
        git(self.checkout, "commit", "-q", "--allow-empty", "-m", "change")
        git(self.checkout, "rebase", "-q", "origin/main")
        git(self.checkout, "push", "-q", "origin", "HEAD:main")

    def jobs(self, plan: Plan, *arguments: str) -> list[Ended]:
        """Run the jobs of a plan, each in a checkout of its own."""
        ran = []
        for entry in plan.entries:
            clone = self.root / "jobs" / entry.id
            shutil.rmtree(clone, ignore_errors=True)
            git(self.root, "clone", "-q", "--no-checkout", str(self.origin), str(clone))
            git(clone, "checkout", "-q", str(plan.head))
            results = self.artifacts / entry.id
            if plan.pending:
                words = ["collect", "--batches", f"--planned={entry.id}", f"--plan={self.plan_file}", str(results)]
            else:
                shard = [f"--shard={entry.shard}"] if entry.shard else []
                beside = ["--with-baseline", f"--baseline-commit={entry.baseline.commit}"] if entry.baseline else []
                batch = ["--batch", "--submit-only"] if entry.transport == "batch" else []
                words = ["evaluate", f"--model={entry.model_id}", f"--seed={entry.seed}", f"--results={results}"]
                words += [*shard, *beside, *batch, f"--invocation={plan.invocation}", "--", entry.skill]
            ran.append(self.run(*words, folder=clone, **KEY))
        return ran

    def finish(self, plan: Plan, *publish: str) -> str | None:
        """Collect and publish as the last job does; return the commit it made."""
        shutil.rmtree(self.collected, ignore_errors=True)
        git(self.checkout, "checkout", "-q", str(plan.head))
        try:
            done = self.collect("--recorded=origin/main", "--recorded=origin/skill-evaluator-records")
            assert done.code in (0, 4), done.err
        finally:
            git(self.checkout, "checkout", "-q", "main")
        done = self.publish(*publish, "--format=json")
        assert done.code == 0, done.err
        git(self.checkout, "fetch", "-q", "origin")
        commit: str | None = done.json["commit"]
        return commit

    def submit(self, *arguments: str) -> Plan:
        """Plan in batches and have the jobs submit them."""
        plan = self.plan("--batch", *arguments)
        for ran in self.jobs(plan):
            assert ran.code == 0, ran.err
        return plan

    def take(self, *publish: str, code: int = 0) -> tuple[Plan, str | None]:
        """Do as a later run of CI on another machine: find what is pending, collect it, publish it."""
        shutil.rmtree(self.artifacts)
        self.artifacts.mkdir()
        (invocation,) = {path.rpartition("/")[2][:23] for path in self.pending(*publish)}
        plan = self.left(invocation)
        assert [ran.code for ran in self.jobs(plan)] == [code] * len(plan.entries)
        return plan, self.finish(plan, *publish)

    def left(self, invocation: str) -> Plan:
        refs = ("--recorded=origin/main", "--recorded=origin/skill-evaluator-records")
        return self.plan(f"--pending={invocation}", *refs)

    def pending(self, *publish: str) -> list[str]:
        """The pending files on the branch that is published to."""
        branch = "main" if not publish else "skill-evaluator-records"
        files = git(self.origin, "ls-tree", "-r", "--name-only", branch).split()
        return [path for path in files if "/evals/pending/" in path]

    def changed(self, commit: str | None) -> list[str]:
        """How one commit changed which files."""
        lines = git(self.origin, "show", "--format=", "--name-status", str(commit)).splitlines()
        return sorted(f"{line.split()[0]} {Path(line.split()[1]).parent.name}" for line in lines)


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> BatchPipeline:
    return BatchPipeline.new(tmp_path_factory.mktemp("laid-out"))


@pytest.fixture
def pipeline(laid_out: BatchPipeline, tmp_path: Path) -> BatchPipeline:
    return laid_out.copy(tmp_path / "pipeline")


def test_one_run_submits_another_collects_and_the_commit_with_the_record_removes_the_pending_file(
    pipeline: BatchPipeline, server: BatchServer
) -> None:
    pipeline.start(server)
    plan = pipeline.submit()
    commit = pipeline.finish(plan)
    assert pipeline.changed(commit) == ["A pending"]
    (path,) = pipeline.pending()
    content = file_at(pipeline.origin, "main", path)
    assert "is the title" not in content
    assert len(content) < 3000
    assert pipeline.outcome()["served"]["status"] == "pending"

    server.held = True
    _, unchanged = pipeline.take()
    assert (unchanged, pipeline.pending()) == (None, [path])
    assert "1 batch at the vendor since" in pipeline.outcome()["served"]["reason"]

    server.held = False
    _, commit = pipeline.take()
    assert pipeline.changed(commit) == [f"A {SKILL}", "A records", "D pending"]
    (row,) = pipeline.rows()
    assert (row["run_id"], row["scored"], row["complete"]) == (Path(path).stem, CALLS, True)
    assert server.submitted == dict.fromkeys(CASES, 2)
    assert pipeline.left(plan.invocation).entries == []


def test_a_push_says_which_batches_nobody_has_collected(pipeline: BatchPipeline, server: BatchServer) -> None:
    pipeline.start(server)
    pipeline.finish(pipeline.submit())
    (path,) = pipeline.pending()
    pipeline.push()
    assert pipeline.plan("--base=HEAD~1").faults == []
    file = pipeline.checkout / path
    pending = read(file)
    pending["pending"][0]["batches"][0]["at"] = "2026-03-01T08:00:00Z"
    file.write_text(json_text(pending))
    pipeline.push()
    (fault,) = pipeline.plan("--base=HEAD~1").faults
    assert fault.file == path
    assert fault.message == (
        "1 batch at the vendor since 2026-03-01T08:00:00Z and not collected: start Actions → Batches → Run workflow"
    )


@pytest.mark.faults
@pytest.mark.parametrize("vendor", ["anthropic", "google"])
def test_a_batch_whose_id_never_came_back_is_found_by_the_run_that_collects(
    pipeline: BatchPipeline, server: BatchServer, vendor: str
) -> None:
    pipeline.start(server, vendor)
    server.lost_replies = 1
    plan = pipeline.submit()
    pipeline.finish(plan)
    (run,) = parse_pending(
        file_at(pipeline.origin, "main", pipeline.pending()[0]).encode(), Path(pipeline.pending()[0])
    ).pending
    assert [batch.id for batch in run.batches] == [None]
    pipeline.take()
    assert (pipeline.rows()[0]["complete"], pipeline.pending()) == (True, [])
    assert server.submitted == dict.fromkeys(CASES, 2)


@pytest.mark.faults
def test_a_batch_outlives_a_job_that_is_killed_as_it_submits_and_one_that_ends_before_it_publishes(
    pipeline: BatchPipeline, server: BatchServer
) -> None:
    pipeline.start(server)
    plan = pipeline.plan("--batch")
    (entry,) = plan.entries
    words = (f"--results={pipeline.artifacts / entry.id}", f"--invocation={plan.invocation}", "--seed=0")
    with start(pipeline.checkout, str(SCRIPT), SKILL, "--batch", "--submit-only", *words, env=KEY) as process:
        wait_until(lambda: bool(server.batches))
        process.kill()
    pipeline.finish(plan)
    pipeline.jobs(pipeline.left(plan.invocation))  # and is ended before it publishes
    pipeline.take()
    assert ([row["complete"] for row in pipeline.rows()], pipeline.pending()) == ([True], [])
    assert server.submitted == dict.fromkeys(CASES, 2)


@pytest.mark.faults
def test_what_goes_again_in_a_new_batch_is_noted_by_the_run_that_sent_it(
    pipeline: BatchPipeline, server: BatchServer
) -> None:
    pipeline.start(server, batch={"delete_results": True})
    server.outcome = lambda case_id, times: "overloaded" if (case_id, times) == ("beta", 2) else "answered"
    pipeline.finish(pipeline.submit())
    server.polls = 2  # the second batch is still at the vendor when the first is taken
    pipeline.take()
    _, commit = pipeline.take()
    assert pipeline.changed(commit) == ["M pending"]
    assert server.submitted == {"alpha": 2, "beta": 4, "gamma": 2}
    server.polls = 1
    pipeline.take()
    (row,) = pipeline.rows()
    assert (row["complete"], row["scored"], pipeline.pending()) == (True, CALLS, [])
    assert row["cost_usd"] == pytest.approx(CALLS * COST)
    assert server.deleted == []  # else a run that is ended before it publishes would lose what was paid for


@pytest.mark.faults
def test_a_run_that_brought_no_answer_is_not_looked_for_again(pipeline: BatchPipeline, server: BatchServer) -> None:
    pipeline.start(server)
    pipeline.finish(pipeline.submit())
    server.ends = lambda batch: End(state="expired")
    server.outcome = lambda case_id, times: "expired"
    _, commit = pipeline.take(code=4)
    assert pipeline.changed(commit) == ["D pending"]
    assert pipeline.outcome()["served"]["status"] == "missing"


def test_a_run_is_given_up_by_a_commit_without_its_pending_file(pipeline: BatchPipeline, server: BatchServer) -> None:
    pipeline.start(server)
    plan = pipeline.submit()
    pipeline.finish(plan)
    pipeline.push()
    (path,) = pipeline.pending()
    given_up = pipeline.run("collect", "--batches", f"--abandon={Path(path).stem}")
    assert (given_up.code, given_up.err) == (0, f"{path} is removed; commit that to give the run up in CI\n")
    pipeline.push()
    assert (pipeline.pending(), pipeline.left(plan.invocation).entries) == ([], [])


def test_the_next_push_does_not_ask_again_what_is_at_the_vendor_and_what_it_brings_changes_nothing_there(
    pipeline: BatchPipeline, server: BatchServer
) -> None:
    pipeline.start(server)
    first = pipeline.submit()
    pipeline.finish(first)
    pipeline.push()
    plan = pipeline.plan("--base=0", "--batch")
    assert plan.entries == []
    (skipped,) = plan.skipped
    assert skipped.reason.startswith("1.0.0: 1 batch at the vendor since ")
    prompt = pipeline.checkout / f"components/{SKILL}/prompt.md"
    prompt.write_text(prompt.read_text().replace("1.0.0", "1.1.0") + "Mind the year.\n")
    pipeline.push()
    second = pipeline.plan(f"--base={first.head}", "--batch")
    assert [entry.skill_version for entry in second.entries] == ["1.1.0"]
    pipeline.take()
    commit = git(pipeline.checkout, "log", "-1", "--format=%H", str(first.head), "--", str(prompt))
    assert [(row["skill_version"], row["prompt_commit"]) for row in pipeline.rows()] == [("1.0.0", commit)]


@pytest.mark.faults
def test_a_job_that_was_ended_as_it_began_begins_again(pipeline: BatchPipeline, server: BatchServer) -> None:
    pipeline.start(server)
    pipeline.finish(pipeline.submit())
    plan = pipeline.left(pipeline.pending()[0].rpartition("/")[2][:23])
    pipeline.jobs(plan)
    (manifest,) = pipeline.artifacts.rglob("manifest.json")
    manifest.unlink()
    (manifest.parent / "replicates.jsonl").unlink()
    assert [ran.code for ran in pipeline.jobs(plan)] == [0]
    pipeline.finish(plan)
    assert ([row["complete"] for row in pipeline.rows()], pipeline.pending()) == ([True], [])


def test_a_record_that_cannot_be_published_keeps_its_pending_file(pipeline: BatchPipeline, server: BatchServer) -> None:
    pipeline.start(server)
    pipeline.finish(pipeline.submit())
    plan = pipeline.left(pipeline.pending()[0].rpartition("/")[2][:23])
    pipeline.jobs(plan)
    assert pipeline.collect("--recorded=origin/main").code == 0
    (record,) = pipeline.collected.rglob("records/*/*.json")
    record.write_text(record.read_text()[:-100])
    assert pipeline.publish().code == 2
    assert len(pipeline.pending()) == 1
    pipeline.take()
    assert ([row["complete"] for row in pipeline.rows()], pipeline.pending()) == ([True], [])


def test_a_job_that_is_run_again_leaves_no_pending_file_of_what_was_recorded_since(
    pipeline: BatchPipeline, server: BatchServer
) -> None:
    pipeline.start(server)
    plan = pipeline.submit()
    pipeline.finish(plan)
    submitted, collected = pipeline.root / "submitted", pipeline.collected
    shutil.copytree(collected, submitted)
    pipeline.take()
    shutil.rmtree(collected)
    shutil.copytree(submitted, collected)
    assert pipeline.publish().code == 0
    assert ([row["complete"] for row in pipeline.rows()], pipeline.pending()) == ([True], [])


def test_shards_and_a_baseline_beside_are_collected_together_or_not_at_all(
    pipeline: BatchPipeline, server: BatchServer
) -> None:
    pipeline.start(server, jobs={"max_calls": 6}, policy={"design": "beside"})
    pipeline.finish(pipeline.submit())
    pipeline.take()
    prompt = pipeline.checkout / f"components/{SKILL}/prompt.md"
    prompt.write_text(prompt.read_text().replace("1.0.0", "1.1.0") + "Mind the year.\n")
    pipeline.push()
    plan = pipeline.submit()
    assert {(entry.shard, entry.baseline is None) for entry in plan.entries} == {("1/2", False), ("2/2", False)}
    pipeline.finish(plan)
    newest = server.batches[-1]
    server.ends = lambda batch: End() if batch is not newest else End(state="in_progress")
    server.polls = 1
    _, commit = pipeline.take()
    assert (commit, len(pipeline.pending())) == (None, 1)
    server.ends = lambda batch: End()
    _, commit = pipeline.take()
    assert pipeline.changed(commit) == ["A records", "A records", "D pending", f"M {SKILL}"]
    assert {row["skill_version"]: row["complete"] for row in pipeline.rows()} == {"1.0.0": True, "1.1.0": True}
    assert len(pipeline.rows()) == 2


@pytest.mark.parametrize("mode", ["branch", "pull-request"])
def test_pending_files_go_where_records_go(pipeline: BatchPipeline, server: BatchServer, mode: str) -> None:
    pipeline.start(server)
    words = (f"--mode={mode}",)
    pipeline.finish(pipeline.submit(), *words)
    assert len(pipeline.pending(*words)) == 1
    pipeline.push()  # main moves on
    server.held = True
    pipeline.take(*words)
    assert len(pipeline.pending(*words)) == 1
    pipeline.push()
    server.held = False
    plan, _ = pipeline.take(*words)
    assert pipeline.pending(*words) == []
    assert [row["complete"] for row in pipeline.rows("skill-evaluator-records")] == [True]
    assert pipeline.left(plan.invocation).entries == []
    assert server.submitted == dict.fromkeys(CASES, 2)


def test_a_pending_file_gives_no_key_to_a_commit_of_another_branch_and_a_broken_one_stops_its_component_alone(
    pipeline: BatchPipeline, server: BatchServer
) -> None:
    pipeline.start(server)
    plan = pipeline.submit()
    pipeline.finish(plan)
    pipeline.push()
    (path,) = pipeline.pending()
    file = pipeline.checkout / path
    git(pipeline.checkout, "checkout", "-q", "--orphan", "strange")
    git(pipeline.checkout, "commit", "-q", "--allow-empty", "-m", "of somebody else")
    strange = git(pipeline.checkout, "rev-parse", "HEAD")
    git(pipeline.checkout, "checkout", "-q", "main")
    file.write_text(file.read_text().replace(str(plan.head), strange))
    pipeline.push()
    left = pipeline.left(plan.invocation)
    assert ([one.reason for one in left.skipped], left.entries, left.head) == (
        ["it was planned at a commit that is not on this branch"],
        [],
        None,
    )
    file.write_text(file.read_text()[:-100])
    other = pipeline.checkout / "components" / "other"
    shutil.copytree(pipeline.checkout / "components" / SKILL, other, ignore=shutil.ignore_patterns("evals"))
    prompt = other / "prompt.md"
    prompt.write_text(prompt.read_text().replace(SKILL, "other"))
    shutil.copytree(pipeline.checkout / "fixtures" / SKILL, pipeline.checkout / "fixtures" / "other")
    pipeline.push()
    pushed = pipeline.plan("--base=0")
    assert [entry.skill for entry in pushed.entries] == ["other"]
    assert [fault.file for fault in pushed.faults] == [path]

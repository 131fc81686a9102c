"""`ci publish`: rows and records in one commit, repeated publishing, refused records and hostile names."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.files import json_text
from skill_evaluator.records.record import Record
from skill_evaluator.text import canonical_json, digest

from tests.support.git import git
from tests.support.library import SKILL, read
from tests.support.pipeline import BOARD, Pipeline
from tests.support.records import a_record, keep_in

RECORDS = f"components/{SKILL}/evals/records"
SHARD = f"{SKILL}@recorded@2of2"


@pytest.fixture(scope="module")
def collected(evaluated: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Every job of a first push has run and is collected."""
    pipeline = evaluated.copy(tmp_path_factory.mktemp("collected") / "pipeline")
    assert pipeline.collect().code == 0
    return pipeline


@pytest.fixture
def pipeline(collected: Pipeline, tmp_path: Path) -> Pipeline:
    return collected.copy(tmp_path / "pipeline")


def bump(pipeline: Pipeline, version: str) -> str:
    """Push another version; returns the commit it was pushed onto."""
    git(pipeline.checkout, "pull", "-q", "origin", "main")
    base = git(pipeline.checkout, "rev-parse", "HEAD")
    prompt = pipeline.checkout / "components" / SKILL / "prompt.md"
    prompt.write_text(f"---\nname: {SKILL}\nversion: {version}\n---\nRead as in {version}.\n")
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", "origin", "main")
    return base


def test_publish_adds_rows_and_records_in_one_commit(pipeline: Pipeline) -> None:
    before = pipeline.tip()
    done = pipeline.publish()
    assert done.out == f"2 records on main of origin by {pipeline.tip()}\n"
    assert git(pipeline.origin, "rev-parse", "main^") == before
    assert git(pipeline.checkout, "status", "--porcelain") == ""
    rows = {row["run_id"]: row for row in pipeline.rows()}
    assert rows.keys() == pipeline.records().keys()
    for path in pipeline.collected.glob("records/*/*.json"):
        committed, record = git(pipeline.origin, "rev-parse", f"main:{RECORDS}/{path.name}"), read(path)
        assert committed == git(pipeline.origin, "hash-object", str(path))  # byte for byte as it was collected
        assert rows[path.stem] == Record.model_validate(record).row().as_json()
        assert rows[path.stem]["digest"] == digest(canonical_json(record))
        assert (record["shard"], record["planned"], record["prompt_commit"]) == (None, 6, before)
    message = git(pipeline.origin, "log", "-1", "--format=%B", "main").splitlines()
    assert message[0] == f"Record 2 evaluations: {SKILL} 1.0.0"
    assert {line.rpartition(": ")[0] for line in message[2:]} == {
        f"{SKILL} 1.0.0 with recorded",
        f"{SKILL} 1.0.0 with vendor/other",
    }


def test_repeated_publish_does_nothing(pipeline: Pipeline) -> None:
    pipeline.publish()
    tip = pipeline.tip()
    done = pipeline.publish()
    assert (done.code, done.out) == (0, "2 records already on main: nothing to do\n")
    pipeline.collect()  # a re-run of the job begins with this
    assert pipeline.publish("--format", "json").json["commit"] is None
    assert pipeline.tip() == tip


def test_incomplete_run_is_no_baseline_and_may_be_completed(pipeline: Pipeline, tmp_path: Path) -> None:
    shard = pipeline.artifacts / SHARD
    shutil.move(shard, tmp_path / "late")
    assert pipeline.collect().code == 4
    pipeline.publish()
    partial = next(row for row in pipeline.rows() if not row["complete"])
    assert partial["run_id"].endswith("-recorded-partial4")
    base = bump(pipeline, "1.0.1")
    first = pipeline.plan_file.read_text()
    plan = pipeline.plan("--base", base, "--model", "recorded")
    assert "no record of this model yet" in plan.decisions.skipped[0].reason

    pipeline.plan_file.write_text(first)  # the failed jobs of the first push are run again
    git(pipeline.checkout, "checkout", "-q", read_plan(pipeline.plan_file).event.head or "")
    shutil.move(tmp_path / "late", shard)
    assert pipeline.collect().code == 0
    assert pipeline.publish().code == 0
    complete = {row["run_id"]: row["complete"] for row in pipeline.rows()}
    whole = partial["run_id"].removesuffix("-partial4")
    assert complete[whole]
    assert not complete[partial["run_id"]]
    assert len(complete) == 3


def test_unknown_branch_is_refused(pipeline: Pipeline) -> None:
    git(pipeline.origin, "tag", "v1.0", "main")
    for arguments, words in (
        (("--to", "trunk", "--mode", "pull-request"), "origin has no branch 'trunk'"),
        (("--to", "v1.0"), "origin has no branch 'v1.0'; name the evaluated branch with --to (not a tag)"),
    ):
        done = pipeline.publish(*arguments)
        assert (done.code, words in done.err) == (2, True), arguments
    assert pipeline.run("ci", "publish", "none").refuses("error: none is not a folder")
    assert git(pipeline.origin, "branch", "--format", "%(refname:short)") == "main"


def test_publish_refuses_a_version_taken_by_another_prompt(pipeline: Pipeline) -> None:
    """The jobs of two pushes run at once; the record that is published second is of a prompt that came too late."""
    records = {record["model_id"]: record for record in pipeline.records().values()}
    late, other = records["recorded"], records["vendor/other"]
    first = a_record({"alpha": [1.0]}, skill=SKILL, skill_version="1.0.0", run_id="20251231T000000Z-abcdef-m")
    git(pipeline.checkout, "pull", "-q", "origin", "main")
    keep_in(pipeline.checkout / "components" / SKILL, first)
    pipeline.commit()
    git(pipeline.checkout, "push", "-q", "origin", "main")
    path = pipeline.collected / "records" / SKILL / f"{other['run_id']}.json"
    path.write_text(json_text({**other, "digests": {**other["digests"], "prompt": first.digests["prompt"]}}))
    done = pipeline.publish()
    said = f"error: run '{late['run_id']}' is not added to {BOARD}: 1.0.0 was recorded with another prompt by run "
    assert (done.code, done.err.startswith(f"{said}{first.run_id}; raise the version")) == (2, True)
    assert {row["run_id"] for row in pipeline.rows()} == {other["run_id"], first.run_id}
    assert pipeline.run("lint", "--base", "HEAD", folder=pipeline.checkout).code == 0


FORGED = "1.0.0\n\nCo-authored-by: Somebody <somebody@example.com>"
HOSTILE: tuple[tuple[str, str, Any], ...] = (
    ("outcome", "skill", ".."),
    ("outcome", "run_id", "../../../../prompt"),
    ("record", "skill", ".."),
    ("record", "skill_version", FORGED),
    ("record", "run_id", "x\r\nCo-authored-by: x"),
    ("record", "timestamp", "9999-12-31T23:59:59Z"),
)


def test_hostile_record_is_refused_and_the_others_published(collected: Pipeline, pipeline: Pipeline) -> None:
    before = pipeline.tip()
    run_id = pipeline.outcome()["recorded"]["run_id"]
    for row in HOSTILE:
        where, key, value = row
        shutil.rmtree(pipeline.collected)
        shutil.copytree(collected.collected, pipeline.collected)
        git(pipeline.origin, "update-ref", "refs/heads/main", before)
        if where == "outcome":
            path = pipeline.collected / "outcome.json"
            outcome = read(path)
            next(one for one in outcome["runs"] if one["model_id"] == "recorded")[key] = value
            path.write_text(json.dumps(outcome))
        else:
            path = pipeline.collected / "records" / SKILL / f"{run_id}.json"
            path.write_text(json.dumps({**read(path), key: value}))
        done = pipeline.publish()
        assert (done.code, done.err.count("\n"), "Traceback" in done.err) == (2, 1, False), row
        assert [one["model_id"] for one in pipeline.rows()] == ["vendor/other"], row
        changed = git(pipeline.origin, "diff", "--name-only", before, "main").splitlines()
        assert all(name.startswith(f"components/{SKILL}/") for name in changed), row
        assert len(changed) == 2, row
        message = git(pipeline.origin, "log", "-1", "--format=%(trailers)%B", "main")
        assert message.startswith("Record 1 evaluation"), row  # and no trailer before it
        assert "Somebody" not in message, row
    assert pipeline.publish().code == 2  # what is missing is still said when the others are there


def test_hostile_names_of_branches_are_refused(pipeline: Pipeline) -> None:
    refs = git(pipeline.origin, "for-each-ref")
    for arguments in (
        ("--to=-x",),
        ("--to=main\nmain",),
        ("--to=a..b",),
        ("--to=",),
        ("--mode=branch", "--branch=--force"),
        ("--mode=branch", "--branch=x\x1b[31m"),
        ("--mode=branch", "--branch=a b"),
        ("--to=--upload-pack=touch pwned;",),
    ):
        assert pipeline.publish(*arguments).refuses("cannot be the name of a "), arguments
        assert git(pipeline.origin, "for-each-ref") == refs, arguments
        assert not list(pipeline.root.rglob("pwned*")), arguments

"""Reading the artifacts of a plan's jobs: shards are joined into one run, and unplanned outputs are ignored."""

import json
import os
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator import __version__
from skill_evaluator.ci.collecting import ArrivedRun, find_arrivals, read_outputs
from skill_evaluator.ci.plan import Plan, PlannedJob, PlannedRun
from skill_evaluator.files import json_text
from skill_evaluator.records.summaries import Server
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.schedule import Call, Replicate

from tests.ci.test_plan import PLAN

FIRST, SECOND = PLAN.runs
CREATED = "2024-01-01T00:05:00Z"


def arrive(
    artifacts: Path, entry: PlannedRun, answers: str | list[tuple[str, int, str | None]], **changed: Any
) -> Path:
    """A run folder as a job leaves it; an answer of None is a failure. `changed` replaces what its manifest says."""
    manifest = Manifest.view(
        entry, run_id=entry.run_id(PLAN.invocation), created=CREATED, evaluator_version=__version__
    ).model_copy(update=changed)
    folder = artifacts / entry.id / manifest.run_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json_text(manifest.model_dump(mode="json")))
    lines = answers if isinstance(answers, str) else "".join(map(_line, answers))
    (folder / "replicates.jsonl").write_text(lines)
    return folder


def _line(answer: tuple[str, int, str | None]) -> str:
    case_id, replicate, text = answer
    failure = {"error": {"kind": "provider_error", "reason": "server_error", "message": "", "status": 500}}
    return json.dumps({"case_id": case_id, "replicate": replicate, **({"text": text} if text else failure)}) + "\n"


def every(entry: PlannedRun, text: str = "t") -> list[tuple[str, int, str | None]]:
    return [(case_id, replicate, text) for case_id in entry.cases for replicate in range(entry.replicates)]


def only(artifacts: Path, plan: Plan = PLAN) -> ArrivedRun:
    (run,) = find_arrivals(artifacts, plan)
    return run


def outputs(run: ArrivedRun) -> dict[Call, Replicate]:
    return read_outputs(run)[0]


def remarks(run: ArrivedRun) -> list[str]:
    return read_outputs(run)[1]


def test_shards_are_merged_into_one_run(tmp_path: Path) -> None:
    arrive(tmp_path, FIRST, every(FIRST))
    server = Server(concurrency=4, version="0.11.0")
    arrive(tmp_path, SECOND, every(SECOND), created="2024-01-01T00:01:00Z", server=server)
    found = only(tmp_path)
    assert len(outputs(found)) == found.manifest.calls == 9
    assert found.manifest.server == server
    assert found.manifest.run_id == FIRST.run_id(PLAN.invocation).removesuffix("-1of2")
    assert (found.manifest.shard, found.manifest.created) == (None, "2024-01-01T00:01:00Z")
    assert list(found.manifest.cases) == ["one", "three", "two"]


def test_artifacts_are_found_at_any_depth(tmp_path: Path) -> None:
    for number, folder in enumerate((".", "run", "artifact/components/evals/results")):
        arrive(tmp_path / str(number) / folder, FIRST, every(FIRST))
        assert len(outputs(only(tmp_path / str(number)))) == 6, folder


TEXTS = ("model_id", "skill", "provider", "scenario", "beside", "audit", "judging", "evaluator_version")
VALUES = {"seed": 8, "inputs": ("text",), "role": "baseline", "prompt_commit": "c" * 40, "draft": True}
CHANGED: dict[str, Any] = {**dict.fromkeys(TEXTS, "other"), **VALUES, "not_applicable": {"four": "too long"}}
OTHERWISE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"cases": {**FIRST.cases, "one": "sha256:other"}}, "cases: one differs from the plan"),
    ({"cases": {**FIRST.cases, "four": "sha256:4"}}, "cases: four differs from the plan"),
    ({"digests": {**FIRST.digests, "more": "sha256:5"}}, "digests: more differs from the plan"),
    ({"replicates": 2}, "replicates is 2, the plan says 3"),
    ({"shard": None}, "shard is none, the plan says 1/2"),
    ({"skill_version": "99.0.0"}, "skill_version is 99.0.0, the plan says 1.1.0"),
    ({"selection": ("one",)}, "selection is ('one',), the plan says none"),
    ({"transport": "batch"}, "transport is batch, the plan says direct"),
    ({"created": "9999-01-01T00:00:00Z"}, "created is 9999-01-01T00:00:00Z, the plan was made at"),
    ({"created": "2023-12-30T23:59:59Z"}, "created is 2023-12-30T23:59:59Z, the plan was made at"),
    *(({name: value}, name) for name, value in CHANGED.items()),
)


def test_run_that_differs_from_the_plan_is_ignored(tmp_path: Path) -> None:
    for number, (changed, words) in enumerate(OTHERWISE):
        artifacts = tmp_path / str(number)
        folder = arrive(artifacts, FIRST, every(FIRST), **changed)
        arrive(artifacts, SECOND, every(SECOND))
        found = only(artifacts)
        assert {call.case_id for call in outputs(found)} == {"three"}, words
        (remark,) = (remark for remark in remarks(found) if "is ignored" in remark)
        assert remark.startswith(f"{FIRST.id}/{folder.name} is ignored: {words}")


def test_generated_version_of_a_job_is_that_of_the_plan(tmp_path: Path) -> None:
    """A job does not see the branch of records that numbers the prompt."""
    entries = [entry.model_copy(update={"skill_version": "0.3.0+3af3d45f"}) for entry in (FIRST, SECOND)]
    for entry in entries:
        arrive(tmp_path, entry, every(entry), skill_version="0.1.0+3af3d45f")
    found = only(tmp_path, PLAN.model_copy(update={"runs": entries}))
    assert len(outputs(found)) == 9
    assert found.manifest.skill_version == "0.3.0+3af3d45f"


def test_every_field_of_a_manifest_is_checked() -> None:
    """A field that is new must be fixed by the plan, or the test above and this one must say why it is not."""
    assert set(Manifest.model_fields) == {
        *("run_id", "created", "skill", "skill_version", "model_id", "provider", "replicates", "seed", "shard"),
        *("selection", "scenario", "beside", "role", "prompt_commit", "audit", "cases", "digests"),
        *("inputs", "evaluator_version", "draft", "judging"),
        *("not_applicable", "transport"),
        *("server", "in_flight"),  # become known while a run is asked; no verdict or score has anything of them
    }


def test_artifact_counts_for_its_own_job_alone(tmp_path: Path) -> None:
    """A job that is taken over must not answer for another one."""
    forged = arrive(tmp_path / "elsewhere", SECOND, every(SECOND, "forged"))
    target = tmp_path / "all" / FIRST.id
    target.mkdir(parents=True)
    forged.rename(target / forged.name)
    found = only(tmp_path / "all")
    assert not found.folders
    (target / f"{SECOND.id}.skipped").write_text("I say so\n")
    assert "I say so" not in remarks(only(tmp_path / "all"))


def test_outputs_of_unplanned_calls_are_ignored(tmp_path: Path) -> None:
    beyond: list[tuple[str, int, str | None]] = [("one", 3, "t"), ("one", -1, "t"), ("three", 0, "t"), ("x", 0, "t")]
    folder = arrive(tmp_path, FIRST, [*every(FIRST), *beyond])
    found = only(tmp_path)
    assert outputs(found).keys() == {Call(case, index) for case, index, _ in every(FIRST)}
    left_out = f"{FIRST.id}/{folder.name}: 3 outputs of unplanned calls ignored"
    assert left_out in remarks(found)  # a replicate below 0 is no journal line at all


def test_repeated_call_keeps_its_first_output(tmp_path: Path) -> None:
    arrive(tmp_path / "1", FIRST, [("one", 0, None), ("one", 1, "first"), ("two", 0, None)])
    arrive(tmp_path / "2", FIRST, [("one", 0, "second"), ("one", 1, "second"), ("two", 0, None)])
    answers = outputs(only(tmp_path))
    texts = {call: one.completion.text if one.completion else None for call, one in answers.items()}
    assert texts == {Call("one", 0): "second", Call("one", 1): "first", Call("two", 0): None}


def test_invalid_journal_costs_its_job_alone(tmp_path: Path) -> None:
    of_usage = '{"case_id": "one", "replicate": 0, "usage": 1, "text": "t"}\n'
    for line in ('{"text": "t"}\n', "[1]\n", "1\n", of_usage):
        arrive(tmp_path, FIRST, line)
        arrive(tmp_path, SECOND, every(SECOND))
        found = only(tmp_path)
        assert {call.case_id for call in outputs(found)} == {"three"}, line
        assert any("not a journal line" in remark for remark in remarks(found)), line
        assert not any(str(tmp_path) in remark for remark in remarks(found)), line


def test_unreadable_manifest_is_ignored_with_the_reason(tmp_path: Path) -> None:
    folder = arrive(tmp_path, FIRST, every(FIRST))
    for text in ("", "{", "{}", "[]"):
        (folder / "manifest.json").write_text(text)
        found = only(tmp_path)
        assert not found.folders, text
        assert any(remark.startswith(f"{FIRST.id}/{folder.name} is ignored: ") for remark in remarks(found)), text


def test_run_is_skipped_if_all_its_jobs_left_a_note(tmp_path: Path) -> None:
    for entry in PLAN.runs:
        (tmp_path / f"{entry.id}.skipped").write_text("no secret\n")
    found = only(tmp_path)
    assert (found.skipped, remarks(found)) == (True, ["no secret"])
    arrive(tmp_path, FIRST, every(FIRST), seed=8)
    assert not only(tmp_path).skipped


@pytest.mark.parametrize("what", ["folder", "link", "pipe", "huge", "bytes", "unknown"])
def test_skip_note_is_one_short_line(tmp_path: Path, what: str) -> None:
    note = tmp_path / f"{FIRST.id}.skipped"
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_text("a secret\n")
    if what == "folder":
        note.mkdir()
    elif what == "link":
        note.symlink_to(secret)
    elif what == "pipe":
        os.mkfifo(note)
    elif what == "unknown":
        note.with_name("nobody@m.skipped").write_text("nothing to say\n")
    else:
        note.write_bytes({"huge": b"x" * 3_000_000, "bytes": b"\xff\x00\x1b[31m::error::\n"}[what])
    arrive(tmp_path, SECOND, every(SECOND))
    found = only(tmp_path)
    assert len(outputs(found)) == 3
    assert "a secret" not in remarks(found)
    assert all(remark.isprintable() and len(remark) <= 1000 for remark in remarks(found))


def test_links_and_pipes_of_an_artifact_are_not_read(tmp_path: Path) -> None:
    for name, what in product(("manifest.json", "replicates.jsonl", "record.json"), ("link", "pipe", "folder")):
        artifacts = tmp_path / f"{name}-{what}"
        folder = arrive(artifacts, FIRST, every(FIRST))
        arrive(artifacts, SECOND, every(SECOND))
        path, elsewhere = folder / name, tmp_path / f"{name}-of-{what}"
        if path.exists():
            path.rename(elsewhere)
        else:
            elsewhere.write_text("{}")
        if what == "link":
            path.symlink_to(elsewhere)
        elif what == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
        assert {call.case_id for call in outputs(only(artifacts))} == {"three"}, (name, what)


def test_linked_folder_is_not_entered(tmp_path: Path) -> None:
    folder = arrive(tmp_path / "elsewhere", FIRST, every(FIRST))
    (tmp_path / "artifacts" / FIRST.id).mkdir(parents=True)
    (tmp_path / "artifacts" / FIRST.id / folder.name).symlink_to(folder)
    assert not only(tmp_path / "artifacts").folders


def test_name_that_is_not_utf_8_is_escaped(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xff\xfe")
    arrive(odd, FIRST, every(FIRST), seed=8)
    assert any(remark.startswith("\\udcff\\udcfe/") for remark in remarks(only(tmp_path)))


def test_job_that_ran_after_a_skip_is_not_skipped(tmp_path: Path) -> None:
    (tmp_path / f"{FIRST.id}.skipped").write_text("no secret\n")
    arrive(tmp_path, FIRST, every(FIRST))
    arrive(tmp_path, SECOND, every(SECOND))
    assert "no secret" not in remarks(only(tmp_path))


def test_killed_job_is_remarked(tmp_path: Path) -> None:
    arrive(tmp_path, FIRST, every(FIRST)[:2])
    assert "a job ended before it wrote its record" in remarks(only(tmp_path))


ARRIVED = st.tuples(st.sampled_from(["one", "two", "three", "x"]), st.integers(-1, 4), st.none() | st.just("t"))


@given(arrived=st.lists(ARRIVED))
def test_never_more_outputs_than_planned(arrived: list[tuple[str, int, str | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for entry in PLAN.runs:
            arrive(Path(folder), entry, arrived)
        found = only(Path(folder))
        answers = outputs(found)
    failed = sum(not answer.answered for answer in answers.values())
    assert 0 <= failed <= len(answers) <= found.manifest.calls


def test_size_of_outputs_is_known_before_they_are_read(tmp_path: Path) -> None:
    entries = [
        entry.model_copy(update={"id": f"{entry.id}-{model}", "model_id": model})
        for model in ("large", "none", "small")
        for entry in PLAN.runs
    ]
    for entry in entries:
        if entry.model_id != "none":
            arrive(tmp_path, entry, every(entry, "t" * (1_000 if entry.model_id == "large" else 1)))
    jobs = [PlannedJob(id=one.id, runs=[one.id], environment="e", keys=[]) for one in entries]
    plan = PLAN.model_copy(update={"runs": entries, "jobs": jobs})
    large, none, small = (run.output_bytes for run in find_arrivals(tmp_path, plan))
    assert (none, large > 5 * small > 0) == (0, True)

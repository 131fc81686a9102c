"""What arrived of a plan's jobs: shards become one run, and what the plan did not ask for is not believed."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.ci.collecting import GatheredRun, gather
from skill_evaluator.ci.plan import Entry, Plan
from skill_evaluator.files import json_text
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.schedule import Call

from tests.ci.test_plan import PLAN

FIRST, SECOND = PLAN.entries
CREATED = "2024-01-01T00:05:00Z"


def arrive(artifacts: Path, entry: Entry, answers: str | list[tuple[str, int, str | None]], **changed: Any) -> Path:
    """A run folder as a job leaves it; an answer of None is a failure. `changed` replaces what its manifest says."""
    manifest = Manifest(
        run_id=entry.run_id(PLAN.invocation),
        created=CREATED,
        skill=entry.skill,
        skill_version=entry.skill_version,
        model_id=entry.model_id,
        provider=entry.provider,
        replicates=entry.replicates,
        seed=entry.seed,
        shard=entry.shard,
        cases=entry.cases,
        digests=entry.digests,
        evaluator_version="0.1.0",
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


def every(entry: Entry, text: str = "t") -> list[tuple[str, int, str | None]]:
    return [(case_id, replicate, text) for case_id in entry.cases for replicate in range(entry.replicates)]


def only(artifacts: Path, plan: Plan = PLAN) -> GatheredRun:
    (found,) = gather(plan, artifacts)
    return found


def test_the_shards_of_a_model_become_one_run_over_all_cases(tmp_path: Path) -> None:
    arrive(tmp_path, FIRST, every(FIRST))
    arrive(tmp_path, SECOND, every(SECOND), created="2024-01-01T00:01:00Z")
    found = only(tmp_path)
    assert len(found.answers) == found.planned == 9
    assert found.manifest is not None
    assert found.manifest.run_id == FIRST.run_id(PLAN.invocation).removesuffix("-1of2")
    assert (found.manifest.shard, found.manifest.created) == (None, "2024-01-01T00:01:00Z")
    assert list(found.manifest.cases) == ["one", "three", "two"]


def test_of_a_shard_that_did_not_arrive_it_is_said(tmp_path: Path) -> None:
    arrive(tmp_path, FIRST, every(FIRST))
    found = only(tmp_path)
    assert (len(found.answers), found.planned) == (6, 9)
    assert "nothing arrived of a@m@2of2" in found.remarks
    assert found.manifest is not None
    assert found.manifest.cases.keys() == {"one", "two", "three"}  # it is a run over all cases all the same


def test_of_nothing_at_all_there_is_no_run(tmp_path: Path) -> None:
    found = only(tmp_path)
    assert (found.manifest, dict(found.answers), found.skipped) == (None, {}, False)


@pytest.mark.parametrize("folders", [("",), ("run",), ("artifact", "components", "evals", "results")])
def test_artifacts_may_lie_at_any_depth(tmp_path: Path, folders: tuple[str, ...]) -> None:
    arrive(tmp_path.joinpath(*folders), FIRST, every(FIRST))
    assert len(only(tmp_path).answers) == 6


@pytest.mark.parametrize(
    "changed",
    [
        {"cases": {**FIRST.cases, "one": "sha256:other"}},
        {"cases": {**FIRST.cases, "four": "sha256:4"}},
        {"digests": {"prompt": "sha256:other"}},
        {"replicates": 2},
        {"seed": 8},
        {"shard": None},
        {"model_id": "another"},
    ],
)
def test_a_run_on_other_inputs_is_left_out_and_that_is_said(tmp_path: Path, changed: dict[str, Any]) -> None:
    arrive(tmp_path, FIRST, every(FIRST), **changed)
    found = only(tmp_path)
    assert found.manifest is None
    assert any("run on other inputs than were planned" in remark for remark in found.remarks)


def test_a_run_of_another_plan_is_left_out(tmp_path: Path) -> None:
    arrive(tmp_path, FIRST, every(FIRST), run_id="20230101T000000Z-ffffff-vendor-m-1of2")
    assert only(tmp_path).manifest is None


def test_answers_that_nobody_asked_for_are_left_out(tmp_path: Path) -> None:
    beyond: list[tuple[str, int, str | None]] = [("one", 3, "t"), ("one", -1, "t"), ("three", 0, "t"), ("x", 0, "t")]
    arrive(tmp_path, FIRST, [*every(FIRST), *beyond])
    assert only(tmp_path).answers.keys() == {Call(case, index) for case, index, _ in every(FIRST)}


def test_a_call_that_two_attempts_made_keeps_its_first_answer(tmp_path: Path) -> None:
    arrive(tmp_path / "1", FIRST, [("one", 0, None), ("one", 1, "first"), ("two", 0, None)])
    arrive(tmp_path / "2", FIRST, [("one", 0, "second"), ("one", 1, "second"), ("two", 0, None)])
    answers = only(tmp_path).answers
    texts = {call: one.completion.text if one.completion else None for call, one in answers.items()}
    assert texts == {Call("one", 0): "second", Call("one", 1): "first", Call("two", 0): None}


def test_a_torn_journal_counts_as_far_as_it_is_whole(tmp_path: Path) -> None:
    torn = _line(("one", 0, "t")) + '{"case_id": "one", "repl\n' + _line(("one", 1, "t")) + '{"case_id": "two", '
    arrive(tmp_path, FIRST, torn)
    assert only(tmp_path).answers.keys() == {Call("one", 0), Call("one", 1)}


@pytest.mark.parametrize(
    "line", ['{"text": "t"}\n', "[1]\n", "1\n", '{"case_id": "one", "replicate": 0, "usage": 1, "text": "t"}\n']
)
def test_a_journal_that_is_none_costs_its_own_job_only(tmp_path: Path, line: str) -> None:
    arrive(tmp_path, FIRST, line)
    arrive(tmp_path, SECOND, every(SECOND))
    found = only(tmp_path)
    assert {call.case_id for call in found.answers} == {"three"}
    assert any("not a journal line" in remark for remark in found.remarks)


@pytest.mark.parametrize("text", ["", "{", "{}", "[]"])
def test_a_folder_whose_manifest_cannot_be_read_did_not_arrive(tmp_path: Path, text: str) -> None:
    folder = arrive(tmp_path, FIRST, every(FIRST))
    (folder / "manifest.json").write_text(text)
    assert "nothing arrived of a@m@1of2" in only(tmp_path).remarks


def test_why_a_job_was_skipped_is_passed_on(tmp_path: Path) -> None:
    for entry in PLAN.entries:
        (tmp_path / f"{entry.id}.skipped").write_text("no secret\n::error::more\n")
    found = only(tmp_path)
    assert (found.manifest, found.skipped, found.remarks) == (None, True, ("no secret",))


def test_a_job_that_ran_after_it_was_skipped_is_not_called_skipped(tmp_path: Path) -> None:
    (tmp_path / f"{FIRST.id}.skipped").write_text("no secret\n")
    arrive(tmp_path, FIRST, every(FIRST))
    arrive(tmp_path, SECOND, every(SECOND))
    assert "no secret" not in only(tmp_path).remarks


def test_a_job_that_was_killed_could_not_say_how_it_went(tmp_path: Path) -> None:
    arrive(tmp_path, FIRST, every(FIRST)[:2])
    assert "a job ended before it could say how it went" in only(tmp_path).remarks


ARRIVED = st.tuples(st.sampled_from(["one", "two", "three", "x"]), st.integers(-1, 4), st.none() | st.just("t"))


@given(arrived=st.lists(ARRIVED))
def test_never_more_than_was_planned(arrived: list[tuple[str, int, str | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for entry in PLAN.entries:
            arrive(Path(folder), entry, arrived)
        found = only(Path(folder))
    failed = sum(not answer.answered for answer in found.answers.values())
    assert 0 <= failed <= len(found.answers) <= found.planned

"""A run folder: what was written is read back, whatever a crash left at its end."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skill_evaluator.errors import RunError
from skill_evaluator.providers.base import Completion, Failure, Usage
from skill_evaluator.runner.journal import (
    Journal,
    Manifest,
    answered_calls,
    create_run,
    find_runs,
    outcomes,
    read_answers,
)
from skill_evaluator.runner.replicates import Call, Replicate

FIRST, SECOND = Call("a", 0), Call("a", 1)
_MANIFEST = {
    "created": "2026-03-01T00:00:00Z",
    "skill": "s",
    "skill_version": "1.0.0",
    "model_id": "m",
    "provider": "replay",
    "replicates": 1,
    "seed": 0,
    "cases": {"a": "sha256:0"},
    "digests": {},
    "evaluator_version": "0",
}


def _answer(call: Call, text: str = "{}") -> Replicate:
    return Replicate(call=call, completion=Completion(text=text), latency_s=0.5)


def _error(call: Call, reason: str = "server_error") -> Replicate:
    return Replicate(call=call, error=Failure(kind="provider_error", reason=reason), attempts=2)


def _written(folder: Path, *replicates: Replicate) -> Path:
    journal = Journal(folder)
    for replicate in replicates:
        journal.append(replicate)
    journal.close()
    return journal.path


completions = st.builds(
    Completion,
    text=st.text(),
    stop_reason=st.sampled_from(["stop", "length", "refusal", "other"]),
    usage=st.builds(
        Usage, input_tokens=st.none() | st.integers(0, 9999), output_tokens=st.none() | st.integers(0, 9999)
    ),
    served_model=st.none() | st.text(min_size=1),
    request_id=st.none() | st.text(min_size=1),
)
failures = st.builds(
    Failure,
    kind=st.sampled_from(["provider_error", "timeout", "no_credentials"]),
    reason=st.text(min_size=1),
    message=st.text(),
    status=st.none() | st.integers(400, 599),
)


@given(completion=completions, failure=failures, attempts=st.integers(1, 9))
@settings(max_examples=40)
def test_what_is_written_is_read_back(
    completion: Completion, failure: Failure, attempts: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    replicates = [
        Replicate(call=FIRST, completion=completion, latency_s=1.25, attempts=attempts),
        Replicate(call=SECOND, error=failure, latency_s=0.5, attempts=attempts),
    ]
    folder = tmp_path_factory.mktemp("run")
    _written(folder, *replicates)
    assert list(read_answers(folder)) == replicates


@pytest.mark.parametrize(
    ("written", "stands"),
    [
        ([_answer(FIRST, "1"), _answer(FIRST, "2")], _answer(FIRST, "1")),
        ([_error(FIRST), _answer(FIRST)], _answer(FIRST)),
        ([_answer(FIRST), _error(FIRST)], _answer(FIRST)),
        ([_error(FIRST, "one"), _error(FIRST, "two")], _error(FIRST, "two")),
    ],
    ids=["first answer", "answer after error", "error after answer", "last error"],
)
def test_of_a_call_asked_again_its_first_answer_stands_else_its_last_error(
    written: list[Replicate], stands: Replicate, tmp_path: Path
) -> None:
    _written(tmp_path, *written)
    assert outcomes(tmp_path) == {FIRST: stands}
    assert answered_calls(tmp_path) == ({FIRST} if stands.answered else set())


def test_cut_off_anywhere_it_keeps_the_whole_lines_and_takes_new_ones(tmp_path: Path) -> None:
    path = _written(tmp_path, _answer(FIRST, "Größe"), _answer(SECOND, "→ 2"))
    raw = path.read_bytes()
    first_line = raw.index(b"\n") + 1
    for kept in range(len(raw) + 1):
        path.write_bytes(raw[:kept])
        _written(tmp_path, _answer(Call("b", 0)))
        whole = [call for call, end in ((FIRST, first_line - 1), (SECOND, len(raw) - 1)) if kept >= end]
        assert list(outcomes(tmp_path)) == [*whole, Call("b", 0)]


def test_a_line_that_is_no_journal_line_is_refused_by_number(tmp_path: Path) -> None:
    path = _written(tmp_path, _answer(FIRST))
    path.write_bytes(path.read_bytes() + b'{"case": "a"}\n')
    with pytest.raises(RunError, match=r"replicates\.jsonl:2: not a journal line"):
        outcomes(tmp_path)


def _run(results: Path, run_id: str, record: object = None) -> Path:
    create_run(results / run_id, Manifest.model_validate({**_MANIFEST, "run_id": run_id}))
    if record is not None:
        (results / run_id / "record.json").write_text(json.dumps(record))
    return results / run_id


def test_the_newest_unfinished_invocation_is_resumed_with_all_its_models(tmp_path: Path) -> None:
    _run(tmp_path, "20260101T000000Z-aaaaaa-m1")
    stopped = _run(tmp_path, "20260102T000000Z-bbbbbb-m1", {"stopped": "interrupted: by the user"})
    beside = _run(tmp_path, "20260102T000000Z-bbbbbb-m2", {"stopped": None})
    _run(tmp_path, "20260103T000000Z-cccccc-m1", {"stopped": None})
    assert find_runs(tmp_path, "latest") == [stopped, beside]


@pytest.mark.parametrize("wanted", ["20260102T000000Z-bbbbbb", "20260102T000000Z-bbbbbb-m1", "PATH"])
def test_a_run_is_found_by_id_by_the_beginning_of_an_invocation_and_by_path(wanted: str, tmp_path: Path) -> None:
    _run(tmp_path, "20260101T000000Z-aaaaaa-m1")
    run = _run(tmp_path, "20260102T000000Z-bbbbbb-m1")
    assert find_runs(tmp_path, str(run) if wanted == "PATH" else wanted) == [run]


@pytest.mark.parametrize("wanted", ["latest", "20260109T000000Z-ffffff", "m1"])
def test_what_is_not_there_is_not_found(wanted: str, tmp_path: Path) -> None:
    _run(tmp_path, "20260101T000000Z-aaaaaa-m1", {"stopped": None})
    with pytest.raises(RunError, match="to resume"):
        find_runs(tmp_path, wanted)

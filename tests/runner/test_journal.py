"""A run folder: outcomes are read back after a crash, and runs are found."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.errors import RunError
from skill_evaluator.files import LinesWriter
from skill_evaluator.providers.base import Completion, Failure, Usage
from skill_evaluator.records.record import write_record
from skill_evaluator.runner import journal
from skill_evaluator.runner.batch import BatchJournal
from skill_evaluator.runner.journal import Manifest, append_outcome, create_run, find_runs, outcomes
from skill_evaluator.runner.schedule import Call, Replicate

from tests.support.components import NOT_RUN, case, component, record

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
    journal = LinesWriter(folder / "replicates.jsonl")
    for replicate in replicates:
        append_outcome(journal, replicate)
    journal.close()
    return journal.path


completions = st.builds(
    Completion,
    text=st.text(),
    stop_reason=st.sampled_from(["stop", "length", "refusal", "other"]),
    usage=st.builds(
        Usage,
        input_tokens=st.none() | st.integers(0, 9999),
        output_tokens=st.none() | st.integers(0, 9999),
        cache_read_tokens=st.none() | st.integers(0, 5000),
        cache_write_tokens=st.none() | st.integers(0, 5000),
        cache_write_1h_tokens=st.none() | st.integers(0, 3000),
        batch=st.none() | st.booleans(),
    ),
    served_model=st.none() | st.text(min_size=1),
    request_id=st.none() | st.text(min_size=1),
    reasoning=st.text(),
    tool_call=st.text(),
)
failures = st.builds(
    Failure,
    kind=st.sampled_from(["provider_error", "timeout", "no_credentials"]),
    reason=st.from_regex(r"[a-z_]{1,20}", fullmatch=True),
    message=st.text(),
    status=st.none() | st.integers(400, 599),
)


@given(completion=completions, failure=failures, attempts=st.integers(1, 9))
def test_journal_is_read_back_as_written(completion: Completion, failure: Failure, attempts: int) -> None:
    replicates = [
        Replicate(call=FIRST, completion=completion, latency_s=1.25, attempts=attempts),
        Replicate(call=SECOND, error=failure, latency_s=0.5, attempts=attempts),
    ]
    with TemporaryDirectory() as folder:
        _written(Path(folder), *replicates)
        assert list(journal.read_outcomes(Path(folder))) == replicates


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
def test_repeated_call_keeps_its_first_output_or_last_error(
    written: list[Replicate], stands: Replicate, tmp_path: Path
) -> None:
    _written(tmp_path, *written)
    assert outcomes(tmp_path) == {FIRST: stands}


def test_torn_journal_keeps_its_whole_lines(tmp_path: Path) -> None:
    path = _written(tmp_path, _answer(FIRST, "Größe"), _answer(SECOND, "→ 2"))
    raw = path.read_bytes()
    first_line = raw.index(b"\n") + 1
    within_letters = range(raw.index("ö".encode()), raw.index("ß".encode()) + 3)
    ends = [*range(first_line - 3, first_line + 3), *range(len(raw) - 3, len(raw) + 1)]
    for kept in {*range(0, len(raw), 9), *within_letters, *ends}:
        path.write_bytes(raw[:kept])
        _written(tmp_path, _answer(Call("b", 0)))
        whole = [call for call, end in ((FIRST, first_line - 1), (SECOND, len(raw) - 1)) if kept >= end]
        assert list(outcomes(tmp_path)) == [*whole, Call("b", 0)]


WRONG = (
    "1",
    "[1]",
    "{}",
    '{"case_id": "a", "replicate": 1}',
    '{"case_id": [], "replicate": 1, "text": "t"}',
    '{"case_id": "a", "replicate": -1, "text": "t"}',
    '{"case_id": "a", "replicate": true, "text": "t"}',
    '{"case_id": "a", "replicate": 1, "text": 5}',
    '{"case_id": "a", "replicate": 1, "text": "t", "latency_s": "x"}',
    '{"case_id": "a", "replicate": 1, "text": "t", "latency_s": -1}',
    '{"case_id": "a", "replicate": 1, "text": "t", "latency_s": NaN}',
    '{"case_id": "a", "replicate": 1, "text": "t", "attempts": 0}',
    '{"case_id": "a", "replicate": 1, "text": "t", "stop_reason": "bored"}',
    '{"case_id": "a", "replicate": 1, "text": "t", "usage": 7}',
    '{"case_id": "a", "replicate": 1, "error": "two\\nlines"}',
)


def test_invalid_journal_line_costs_that_line_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, line in enumerate(WRONG):
        path = _written(tmp_path / str(number), _answer(FIRST))
        path.write_text(path.read_text() + line + "\n")
        _written(path.parent, _answer(Call("b", 0)))
        assert list(outcomes(path.parent)) == [FIRST, Call("b", 0)], line
        assert "replicates.jsonl:2 is skipped, it is not a journal line: " in capsys.readouterr().err, line
        assert line in path.read_text().splitlines()  # somebody paid for it


def test_many_invalid_lines_are_counted_in_one_warning(tmp_path: Path) -> None:
    (tmp_path / "replicates.jsonl").write_text("1\n" * 3)
    sentences: list[str] = []
    assert list(journal.read_journal(tmp_path, sentences)) == []
    assert [sentence.partition("jsonl:")[2] for sentence in sentences] == [
        "1 is skipped, it is not a journal line: a mapping of keys to values is expected, got 1 (and 2 more lines)"
    ]


def test_batch_journal_returns_the_calls_of_open_batches(tmp_path: Path) -> None:
    BatchJournal(tmp_path).intend("r", {"x-0-1": FIRST})
    assert [batch.calls for batch in BatchJournal.read(tmp_path).open] == [{"x-0-1": FIRST}]


def test_intended_batch_without_calls_is_refused(tmp_path: Path) -> None:
    line = '{"batch": 1, "at": "2026-03-01T00:00:00Z", "event": "intended", "name": "r.1", "calls": {}}\n'
    (tmp_path / "batches.jsonl").write_text(line)
    with pytest.raises(
        RunError, match=r"batches.jsonl:1 is not a batch line \(expected an `intended` line with batch 1,"
    ):
        BatchJournal.read(tmp_path)


def test_event_of_an_unknown_batch_is_refused(tmp_path: Path) -> None:
    (tmp_path / "batches.jsonl").write_text('{"batch": 1, "at": "2026-03-01T00:00:00Z", "event": "absent"}\n')
    with pytest.raises(RunError, match=r"batches.jsonl:1 is not a batch line \(batch 1 has no `intended` line\)"):
        BatchJournal.read(tmp_path)


FINISHED, UNFINISHED = ["{}"], ["{}", NOT_RUN]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Finished, stopped beside finished, finished, and one of another component: run folders in this order."""
    skill = component(tmp_path)
    for run_id, ended in {
        "20260101T000000Z-aaaaaa-m1": FINISHED,
        "20260102T000000Z-bbbbbb-m1": UNFINISHED,
        "20260102T000000Z-bbbbbb-m2": FINISHED,
        "20260103T000000Z-cccccc-m1": FINISHED,
    }.items():
        _run(tmp_path / "results", run_id, "s")
        write_record(tmp_path / "results" / run_id / "record.json", record(skill, [(case("a", {}), ended)]))
        (tmp_path / "results" / run_id / "report.md").touch()
    _run(tmp_path / "results", "20260104T000000Z-dddddd-m1", "other")
    return tmp_path / "results"


def _run(results: Path, run_id: str, skill: str) -> None:
    create_run(results / run_id, Manifest.model_validate({**_MANIFEST, "run_id": run_id, "skill": skill}))


def _found(results: Path, wanted: str) -> list[str]:
    found = find_runs(results, wanted, "s")
    assert all(folder == results / manifest.run_id for folder, manifest in found)
    return [folder.name for folder, _ in found]


def test_newest_unfinished_invocation_is_resumed_with_all_models(results: Path) -> None:
    assert _found(results, "latest") == ["20260102T000000Z-bbbbbb-m1", "20260102T000000Z-bbbbbb-m2"]


@pytest.mark.parametrize("content", [None, "", '{"run_id": "', '{"complete": true}'])
def test_run_without_a_readable_record_is_unfinished(results: Path, content: str | None) -> None:
    path = results / "20260103T000000Z-cccccc-m1" / "record.json"
    path.unlink()
    if content is not None:
        path.write_text(content)
    assert _found(results, "latest") == ["20260103T000000Z-cccccc-m1"]


def test_run_without_its_report_is_unfinished(results: Path) -> None:
    (results / "20260103T000000Z-cccccc-m1" / "report.md").unlink()
    assert _found(results, "latest") == ["20260103T000000Z-cccccc-m1"]


@pytest.mark.parametrize("wanted", ["20260103T000000Z-cccccc", "20260103T000000Z-cccccc-m1", "PATH"])
def test_run_is_found_by_id_invocation_or_path(wanted: str, results: Path) -> None:
    run = "20260103T000000Z-cccccc-m1"
    assert _found(results, str(results / run) if wanted == "PATH" else wanted) == [run]


@pytest.mark.parametrize("wanted", ["20260109T000000Z-ffffff", "m1", "20260104T000000Z-dddddd-m1", "20260103T000000Z"])
def test_unknown_run_is_not_found(wanted: str, results: Path) -> None:
    with pytest.raises(RunError, match=f"no run '{wanted}' of 's' in .*results to resume"):
        find_runs(results, wanted, "s")


def test_nothing_is_resumed_when_all_runs_are_finished(results: Path, tmp_path: Path) -> None:
    whole = record(component(tmp_path), [(case("a", {}), FINISHED)])
    write_record(results / "20260102T000000Z-bbbbbb-m1" / "record.json", whole)
    with pytest.raises(RunError, match="no unfinished run of 's'"):
        find_runs(results, "latest", "s")


def test_run_folder_with_a_broken_manifest_is_named(results: Path) -> None:
    (results / "20260101T000000Z-aaaaaa-m1" / "manifest.json").write_text("{")
    with pytest.raises(RunError, match=r"aaaaaa-m1/manifest\.json:1:2: not JSON"):
        find_runs(results, "latest", "s")


@example("\ud83d\ude00")
@given(st.text(st.characters(exclude_categories=()) | st.sampled_from("\ud83d\ude00\ud800\x00é"), max_size=6))
def test_output_has_the_same_digest_after_reading(text: str) -> None:
    """Else a record would seem to be made of other answers; halves of a pair are one character once they are read."""
    replicate = Replicate(call=Call("a", 0), completion=Completion(text=text))
    with TemporaryDirectory() as folder:
        _written(Path(folder), replicate)
        assert outcomes(Path(folder))[replicate.call].digest == replicate.digest

"""`evaluate --batch` with the three vendors: each call has one outcome and is paid once."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.batch_server import VENDORS, BatchServer, End, Outcome, batch_server
from tests.support.batched import COST, KEYS, batches, set_up  # noqa: F401
from tests.support.library import CASES, Ended, Library, ended, read, wait_until, whole_lines

CALLS = len(CASES) * 2
KILLS = 10


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def evaluate(library: Library, *arguments: str) -> Any:
    return library.evaluate_here(*arguments, env=KEYS)


def interrupted(library: Library, when: Callable[[], bool], *arguments: str) -> Ended:
    """Evaluate in this process, and send it an interrupt when that is so and it still waits."""
    ended = threading.Event()

    def interrupt() -> None:
        try:
            wait_until(lambda: ended.is_set() or when(), 60)
        finally:  # without an interrupt the wait for the held batch would never end
            if not ended.is_set():
                os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    done: Ended = evaluate(library, *arguments)
    ended.set()
    waiting.join()
    return done


def submit(library: Library, server: BatchServer, *arguments: str) -> Ended:
    """Submit a run's batches, and interrupt the wait for them."""
    server.held = True
    submitted = ["intended", "submitted"]
    done = interrupted(library, lambda: [line["event"] for line in events(library)] == submitted, "--batch", *arguments)
    server.held = False
    return done


def events(library: Library) -> list[dict[str, Any]]:
    """The lines of the run's batches.jsonl."""
    return [line for path in library.results.glob("*/batches.jsonl") for line in whole_lines(path)]


def journal(library: Library) -> list[dict[str, Any]]:
    """The outcomes on disk, of which no call may have two."""
    lines = whole_lines(library.run_folder() / "replicates.jsonl")
    calls = Counter((line["case_id"], line["replicate"]) for line in lines)
    assert set(calls.values()) <= {1}, calls
    return lines


def reasons(library: Library) -> Counter[str]:
    return Counter(line["error"]["reason"] if "error" in line else "answered" for line in journal(library))


def test_batch_run_is_recorded_at_half_price(library: Library, server: BatchServer) -> None:
    set_up(library, server, "openai")
    server.polls = 3
    done = evaluate(library, "--batch")
    assert done.code == 0, done
    (record,) = library.records()
    assert (record["scored"], record["transport"]) == (CALLS, "batch")
    assert record["latency_s"] == {"p50": None, "p95": None}
    assert record["cost_usd"] == pytest.approx(CALLS * COST)
    assert record["accuracy"]["exact_match"]["mean"] == 1.0
    assert len(server.batches) == 1
    assert reasons(library) == {"answered": CALLS}
    assert server.deleted == []


def test_output_of_a_batch_by_tool_call_is_its_arguments(library: Library, server: BatchServer) -> None:
    set_up(library, server, "anthropic", structured_output="json_schema_strict")
    prompt = library.component / "prompt.md"
    prompt.write_text(prompt.read_text().replace("version:", "output: tool_call\nversion:", 1))
    assert evaluate(library, "--batch").code == 0
    (record,) = library.records()
    assert (record["scored"], record["accuracy"]["exact_match"]["mean"]) == (CALLS, 1.0)
    assert {line["text"][0] for line in journal(library)} == {"{"}


def test_each_request_of_a_batch_has_one_outcome(library: Library, server: BatchServer, vendor: str) -> None:
    set_up(library, server, vendor)
    fates: dict[str, Outcome] = {"alpha": "rejected", "gamma": "missing"}
    server.outcome = lambda case_id, times: fates.get(case_id, "overloaded" if times == 2 else "answered")
    done = evaluate(library, "--batch")
    assert done.code == 4, done
    assert reasons(library) == {"bad_request": 2, "lost_by_provider": 2, "answered": 2}
    assert read(library.run_folder() / "record.json")["cost_usd"] is None, "what was lost may be billed"
    assert server.submitted == {"alpha": 2, "beta": 4, "gamma": 2}, "only what may pass goes again, once"
    assert {line["attempts"] for line in journal(library) if line["case_id"] == "beta"} == {2}
    assert "key-0123456789abcdef" not in "".join(
        path.read_text() for path in library.root.rglob("*") if path.is_file() and path.suffix != ".lock"
    )


def test_batch_result_of_a_content_filter_is_a_refusal(library: Library, server: BatchServer) -> None:
    set_up(library, server, "openai")
    server.outcome = lambda case_id, times: "filtered" if case_id == "alpha" else "answered"
    assert evaluate(library, "--batch").code == 0
    (record,) = library.records()
    assert (record["coverage"], record["failures"], record["reasons"]) == (1.0, {"refused": 2}, {"refusal": 2})


@pytest.mark.parametrize(
    ("vendor", "gone", "answered"), [("anthropic", "results", 0), ("openai", "content", 0), ("openai", "errors-", 4)]
)
def test_results_deleted_by_the_vendor_are_lost_calls(
    library: Library, server: BatchServer, vendor: str, gone: str, answered: int
) -> None:
    set_up(library, server, vendor)
    server.outcome = lambda case_id, times: "rejected" if case_id == "beta" else "answered"
    server.gone = gone
    done = evaluate(library, "--batch")
    assert done.code == 4, done
    assert reasons(library) == Counter(answered=answered, lost_by_provider=CALLS - answered)


PAGE = b"<html>\n<body>Sign in to the network</body>\n</html>\n"


def test_unreadable_results_are_kept_and_read_again_on_resume(library: Library, server: BatchServer) -> None:
    set_up(library, server, "openai")
    library.settings(batch={"poll_s": 0.01, "delete_results": True})
    pages: list[Callable[[bytes], bytes]] = [lambda lines: PAGE, lambda lines: lines.replace(b"{", b"", 1)]
    for page, option in zip(pages, ("--batch", "--resume"), strict=True):
        server.page = page
        waiting = evaluate(library, option)
        assert (waiting.code, "malformed_body" in waiting.err + waiting.out, journal(library)) == (4, True, []), waiting
        assert ([line["event"] for line in events(library)], server.deleted) == (["intended", "submitted"], [])
    server.page = lambda lines: lines
    assert evaluate(library, "--resume").code == 0
    assert reasons(library) == {"answered": CALLS}
    assert len(server.batches) == 1


@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
def test_expired_and_canceled_requests_are_named(library: Library, server: BatchServer, vendor: str) -> None:
    set_up(library, server, vendor)
    server.ends = lambda batch: End(state="expired")
    server.outcome = lambda case_id, times: {"alpha": "expired", "beta": "canceled"}.get(case_id, "answered")
    assert evaluate(library, "--batch").code == 4
    assert reasons(library) == {"expired": 2, "canceled": 2, "answered": 2}
    server.outcome = lambda case_id, times: "answered"
    assert evaluate(library, "--resume").code == 0, "a person may ask again what was not run"
    assert server.submitted == {"alpha": 4, "beta": 4, "gamma": 2}


def test_gemini_batch_ends_in_every_state(tmp_path: Path) -> None:
    for state, asked, reason in (
        ("PARTIALLY_SUCCEEDED", 1, "lost_by_provider"),
        ("EXPIRED", 1, "expired"),
        ("CANCELLED", 1, "canceled"),
        ("A_LATER_STATE", 1, "lost_by_provider"),
        ("FAILED", 2, "batch_failed"),
    ):
        library = Library(tmp_path / state)
        with batch_server() as server:
            set_up(library, server, "google")
            server.ends = lambda batch, state=state: End(state=state)
            server.outcome = lambda case_id, times: "answered" if case_id == "alpha" else "missing"
            done = evaluate(library, "--batch")
        assert done.code == 4, done
        assert reasons(library)[reason] == (CALLS if state == "FAILED" else CALLS - 2), done
        assert len(server.batches) == asked, state
        assert state != "FAILED" or "scripted" in done.out


def test_batch_refused_for_one_line_fails_that_call_alone(library: Library, server: BatchServer) -> None:
    set_up(library, server, "openai")
    server.ends = lambda batch: End(state="failed", line=2) if batch is server.batches[0] else End()
    done = evaluate(library, "--batch")
    assert done.code == 4, done
    failed = [line for line in journal(library) if "error" in line]
    assert [(line["case_id"], line["replicate"], line["error"]["reason"]) for line in failed] == [
        ("beta", 0, "bad_request")
    ]
    assert "line 2 of the batch" in failed[0]["error"]["message"]
    assert [len(batch.requests) for batch in server.batches] == [CALLS, CALLS - 1]


def test_lost_replies_and_torn_results_repeat_no_request(library: Library, server: BatchServer) -> None:
    set_up(library, server, "openai")
    server.lost_replies = server.torn = 1
    done = evaluate(library, "--batch")
    assert done.code == 0, done
    assert (server.lost_replies, server.torn, len(server.batches)) == (0, 0, 1)
    assert reasons(library) == {"answered": CALLS}


def test_batch_run_is_resumed_after_an_interrupt_and_paid_once(library: Library, server: BatchServer) -> None:
    set_up(library, server, "google")
    stopped = submit(library, server)
    assert stopped.code == 4, stopped
    assert "6 calls in 1 batch at the vendor" in stopped.out, stopped
    assert (journal(library), library.rows(), server.deleted) == ([], [], [])
    done = evaluate(library, "--resume")
    assert done.code == 0, done
    assert reasons(library) == {"answered": CALLS}
    assert len(server.batches) == 1


def cut(library: Library, events: int) -> None:
    """Leave only the first lines of the one run's batches, as a process does that ends between two."""
    path = library.run_folder() / "batches.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:events]) + '{"event":"subm')


def test_batch_is_found_again_when_only_its_intent_is_on_disk(
    library: Library, server: BatchServer, vendor: str
) -> None:
    set_up(library, server, vendor)
    submit(library, server)
    cut(library, 1)
    done = evaluate(library, "--resume")
    assert done.code == 0, done
    assert len(server.batches) == 1


def test_saved_failures_reserve_no_budget(library: Library, server: BatchServer) -> None:
    set_up(library, server, "openai")
    most = evaluate(library, "--dry-run", "--batch", "--format", "json").json["models"][0]["cost_upper_usd"]
    server.outcome = lambda case_id, times: "rejected" if times == 2 else "answered"  # that is, in the first batch
    evaluate(library, "--batch")
    assert reasons(library) == {"bad_request": CALLS}
    cut(library, 2)
    done = evaluate(library, "--resume", "--max-cost", f"{most * 1.01}")
    assert done.code == 0, done
    assert len(server.batches) == 2


def test_batch_that_was_never_created_is_created_on_resume(library: Library, server: BatchServer) -> None:
    set_up(library, server, "anthropic")
    submit(library, server)
    server.batches.clear()
    cut(library, 1)
    done = evaluate(library, "--resume")
    assert done.code == 0, done
    assert len(server.batches) == 1
    assert [line["event"] for line in events(library)] == ["intended", "absent", "intended", "submitted", "collected"]


def test_batch_is_given_up_after_repeated_refusals(library: Library, server: BatchServer) -> None:
    set_up(library, server, "openai")
    library.settings(batch={"poll_s": 0.01}, timeout_s=0.2, retry={"attempts": 2})
    server.broken = True
    done = evaluate(library, "--batch")
    assert (done.code, server.batches) == (4, [])
    assert "stopped by server_error: out of order" in done.out
    assert [line["event"] for line in events(library)] == ["intended", "absent"] * 2
    server.broken = False
    assert evaluate(library, "--resume").code == 0
    assert reasons(library) == {"answered": CALLS}


def test_nothing_is_sent_while_a_batch_may_be_ours(library: Library, server: BatchServer) -> None:
    set_up(library, server, "anthropic")
    submit(library, server)
    mine = server.batches.pop()
    theirs = server.create("anthropic", "", {f"x{n}": body for n, body in enumerate(mine.requests.values())})
    server.held = True
    cut(library, 1)
    seen = server.seen
    stopped = interrupted(library, lambda: server.seen > seen + 2, "--resume")
    assert stopped.code == 4, stopped
    assert f"{theirs.id} may be batch 1, and this is known only after it has ended" in " ".join(stopped.out.split())
    assert server.batches == [theirs]
    server.held, theirs.polls = False, 1
    assert evaluate(library, "--resume").code == 0
    assert len(server.batches) == 2, "that one was somebody else's"


def test_batches_are_split_by_cost_limit_and_queued_tokens(library: Library, server: BatchServer) -> None:
    set_up(library, server, "openai", params={"max_output_tokens": 1000})
    assert evaluate(library, "--batch", "--max-cost", "0").code == 4
    assert server.batches == []
    most = evaluate(library, "--dry-run", "--batch", "--format", "json").json["models"][0]["cost_upper_usd"]
    done = evaluate(library, "--batch", "--no-reuse", "--max-cost", f"{most / CALLS * 2.5}")
    assert done.code == 0, done
    assert [len(batch.requests) for batch in server.batches] == [2, 2, 2]
    (record,) = library.records()
    assert record["cost_usd"] == pytest.approx(CALLS * COST)
    set_up(library, server, "openai", limits={"queued_tokens": 5_000}, params={"max_output_tokens": 1000})
    assert evaluate(library, "--batch").code == 0
    assert len(server.batches) == 6


def test_results_are_deleted_at_the_vendor_on_request(library: Library, server: BatchServer, vendor: str) -> None:
    set_up(library, server, vendor)
    library.settings(batch={"poll_s": 0.01, "delete_results": True})
    assert evaluate(library, "--batch").code == 0
    assert server.deleted == (["file-1", "answers-batch_1"] if vendor == "openai" else [server.batches[0].id])
    server.undeletable = True
    done = evaluate(library, "--batch", "--no-reuse")
    assert done.code == 0, done
    assert f"{server.batches[1].id} could not be deleted" in done.err
    assert library.records()[0]["scored"] == CALLS


@pytest.mark.faults
def test_killed_batch_run_loses_no_result_and_repeats_no_request(tmp_path: Path, server: BatchServer) -> None:
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    server.polls = 3
    kills, rounds = KILLS, 0
    while kills:
        rounds += 1
        library = Library(tmp_path / f"round-{rounds}")
        set_up(library, server, VENDORS[rounds % len(VENDORS)])
        library.settings(batch={"poll_s": 0.01}, timeout_s=4)  # so long a creation may be under way unseen
        created = len(server.batches)
        server.submitted.clear()
        while True:
            resume = ("--resume",) if list(library.results.glob("*/manifest.json")) else ("--batch",)
            with library.start(*resume, env=KEYS) as process:
                if kills:
                    wanted = server.seen + dice.randint(1, 4)
                    wait_until(lambda wanted=wanted: server.seen >= wanted or process.poll() is not None, 60)
                    time.sleep(dice.uniform(0, 0.04))
                    kills -= process.poll() is None
                    process.kill()
                end = ended(process)
            if end.code == 0 or "no unfinished run" in end.err:  # the last kill came when all was kept
                break
            assert end.code == -signal.SIGKILL, (seed, end)
        records = list(library.results.glob("*/record.json"))
        assert len(records) == 1, (seed, records)
        lines = whole_lines(records[0].parent / "replicates.jsonl")
        assert Counter((line["case_id"], line["replicate"]) for line in lines).total() == CALLS, seed
        assert len(server.batches) == created + 1, seed
        assert set(server.submitted.values()) == {2}, seed
        assert library.rows()[0]["cost_usd"] == pytest.approx(CALLS * COST), seed

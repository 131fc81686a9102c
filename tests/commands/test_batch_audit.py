"""`audit run --batch`: every cell through the vendors' batches, at half the price, by whichever process is there."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.audit.run.gathering import gather

from tests.support.audits import CELLS, AuditLibrary
from tests.support.batch_server import VENDORS, BatchServer
from tests.support.batched import COST, KEYS, batches, set_up  # noqa: F401
from tests.support.library import Ended, read

CALLS = len(CELLS) * 2


@pytest.fixture
def library(tmp_path: Path, server: BatchServer) -> AuditLibrary:
    library = AuditLibrary(tmp_path)
    set_up(library, server, *VENDORS)
    return library


def collect(library: AuditLibrary) -> Ended:
    return library.call("collect", "--batches", env=KEYS)


def manifests(library: AuditLibrary) -> list[Any]:
    return [read(path) for path in sorted(library.audit_folder().glob("runs/*/manifest.json"))]


def test_every_cell_of_every_vendor_is_asked_in_one_batch_at_half_the_price(
    library: AuditLibrary, server: BatchServer
) -> None:
    done = library.audit("--batch", "--format", "json", env=KEYS)
    assert done.code == 0, done
    assert [len(batch.requests) for batch in server.batches] == [CALLS] * len(VENDORS)
    for run in done.json["runs"]:
        assert (run["planned"], run["outcomes"], run["latency_s"]) == (CALLS, {"scored": CALLS}, None)
        assert run["cost_usd"] == pytest.approx(CALLS * COST)
    assert read(library.audit_folder() / "audit.json")["transport"] == "batch"
    assert [manifest["transport"] for manifest in manifests(library)] == ["batch"] * len(VENDORS)
    gathered = gather([library.audit_folder()], library.places)
    assert "transport: batch" in gathered.remarks[0]


def test_what_is_submitted_is_collected_by_another_process_once(library: AuditLibrary, server: BatchServer) -> None:
    server.held = True
    submitted = library.audit("--batch", "--submit-only", env=KEYS)
    assert (submitted.code, submitted.out) == (0, ""), submitted
    assert submitted.err.count(f"{CALLS} calls in 1 batch at the vendor, the oldest for 0 h 00") >= len(VENDORS)
    early = collect(library)
    assert (early.code, early.out) == (0, ""), early
    assert "at the vendor" in early.err
    server.held = False
    taken = collect(library)
    assert taken.code == 0, taken
    assert taken.err.endswith(f"audit report audits/{library.audit_folder().name}\n"), taken
    answered = library.answered()
    assert set(Counter(answered).values()) == {len(VENDORS)}
    assert len(answered) == CALLS * len(VENDORS)
    again = collect(library)
    assert (again.code, again.err) == (0, "no batch is left to collect\n")
    assert len(server.batches) == len(VENDORS)


def test_one_vendor_is_collected_while_another_goes_on(library: AuditLibrary, server: BatchServer) -> None:
    server.held = True
    library.audit("--batch", "--submit-only", env=KEYS)
    server.held = False
    next(batch for batch in server.batches if batch.vendor == "google").polls = -9
    taken = collect(library)
    assert taken.code == 0, taken
    assert "google-model" in taken.err
    assert ("google-model" in taken.out, "openai-model" in taken.out) == (False, True)
    assert len(library.answered()) == CALLS * 2


def test_collecting_asks_nothing_again_and_resuming_does(library: AuditLibrary, server: BatchServer) -> None:
    server.outcome = lambda case_id, times: "rejected" if case_id == "eta" else "answered"
    assert library.audit("--batch", "--submit-only", "--model", "openai-model", env=KEYS).code == 0
    assert collect(library).code == 4
    assert (collect(library).err, len(server.batches)) == ("no batch is left to collect\n", 1)
    server.outcome = lambda case_id, times: "answered"
    assert library.call("audit", "run", "--resume", "--model", "openai-model", env=KEYS).code == 0
    assert {case for case, times in server.submitted.items() if times > 6} == {"eta"}


def test_a_dry_run_shows_half_the_price_and_what_cannot_be_is_refused(library: AuditLibrary) -> None:
    direct, batch = (
        library.audit("--dry-run", "--format", "json", *flag).json["total"]["cost_upper_usd"]
        for flag in ((), ("--batch",))
    )
    assert direct / 2 <= batch < 1.1 * direct / 2, "what is read from a cache is perhaps not halved"
    assert "answers come within a day" in library.audit("--dry-run", "--batch").out
    assert "--submit-only leaves batches" in library.audit("--submit-only", env=KEYS).err
    library.models({"id": "recorded", "provider": "replay", "params": {"file": "answers.jsonl"}})
    assert "provider 'replay' has no batch API" in library.audit("--batch").err
    library.audit()
    refused = library.call("audit", "run", "--resume", "--batch")
    assert (refused.code, "it was drawn without it" in refused.err) == (2, True)

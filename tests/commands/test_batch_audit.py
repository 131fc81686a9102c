"""`audit run --batch`: every cell through the vendors' batches, at half the price, by whichever process is there."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.audit.run.gathering import gather

from tests.audit.audit_library import CELLS, AuditLibrary
from tests.support.batch_server import VENDORS, BatchServer
from tests.support.batched import COST, KEYS, batches, set_up  # noqa: F401
from tests.support.library import read

CALLS = len(CELLS) * 2


@pytest.fixture
def library(tmp_path: Path, server: BatchServer) -> AuditLibrary:
    library = AuditLibrary(tmp_path)
    set_up(library, server, *VENDORS)
    return library


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
    gathered = gather(library.audit_folder(), library.places)
    assert "transport: batch" in gathered.remarks[0]


def test_resuming_an_audit_in_batches_calls_only_what_failed(library: AuditLibrary, server: BatchServer) -> None:
    server.outcome = lambda case_id, times: "rejected" if case_id == "eta" else "answered"
    assert library.audit("--batch", "--model", "openai-model", env=KEYS).code == 4
    assert len(server.batches) == 1
    server.outcome = lambda case_id, times: "answered"
    assert library.call("audit", "run", "--resume", "--model", "openai-model", env=KEYS).code == 0
    assert {case for case, times in server.submitted.items() if times > 6} == {"eta"}


def test_a_dry_run_shows_half_the_price_and_what_cannot_be_is_refused(library: AuditLibrary) -> None:
    direct, batch = (
        library.audit("--dry-run", "--format", "json", *flag).json["total"]["cost_upper_usd"]
        for flag in ((), ("--batch",))
    )
    assert direct / 2 <= batch < 1.1 * direct / 2, "what is read from a cache is perhaps not halved"
    assert "outputs arrive within a day" in library.audit("--dry-run", "--batch").out
    library.models({"id": "recorded", "provider": "replay", "params": {"file": "answers.jsonl"}})
    assert "provider 'replay' has no batch API" in library.audit("--batch").err
    library.audit()
    refused = library.call("audit", "run", "--resume", "--batch")
    assert (refused.code, "it was started without it" in refused.err) == (2, True)

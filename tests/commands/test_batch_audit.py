"""`audit run --batch`: every cell is called in a batch at half the price."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.audit.calls import gather

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


def test_audit_calls_every_cell_in_batches_at_half_price(library: AuditLibrary, server: BatchServer) -> None:
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


def test_audit_without_a_batch_api_is_refused(library: AuditLibrary) -> None:
    library.models({"id": "recorded", "provider": "replay", "params": {"file": "answers.jsonl"}})
    assert "provider 'replay' has no batch API" in library.audit("--batch").err
    library.audit()
    refused = library.call("audit", "run", "--resume", "--batch")
    assert (refused.code, "was started without --batch" in refused.err) == (2, True)

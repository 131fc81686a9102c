"""`judge … --batch`: judges called through the vendors' batch APIs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asked_judges import QUOTE, JudgingLibrary, answer, written
from tests.support.batch_server import VENDORS, BatchServer, batch_server
from tests.support.batched import COST, KEYS, set_up
from tests.support.library import CASES

JUDGE = ("--judge", "openai-model")
SCORED = answer(totals=written(4))


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with batch_server() as running:
        running.text = lambda body: SCORED
        yield running


@pytest.fixture
def library(tmp_path: Path, server: BatchServer) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    set_up(library, server, *VENDORS)
    library.items(*({"id": name, "input": f"{name} is the title.", "output": QUOTE} for name in CASES))
    return library


def test_judge_scores_in_one_batch_at_half_the_price(library: JudgingLibrary, server: BatchServer) -> None:
    done = library.judge("score", *JUDGE, "--batch", "--format", "json", env=KEYS)
    assert done.code == 0, done
    (judge,) = done.json["judges"]
    assert judge["summary"]["value"] == 0.75
    assert (judge["judge"]["answered"], judge["judge"]["cost_usd"]) == (3, pytest.approx(3 * COST))
    assert done.json["judging"]["transport"] == "batch"
    assert [len(batch.requests) for batch in server.batches] == [3]


def test_strong_judge_has_its_batch_after_the_cheap_judge(library: JudgingLibrary, server: BatchServer) -> None:
    server.text = lambda body: answer(totals=written(4, confidence=0.1))
    cascade = ("--cascade", "openai-model,anthropic-model", "--batch")
    assert library.judge("score", *cascade, env=KEYS).code in (0, 4)
    assert [batch.vendor for batch in server.batches] == ["openai", "anthropic"]
    assert library.judged()


def test_direct_judge_run_is_not_resumed_in_batches(library: JudgingLibrary) -> None:
    library.models({"id": "openai-model", "provider": "openai", "base_url": "http://127.0.0.1:9/v1"})
    library.judge("score", *JUDGE, env=KEYS)
    refused = library.judge("score", *JUDGE, "--batch", "--judge-run", str(library.judging()), env=KEYS)
    assert (refused.code, "was started without --batch" in refused.err) == (2, True), refused

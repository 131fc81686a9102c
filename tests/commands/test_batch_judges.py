"""`judge … --batch`: judges called through the vendors' batch APIs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asked_judges import QUOTE, JudgingLibrary, answer, compared, written
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


@pytest.mark.parametrize("vendor", VENDORS)
def test_judge_scores_in_one_batch_at_half_the_price(library: JudgingLibrary, server: BatchServer, vendor: str) -> None:
    done = library.judge("score", "--judge", f"{vendor}-model", "--batch", "--format", "json", env=KEYS)
    assert done.code == 0, done
    (judge,) = done.json["judges"]
    assert judge["summary"]["value"] == 0.75
    assert (judge["judge"]["answered"], judge["judge"]["cost_usd"]) == (3, pytest.approx(3 * COST))
    assert done.json["judging"]["transport"] == "batch"
    assert [len(batch.requests) for batch in server.batches] == [3]


def test_two_judges_have_a_batch_each(library: JudgingLibrary, server: BatchServer) -> None:
    library.rubric({"method": {"primary": "pairwise_comparison", "confidence_threshold": 0.8}})
    server.text = lambda body: answer(totals=compared())
    library.items({"id": "a", "input": "alpha is the title.", "output_1": QUOTE, "output_2": "no sum"})
    judges = (*JUDGE, "--judge", "anthropic-model")
    assert library.judge("pairwise", *judges, "--batch", env=KEYS).code == 0
    assert [judge["judge"]["answered"] for judge in library.judged()["judges"]] == [2, 2]
    assert len(server.batches) == 2


def test_strong_judge_has_its_batch_after_the_cheap_judge(library: JudgingLibrary, server: BatchServer) -> None:
    server.text = lambda body: answer(totals=written(4, confidence=0.1))
    cascade = ("--cascade", "openai-model,anthropic-model", "--batch")
    assert library.judge("score", *cascade, env=KEYS).code in (0, 4)
    assert [batch.vendor for batch in server.batches] == ["openai", "anthropic"]
    assert library.judged()


def test_batch_is_estimated_at_half_price_and_refused_without_an_api(
    library: JudgingLibrary, server: BatchServer
) -> None:
    dry = [library.judge("score", *JUDGE, "--dry-run", "--format", "json", *flag).json for flag in ((), ("--batch",))]
    direct, batch = (size["total"]["cost_upper_usd"] for size in dry)
    assert direct / 2 <= batch < 1.2 * direct / 2
    library.models({"id": "recorded", "provider": "replay", "params": {"file": "answers.jsonl"}})
    assert "provider 'replay' has no batch API" in library.judge("score", "--judge", "recorded", "--batch").err


def test_direct_judge_run_is_not_resumed_in_batches(library: JudgingLibrary) -> None:
    library.models({"id": "openai-model", "provider": "openai", "base_url": "http://127.0.0.1:9/v1"})
    library.judge("score", *JUDGE, env=KEYS)
    refused = library.judge("score", *JUDGE, "--batch", "--judge-run", str(library.judging()), env=KEYS)
    assert (refused.code, "it was begun without it" in refused.err) == (2, True), refused

"""`judge … --batch`: judges through the vendors' batches, by whichever process is there."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.asked_judges import QUOTE, JudgingLibrary, answer, compared, written
from tests.support.batch_server import VENDORS, BatchServer, batch_server
from tests.support.batched import COST, KEYS, set_up
from tests.support.judged import LIBRARY, Short
from tests.support.judged import answer as regressions
from tests.support.library import CASES, Ended, Library

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


def collect(library: Library) -> Ended:
    return library.call("collect", "--batches", env=KEYS)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_judge_scores_in_one_batch_at_half_the_price(
    library: JudgingLibrary, server: BatchServer, vendor: str
) -> None:
    done = library.judge("score", "--judge", f"{vendor}-model", "--batch", "--format", "json", env=KEYS)
    assert done.code == 0, done
    (judge,) = done.json["judges"]
    assert judge["summary"]["value"] == 0.75
    assert (judge["judge"]["answered"], judge["judge"]["cost_usd"]) == (3, pytest.approx(3 * COST))
    assert done.json["judging"]["transport"] == "batch"
    assert [len(batch.requests) for batch in server.batches] == [3]


def test_a_submitted_judging_is_collected_with_the_options_it_was_begun_with(
    library: JudgingLibrary, server: BatchServer
) -> None:
    server.held = True
    submitted = library.judge("score", *JUDGE, "--seed", "7", "--batch", "--submit-only", env=KEYS)
    assert (submitted.code, submitted.out) == (0, ""), submitted
    assert "3 calls in 1 batch at the vendor" in submitted.err
    assert not submitted.err.startswith("error")
    early = collect(library)
    assert (early.code, early.out) == (0, ""), early
    server.held = False
    taken = collect(library)
    assert taken.code == 0, taken
    assert library.judged()["judging"]["seed"] == 7
    assert library.judged()["judges"][0]["summary"]["value"] == 0.75
    assert (collect(library).err, len(server.batches)) == ("no batch is left to collect\n", 1)


def test_a_judging_that_is_given_up_is_told_without_its_judge(library: JudgingLibrary, server: BatchServer) -> None:
    server.held = True
    assert library.judge("score", *JUDGE, "--batch", "--submit-only", env=KEYS).code == 0
    (path,) = library.root.rglob("batches.jsonl")
    given_up = library.call("collect", "--batches", "--abandon", path.parent.name, env=KEYS)
    assert given_up.code == 4, given_up
    assert "lost_by_provider" in (path.parent / "replicates.jsonl").read_text()
    assert (collect(library).err, len(server.batches)) == ("no batch is left to collect\n", 1)


def test_pairs_are_compared_in_both_orders_by_two_judges_in_a_batch_each(
    library: JudgingLibrary, server: BatchServer
) -> None:
    library.rubric({"method": {"primary": "pairwise_comparison", "confidence_threshold": 0.8}})
    server.text = lambda body: answer(totals=compared())
    library.items({"id": "a", "input": "alpha is the title.", "output_1": QUOTE, "output_2": "no sum"})
    judges = (*JUDGE, "--judge", "anthropic-model")
    assert library.judge("pairwise", *judges, "--batch", "--submit-only", env=KEYS).code == 0
    taken = collect(library)
    assert taken.code == 0, taken
    assert [judge["judge"]["answered"] for judge in library.judged()["judges"]] == [2, 2]
    assert len(server.batches) == 2


def test_a_regression_is_decided_by_whoever_collects_with_what_blocks_as_it_was_begun(
    library: JudgingLibrary, server: BatchServer
) -> None:
    worse: Mapping[str, Short | str] = {
        "factuality": "same",
        "completeness": ("worse", "low"),
        "format_adherence": "same",
    }
    server.text = lambda body: json.dumps(regressions(worse))
    pair = {
        "prompt": f"alpha is the title. {LIBRARY.shown}",
        "baseline_output": LIBRARY.baseline_output,
        "candidate_output": LIBRARY.candidate_output,
    }
    library.write("pairs.jsonl", json.dumps({"id": "p", **pair}) + "\n")
    words = ("judge", "regression", "--items", "pairs.jsonl", *JUDGE, "--blocking", "completeness")
    server.held = True
    submitted = library.call(*words, "--batch", "--submit-only", env=KEYS)
    assert (submitted.code, submitted.out) == (0, ""), submitted
    server.held = False
    taken = collect(library)
    assert (taken.code, "block" in taken.out) == (3, True), taken
    waited = library.call(*words, "--batch", "--format", "json", env=KEYS)
    assert (waited.code, waited.json["ship_decision"]) == (3, "block"), waited
    assert waited.json["judges"][0]["judge"]["cost_usd"] == pytest.approx(2 * COST)
    assert [len(batch.requests) for batch in server.batches] == [2, 2]


def test_the_strong_judge_of_a_cascade_is_submitted_once_the_cheap_one_is_collected(
    library: JudgingLibrary, server: BatchServer
) -> None:
    server.text = lambda body: answer(totals=written(4, confidence=0.1))
    cascade = ("--cascade", "openai-model,anthropic-model", "--batch", "--submit-only")
    assert library.judge("score", *cascade, env=KEYS).code == 0
    assert [batch.vendor for batch in server.batches] == ["openai"]
    between = collect(library)
    assert (between.code, "anthropic-model: 3 calls in 1 batch at the vendor" in between.err) == (0, True), between
    assert [batch.vendor for batch in server.batches] == ["openai", "anthropic"]
    assert collect(library).code in (0, 4)
    assert library.judged()
    assert collect(library).err == "no batch is left to collect\n"
    assert len(server.batches) == 2


def test_what_no_judge_can_be_asked_in_batches_is_refused(library: JudgingLibrary, server: BatchServer) -> None:
    dry = [library.judge("score", *JUDGE, "--dry-run", "--format", "json", *flag).json for flag in ((), ("--batch",))]
    direct, batch = (size["total"]["cost_upper_usd"] for size in dry)
    assert direct / 2 <= batch < 1.2 * direct / 2
    assert "--submit-only leaves batches" in library.judge("score", *JUDGE, "--submit-only", env=KEYS).err
    library.models({"id": "recorded", "provider": "replay", "params": {"file": "answers.jsonl"}})
    assert "provider 'replay' has no batch API" in library.judge("score", "--judge", "recorded", "--batch").err


def test_a_judging_that_was_begun_call_by_call_is_not_resumed_in_batches(library: JudgingLibrary) -> None:
    library.models({"id": "openai-model", "provider": "openai", "base_url": "http://127.0.0.1:9/v1"})
    library.judge("score", *JUDGE, env=KEYS)
    refused = library.judge("score", *JUDGE, "--batch", "--resume", str(library.judging()), env=KEYS)
    assert (refused.code, "it was begun without it" in refused.err) == (2, True), refused

"""A model's server that says whatever it likes: the run ends as usual, within its budget, memory and limits."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import ChatServer, Reply, notice
from tests.support.library import CASES, Library, journal, read

ODD_USAGES: tuple[Any, ...] = (
    {"prompt_tokens": -(10**30), "completion_tokens": 0},
    {"prompt_tokens": float("-inf"), "completion_tokens": float("nan")},
    None,
)


def test_no_usage_raises_the_budget(tmp_path: Path, server: ChatServer) -> None:
    price = {"input": 1.0, "output": 20.0, "cache_write": 1.0}
    for number, usage in enumerate(ODD_USAGES):
        library = Library(tmp_path / str(number))
        library.served_by(server.url, price=price, params={"max_output_tokens": 100})
        server.forget()
        server.reply = lambda asked, usage=usage: Reply(text=notice(asked.case_id), fields={"usage": usage})
        planned = library.evaluate_here("--dry-run", "--replicates", "10", "--format", "json").json["models"][0]
        assert planned["calls"] == 30
        assert 0.003 / 2 < planned["cost_upper_usd"] / planned["calls"] < 0.003
        stopped = library.evaluate_here("--replicates", "10", "--max-cost", "0.003")
        assert (stopped.code, server.requests) == (4, 1), usage
        record = read(library.run_folder() / "record.json")
        assert record["stopped"].startswith("max_cost"), usage
        assert record["cost_usd"] is None, usage  # unknown, and not a refund
        assert library.evaluate_here("--resume", "--max-cost", "0.003").code == 4, usage
        assert server.requests == 1, usage


def test_usage_beyond_the_worst_case_is_told_as_it_is_and_no_further_call_is_made(
    library: Library, server: ChatServer
) -> None:
    library.served_by(server.url, price={"input": 1.0, "output": 20.0}, params={"max_output_tokens": 100})
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
    server.reply = lambda asked: Reply(text=notice(asked.case_id), fields={"usage": usage})
    assert library.evaluate_here("--replicates", "10", "--max-cost", "0.5").code == 4
    assert server.requests <= 3  # those in flight
    assert read(library.run_folder() / "record.json")["cost_usd"] == server.requests * 1.0


def test_an_answer_over_the_limit_keeps_no_text_and_counts_as_a_wrong_answer(library: Library) -> None:
    library.settings(limits={"answer_bytes": 60})
    texts = {(case_id, index): notice(case_id) for case_id in CASES for index in range(2)}
    library.record_answers({**texts, ("beta", 1): notice("b" * 60)})
    assert library.evaluate_here().code == 0
    (row,) = library.rows()
    assert (row["accuracy"]["field_level_f1"]["strict_mean"], row["coverage"]) == (pytest.approx(5 / 6, abs=1e-3), 1.0)
    assert library.records()[0]["reasons"] == {"answer_too_large": 1}
    assert [line["text"] for line in journal(library.run_folder()) if line["stop_reason"] == "too_large"] == [""]

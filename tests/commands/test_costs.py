"""Costs of runs and `--max-cost`, with a loopback server in place of the vendor."""

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.library import Library, journal, only_journal, read

PRICE = {"input": 1000.0, "output": 5000.0}  # USD per million tokens
PARAMS = {"max_output_tokens": 50}


def _cost(line: dict[str, dict[str, int]]) -> float:
    return (line["usage"]["input_tokens"] * PRICE["input"] + line["usage"]["output_tokens"] * PRICE["output"]) / 1e6


def _thrifty(asked: Asked) -> Reply:
    return Reply(text=notice(asked.case_id), input_tokens=60 + asked.seed % 40, output_tokens=5 + asked.seed % 45)


def test_resumed_run_counts_what_it_cost_before(served: Library, server: ChatServer) -> None:
    served.served_by(server.url, price=PRICE, params=PARAMS)
    planned = served.evaluate_here("--dry-run", "--replicates", "10", "--format", "json").json["models"][0]
    budget = str(5 * planned["cost_upper_usd"] / planned["calls"])
    server.reply = _thrifty
    assert served.evaluate_here("--replicates", "10", "--max-cost", budget).code == 4
    before = server.requests
    assert served.evaluate_here("--resume", "--max-cost", budget).code == 4
    assert sum(map(_cost, only_journal(served))) <= float(budget)
    assert server.requests <= before + 1
    assert served.evaluate_here("--resume", "--max-cost", "1000").code == 0


def test_models_share_one_budget(library: Library, server: ChatServer) -> None:
    entry = {"provider": "openai", "base_url": server.url, "price": PRICE, "params": PARAMS}
    library.models({"id": "first", **entry}, {"id": "second", **entry})
    server.reply = _thrifty
    assert library.evaluate_here("--replicates", "5", "--max-cost", "4").code == 4
    lines = [read(path)["cost_usd"] for path in library.results.glob("*/record.json")]
    assert len(lines) == 2
    assert 2.5 < sum(lines) <= 4


def test_cost_includes_cached_tokens(served: Library, server: ChatServer) -> None:
    served.served_by(server.url, price={**PRICE, "cache_read": 100.0}, params=PARAMS)
    usage = {"prompt_tokens": 40, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 30}}
    server.reply = lambda asked: Reply(text=notice(asked.case_id), fields={"usage": usage})
    ran = served.evaluate_here()
    assert ran.code == 0, ran.err
    record, row = read(served.run_folder() / "record.json"), served.rows()[0]
    assert record["tokens"] == {"input": 240, "output": 120, "hit_rate": 0.75, "cache_read": 180, "uncached": 60}
    assert row["tokens"] == {"input": 240, "output": 120, "hit_rate": 0.75}
    assert record["cost_usd"] == row["cost_usd"] == pytest.approx(6 * (10 * 0.001 + 30 * 0.0001 + 20 * 0.005))
    report = (served.run_folder() / "report.md").read_text()
    assert all("tokens 240 in (75% from a cache), 120 out" in text for text in (ran.out, report))
    assert journal(served.run_folder())[0]["usage"] == {
        "input_tokens": 40,
        "output_tokens": 20,
        "cache_read_tokens": 30,
    }


def test_budget_is_refused_for_a_model_without_a_price(served: Library, server: ChatServer) -> None:
    before = served.tree()
    refused = served.evaluate_here("--max-cost", "5")
    assert refused.code == 2
    (line,) = refused.err.splitlines()
    assert line.startswith("error: --max-cost")
    assert "'served'" in line
    assert "price" in line
    assert served.tree() == before
    assert server.requests == 0

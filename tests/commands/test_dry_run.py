"""`--dry-run` checks everything, makes no call and writes nothing."""

import json

import pytest

from tests.support.chat_server import ChatServer
from tests.support.library import REPLAY, SCHEMA, SKILL, Library


def test_dry_run_makes_no_request_and_writes_nothing(served: Library, server: ChatServer) -> None:
    before = served.tree()
    ended = served.evaluate_here("--dry-run")
    assert (ended.code, ended.err) == (0, "")
    assert "no call was made, nothing was written" in ended.out
    assert server.requests == 0
    assert served.tree() == before


def test_dry_run_needs_no_key_and_names_those_missing(library: Library) -> None:
    library.models(
        {"id": "gpt", "provider": "openai", "price": {"input": 1, "output": 1}},
        {"id": "claude", "provider": "anthropic"},
        REPLAY,
    )
    ended = library.evaluate_here("--dry-run", "--format", "json", env={"ANTHROPIC_API_KEY": "sk-something-long"})
    assert ended.code == 0
    assert {model["model_id"]: model["key"] for model in ended.json["models"]} == {
        "gpt": "OPENAI_API_KEY not set",
        "claude": "set",
        "recorded": "not needed",
    }
    assert "sk-something-long" not in ended.out


def test_dry_run_counts_calls_tokens_and_maximum_cost(served: Library, server: ChatServer) -> None:
    price = {"input": 2.0, "output": 4.0, "cache_write": 2.0}
    served.served_by(server.url, price=price, params={"max_output_tokens": 100})
    chosen = ("--replicates", "5", "--case", "*a", "--shard", "1/3", "--format", "json")
    (model,) = served.evaluate_here("--dry-run", *chosen).json["models"]
    assert (model["calls"], model["output_tokens_upper"]) == (5, 500)
    least = (model["input_tokens_estimate"] * 2.0 + 500 * 4.0) / 1e6
    text = "Extract title and year." + "alpha is the title of a notice of 2024.\n" + json.dumps(SCHEMA)
    most = 5 * ((len(text) + 512) * 2.0 + 100 * 4.0) / 1e6  # a byte a token, and what vendors add
    assert least < model["cost_upper_usd"] == pytest.approx(most, rel=0.01)


def test_dry_run_names_too_long_documents(served: Library, server: ChatServer) -> None:
    served.served_by(server.url, limits={"context_tokens": 500, "max_concurrency": 2})
    served.write(f"fixtures/{SKILL}/cases/beta/document.md", "beta-" * 2000)  # one word: perhaps not beyond
    told = served.evaluate_here("--dry-run", "--replicates", "20")
    assert told.code == 0
    assert "longer than the context of served (500 tokens): beta (about 2,5" in told.out

"""`--dry-run`: everything is checked, nothing is asked, written or needed."""

import json

import pytest

from tests.support.chat_server import ChatServer
from tests.support.library import REPLAY, SCHEMA, SKILL, Library


def test_it_makes_no_request_and_writes_nothing(served: Library, server: ChatServer) -> None:
    before = served.tree()
    ended = served.evaluate_here("--dry-run")
    assert (ended.code, ended.err) == (0, "")
    assert "no call was made, nothing was written" in ended.out
    assert server.requests == 0
    assert served.tree() == before


def test_it_needs_no_key_and_says_which_is_missing(library: Library) -> None:
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


def test_it_counts_calls_tokens_and_the_most_they_can_cost(served: Library, server: ChatServer) -> None:
    price = {"input": 2.0, "output": 4.0, "cache_write": 2.0}
    served.served_by(server.url, price=price, params={"max_output_tokens": 100})
    chosen = ("--replicates", "5", "--case", "*a", "--shard", "1/3", "--format", "json")
    (model,) = served.evaluate_here("--dry-run", *chosen).json["models"]
    assert (model["calls"], model["output_tokens_upper"]) == (5, 500)
    least = (model["input_tokens_estimate"] * 2.0 + 500 * 4.0) / 1e6
    text = "Extract title and year." + "alpha is the title of a notice of 2024.\n" + json.dumps(SCHEMA)
    most = 5 * ((len(text) + 512) * 2.0 + 100 * 4.0) / 1e6  # a byte a token, and what vendors add
    assert least < model["cost_upper_usd"] == pytest.approx(most, rel=0.01)


def test_it_counts_the_cases_that_have_truth(library: Library) -> None:
    (library.root / "fixtures" / SKILL / "cases" / "beta" / "ground_truth.json").unlink()
    ended = library.evaluate_here("--dry-run")
    assert ended.code == 0
    assert "3 cases, 2 with ground truth" in ended.out


def test_its_markdown_is_a_table_with_a_row_a_model_and_the_forecast(library: Library) -> None:
    library.models(REPLAY, {**REPLAY, "id": "other"})
    lines = library.evaluate_here("--dry-run", "--format", "markdown").out.splitlines()
    assert [line.count("|") for line in lines if line.startswith("|")] == [8] * 4 + [6] * 5
    assert "| all | 12 | $0.00 | $0.00 | $0.00 |" in lines


def test_it_names_documents_beyond_the_context_and_how_long_the_calls_will_take(
    served: Library, server: ChatServer
) -> None:
    served.served_by(server.url, limits={"context_tokens": 500, "max_concurrency": 2})
    assert served.evaluate_here().code == 0
    (path,) = (served.component / "evals" / "records").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "latency_s": {"p50": 6.0, "p95": 9.0}}))
    served.write(f"fixtures/{SKILL}/cases/beta/document.md", "beta-" * 2000)  # one word: perhaps not beyond
    told = served.evaluate_here("--dry-run", "--replicates", "20")
    assert told.code == 0
    assert "longer than the context of served (500 tokens): beta (about 2,5" in told.out
    assert (
        f"served will take about 3 minutes, as its calls in {path.stem} took" in told.out
    )  # 60 calls, 2 at once, 6 s each


def test_it_says_how_long_the_calls_of_a_new_component_will_take_by_those_of_another(library: Library) -> None:
    assert library.evaluate_here().code == 0
    other = library.component.parent / "other"
    library.component.rename(other)
    library.write(f"components/{SKILL}/prompt.md", (other / "prompt.md").read_text())
    library.write(f"components/{SKILL}/schema.json", SCHEMA)
    (path,) = (other / "evals" / "records").glob("*.json")
    assert (
        f"recorded will take under a minute, as its calls in {path.stem} took" in library.evaluate_here("--dry-run").out
    )

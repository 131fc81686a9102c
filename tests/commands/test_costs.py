"""Prompt caching, its price, and `--max-cost`, against a loopback server in place of the vendor."""

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.library import CASES, SKILL, Library, journal, only_journal, read

LONG = "A line of the notice that says nothing of its year.\n" * 100  # over the vendor's floor of 1,024 tokens
KEY = {"OPENAI_API_KEY": "sk-of-nobody"}


class CachingVendor:
    """Answers as a vendor with a cache: a prompt is in it once an answer to it was given.

    `early` are the cases that were asked again before that.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.answered: set[str] = set()
        self.bodies: dict[str, list[Any]] = defaultdict(list)
        self.early: list[str] = []

    def reply(self, asked: Asked) -> Reply:
        with self.lock:
            cached = 1_280 if asked.case_id in self.answered and "prompt_cache_key" in asked.body else 0
            if self.bodies[asked.case_id] and asked.case_id not in self.answered:
                self.early.append(asked.case_id)
            self.bodies[asked.case_id].append(asked.body)
        if not cached:
            threading.Event().wait(0.2)  # long enough for everything that does not wait to come
            with self.lock:
                self.answered.add(asked.case_id)
        usage = {"prompt_tokens": 1_400, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": cached}}
        return Reply(text=notice(asked.case_id), fields={"usage": usage})


@pytest.fixture
def vendor(
    library: Library, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[CachingVendor, dict[str, Any]]]:
    """Evaluate with gpt-5 at what is taken for its vendor's address; return what that saw, and the record."""
    monkeypatch.setattr("skill_evaluator.providers.openai.VENDOR_URL", server.url)
    for case_id in CASES:
        library.write(f"fixtures/{SKILL}/cases/{case_id}/document.md", f"{case_id} is of 2024.\n{LONG}")
    library.settings(replicates=4, concurrency=8)

    def run(*arguments: str, **fields: object) -> tuple[CachingVendor, dict[str, Any]]:
        library.models({"id": "gpt-5", "provider": "openai", **fields})
        seen = CachingVendor()
        server.reply = seen.reply
        ended = library.evaluate_here(*arguments, env=KEY)
        assert ended.code == 0, ended.err
        return seen, max(library.records(), key=lambda record: str(record["run_id"]))

    return run


def test_first_replicate_fills_the_cache_before_the_others(vendor: Callable[..., Any]) -> None:
    seen, record = vendor()
    assert {case_id: len(bodies) for case_id, bodies in seen.bodies.items()} == dict.fromkeys(CASES, 4)
    assert seen.early == []
    keys = {case_id: {body["prompt_cache_key"] for body in bodies} for case_id, bodies in seen.bodies.items()}
    assert all(len(of_case) == 1 for of_case in keys.values())
    assert len(set.union(*keys.values())) == len(CASES)
    assert record["tokens"]["hit_rate"] == pytest.approx(9 * 1_280 / (12 * 1_400), abs=1e-4)
    read, rest = 9 * 1_280, 12 * 1_400 - 9 * 1_280
    assert record["cost_usd"] == pytest.approx((read * 0.125 + rest * 1.25 + 240 * 10) / 1e6, abs=1e-6)
    _, without = vendor(cache=False)
    assert (without["digests"]["settings"], without["tokens"]["hit_rate"]) == (record["digests"]["settings"], 0)


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

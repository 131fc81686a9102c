"""Prompts are cached where that pays: a case is asked once before its other replicates, and off against on is compared.

Through the real command, against a server on the loopback that stands where the vendor's own would.
"""

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.library import CASES, SKILL, Library

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


def test_the_first_replicate_of_a_case_warms_and_the_others_follow(vendor: Callable[..., Any]) -> None:
    seen, record = vendor()
    assert {case_id: len(bodies) for case_id, bodies in seen.bodies.items()} == dict.fromkeys(CASES, 4)
    assert seen.early == []
    keys = {case_id: {body["prompt_cache_key"] for body in bodies} for case_id, bodies in seen.bodies.items()}
    assert all(len(of_case) == 1 for of_case in keys.values())
    assert len(set.union(*keys.values())) == len(CASES)
    assert record["tokens"]["hit_rate"] == pytest.approx(9 * 1_280 / (12 * 1_400), abs=1e-4)
    read, rest = 9 * 1_280, 12 * 1_400 - 9 * 1_280
    assert record["cost_usd"] == pytest.approx((read * 0.125 + rest * 1.25 + 240 * 10) / 1e6, abs=1e-6)


def test_off_against_on_is_compared_with_a_remark(vendor: Callable[..., Any], library: Library) -> None:
    off, first = vendor(cache=False)
    assert not [body for bodies in off.bodies.values() for body in bodies if "prompt_cache_key" in body]
    library.write(
        f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.1.0\n---\nExtract title and year.\n"
    )
    _, second = vendor()
    assert first["digests"]["settings"] == second["digests"]["settings"]
    assert (first["tokens"]["hit_rate"], second["tokens"]["hit_rate"] > 0) == (0, True)
    compared = library.call("compare", SKILL, "--full")
    assert "INCOMPARABLE" not in compared.out.upper()
    assert "read from a cache 0% 69%" in " ".join(compared.out.split())
    assert "a prompt cache was read in one run only: 0% of the input, then 69%" in " ".join(compared.out.split())


@pytest.mark.parametrize(
    ("changed", "arguments"),
    [({"cache": False}, ()), ({}, ("--replicates", "1")), ({"base_url": True}, ())],
    ids=["switched off", "asked once", "somebody's own server"],
)
def test_nothing_is_asked_of_a_cache_where_it_does_not_pay(
    changed: dict[str, Any], arguments: tuple[str, ...], vendor: Callable[..., Any], server: ChatServer
) -> None:
    seen, _ = vendor(*arguments, **changed | ({"base_url": server.url} if "base_url" in changed else {}))
    assert len(seen.bodies) == len(CASES)
    assert not [body for bodies in seen.bodies.values() for body in bodies if "prompt_cache_key" in body]

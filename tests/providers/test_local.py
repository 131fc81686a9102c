"""The local model: repeatable outputs, failures, saved states and weights."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.library.prompts import Message, Prompt, dialogue
from skill_evaluator.providers import local, openai
from skill_evaluator.providers.base import Completion, Provider, ProviderError, Request

pytestmark = pytest.mark.local_model

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["colour", "count"],
    "properties": {"colour": {"type": "string", "enum": ["red", "green", "blue"]}, "count": {"type": "integer"}},
}


SAMPLED = {"profile": "sampled", "params": {"temperature": 0.9}}
SYSTEM = "Name the colour and the count as JSON."
APPLES, PLUMS = "Three red apples.", "A bowl of nine plums, all of them blue, was on the table."


@contextmanager
def opened() -> Iterator[local.LocalProvider]:
    provider = local.LocalProvider(Model(id="m", provider="local", **SAMPLED))
    try:
        yield provider
    finally:
        asyncio.run(provider.close())


@pytest.fixture(scope="module")
def provider() -> Iterator[local.LocalProvider]:
    with opened() as provider:
        yield provider


def question(*, seed: int = 1, user: str = APPLES, limit: int = 40, system: str = SYSTEM) -> Request:
    return Request(
        case_id="c",
        replicate=0,
        messages=dialogue(system, user),
        constant=len(system),
        max_output_tokens=limit,
        seed=seed,
        schema=SCHEMA,
    )


def ask(provider: Provider, **asked: Any) -> Completion:
    return asyncio.run(provider.complete(question(**asked)))


def test_equal_seeds_give_equal_outputs(provider: Provider) -> None:
    first = [ask(provider, seed=seed).text for seed in range(4)]
    again = [ask(provider, seed=seed).text for seed in range(4)]
    assert first == again
    assert len(set(first)) > 1


# What is short is evaluated alike in any pieces.
LONG = "Read the whole note, and count every piece of fruit in it. " * 12
CALLS = [(LONG + APPLES, 1), (LONG + PLUMS, 1), (LONG + APPLES, 2), (LONG + PLUMS, 2)]
OTHERS = [{}, {"system": "Say a colour."}, {"user": "word " * 9000}, {"limit": 1}]  # calls between those compared


@pytest.mark.parametrize("saved", ["kept", "without room", "deleted"])
def test_output_does_not_depend_on_earlier_calls_or_saved_states(
    provider: Provider, saved: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = {call: ask(provider, user=call[0], seed=call[1]).text for call in CALLS}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if saved == "without room":
        monkeypatch.setattr(local, "_MAX_BYTES", 0)
    again = {}
    with opened() as other:
        for (user, seed), between in zip(reversed(CALLS), OTHERS, strict=True):
            with suppress(ProviderError):  # one is too long
                ask(other, **between)
            for file in tmp_path.glob("*/*"):
                if saved == "deleted":
                    file.unlink()
            again[user, seed] = ask(other, user=user, seed=seed).text
    assert again == first
    assert len(set(first.values())) > 1


def test_shared_messages_are_evaluated_once(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The answer hangs on each of them, and not on what was asked before."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    examples = (Message("user", ("One red apple.",)), Message("assistant", ('{"colour": "red", "count": 1}',)))
    last = Message("user", ("These are {{kind}}: {{document}}",))
    prompt = Prompt(messages=(Message("system", (SYSTEM,)), *examples, last), inputs=("document", "kind"))
    turns = (Message("user", ("Three blue plums.",)), Message("assistant", ('{"colour": "blue", "count": 3}',)))

    def answer(provider: Provider, shape: Prompt, document: str, earlier: tuple[Message, ...] = ()) -> str:
        request = Request(
            case_id="c",
            replicate=0,
            messages=shape.filled({"document": document, "kind": "fruits"}, earlier),
            constant=shape.constant_characters(turns=bool(earlier)),
            max_output_tokens=10,
            seed=1,
        )
        return asyncio.run(provider.complete(request)).text

    calls = [(prompt, APPLES, ()), (prompt, PLUMS, ()), (prompt, APPLES, turns)]
    calls.append((replace(prompt, messages=(last,)), APPLES, ()))  # without a system message, and without examples
    with opened() as fresh:
        first = [answer(fresh, *call) for call in calls]
        assert len(set(first)) > 2
        states = len(list(tmp_path.glob("*/*")))
        assert states == len(calls) + 3  # each of them, and what APPLES and PLUMS have in common once
    assert [answer(provider, *call) for call in reversed(calls)] == first[::-1]


def test_local_output_follows_the_schema_and_has_token_counts(provider: Provider) -> None:
    completion = ask(provider, limit=200)
    assert completion.stop_reason in ("stop", "length")
    assert '"colour"' in completion.text
    assert completion.usage.input_tokens is not None
    assert completion.usage.input_tokens > 10
    assert completion.served_model == "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_truncated_output_has_stop_reason_length(provider: Provider) -> None:
    assert ask(provider, limit=3).stop_reason == "length"


def test_prompt_over_the_context_length_is_not_retried(provider: Provider) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(provider, user="word " * 9000)
    assert (caught.value.reason, caught.value.status, caught.value.retryable) == ("context_exceeded", 400, False)


def test_local_model_has_temperature_0_by_default() -> None:
    said = local.sampling(Model(id="m", provider="local"))
    assert said.sent["temperature"] == 0.0
    assert said.unavailable == ()


def test_weights_are_fetched_once_into_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = local.smollm2_weights()
    assert path.parent == tmp_path / "skill-evaluator"
    fetched = path.stat().st_mtime_ns
    assert local.smollm2_weights().stat().st_mtime_ns == fetched
    assert [entry.name for entry in path.parent.iterdir() if not entry.name.startswith(".")] == [path.name]


def test_weights_with_another_digest_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(local, "_SHA256", "0" * 64)
    with pytest.raises(ConfigError, match="not kept"):
        local.smollm2_weights()
    assert not (tmp_path / "skill-evaluator" / "SmolLM2-135M-Instruct.Q4_1.gguf").exists()


def test_llama_cpp_over_http_is_repeatable_and_follows_the_schema(provider: local.LocalProvider) -> None:
    """As llama.cpp serves it over HTTP: no sampler of its own is on, and no answer depends on the calls before."""
    address, key = f"{provider.states.engine.listening_address}/v1", provider.states._key
    settings = {"base_url": address, "server": "llama.cpp", "structured_output": "json_schema"}
    model = Model(id="m", provider="openai", **settings, params={"temperature": 0.9})
    served = openai.KIND.open(model, key, Settings())

    async def answers() -> list[Completion]:
        try:
            requests = [question(seed=seed, user=user) for seed, user in ((1, APPLES), (2, PLUMS), (1, APPLES))]
            return [await served.complete(request) for request in requests]
        finally:
            await served.close()

    first, other, again = asyncio.run(answers())
    assert first.text == again.text != other.text
    assert all(set(json.loads(each.text)) == {"colour", "count"} for each in (first, other, again))
    assert (first.stop_reason, first.usage.cache_read_tokens or 0, again.usage.cache_read_tokens or 0) == ("stop", 0, 0)

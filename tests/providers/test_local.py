"""The local model, really loaded: repeatable by seed, told apart when it fails, weights fetched once and checked."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model, Params
from skill_evaluator.providers import local
from skill_evaluator.providers.base import Completion, Provider, ProviderError, Request

pytestmark = pytest.mark.local_model

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["colour", "count"],
    "properties": {"colour": {"type": "string", "enum": ["red", "green", "blue"]}, "count": {"type": "integer"}},
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    opened = local.open_provider(
        Model(id="m", provider="local", profile="sampled", params=Params(temperature=0.9)), None, 60
    )
    yield opened
    asyncio.run(opened.close())


def ask(provider: Provider, *, seed: int = 1, user: str = "Three red apples.", limit: int = 40) -> Completion:
    request = Request(
        case_id="c",
        replicate=0,
        system="Name the colour and the count as JSON.",
        user=user,
        max_output_tokens=limit,
        seed=seed,
        schema=SCHEMA,
    )
    return asyncio.run(provider.complete(request))


def test_equal_seeds_give_equal_answers_and_different_seeds_differ(provider: Provider) -> None:
    first = [ask(provider, seed=seed).text for seed in range(4)]
    again = [ask(provider, seed=seed).text for seed in range(4)]
    assert first == again
    assert len(set(first)) > 1


def test_the_answer_keeps_to_the_schema_and_is_counted(provider: Provider) -> None:
    completion = ask(provider, limit=200)
    assert completion.stop_reason in ("stop", "length")
    assert '"colour"' in completion.text
    assert completion.usage.input_tokens is not None
    assert completion.usage.input_tokens > 10
    assert completion.served_model == "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_an_answer_cut_off_is_told_apart(provider: Provider) -> None:
    assert ask(provider, limit=3).stop_reason == "length"


def test_a_prompt_over_the_context_length_is_a_bad_request_that_is_not_retried(provider: Provider) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(provider, user="word " * 9000)
    assert (caught.value.reason, caught.value.status, caught.value.retryable) == ("bad_request", 400, False)


def test_greedy_is_what_a_model_gets_that_asks_for_nothing() -> None:
    said = local.sampling(Model(id="m", provider="local"))
    assert said.sent["temperature"] == 0.0
    assert said.unavailable == ()


def test_an_unknown_param_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown param 'thread' of local model 'm'"):
        local.check(Model(id="m", provider="local", params=Params.model_validate({"thread": 2})))


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

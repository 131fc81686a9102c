"""Behaviour of the OpenAI provider only; the contract suite has the rest."""

import pytest
from skill_evaluator.library.config import Model
from skill_evaluator.providers import openai

from tests.support.vendor_server import Body, Status, VendorServer
from tests.support.vendors import ask, ask_and_fail, asking, entry, failure_of


def test_reasoning_model_is_not_sent_unsupported_settings(server: VendorServer) -> None:
    for name in ("gpt-5", "gpt-5-mini", "o3", "o4-mini-2025-04-16"):
        model = entry("openai", server.url, api_id=name, params={"temperature": 0.7})
        assert openai.KIND.sampling(model).unavailable == ("temperature", "top_p"), name
        ask(model)
        body = server.received[-1].body
        assert {"temperature", "top_p"}.isdisjoint(body), name
        assert body["model"] == name


def test_the_same_name_elsewhere_is_another_model(server: VendorServer) -> None:
    ask(entry("openai-compatible", server.url, api_id="o3"))
    assert server.received[0].body["temperature"] == 0.0


def test_an_empty_account_is_not_a_rate_limit(server: VendorServer) -> None:
    for code in ("insufficient_quota", "billing_not_active"):
        server.enqueue(Status(429, body={"error": {"message": "pay first", "type": code, "code": code}}))
        error = ask_and_fail(entry("openai", server.url))
        assert (error.reason, error.fatal, error.retryable) == ("out_of_credit", True, False), code


def test_content_in_parts_is_their_text(server: VendorServer) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": []}, {"type": "text", "text": "b"}]
    server.enqueue(Body({"choices": [{"message": {"content": parts}}]}))
    assert ask(entry("openai-compatible", server.url)).text == "ab"


def test_reasoning_and_tool_calls_are_read(server: VendorServer) -> None:
    call = {"type": "function", "function": {"name": "extract", "arguments": '{"total": 9}'}}
    for message, kept in (
        ({"content": None, "reasoning_content": "hm"}, ("", "hm", "")),
        ({"content": "9", "reasoning": "hm"}, ("9", "hm", "")),
        ({"content": None, "tool_calls": [call]}, ("", "", '{"total": 9}')),
        ({"content": "9", "reasoning": {"odd": 1}, "tool_calls": "odd"}, ("9", "", "")),
        ({"content": "9", "tool_calls": [None, {"function": 1}]}, ("9", "", "")),
    ):
        server.enqueue(Body({"choices": [{"message": message}]}))
        made = ask(entry("openai-compatible", server.url))
        assert (made.text, made.reasoning, made.tool_call) == kept, message


def test_unusable_body_is_described_in_the_message(server: VendorServer) -> None:
    for body, words in (
        ({"error": {"message": "upstream is down", "code": 502}}, "upstream is down"),
        ({"choices": [{"message": {"content": 42}}]}, "unexpected body: a text is expected, got 42"),
        ({"choices": []}, "it has an empty array; it is application/json and begins with b'{\"choices\": []}'"),
    ):
        server.enqueue(Body(body))
        assert words in str(ask_and_fail(entry("openai-compatible", server.url))), body


@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("vllm", {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}),
        ("sglang", {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),  # which refuses a top_k of 0
        ("llama.cpp", {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "cache_prompt": False}),
    ],
)
def test_server_settings_are_sent_explicitly(server: VendorServer, name: str, off: dict[str, object]) -> None:
    model = entry("openai-compatible", server.url, server=name)
    ask(model)
    body = server.received[-1].body
    expected = {"temperature": 0.0, **off, "seed": body["seed"]}
    assert {key: body[key] for key in expected} == expected
    assert type(body["seed"]) is int
    assert dict(openai.sampling(model).sent) == {**expected, "seed": "per replicate"}  # as the record has it


def test_params_and_ignores_override_disabled_server_settings(server: VendorServer) -> None:
    own = {"temperature": 0.7, "top_k": 40, "repetition_penalty": 1.1}
    model = entry("openai-compatible", server.url, server="vllm", profile="sampled", params=own, ignores=("min_p",))
    ask(model)
    body = server.received[-1].body
    assert {name: body[name] for name in own} == own
    assert "min_p" not in body
    assert "top_k" not in openai.sampling(model).sent  # but among the record's params
    ask(entry("openai-compatible", server.url, server="llama.cpp", profile="sampled"))
    body = server.received[-1].body
    assert (body["temperature"], "cache_prompt" in body) == (1.0, False)


def test_renamed_parameter_is_sent_under_its_new_name_after_a_retry(server: VendorServer) -> None:
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    refusal = Status(400, body={"error": {"message": message, "code": "unsupported_parameter", "param": "max_tokens"}})
    with asking(entry("openai-compatible", server.url)) as complete:
        server.enqueue(refusal)
        error = failure_of(complete)
        assert (error.retryable, error.retry_after_s) == (True, 0.0)
        assert complete().text == "fine"
        server.enqueue(refusal)
        assert not failure_of(complete).retryable
    assert [("max_tokens" in one.body, "max_completion_tokens" in one.body) for one in server.received] == [
        (True, False),
        (False, True),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [
        (400, {"message": "Extra inputs are not permitted: seed"}, "seed_refused"),
        (
            422,
            {"message": "invalid", "details": [{"type": "extra_forbidden", "loc": ["body", "seed"]}]},
            "seed_refused",
        ),
        (400, {"message": "'temperature' does not support 0", "param": "temperature"}, "temperature_refused"),
        (400, {"message": "temperature must be at most 1"}, "bad_request"),
        (400, {"message": "Unknown model family"}, "bad_request"),
    ],
)
def test_refused_parameter_is_named_in_the_reason(
    server: VendorServer, status: int, error: dict[str, object], reason: str
) -> None:
    server.enqueue(Status(status, body={"error": error}))
    assert ask_and_fail(entry("openai-compatible", server.url)).reason == reason


def test_ignored_seed_and_output_limit_are_not_sent(server: VendorServer) -> None:
    model = entry("openai-compatible", server.url, ignores=("seed", "max_tokens"))
    ask(model)
    assert {"seed", "max_tokens"}.isdisjoint(server.received[-1].body)
    assert openai.sampling(model).unavailable == ("seed", "max_tokens")


def test_output_limit_in_params_replaces_the_usual_name(server: VendorServer) -> None:
    model = entry("openai-compatible", server.url, params={"max_completion_tokens": 500})
    assert model.params.max_output_tokens == 500
    ask(model)
    assert {"max_completion_tokens", "max_tokens"} & server.received[-1].body.keys() == {"max_completion_tokens"}


def test_server_requires_provider_openai_and_base_url() -> None:
    for fields in ({"provider": "anthropic", "base_url": "http://h"}, {"provider": "openai"}):
        with pytest.raises(ValueError, match="server: vllm requires provider: openai and the base_url of that server"):
            Model(id="m", server="vllm", **fields)

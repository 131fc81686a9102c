"""What only OpenAI's adapter does; the rest is in the contract suite."""

import pytest
from skill_evaluator.library.config import Model
from skill_evaluator.providers import openai

from tests.support.vendor_server import Body, Status, VendorServer
from tests.support.vendors import ask, ask_and_fail, entry


def test_a_reasoning_model_is_not_sent_what_it_refuses(server: VendorServer) -> None:
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


def test_reasoning_and_tool_calls_are_kept_beside_the_content(server: VendorServer) -> None:
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


def test_what_a_server_says_in_place_of_an_answer_is_passed_on(server: VendorServer) -> None:
    for body, words in (
        ({"error": {"message": "upstream is down", "code": 502}}, "upstream is down"),
        ({"choices": [{"message": {"content": 42}}]}, "unexpected body: Input should be a valid string"),
        ({"choices": []}, "is application/json and begins with b'{\"choices\": []}'"),
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
def test_nothing_is_left_to_the_defaults_of_a_server(server: VendorServer, name: str, off: dict[str, object]) -> None:
    model = entry("openai-compatible", server.url, server=name)
    ask(model)
    body = server.received[-1].body
    expected = {"temperature": 0.0, **off, "seed": body["seed"]}
    assert {key: body[key] for key in expected} == expected
    assert type(body["seed"]) is int
    assert dict(openai.sampling(model).sent) == {**expected, "seed": "per replicate"}  # as the record has it


def test_params_and_what_a_model_ignores_stand_before_what_is_off(server: VendorServer) -> None:
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


def test_a_server_is_one_of_openais_kind_at_an_address() -> None:
    for fields in ({"provider": "anthropic", "base_url": "http://h"}, {"provider": "openai"}):
        with pytest.raises(ValueError, match="server: vllm is for provider openai with the base_url of that server"):
            Model(id="m", server="vllm", **fields)


def test_metrics_are_summed_over_engines_and_whatever_is_strange_in_them_is_left_out() -> None:
    text = "# HELP a:calls\n" + 'a:calls{engine="0",model="x y"} 2.0\na:calls{engine="1"} 1e0\na:odd 1e\na:nan NaN\nb\n'
    assert openai.metrics_of(text, ["calls", "odd", "nan", "b"]) == [3.0, None, None, None]

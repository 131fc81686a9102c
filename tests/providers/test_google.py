"""What only Google's adapter does; the rest is in the contract suite."""

import dataclasses
from typing import Any

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers import PROVIDERS, google
from skill_evaluator.providers.base import Completion, Usage

from tests.support.vendor_dialects import PLAIN, address_of
from tests.support.vendor_server import Body, Status, VendorServer
from tests.support.vendors import ask, asking, entry, failure_of

IGNORING = ("gemini-3.6-flash", "models/gemini-3.8-pro", "gemini-4-pro")
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "30.5s"}
KEY_INVALID = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


def candidate(**fields: Any) -> dict[str, Any]:
    """An answer's body with one candidate, some of its fields otherwise."""
    return {"candidates": [{"content": {"parts": [{"text": "fine"}]}, "finishReason": "STOP", **fields}]}


def error(status: int, message: str, details: Any) -> Status:
    """An error as the API words it."""
    return Status(status, body={"error": {"code": status, "message": message, "details": details}})


STOP_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "BLOCKLIST": "refusal",
    "SPII": "refusal",
    "MALFORMED_FUNCTION_CALL": "other",
    "OTHER": "other",
    None: "other",
}


def sent(server: VendorServer, vendor: str = "google", **fields: Any) -> dict[str, Any]:
    """The body that a model with every setting of the sampling is sent, and what is said not to be."""
    params = {"temperature": 0.7, "top_p": 0.9, "top_k": 20}
    model = entry(vendor, server.url, params=params, **fields)
    ask(model)
    body = server.received[-1].body
    unavailable = PROVIDERS[model.provider].sampling(model).unavailable
    return {**body.get("generationConfig", body), "unavailable": unavailable}


def test_ignored_settings_are_neither_sent_nor_recorded(server: VendorServer) -> None:
    ignored = ("temperature", "top_p", "top_k")
    for name in IGNORING:
        assert sent(server, api_id=name) == {"maxOutputTokens": 321, "seed": 424_242, "unavailable": ignored}, name
    body = sent(server, "openai-compatible", api_id="google/gemini-3.6-flash")
    assert ({"temperature", "top_p", "top_k"}.isdisjoint(body), body["unavailable"]) == (True, ignored)
    for name in ("gemini-2.5-pro", "gemini-3.1-pro", "gemini-3-flash"):
        body = sent(server, api_id=name)
        assert [body[key] for key in ("temperature", "topP", "topK")] == [0.7, 0.9, 20], name


def test_ignores_in_models_yaml_overrides_the_default(server: VendorServer) -> None:
    assert sent(server, api_id=IGNORING[0], ignores=())["temperature"] == 0.7
    body = sent(server, api_id="model-1", ignores=("top_k",))
    assert ("topK" in body, body["topP"], body["unavailable"]) == (False, 0.9, ("top_k",))
    reasoning = entry("openai", server.url, api_id="o3", ignores=())
    ask(reasoning)
    assert server.received[-1].body["temperature"] == 0.0


def test_finish_reasons(server: VendorServer) -> None:
    server.enqueue(*(Body(candidate(finishReason=reason)) for reason in STOP_REASONS))
    with asking(entry("google", server.url)) as complete:
        assert {reason: complete().stop_reason for reason in STOP_REASONS} == STOP_REASONS


THOUGHT = [{"text": "hm", "thought": True}, {"text": "one "}, {"text": "answer"}]
CALL = [{"functionCall": {"name": "extract", "args": {"total": 9}}}]
COUNTS = {"promptTokenCount": 4, "candidatesTokenCount": 2, "thoughtsTokenCount": 50}


def test_answers_of_any_kind_are_read(server: VendorServer) -> None:
    for body, expected in (
        ({"candidates": [{"finishReason": "SAFETY"}]}, Completion(text="", stop_reason="refusal")),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, Completion(text="", stop_reason="refusal")),
        (candidate(content={"parts": THOUGHT}), Completion(text="one answer", reasoning="hm")),
        (candidate(content={"parts": CALL}), Completion(text="", tool_call='{"total":9}')),
    ):
        server.enqueue(Body({**body, "usageMetadata": COUNTS}))
        usage = Usage(input_tokens=4, output_tokens=52, cache_read_tokens=0)
        assert ask(entry("google", server.url)) == dataclasses.replace(expected, usage=usage)


def test_retry_delay_is_read_from_the_body_without_a_header(server: VendorServer) -> None:
    with asking(entry("google", server.url)) as complete:
        for details, headers, expected in (
            ([RETRY_INFO], {}, 30.5),
            ([RETRY_INFO], {"retry-after": "3"}, 3.0),
            ([{**RETRY_INFO, "retryDelay": "later"}], {}, None),
            ([{"retryDelay": "30s"}, "odd"], {}, None),
            ("odd", {}, None),
        ):
            server.enqueue(Status(429, headers, body=error(429, "quota", details).body))
            problem = failure_of(complete)
            assert (problem.reason, problem.retry_after_s) == ("rate_limited", expected), details


def test_a_wrong_key_comes_as_400(server: VendorServer) -> None:
    with asking(entry("google", server.url)) as complete:
        for message, details in (("API key not valid. Please pass a valid API key.", None), ("Bad key", [KEY_INVALID])):
            server.enqueue(error(400, message, details))
            problem = failure_of(complete)
            assert (problem.kind, problem.reason, problem.fatal) == ("no_credentials", "wrong_key", True)
            assert str(problem) == message


def test_an_address_may_name_the_api_version(server: VendorServer) -> None:
    for suffix, version in (("", "v1"), ("/", "v1"), ("/v1beta", "v1beta"), ("/v1beta/", "v1beta"), ("/v1", "v1")):
        ask(entry("google", server.url, base_url=address_of(server.url, "google") + suffix))
        assert server.received[-1].path == f"/{version}/models/model-1:generateContent", suffix


def test_unknown_params_are_refused_before_the_first_call() -> None:
    for params, message in (
        ({"top_kk": 20}, "at top_kk in params of model 'm' in models.yaml"),
        ({"top_k": "many"}, "at top_k in params of model 'm' in models.yaml"),
        ({"thinking_config": {"thinking_budget": "all"}}, "at thinking_config.thinking_budget in"),
    ):
        with pytest.raises(ConfigError, match=message):
            google.KIND.open(Model(id="m", provider="google", params=params), None, Settings())


def test_setting_of_the_request_overrides_a_param(server: VendorServer) -> None:
    server.enqueue(Body(candidate()))
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    params = {"response_mime_type": "text/plain", "top_k": 20, "safety_settings": safety}
    request = dataclasses.replace(PLAIN, schema={"type": "object"})
    ask(entry("google", server.url, params=params, structured_output="json_object"), request)
    body = server.received[0].body
    sent = body["generationConfig"]
    assert (sent["responseMimeType"], sent["topK"], body["safetySettings"]) == ("application/json", 20, safety)

"""What only OpenAI's adapter does; the rest is in the contract suite."""

import pytest
from skill_evaluator.providers import openai

from tests.support.vendor_server import Body, Status, VendorServer
from tests.support.vendors import ask, ask_and_fail, entry


@pytest.mark.parametrize("name", ["gpt-5", "gpt-5-mini", "o3", "o4-mini-2025-04-16"])
def test_a_reasoning_model_is_not_sent_what_it_refuses(name: str, server: VendorServer) -> None:
    model = entry("openai", server.url, api_id=name, params={"temperature": 0.7})
    assert openai.sampling(model).unavailable == ("temperature", "top_p")
    ask(model)
    assert {"temperature", "top_p"}.isdisjoint(server.received[0].body)
    assert server.received[0].body["model"] == name


def test_the_same_name_elsewhere_is_another_model(server: VendorServer) -> None:
    ask(entry("openai-compatible", server.url, api_id="o3"))
    assert server.received[0].body["temperature"] == 0.0


@pytest.mark.parametrize(("status", "code"), [(429, "insufficient_quota"), (429, "billing_not_active")])
def test_an_empty_account_is_not_a_rate_limit(status: int, code: str, server: VendorServer) -> None:
    server.enqueue(Status(status, body={"error": {"message": "pay first", "type": code, "code": code}}))
    error = ask_and_fail(entry("openai", server.url))
    assert (error.reason, error.fatal, error.retryable) == ("out_of_credit", True, False)


def test_content_that_is_no_text_is_malformed(server: VendorServer) -> None:
    server.enqueue(Body({"choices": [{"message": {"content": [{"type": "text", "text": "a"}]}}]}))
    assert ask_and_fail(entry("openai-compatible", server.url)).reason == "malformed_body"


def test_an_error_object_with_200_is_malformed(server: VendorServer) -> None:
    server.enqueue(Body({"error": {"message": "upstream is down", "code": 502}}))
    assert ask_and_fail(entry("openai-compatible", server.url)).reason == "malformed_body"

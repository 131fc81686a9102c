"""What only OpenAI's adapter does; the rest is in the contract suite."""

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


def test_content_that_is_no_text_and_an_error_with_200_are_malformed(server: VendorServer) -> None:
    for body in (
        {"choices": [{"message": {"content": [{"type": "text", "text": "a"}]}}]},
        {"error": {"message": "upstream is down", "code": 502}},
    ):
        server.enqueue(Body(body))
        assert ask_and_fail(entry("openai-compatible", server.url)).reason == "malformed_body", body

"""What only Anthropic's adapter does; the rest is in the contract suite."""

import dataclasses

from skill_evaluator.providers.base import Usage

from tests.support.vendor_dialects import PLAIN, SCHEMA
from tests.support.vendor_server import Behaviour, Body, Status, VendorServer
from tests.support.vendors import ask, ask_and_fail, asking, entry


def message(**fields: object) -> Behaviour:
    """A message as the API sends it, with some fields otherwise."""
    plain = {"type": "message", "content": [{"type": "text", "text": "fine"}], "stop_reason": "end_turn"}
    return Body({**plain, **fields})


STOP_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "tool_use": "other",
    "pause_turn": "other",
    None: "other",
}


def test_stop_reasons(server: VendorServer) -> None:
    server.enqueue(*(message(stop_reason=reason) for reason in STOP_REASONS))
    with asking(entry("anthropic", server.url)) as complete:
        assert {reason: complete().stop_reason for reason in STOP_REASONS} == STOP_REASONS


def test_only_text_blocks_are_the_text(server: VendorServer) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    server.enqueue(message(content=[thinking, {"type": "text", "text": "one "}, {"type": "text", "text": "answer"}]))
    completion = ask(entry("anthropic", server.url))
    assert (completion.text, completion.reasoning, completion.tool_call) == ("one answer", "hm", "")
    server.enqueue(message(content=[{"type": "tool_use", "name": "extract", "input": {"total": 9}}]))
    assert ask(entry("anthropic", server.url)).tool_call == '{"total":9}'


def test_cached_input_is_input(server: VendorServer) -> None:
    counts = {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": None}
    server.enqueue(message(usage={**counts, "output_tokens": 3}))
    assert ask(entry("anthropic", server.url)).usage == Usage(input_tokens=105, output_tokens=3, cache_write_tokens=100)


def test_schema_is_added_to_the_output_config_of_the_params(server: VendorServer) -> None:
    model = entry("anthropic", server.url, params={"output_config": {"effort": "low"}})
    ask(model, dataclasses.replace(PLAIN, schema=SCHEMA))
    asked = server.received[0].body["output_config"]
    assert asked["effort"] == "low"
    assert asked["format"]["type"] == "json_schema"


def test_an_empty_account_stops_the_model(server: VendorServer) -> None:
    for refusal in (
        Status(402, message="billing"),
        Status(400, message="Your credit balance is too low to access the Anthropic API."),
    ):
        server.enqueue(refusal)
        error = ask_and_fail(entry("anthropic", server.url))
        assert (error.reason, error.fatal, error.retryable) == ("out_of_credit", True, False), refusal

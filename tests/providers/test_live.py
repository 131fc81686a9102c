"""One small real call per vendor, only with --live and the vendor's key."""

import os

import pytest
from skill_evaluator.library.config import Model
from skill_evaluator.library.prompts import dialogue
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.providers.base import Request

from tests.support.vendor_dialects import SCHEMA
from tests.support.vendors import ask

MODELS = {
    "anthropic": os.environ.get("LIVE_ANTHROPIC_MODEL", "claude-haiku-4-5"),
    "openai": os.environ.get("LIVE_OPENAI_MODEL", "gpt-4.1-nano"),
    "google": os.environ.get("LIVE_GOOGLE_MODEL", "gemini-2.5-flash-lite"),
}


@pytest.mark.live
@pytest.mark.parametrize("vendor", MODELS)
def test_a_real_call_is_answered_by_the_schema(vendor: str) -> None:
    variables = PROVIDERS[vendor].key_variables
    if not any(os.environ.get(variable) for variable in variables):
        pytest.skip(f"no key in {' or '.join(variables)}")
    request = Request(
        case_id="live",
        replicate=0,
        messages=dialogue("Extract the award number as JSON.", "Award 12-345 was renewed."),
        max_output_tokens=200,
        seed=1,
        schema=SCHEMA,
    )
    completion = ask(Model(id=MODELS[vendor], provider=vendor), request)
    assert completion.stop_reason == "stop"
    assert "12-345" in completion.text
    assert completion.usage.input_tokens
    assert completion.usage.output_tokens
    assert completion.served_model
    assert completion.request_id

"""A request in a batch has the body of the same direct request: the two ways may be compared."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from skill_evaluator.library.config import Model, Params, Settings
from skill_evaluator.providers import BATCHES
from skill_evaluator.providers.base import Request

from tests.support.batch_server import VENDORS, batch_server
from tests.support.vendor_dialects import PLAIN, address_of
from tests.support.vendor_server import vendor_server
from tests.support.vendors import KEY, ask

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "years": {"type": "array", "items": {"type": "integer"}}},
    "required": ["title", "years"],
    "additionalProperties": False,
}
ASKED = replace(PLAIN, user="alpha is the title; ünïcode «text».")
REQUESTS: Mapping[str, Request] = {
    "plain": ASKED,
    "structured": replace(ASKED, schema=SCHEMA),
    "seeded": replace(ASKED, replicate=3, seed=7),
    "cached": replace(ASKED, cache=True),
}
MODELS: Mapping[str, Mapping[str, Any]] = {
    "deterministic": {},
    "sampled": {"profile": "sampled"},
    "own params": {"params": Params(max_output_tokens=77, temperature=0.5)},
    "no schema": {"structured_output": "none"},
}


def model_at(vendor: str, url: str, fields: Mapping[str, Any]) -> Model:
    return Model(**{"id": "model-1", "provider": vendor, "base_url": url, "api_key_env": "COMPATIBLE_KEY", **fields})


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("fields", MODELS.values(), ids=MODELS)
def test_the_body_in_a_batch_is_that_of_the_direct_request(
    vendor: str, fields: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPATIBLE_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with vendor_server() as direct, batch_server() as batched:
        base = address_of(direct.url, vendor)
        for request in REQUESTS.values():
            ask(model_at(vendor, base, fields), request)
        bodies = [received.body for received in direct.received]

        async def submit() -> None:
            batches = BATCHES[vendor](model_at(vendor, batched.base_url(vendor), fields), KEY, Settings())
            await batches.create("run.1", REQUESTS)
            await batches.close()

        asyncio.run(submit())
    assert [batched.bodies[name] for name in REQUESTS] == bodies
    structured, plain = (batched.bodies[name] for name in ("structured", "plain"))
    assert (structured != plain) is (fields.get("structured_output") != "none")
    marks = {"anthropic": "cache_control", "openai": "prompt_cache_key"}
    assert (batched.bodies["cached"] != plain) is (vendor in marks)
    assert vendor == "google" or marks[vendor] in batched.bodies["cached"]

"""A request in a batch has the body of the same direct request: the two ways may be compared."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from skill_evaluator.library.config import Model, Params, Settings
from skill_evaluator.providers import BATCHES, PROVIDERS
from skill_evaluator.providers.base import Request
from skill_evaluator.providers.batch import open_batches

from tests.support.batch_server import VENDORS, batch_server
from tests.support.vendor_dialects import DIALECTS, PLAIN, address_of
from tests.support.vendor_server import VendorServer
from tests.support.vendors import KEY, asking, entry

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
    "its params": {"params": Params(max_output_tokens=77, temperature=0.5)},
    "no schema": {"structured_output": "none"},
}


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_body_in_a_batch_is_that_of_the_direct_request(vendor: str, server: VendorServer) -> None:
    for name, fields in MODELS.items():
        model = entry(vendor, server.url, base_url=address_of(server.url, vendor), **fields)
        server.received.clear()
        with asking(model) as complete:
            for request in REQUESTS.values():
                complete(request)
        direct = [received.body for received in server.received]
        with batch_server() as batched:
            asyncio.run(submit(vendor, model.model_copy(update={"base_url": batched.base_url(vendor)})))
        assert [batched.bodies[name] for name in REQUESTS] == direct, name
        structured, plain, cached = (batched.bodies[name] for name in ("structured", "plain", "cached"))
        assert (structured != plain) is (fields.get("structured_output") != "none"), name
        mark = DIALECTS[vendor].cache_mark
        assert (cached != plain) is (mark is not None), name
        assert mark is None or mark in cached, name


async def submit(vendor: str, model: Model) -> None:
    batches = open_batches(BATCHES[vendor], PROVIDERS[vendor], model, KEY, Settings())
    await batches.create("run.1", REQUESTS)
    await batches.close()

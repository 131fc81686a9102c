"""What is sent is what each vendor's own library sends for the same request: the libraries are the oracle."""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic.alias_generators import to_camel
from skill_evaluator.library.config import Model, Params, Settings
from skill_evaluator.library.messages import dialogue
from skill_evaluator.providers import BATCHES, PROVIDERS, google
from skill_evaluator.providers.base import Request
from skill_evaluator.providers.batch import open_batches

from tests.support.batch_server import VENDORS, BatchServer, batch_server
from tests.support.http_server import Received
from tests.support.vendor_dialects import DIALECTS, PLAIN, SCHEMA, SENT_SCHEMA, address_of
from tests.support.vendor_server import VendorServer
from tests.support.vendors import KEY, ask, entry

STRUCTURED = dataclasses.replace(PLAIN, schema=SCHEMA)
EXTRA: Mapping[str, Mapping[str, Any]] = {
    "openai": {"presence_penalty": 0.5, "stop": ["END"]},
    "anthropic": {"thinking": {"type": "disabled"}, "stop_sequences": ["END"]},
    "google": {
        "top_k": 20,
        "stop_sequences": ["END"],
        "thinking_config": {"include_thoughts": False, "thinking_level": "low"},
        "media_resolution": "media_resolution_low",
        "safety_settings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "tool_config": {"function_calling_config": {"mode": "NONE"}},
        "tools": [
            {"function_declarations": [{"name": "look_up", "parameters": {"properties": {"a_b": {"type": "STRING"}}}}]}
        ],
        "cached_content": "cachedContents/one",
        "service_tier": "flex",
    },
}


async def by_openai(url: str) -> None:
    from openai import AsyncOpenAI

    form = {"type": "json_schema", "json_schema": {"name": "output", "schema": SENT_SCHEMA, "strict": True}}
    async with AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0) as client:
        await client.chat.completions.create(
            model="model-1",
            messages=[{"role": "system", "content": PLAIN.system}, {"role": "user", "content": PLAIN.talk[0].text}],
            seed=PLAIN.seed,
            temperature=0.0,
            max_completion_tokens=PLAIN.max_output_tokens,
            response_format=form,  # type: ignore[arg-type]
            **EXTRA["openai"],
        )


async def by_anthropic(url: str) -> None:
    from anthropic import AsyncAnthropic

    async with AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0) as client:
        await client.messages.create(
            model="model-1",
            system=PLAIN.system,
            messages=[{"role": "user", "content": PLAIN.talk[0].text}],
            max_tokens=PLAIN.max_output_tokens,
            output_config={"format": {"type": "json_schema", "schema": SENT_SCHEMA}},
            **EXTRA["anthropic"],
        )


def google_client(url: str) -> Any:
    from google import genai

    return genai.Client(api_key=KEY, http_options={"base_url": url, "retry_options": {"attempts": 1}})


GOOGLE_CONFIG = {
    "system_instruction": PLAIN.system,
    "temperature": 0.0,
    "max_output_tokens": PLAIN.max_output_tokens,
    "seed": PLAIN.seed,
    "response_mime_type": "application/json",
    "response_json_schema": SENT_SCHEMA,
}


async def by_google(url: str) -> None:
    client = google_client(url)
    client.models.generate_content(
        model="model-1", contents=PLAIN.talk[0].text, config={**GOOGLE_CONFIG, **EXTRA["google"]}
    )
    client.close()


BY_SDK: Mapping[str, Callable[[str], Any]] = {"openai": by_openai, "anthropic": by_anthropic, "google": by_google}


def essence(received: Received, vendor: str) -> tuple[Any, ...]:
    """What the vendor reads of a request."""
    named = (DIALECTS[vendor].key_header[0], "content-type", "anthropic-version")
    return received.path, [received.headers.get(name) for name in named], with_one_spelling(received.body)


def with_one_spelling(value: Any) -> Any:
    """Spell all names in a body as Google's library spells most; Google reads `top_k` and `topK` alike."""
    if isinstance(value, list):
        return [with_one_spelling(item) for item in value]
    if isinstance(value, dict):
        return {to_camel(name) if "_" in name else name: with_one_spelling(item) for name, item in value.items()}
    return value


@pytest.mark.parametrize("vendor", BY_SDK)
def test_a_call_is_that_of_the_vendors_library(vendor: str, server: VendorServer) -> None:
    ask(entry(vendor, server.url, params=Params(**EXTRA[vendor])), STRUCTURED)
    asyncio.run(BY_SDK[vendor](address_of(server.url, vendor)))
    ours, theirs = (essence(received, vendor) for received in server.received)
    assert ours == theirs


def batched(vendor: str, server: BatchServer, request: Request, custom_id: str) -> Any:
    """The body of a request in a batch, as the vendor has it."""

    async def create() -> None:
        model = entry(vendor, server.url, base_url=server.base_url(vendor))
        batches = open_batches(BATCHES[vendor], PROVIDERS[vendor], model, KEY, Settings())
        await batches.create("run.1", {custom_id: request})
        await batches.close()

    asyncio.run(create())
    return server.bodies[custom_id]


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_body_in_a_batch_is_that_of_the_direct_call(vendor: str, server: VendorServer) -> None:
    asked = dataclasses.replace(PLAIN, messages=dialogue(PLAIN.system, "alpha is the title; ünïcode «text»."))
    with batch_server() as batches:
        for name, request in {"plain": asked, "full": dataclasses.replace(asked, schema=SCHEMA, cache=True)}.items():
            ask(entry(vendor, server.url, base_url=address_of(server.url, vendor)), request)
            assert batched(vendor, batches, request, name) == server.received[-1].body
    assert batches.bodies["plain"] != batches.bodies["full"]


def test_a_google_batch_is_that_of_its_library() -> None:
    with batch_server() as server:
        ours = batched(
            "google",
            server,
            dataclasses.replace(STRUCTURED, messages=dialogue(STRUCTURED.system, "ours is the title")),
            "ours",
        )
        client = google_client(server.base_url("google"))
        client.batches.create(
            model="model-1",
            src=[{"contents": "ours is the title", "config": GOOGLE_CONFIG, "metadata": {"key": "theirs"}}],
            config={"display_name": "run.1"},
        )
        client.close()
        assert ours == server.bodies["theirs"]
        assert [batch.name for batch in server.batches] == ["run.1", "run.1"]


def test_vertex_is_where_googles_library_has_it() -> None:
    from google import genai
    from google.auth.credentials import AnonymousCredentials
    from google.genai._transformers import t_model

    for location in ("global", "eu", "europe-west4"):
        for name in ("model-1", "acme/model-1", "publishers/acme/models/model-1"):
            client = genai.Client(enterprise=True, project="p", location=location, credentials=AnonymousCredentials())
            path = f"{t_model(client._api_client, name)}:generateContent"
            identity: Any = SimpleNamespace(
                identifiers={"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": location}
            )
            url, model_path = google._address(Model(id="m", provider="google", api_id=name), identity)
            assert f"{url}{model_path}:generateContent" == client._api_client._build_request("post", path, {}).url
            client.close()

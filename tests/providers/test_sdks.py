"""What is sent is what each vendor's own library sends for the same request: the libraries are the oracle."""

import asyncio
import base64
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic.alias_generators import to_camel
from skill_evaluator.library.case_files import read_file
from skill_evaluator.library.config import Model, Params, SafetyLimits, Settings
from skill_evaluator.library.messages import Message, Prompt, dialogue
from skill_evaluator.providers import BATCHES, PROVIDERS, google
from skill_evaluator.providers.base import Request
from skill_evaluator.providers.batch import open_batches

from tests.support.batch_server import VENDORS, BatchServer, batch_server
from tests.support.documents import a_pdf, a_png
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


PIXELS, PAGES = a_png(padding=500_000), a_pdf()  # more than is read of a file at once
TEXTS = ("Of this, alpha is the title:", "and of this.")


@pytest.fixture
def with_files(tmp_path: Path) -> Request:
    """A request with a text, an image, a blank text, a PDF and a text."""
    (tmp_path / "scan.png").write_bytes(PIXELS)
    (tmp_path / "bill.pdf").write_bytes(PAGES)
    image, pdf = (read_file(tmp_path / name, SafetyLimits()) for name in ("scan.png", "bill.pdf"))
    said = Message("user", (TEXTS[0], image, "\n", pdf, TEXTS[1]))
    return dataclasses.replace(PLAIN, messages=(PLAIN.messages[0], said))


async def files_by_openai(url: str) -> None:
    from openai import AsyncOpenAI

    image, pdf = (base64.b64encode(content).decode() for content in (PIXELS, PAGES))
    said: Any = [
        {"type": "text", "text": TEXTS[0]},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
        {"type": "file", "file": {"filename": "document.pdf", "file_data": f"data:application/pdf;base64,{pdf}"}},
        {"type": "text", "text": TEXTS[1]},
    ]
    async with AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0) as client:
        await client.chat.completions.create(
            model="model-1",
            messages=[{"role": "system", "content": PLAIN.system}, {"role": "user", "content": said}],
            seed=PLAIN.seed,
            temperature=0.0,
            max_completion_tokens=PLAIN.max_output_tokens,
        )


async def files_by_anthropic(url: str) -> None:
    from anthropic import AsyncAnthropic
    from anthropic.types import Base64ImageSourceParam, Base64PDFSourceParam, DocumentBlockParam, ImageBlockParam

    image, pdf = (base64.b64encode(content).decode() for content in (PIXELS, PAGES))
    async with AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0) as client:
        await client.messages.create(
            model="model-1",
            system=PLAIN.system,
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": TEXTS[0]},
                        ImageBlockParam(
                            type="image",
                            source=Base64ImageSourceParam(type="base64", media_type="image/png", data=image),
                        ),
                        DocumentBlockParam(
                            type="document",
                            source=Base64PDFSourceParam(type="base64", media_type="application/pdf", data=pdf),
                        ),
                        {"type": "text", "text": TEXTS[1]},
                    ],
                }
            ],
            max_tokens=PLAIN.max_output_tokens,
        )


async def files_by_google(url: str) -> None:
    from google.genai import types

    files = [
        types.Part.from_bytes(data=content, mime_type=media_type)
        for content, media_type in ((PIXELS, "image/png"), (PAGES, "application/pdf"))
    ]
    parts = [types.Part.from_text(text=TEXTS[0]), *files, types.Part.from_text(text=TEXTS[1])]
    client = google_client(url)
    config = {name: GOOGLE_CONFIG[name] for name in ("system_instruction", "temperature", "max_output_tokens", "seed")}
    client.models.generate_content(
        model="model-1", contents=types.Content(role="user", parts=parts), config=types.GenerateContentConfig(**config)
    )
    client.close()


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
    """Spell all in a body as Google's library does most; Google reads `top_k` and `topK`, and both base64s, alike."""
    if isinstance(value, list):
        return [with_one_spelling(item) for item in value]
    if isinstance(value, dict) and isinstance(data := value.get("data"), str):
        value = {**value, "data": data.replace("-", "+").replace("_", "/")}
    if isinstance(value, dict):
        return {to_camel(name) if "_" in name else name: with_one_spelling(item) for name, item in value.items()}
    return value


@pytest.mark.parametrize("vendor", BY_SDK)
def test_a_call_is_that_of_the_vendors_library(vendor: str, server: VendorServer) -> None:
    ask(entry(vendor, server.url, params=Params(**EXTRA[vendor])), STRUCTURED)
    asyncio.run(BY_SDK[vendor](address_of(server.url, vendor)))
    ours, theirs = (essence(received, vendor) for received in server.received)
    assert ours == theirs


VALUES = {"document": "alpha is the title of a {{kind}} «ü».\n", "kind": ["bill", 1]}
EXAMPLES = (Message("user", ("A coffee.",)), Message("assistant", ('{"award": null}',)))
TURNS = (Message("user", ("{{kind}}?",)), Message("assistant", ("Yes.",)))
SYSTEM, LAST = Message("system", ("You read.",)), Message("user", ("This {{kind}}:\n{{document}}",))
SHAPES: Mapping[str, tuple[tuple[Message, ...], tuple[Message, ...]]] = {
    "variables": ((Message("system", ("You read a {{kind}}.",)), LAST), ()),
    "system and user": ((SYSTEM, LAST), ()),
    "examples": ((SYSTEM, *EXAMPLES, LAST), ()),
    "examples and turns": ((SYSTEM, *EXAMPLES, LAST), TURNS),
    "turns": ((SYSTEM, LAST), TURNS),
    "no system": ((LAST,), ()),
    "no system, examples": ((*EXAMPLES, LAST), TURNS),
}


def shaped(shape: str, **fields: Any) -> Request:
    """A request whose messages are those of a prompt of this shape."""
    messages, turns = SHAPES[shape]
    prompt = Prompt(messages=messages, inputs=("document", "kind"))
    constant = prompt.constant_characters(turns=bool(turns))
    return dataclasses.replace(PLAIN, messages=prompt.filled(VALUES, turns), constant=constant, **fields)


def spoken(request: Request) -> list[Any]:
    return [{"role": message.role, "content": message.text} for message in request.talk]


async def said_by_openai(url: str, request: Request) -> None:
    from openai import AsyncOpenAI

    system: list[Any] = [{"role": "system", "content": request.system}] if request.system else []
    async with AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0) as client:
        await client.chat.completions.create(
            model="model-1",
            messages=[*system, *spoken(request)],
            seed=request.seed,
            temperature=0.0,
            max_tokens=request.max_output_tokens,
        )


async def said_by_anthropic(url: str, request: Request) -> None:
    from anthropic import AsyncAnthropic

    messages = spoken(request)
    mark = {"cache_control": {"type": "ephemeral"}}
    if request.cache and EXAMPLES[-1] in request.messages:  # the last of what all cases read
        at = request.talk.index(EXAMPLES[-1])
        messages[at]["content"] = [{"type": "text", "text": messages[at]["content"], **mark}]
    more: Any = {**({"system": request.system} if request.system else {}), **(mark if request.cache else {})}
    async with AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0) as client:
        await client.messages.create(model="model-1", messages=messages, max_tokens=request.max_output_tokens, **more)


async def said_by_google(url: str, request: Request) -> None:
    roles = {"user": "user", "assistant": "model"}
    config = {"temperature": 0.0, "max_output_tokens": request.max_output_tokens, "seed": request.seed}
    client = google_client(url)
    client.models.generate_content(
        model="model-1",
        contents=[{"role": roles[message.role], "parts": [{"text": message.text}]} for message in request.talk],
        config={**config, **({"system_instruction": request.system} if request.system else {})},
    )
    client.close()


SAID_BY: Mapping[str, Callable[[str, Request], Any]] = {
    "openai": said_by_openai,
    "anthropic": said_by_anthropic,
    "google": said_by_google,
}


@pytest.mark.parametrize("vendor", SAID_BY)
def test_a_prompt_of_any_shape_is_the_same_directly_cached_and_in_a_batch(vendor: str, server: VendorServer) -> None:
    with batch_server() as batches:
        for number, shape in enumerate(SHAPES):
            for request in (shaped(shape), shaped(shape, cache=True)):
                ask(entry(vendor, server.url, base_url=address_of(server.url, vendor)), request)
                asyncio.run(SAID_BY[vendor](address_of(server.url, vendor), request))
                ours, theirs = server.received[-2:]
                in_batch = batched(vendor, batches, request, f"{number}-{request.cache}")
                assert in_batch == ours.body, shape
                sent = with_one_spelling(ours.body)
                marked = vendor == "openai" and request.cache  # by a key that its library does not make up
                assert (sent.pop("promptCacheKey", None) is not None) == marked
                assert sent == with_one_spelling(theirs.body), shape


def test_cases_share_what_is_constant_and_no_mark_stands_behind_a_variable() -> None:
    assert [shaped(shape).examples for shape in SHAPES] == [0, 0, 2, 2, 0, 0, 2]
    assert PLAIN.examples == 0
    with_variable = dataclasses.replace(shaped("examples"), constant=len("You re"))
    assert with_variable.examples == 0


def batched(vendor: str, server: BatchServer, request: Request, custom_id: str) -> Any:
    """The body of a request in a batch, as the vendor has it."""

    async def create() -> None:
        model = entry(vendor, server.url, base_url=server.base_url(vendor))
        batches = open_batches(BATCHES[vendor], PROVIDERS[vendor], model, KEY, Settings())
        await batches.create("run.1", {custom_id: request})
        await batches.close()

    asyncio.run(create())
    return server.bodies[custom_id]


FILES_BY_SDK = {"openai": files_by_openai, "anthropic": files_by_anthropic, "google": files_by_google}


@pytest.mark.parametrize("vendor", FILES_BY_SDK)
def test_a_call_with_files_is_that_of_the_vendors_library(
    vendor: str, server: VendorServer, with_files: Request
) -> None:
    ask(entry(vendor, server.url), with_files)
    asyncio.run(FILES_BY_SDK[vendor](address_of(server.url, vendor)))
    ours, theirs = (essence(received, vendor) for received in server.received)
    assert ours == theirs
    assert "transfer-encoding" not in server.received[0].headers


def test_a_compatible_server_is_sent_the_same_parts(server: VendorServer, with_files: Request) -> None:
    for vendor in ("openai", "openai-compatible"):
        ask(entry(vendor, server.url), with_files)
    ours, theirs = (received.body["messages"] for received in server.received)
    assert ours == theirs


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_body_in_a_batch_is_that_of_the_direct_call(vendor: str, server: VendorServer, with_files: Request) -> None:
    asked = dataclasses.replace(PLAIN, messages=dialogue(PLAIN.system, "alpha is the title; ünïcode «text»."))
    full = dataclasses.replace(asked, schema=SCHEMA, cache=True)
    with batch_server() as batches:
        for name, request in {
            "plain": asked,
            "full": full,
            "files": with_files,
            "seen": dataclasses.replace(with_files, cache=True),
        }.items():
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

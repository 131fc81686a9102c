"""Bodies of requests: equal in a call, with a cache and in a batch; files are read while they are sent."""

import asyncio
import base64
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.library.cases import read_file
from skill_evaluator.library.config import SafetyLimits, Settings
from skill_evaluator.library.prompts import File, Message, Prompt
from skill_evaluator.providers import PROVIDERS, Configuration
from skill_evaluator.providers.base import Completion, ProviderError, Request, call_once
from skill_evaluator.providers.remote import RequestBody, file_placeholder, json_bytes

from tests.support.batch_server import VENDORS, BatchServer, batch_server
from tests.support.documents import a_pdf, a_png
from tests.support.vendor_dialects import PLAIN, SCHEMA, address_of
from tests.support.vendor_server import VendorServer
from tests.support.vendors import KEY, ask, entry, opened

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


def test_examples_before_the_first_variable_are_shared() -> None:
    assert [shaped(shape).examples for shape in SHAPES] == [0, 0, 2, 2, 0, 0, 2]
    assert PLAIN.examples == 0
    with_variable = dataclasses.replace(shaped("examples"), constant=len("You re"))
    assert with_variable.examples == 0


def batched(vendor: str, server: BatchServer, request: Request, custom_id: str) -> Any:
    """The body of a request in a batch, as the vendor has it."""

    async def create() -> None:
        model = entry(vendor, server.url, base_url=server.base_url(vendor))
        keys = dict.fromkeys(PROVIDERS[vendor].key_variables, KEY)
        configuration = Configuration(settings=Settings(), models=(model,), kinds=PROVIDERS, keys=keys)
        batches = configuration.open_batches(model)
        await batches.create("run.1", {custom_id: request})
        await batches.provider.close()

    asyncio.run(create())
    return server.bodies[custom_id]


@pytest.mark.parametrize("vendor", VENDORS)
def test_files_are_sent_whole_and_with_their_length(vendor: str, server: VendorServer, with_files: Request) -> None:
    ask(entry(vendor, server.url), with_files)
    (received,) = server.received
    for content in (PIXELS, PAGES):
        assert base64.b64encode(content) in received.raw
    assert "transfer-encoding" not in received.headers


def test_a_compatible_server_is_sent_the_same_parts(server: VendorServer, with_files: Request) -> None:
    for vendor in ("openai", "openai-compatible"):
        ask(entry(vendor, server.url), with_files)
    ours, theirs = (received.body["messages"] for received in server.received)
    assert ours == theirs


@pytest.mark.parametrize("vendor", VENDORS)
def test_body_in_a_batch_is_that_of_the_direct_call(vendor: str, server: VendorServer, with_files: Request) -> None:
    requests = [*map(shaped, SHAPES), with_files, shaped("turns", schema=SCHEMA)]
    with batch_server() as batches:
        for number, request in enumerate([*requests, *(dataclasses.replace(one, cache=True) for one in requests)]):
            ask(entry(vendor, server.url, base_url=address_of(server.url, vendor)), request)
            assert batched(vendor, batches, request, str(number)) == server.received[-1].body, number


def a_file(folder: Path, content: bytes) -> File:
    path = folder / "scan.png"
    path.write_bytes(content)
    return read_file(path, SafetyLimits())


def about(file: File) -> Request:
    return dataclasses.replace(PLAIN, messages=(Message("user", ("See", file)),))


async def ask_through_the_engine(server: VendorServer, request: Request) -> Completion:
    async with opened(entry("openai-compatible", server.url)) as provider:
        return await call_once(provider, request, Settings(timeout_s=20))


@pytest.mark.parametrize("change", ["another byte", "longer", "shorter", "gone"])
def test_changed_file_fails_its_call_before_sending(tmp_path: Path, server: VendorServer, change: str) -> None:
    content = a_png()
    file = a_file(tmp_path, content)
    others = {"another byte": content[:-1] + b"!", "longer": content + b"!", "shorter": content[:-1]}
    if change == "gone":
        file.path.unlink()
    else:
        file.path.write_bytes(others[change])
    with pytest.raises(ProviderError, match=r"scan.png was changed or removed, or cannot be read") as problem:
        asyncio.run(ask_through_the_engine(server, about(file)))
    assert (problem.value.kind, problem.value.reason, problem.value.retryable) == ("not_run", "file_changed", False)
    assert not server.received


def test_file_that_becomes_shorter_during_sending_fails_the_call(tmp_path: Path, server: VendorServer) -> None:
    file = a_file(tmp_path, a_png(padding=2_000_000))
    file.path.write_bytes(a_png())

    async def ask() -> None:
        async with opened(entry("openai-compatible", server.url)) as provider:
            await provider.complete(about(file))  # which does not look at it first

    with pytest.raises(ProviderError) as problem:
        asyncio.run(ask())
    assert problem.value.reason == "connection_lost"
    assert not server.received


def test_body_size_is_known_before_files_are_read(tmp_path: Path) -> None:
    for size in (0, 1, 2, 3, 196_607, 196_608, 196_609, 500_000):
        file = dataclasses.replace(a_file(tmp_path, a_png()), size=size)
        file.path.write_bytes(b"\xff" * size)
        content = RequestBody(json_bytes({"a": f"data:,{file_placeholder(file)}", "b": ["ü", file_placeholder(file)]}))
        sent = b"".join(content.read())
        assert len(sent) == content.size
        assert json.loads(sent)["a"] == "data:," + json.loads(sent)["b"][1]
        assert max(map(len, content.read())) < 300_000

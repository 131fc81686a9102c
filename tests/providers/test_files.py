"""Files in requests: read when they are sent, as they were when their case was read, and never held as a whole."""

import asyncio
import dataclasses
import json
from pathlib import Path

import pytest
from skill_evaluator.library.case_files import read_file
from skill_evaluator.library.config import SafetyLimits, Settings
from skill_evaluator.library.prompts import File, Message
from skill_evaluator.providers.base import Completion, ProviderError, Request, call_once
from skill_evaluator.providers.remote import Content, base64_of, json_bytes

from tests.support.documents import a_png
from tests.support.vendor_dialects import PLAIN
from tests.support.vendor_server import VendorServer
from tests.support.vendors import entry, opened


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
def test_a_file_that_was_changed_fails_its_call_before_it_is_sent(
    tmp_path: Path, server: VendorServer, change: str
) -> None:
    content = a_png()
    file = a_file(tmp_path, content)
    others = {"another byte": content[:-1] + b"!", "longer": content + b"!", "shorter": content[:-1]}
    if change == "gone":
        file.path.unlink()
    else:
        file.path.write_bytes(others[change])
    with pytest.raises(ProviderError, match=r"scan.png was changed since its case was read") as problem:
        asyncio.run(ask_through_the_engine(server, about(file)))
    assert (problem.value.kind, problem.value.reason, problem.value.retryable) == ("not_run", "file_changed", False)
    assert not server.received


def test_a_file_that_becomes_shorter_while_it_is_sent_is_never_taken_for_the_whole(
    tmp_path: Path, server: VendorServer
) -> None:
    file = a_file(tmp_path, a_png(padding=2_000_000))
    file.path.write_bytes(a_png())

    async def ask() -> None:
        async with opened(entry("openai-compatible", server.url)) as provider:
            await provider.complete(about(file))  # which does not look at it first

    with pytest.raises(ProviderError) as problem:
        asyncio.run(ask())
    assert problem.value.reason == "connection_lost"
    assert not server.received


def test_the_length_of_a_body_is_known_before_its_files_are_read(tmp_path: Path) -> None:
    for size in (0, 1, 2, 3, 196_607, 196_608, 196_609, 500_000):
        file = dataclasses.replace(a_file(tmp_path, a_png()), size=size)
        file.path.write_bytes(b"\xff" * size)
        content = Content(json_bytes({"a": f"data:,{base64_of(file)}", "b": ["ü", base64_of(file)]}))
        sent = b"".join(content.read())
        assert len(sent) == content.size
        assert json.loads(sent)["a"] == "data:," + json.loads(sent)["b"][1]
        assert max(map(len, content.read())) < 300_000

"""The same adapters against a server somebody else wrote: what they agree on is not only our reading of the APIs."""

import asyncio
import dataclasses
from collections.abc import Iterator

import pytest
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import Completion, ProviderError, Request, Usage

from tests.support.aimock import aimock
from tests.support.vendor_dialects import DIALECTS, PLAIN, SCHEMA
from tests.support.vendors import VENDORS, ask, ask_and_fail, entry, opened, point_at

pytestmark = [
    pytest.mark.node,
    pytest.mark.parametrize("vendor", VENDORS),
]


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(tmp_path_factory.mktemp("aimock"), VENDORS) as url:
        yield url


@pytest.fixture
def model(vendor: str, address: str, monkeypatch: pytest.MonkeyPatch) -> Model:
    point_at(monkeypatch, address)
    base_url = f"{address}/v1beta" if vendor == "google" else address + DIALECTS[vendor].base_path
    return entry(vendor, address, base_url=base_url)


def about(vendor: str, name: str) -> Request:
    """The request that the server answers with its fixture of that name."""
    return dataclasses.replace(PLAIN, user=f"Please answer. [{vendor}: {name}]")


def test_a_plain_answer(vendor: str, model: Model) -> None:
    completion = ask(model, about(vendor, "plain"))
    assert (completion.text, completion.stop_reason) == ("a plain answer", "stop")
    read = 0 if vendor == "google" else None  # Google leaves out what is 0
    assert completion.usage == Usage(input_tokens=12, output_tokens=5, cache_read_tokens=read)


def test_a_structured_request_is_accepted(vendor: str, model: Model) -> None:
    request = dataclasses.replace(about(vendor, "structured"), schema=SCHEMA)
    assert ask(model, request).text == '{"award": "12-345"}'


def test_a_truncated_answer(vendor: str, model: Model) -> None:
    completion = ask(model, about(vendor, "cut"))
    assert (completion.text, completion.stop_reason) == ('{"award": "12', "length")


def test_a_rate_limit_says_when_to_come_back(vendor: str, model: Model) -> None:
    error = ask_and_fail(model, about(vendor, "limited"))
    assert (error.reason, error.retry_after_s, error.throttled) == ("rate_limited", 7.0, True)
    assert "slow down" in str(error)


def test_a_refused_key(vendor: str, model: Model) -> None:
    error = ask_and_fail(model, about(vendor, "refused key"))
    assert (error.kind, error.reason, error.fatal) == ("no_credentials", "wrong_key", True)


def test_an_error_then_an_answer_are_two_calls(vendor: str, model: Model) -> None:
    async def ask_twice() -> tuple[ProviderError, Completion]:
        async with opened(model) as provider:
            with pytest.raises(ProviderError) as caught:
                await provider.complete(about(vendor, "sequence"))
            return caught.value, await provider.complete(about(vendor, "sequence"))

    error, completion = asyncio.run(ask_twice())
    assert (error.reason, error.retryable) == ("unavailable", True)
    assert completion.text == "the second answer"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("malformed", "malformed_body"), ("disconnected", "connection_lost")],
)
def test_chaos_is_told_apart(vendor: str, model: Model, name: str, reason: str) -> None:
    error = ask_and_fail(model, about(vendor, name))
    assert (error.reason, error.retryable, error.perhaps_billed) == (reason, True, True)


def test_a_late_answer_is_not_waited_for(vendor: str, model: Model) -> None:
    async def hurry() -> ProviderError:
        async with opened(model, timeout_s=0.5) as provider:
            with pytest.raises(ProviderError) as caught:
                await provider.complete(about(vendor, "late"))
            return caught.value

    assert asyncio.run(hurry()).reason == "read_timeout"

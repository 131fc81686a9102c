"""The same adapters against a server somebody else wrote: what they agree on is not only our reading of the APIs."""

import dataclasses
from collections.abc import Iterator

import pytest
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.library.messages import dialogue
from skill_evaluator.providers.base import Request, Usage

from tests.support.aimock import aimock
from tests.support.vendor_dialects import DIALECTS, PLAIN, SCHEMA
from tests.support.vendors import VENDORS, ask, ask_and_fail, asking, entry, failure_of, point_at

pytestmark = [pytest.mark.node, pytest.mark.parametrize("vendor", VENDORS)]


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
    return dataclasses.replace(PLAIN, messages=dialogue(PLAIN.system, f"Please answer. [{vendor}: {name}]"))


def test_answers_are_read(vendor: str, model: Model) -> None:
    read = 0 if vendor == "google" else None  # Google leaves out what is 0
    plain, cut = ask(model, about(vendor, "plain")), ask(model, about(vendor, "cut"))
    assert (plain.text, plain.stop_reason) == ("a plain answer", "stop")
    assert plain.usage == Usage(input_tokens=12, output_tokens=5, cache_read_tokens=read)
    assert (cut.text, cut.stop_reason) == ('{"award": "12', "length")
    structured = dataclasses.replace(about(vendor, "structured"), schema=SCHEMA)
    assert ask(model, structured).text == '{"award": "12-345"}'


def test_faults_are_told_apart(vendor: str, model: Model) -> None:
    for name, reason, retryable, fatal, wait_s in (
        ("limited", "rate_limited", True, False, 7.0),
        ("refused key", "wrong_key", False, True, None),
        ("malformed", "malformed_body", True, False, None),
        ("disconnected", "connection_lost", True, False, None),
    ):
        error = ask_and_fail(model, about(vendor, name))
        assert (error.reason, error.retryable, error.fatal, error.retry_after_s) == (reason, retryable, fatal, wait_s)


def test_an_error_then_an_answer_are_two_calls(vendor: str, model: Model) -> None:
    with asking(model) as complete:
        error = failure_of(lambda: complete(about(vendor, "sequence")))
        assert (error.reason, error.retryable) == ("unavailable", True)
        assert complete(about(vendor, "sequence")).text == "the second answer"


def test_a_late_answer_is_not_waited_for(vendor: str, model: Model) -> None:
    with asking(model, Settings(timeout_s=0.5)) as complete:
        assert failure_of(lambda: complete(about(vendor, "late"))).reason == "read_timeout"

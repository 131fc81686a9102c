"""Malformed responses of a batch API raise ProviderError only."""

import asyncio
import json
from collections.abc import Coroutine
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.providers import BATCHES
from skill_evaluator.providers.base import ProviderError, malformed
from skill_evaluator.providers.batch import AmbiguousBatchError, Batches
from skill_evaluator.providers.remote import HttpResponse

from tests.support.vendors import any_json

NAMES = {
    "anthropic": "id processing_status request_counts results_url created_at data has_more last_id custom_id result "
    "error type message succeeded errored",
    "openai": "id status errors data line request_counts completed failed output_file_id error_file_id created_at "
    "metadata name custom_id error response status_code body code has_more",
    "google": "name done metadata state batchStats error code response inlinedResponses output key operations "
    "displayName nextPageToken successfulRequestCount",
}
WORDS = ["ended", "completed", "failed", "BATCH_STATE_SUCCEEDED", "run.1", "a", "succeeded", "errored", 1, True]


def said(vendor: str) -> st.SearchStrategy[Any]:
    """JSON that uses the vendor's names in any place."""
    names = st.sampled_from(NAMES[vendor].split())
    return st.recursive(
        any_json | st.sampled_from(WORDS),
        lambda inner: st.dictionaries(names, inner, max_size=6) | st.lists(inner, max_size=2),
        max_leaves=12,
    )


def batches_that_say(vendor: str, body: Any) -> Batches:
    """A vendor's batches, of which each request gets this answer."""

    async def fetch(method: str, path: str, **what: Any) -> bytes:
        return json.dumps(body).encode("utf-8", "surrogatepass")

    def completion(answer: HttpResponse) -> Any:
        raise malformed("scripted")

    provider: Any = SimpleNamespace(fetch=fetch, completion=completion, path="/models/m:generateContent")
    return Batches(BATCHES[vendor], provider)


def look(vendor: str, body: Any) -> None:
    batches = batches_that_say(vendor, body)

    async def all_of_it() -> None:
        status = await batches.status("batch")
        await batches.results(status)

    async def in_turn(*steps: Coroutine[Any, Any, Any]) -> None:
        for step in steps:
            with suppress(ProviderError, AmbiguousBatchError):
                await step

    asyncio.run(in_turn(all_of_it(), batches.find("run.1", {"a"}, 0.0, set()), batches.create("run.1", {})))


@pytest.mark.parametrize(
    ("vendor", "body"),
    [
        ("openai", {"id": "b", "status": "failed", "errors": {"data": {"line": 1}}}),
        ("google", {"name": "b", "done": True, "response": {"inlinedResponses": {"inlinedResponses": 5}}}),
        ("anthropic", {"data": [], "has_more": True, "last_id": "b"}),
        ("openai", "\ud800"),
    ],
)
def test_malformed_batch_response_is_a_provider_error(vendor: str, body: Any) -> None:
    look(vendor, body)


@pytest.mark.parametrize("vendor", BATCHES)
def test_any_batch_response_is_read_or_a_provider_error(vendor: str) -> None:
    @given(said(vendor))
    def check(body: Any) -> None:
        look(vendor, body)

    check()

"""The ways of reaching a vendor that the adapters' tests run through, and how one is opened on a test server."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from hypothesis import strategies as st
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers import PROVIDERS, find_key
from skill_evaluator.providers.base import Completion, Provider, ProviderError, Request

from tests.support.vendor_dialects import DIALECTS, PLAIN, address_of

VENDORS = tuple(DIALECTS)
KEY = "test-key-0123456789abcdef"
USUAL = Settings(timeout_s=20)
Ask = Callable[..., Completion]
any_json = st.recursive(  # with what JSON has no word for, which Python writes all the same
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def point_at(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Have every vendor reached at this address, with KEY, and nothing else matter."""
    for name in ("ANTHROPIC_AUTH_TOKEN", "GOOGLE_GENAI_API_VERSION"):
        monkeypatch.delenv(name, raising=False)
    for vendor in {dialect.provider for dialect in DIALECTS.values()}:
        monkeypatch.setattr(f"skill_evaluator.providers.{vendor}.VENDOR_URL", address_of(url, vendor))
        monkeypatch.setenv(PROVIDERS[vendor].key_variables[0], KEY)
    monkeypatch.setenv("COMPATIBLE_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def entry(vendor: str, url: str, **fields: Any) -> Model:
    values: dict[str, Any] = {"id": "model-1", "provider": DIALECTS[vendor].provider, **fields}
    if vendor == "openai-compatible":
        values = {"api_key_env": "COMPATIBLE_KEY", **values}
    return Model(**(values if vendor == "openai" else {"base_url": address_of(url, vendor), **values}))


@asynccontextmanager
async def opened(model: Model, timeout_s: float = 20.0) -> AsyncIterator[Provider]:
    """The provider of an entry, closed afterwards."""
    kind = PROVIDERS[model.provider]
    provider = kind.open(model, find_key(model, kind, dict(os.environ)), Settings(timeout_s=timeout_s))
    try:
        yield provider
    finally:
        await provider.close()


@contextmanager
def asking(model: Model, settings: Settings = USUAL) -> Iterator[Ask]:
    """What asks the provider of an entry, which is open meanwhile."""
    with asyncio.Runner() as runner:
        kind = PROVIDERS[model.provider]
        provider = kind.open(model, find_key(model, kind, dict(os.environ)), settings)
        try:
            yield lambda request=PLAIN: runner.run(provider.complete(request))
        finally:
            runner.run(provider.close())


def ask(model: Model, request: Request = PLAIN) -> Completion:
    with asking(model) as complete:
        return complete(request)


def ask_and_fail(model: Model, request: Request = PLAIN) -> ProviderError:
    return failure_of(lambda: ask(model, request))


def failure_of(call: Callable[[], object]) -> ProviderError:
    """What a call raised, which must fail."""
    with pytest.raises(ProviderError) as caught:
        call()
    return caught.value

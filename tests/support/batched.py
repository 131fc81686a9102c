"""A library whose models are behind the batch APIs of a loopback server, and what its calls then cost."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.batch_server import INPUT_TOKENS, OUTPUT_TOKENS, BatchServer, batch_server
from tests.support.library import Library

PRICE = {"input": 3.0, "output": 15.0}
_KEY_OF = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}
KEYS = dict.fromkeys(_KEY_OF.values(), "key-0123456789abcdef")
COST = (INPUT_TOKENS * PRICE["input"] + OUTPUT_TOKENS * PRICE["output"]) / 1e6 / 2


@pytest.fixture(name="server")
def batches() -> Iterator[BatchServer]:
    with batch_server() as running:
        yield running


def set_up(library: Library, server: BatchServer, *vendors: str, **model: Any) -> None:
    """Have the models of these vendors behind the server, which are asked after every hundredth of a second."""
    library.models(
        *(
            {
                "id": f"{vendor}-model",
                "provider": vendor,
                "base_url": server.base_url(vendor),
                "api_key_env": _KEY_OF[vendor],
                "price": PRICE,
                **model,
            }
            for vendor in vendors
        )
    )
    library.settings(batch={"poll_s": 0.01}, timeout_s=1)

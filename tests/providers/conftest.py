"""A misbehaving server for each test; the environment directs every vendor to it."""

from collections.abc import Iterator

import pytest

from tests.support.vendor_server import VendorServer, vendor_server
from tests.support.vendors import point_at


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[VendorServer]:
    with vendor_server() as running:
        point_at(monkeypatch, running.url)
        yield running

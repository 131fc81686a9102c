"""Each test's own prompt library and its own model server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chat_server import ChatServer, chat_server
from tests.support.library import Library


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


@pytest.fixture
def served(library: Library, server: ChatServer) -> Library:
    """A library whose one model is the server."""
    library.served_by(server.url)
    return library

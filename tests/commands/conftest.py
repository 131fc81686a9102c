"""Each test's own prompt library and its own model server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chat_server import ChatServer, chat_server
from tests.support.library import Library
from tests.support.pipeline import Pipeline


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


@pytest.fixture(scope="module")
def standing() -> Iterator[ChatServer]:
    """A server for all tests of a file, where what they begin with was asked of it."""
    with chat_server() as running:
        yield running


@pytest.fixture
def served(library: Library, server: ChatServer) -> Library:
    """A library whose one model is the server."""
    library.served_by(server.url)
    return library


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Every job of a first push has run; a test works in a copy."""
    pipeline = Pipeline.new(tmp_path_factory.mktemp("evaluated"))
    plan = pipeline.plan("--base", "0" * 40)
    assert [entry.shard for entry in plan.runs] == ["1/2", "2/2"] * 2
    for entry in plan.runs:
        assert pipeline.evaluate(entry).code == 0
    return pipeline

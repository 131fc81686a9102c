"""A library that was pushed and measured once."""

from pathlib import Path

import pytest

from tests.ci.pushed import PushedLibrary


@pytest.fixture(scope="session")
def first_push(tmp_path_factory: pytest.TempPathFactory) -> PushedLibrary:
    library = PushedLibrary(tmp_path_factory.mktemp("pushed") / "library")
    for name in ("a", "b", "c"):
        library.recorded(name, "1.0.0")
    library.commit()
    return library


@pytest.fixture
def pushed(first_push: PushedLibrary, tmp_path: Path) -> PushedLibrary:
    """A library in git with three components, each measured at 1.0.0."""
    return first_push.copy(tmp_path / "library")

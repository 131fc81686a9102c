"""A repository with the workflows, of its own for each test."""

from pathlib import Path

import pytest

from tests.support.library import REPLAY
from tests.workflows.forge import Forge


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    forge = Forge(tmp_path)
    forge.library.models(REPLAY)
    return forge

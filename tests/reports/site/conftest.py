"""The browser in which the pages of a site are opened."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.review_page import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser

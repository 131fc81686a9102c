"""The browser in which the pages of a site are opened, and sites of tests that open none."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.library import Library
from tests.support.review_page import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


def undrawn(library: Library, name: str = "site", code: int = 0) -> Path:
    """Build a site without the libraries that draw its charts, which take a second to bundle; return its folder."""
    with patch("vl_convert.javascript_bundle", lambda snippet: "/* drawn in the browser's tests */"):
        ended = library.call("site", "build", "--out", name)
    assert ended.code == code, ended.err
    return library.root / name

"""Fixtures of the site tests: a browser, the site of `demo`, and the accessibility check of axe."""

from pathlib import Path
from typing import Any

import pytest

from tests.judges.review.review_page import a_browser  # noqa: F401
from tests.site.npm import npm_file
from tests.support.library import Library

HOSTILE = (
    "<img src=x onerror='window.ran=1'><script>window.ran=2</script>**bold** [x](javascript:ran=3) \u202egnp \x1b[31m"
)


def serious(page: Any) -> list[tuple[str, list[str]]]:
    """Open all details of a page, and return the serious and critical violations that axe finds, with elements."""
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    page.evaluate(npm_file("axe-core", "4.14.1", "axe.min.js").read_text("utf-8"))
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:3])
        for one in page.evaluate("axe.run().then((result) => result.violations)")
        if one["impact"] in ("serious", "critical")
    ]


def demo(folder: Path) -> Library:
    """Return the library of `demo`. It runs in another process, because the browser uses the event loop of this one."""
    library = Library(folder / "unused")
    library.root = folder
    assert library.skill_evaluator("demo", "demo").code == 0
    library.root = folder / "demo"
    return library


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of `demo`, with a site with documents in `site` and one without documents in `public`."""
    library = demo(tmp_path_factory.mktemp("library"))
    assert library.call("site", "build", "--out", "public").code == 0
    library.settings(site={"components": {"receipts": {"documents": True}}})
    assert library.call("site", "build", "--out", "site").code == 0
    return library.root

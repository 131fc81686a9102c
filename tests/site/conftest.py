"""The browser in which the pages of a site are opened, and what axe finds there."""

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
    """Unfold everything on a page, and return what axe calls serious or worse there, with the first places."""
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    page.evaluate(npm_file("axe-core", "4.14.1", "axe.min.js").read_text("utf-8"))
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:3])
        for one in page.evaluate("axe.run().then((result) => result.violations)")
        if one["impact"] in ("serious", "critical")
    ]


def demo(folder: Path) -> Library:
    """Return the library that `demo` lays out in a process of its own, as a browser has the event loop of this one."""
    library = Library(folder / "unused")
    library.root = folder
    assert library.skill_evaluator("demo", "demo").code == 0
    library.root = folder / "demo"
    return library


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of `demo`, with a site of everything in `site` and one of what is public in `public`."""
    library = demo(tmp_path_factory.mktemp("library"))
    assert library.call("site", "build", "--out", "public").code == 0
    library.settings(site={"components": {"receipts": {"documents": True}}})
    assert library.call("site", "build", "--out", "site").code == 0
    return library.root

"""A built site as its pages see it: the data it holds, and a browser that notes what goes wrong."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bs4 import BeautifulSoup
from skill_evaluator.display.addresses import case_address

from tests.support.library import Library

_DATA = re.compile(r'JSON\.parse\(("(?:[^"\\]|\\.)*")\)')


def site_data(folder: Path, key: str) -> Any:
    """What the build left under a key."""
    match = _DATA.search((folder / "data" / f"{key}.js").read_text("utf-8"))
    assert match is not None
    return json.loads(json.loads(match[1]))


def site_page(folder: Path, place: str) -> BeautifulSoup:
    """A page of the build, parsed."""
    return BeautifulSoup((folder / place).read_text("utf-8"), "html.parser")


def words(part: Any) -> str:
    """What a reader sees of a part of a page, with single blanks."""
    return " ".join(part.get_text(" ").split())


def states(folder: Path) -> dict[str, Any]:
    """The line of each component on the overview, by its name."""
    lines = site_page(folder, "index.html").find_all(class_="state")
    return {words(line).partition(" ")[0]: line for line in lines}


def case_runs(folder: Path, component: str, case_id: str) -> list[dict[str, Any]]:
    """The runs on the page of a case, the newest first: scores, notices, and what each distinct output shows."""
    page = site_page(folder, case_address(component, case_id))
    return [
        {
            "run": run["id"].removeprefix("run-"),
            "version": run["data-version"],
            "score": words(run.summary).rpartition(" ")[2],
            "notices": [words(notice) for notice in run.find_all("p", class_="notice", recursive=False)],
            "outputs": [_output(article) for article in run.find_all("article")],
            "fields": _rows(run, "Fields of this case"),
            "replicates": _rows(run, "Scores of each replicate"),
        }
        for run in page.find_all("details", class_="run")
    ]


def _output(article: Any) -> dict[str, Any]:
    """What a page shows of a distinct output."""
    return {
        "head": words(article.find(class_="line")),
        "differing": _rows(article, "Values that differ"),
        "alike": _rows(article, "Values that agree"),
        "text": article.pre.get_text() if article.pre else "",
        "words": words(article),
    }


def _rows(part: Any, caption: str) -> list[list[str]]:
    """The texts of the cells of a table below a part of a page."""
    heads = part.find_all("caption", string=re.compile(f"^{caption}"))
    return [
        [words(cell) for cell in row.find_all(["th", "td"])]
        for head in heads
        for row in head.parent.tbody.find_all("tr")
    ]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a site by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def undrawn() -> Iterator[None]:
    """Build sites without the library that draws, which takes seconds to make, and specify their charts once."""
    with ExitStack() as patched:
        drawing = patch("vl_convert.javascript_bundle", lambda snippet: "/* drawn in the browser's tests */" * 100)
        patched.enter_context(drawing)
        where = import_module("skill_evaluator.site.charts")
        patched.enter_context(patch.object(where, "chart_specs", partial(_once, where.chart_specs)))
        yield


def build_undrawn(library: Library, code: int = 0) -> Path:
    """Build the site of a library so; return its folder."""
    with undrawn():
        ended = library.call("site", "build", "--out", "site")
    assert ended.code == code, ended.err
    return library.root / "site"


@cache
def _once(charts: Callable[[], Any]) -> Any:
    return charts()


@dataclass
class Watched:
    """A page of a browser, and what must not have happened in it: errors, and requests to anywhere else."""

    page: Any
    root: str
    errors: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def open(self, place: str) -> Any:
        """Open a page of the site and wait until it is filled."""
        self.page.goto("about:blank")  # so that another hash is another visit
        self.page.goto(self.root + place)
        self.page.wait_for_selector("main:not([aria-busy='true'])")
        return self.page

    def open_drawn(self, place: str) -> Any:
        """Open a page, unfold its charts and go down it until every one is drawn."""
        page = self.open(place)
        page.evaluate("for (const fold of document.querySelectorAll('details:has(.chart)')) fold.open = true")
        for chart in page.locator("main[aria-busy] .chart").all():
            chart.scroll_into_view_if_needed()
            chart.locator("svg").first.wait_for()
        return page


@contextmanager
def watched(browser: Any, root: str, **context: Any) -> Iterator[Watched]:
    """Open a page in a context of its own; `root` is where the site is, with a slash at its end."""
    opened = browser.new_context(**context)
    opened.set_default_timeout(20_000)
    watch = Watched(page=opened.new_page(), root=root)
    watch.page.on("console", lambda line: line.type in ("error", "warning") and watch.errors.append(line.text))
    watch.page.on("pageerror", lambda problem: watch.errors.append(str(problem)))
    watch.page.on("request", lambda asked: _note(watch, asked.url))
    try:
        yield watch
    finally:
        opened.close()


def _note(watch: Watched, url: str) -> None:
    if not url.startswith((watch.root, "about:", "data:")):
        watch.left.append(url)

"""A built site: its pages parsed, and a browser that notes errors and requests elsewhere."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from skill_evaluator.display.pages import page_address

from tests.support.library import Library


def site_page(folder: Path, place: str) -> BeautifulSoup:
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
    page = site_page(folder, page_address("cases", component, case_id))
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
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def built_site(library: Library, code: int = 0) -> Path:
    ended = library.call("site", "build", "--out", "site")
    assert ended.code == code, ended.err
    return library.root / "site"


@dataclass
class Watched:
    """A page of a browser, and what must not have happened in it: errors, and requests to anywhere else."""

    page: Any
    root: str
    errors: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def open(self, place: str) -> Any:
        self.page.goto("about:blank")  # so that another hash is another visit
        self.page.goto(self.root + place)
        return self.page

    def open_unfolded(self, place: str) -> Any:
        page = self.open(place)
        page.evaluate("for (const fold of document.querySelectorAll('details:has(.chart)')) fold.open = true")
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

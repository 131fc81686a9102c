"""A page as a reader sees it: parsed like GitHub does, so that a test can tell text from mark-up."""

import re
import statistics
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable("table")
_MARK_UP = {"html_block", "html_inline", "link_open", "image", "strong_open", "heading_open", "bullet_list_open"}


@dataclass(frozen=True, slots=True)
class Page:
    """Its tables as rows of cells, the code in it, and every piece of other mark-up with its content."""

    tables: list[list[list[str]]] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    mark_up: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


def read_page(text: str) -> Page:
    page = Page()
    tokens = _PARSER.parse(text)
    cell = False
    for token in tokens:
        if token.type == "table_open":
            page.tables.append([])
        elif token.type == "tr_open":
            page.tables[-1].append([])
        elif token.type in ("th_open", "td_open"):
            cell = True
        elif token.type in _MARK_UP:
            page.mark_up.append(token.tag or token.content)
        elif token.type == "inline":
            content = _inline(page, token)
            if cell:
                page.tables[-1][-1].append(content)
                cell = False
    return page


def mean_sentence(text: str) -> float:
    """Return the mean number of words of a sentence; code blocks, tables, headings and pictures are none."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^(\||#|!).*$", "", prose, flags=re.MULTILINE)
    sentences = [re.findall(r"[\w'’-]+", part) for part in re.split(r"[.?!:](?=[\s*)])|\n\n", prose)]
    return statistics.fmean(len(words) for words in sentences if words)


def _inline(page: Page, token: Token) -> str:
    parts = []
    for child in token.children or []:
        if child.type == "code_inline":
            page.code.append(child.content)
        elif child.type in _MARK_UP:
            page.mark_up.append(child.content or child.tag)
        elif child.type == "text":
            page.words.append(child.content)
        parts.append(child.content)
    return "".join(parts)

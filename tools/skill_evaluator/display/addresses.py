"""The addresses of the pages of a site, relative to its root."""

import re
from urllib.parse import quote

from skill_evaluator.text import digest

_PLAIN = re.compile(r"[a-z0-9][a-z0-9._+-]{0,80}")


def file_name(name: str) -> str:
    """Return a safe file name for any name: the name itself if it is plain, or else a slug with a digest."""
    slug = re.sub(r"[^a-z0-9_-]", "-", name[:40])
    return name if _PLAIN.fullmatch(name) else f"{slug}-{digest(name)[-10:]}"


def _quoted(name: str) -> str:
    return quote(name, errors="replace")  # a lone surrogate has no encoding


def component_address(skill: str, field: str | None = None) -> str:
    """Return the address of a component's page or, if a field is given, of the field's cases on it."""
    return f"components/{_quoted(skill)}.html" + (f"#{field_anchor(field)}" if field is not None else "")


def field_anchor(path: str) -> str:
    """Return the id of the element on a component's page that lists the cases of a field."""
    return f"field-{file_name(path)}" if path else "field"


def verdict_address(skill: str, version: str) -> str:
    """Return the address of the verdict on a version."""
    return f"verdicts/{_quoted(skill)}/{file_name(version)}.html"


def compare_address(skill: str, *names: str) -> str:
    """Return the address of a comparison; `names` is a version, or two models."""
    return f"compare/{_quoted(skill)}/{'--'.join(map(file_name, names))}.html"


def case_address(skill: str, case_id: str) -> str:
    """Return the address of the page of a case."""
    return f"cases/{_quoted(skill)}/{file_name(case_id)}.html"


def run_address(skill: str, run_id: str) -> str:
    """Return the address of the page with the outputs of a run."""
    return f"runs/{_quoted(skill)}/{run_id}.html"


def linked(text: str, address: str) -> str:
    """Format Markdown as a link; return it unchanged if the address is ""."""
    return f"[{text}]({address})" if address else text

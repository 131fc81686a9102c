"""Where on a published site the page of a component, a case or a field is: the one place that knows."""

from dataclasses import dataclass
from urllib.parse import urlencode

from skill_evaluator.display.safe_text import visible


def component_address(skill: str) -> str:
    """Return the page of a component, from the root of the site."""
    return f"component.html#{urlencode({'component': skill})}"


def verdict_address(skill: str, version: str) -> str:
    """Return the page of the verdict on a version."""
    return f"verdict.html#{urlencode({'component': skill, 'version': version})}"


def compare_address(skill: str, version: str) -> str:
    """Return the page that compares a version with the one before."""
    return f"compare.html#{urlencode({'component': skill, 'version': version})}"


@dataclass(frozen=True, slots=True)
class Site:
    """A published site; without an address nothing is linked."""

    address: str | None = None

    def page(
        self,
        skill: str,
        *,
        case: str | None = None,
        model: str | None = None,
        version: str | None = None,
        field: str | None = None,
    ) -> str:
        """Return the address of a component's page, or of a case's, and what it begins with; empty without a site.

        Names are written as the site has them, which shows every character.

        >>> Site("https://example.com/site").page("receipts", case="a b")
        'https://example.com/site/case.html#component=receipts&case=a+b'
        >>> Site("https://example.com/site").page("receipts", model="small", field="total")
        'https://example.com/site/component.html#component=receipts&model=small&field=total'
        """
        if self.address is None:
            return ""
        named = {"component": skill, "case": case, "model": model, "version": version, "field": field}
        state = urlencode({key: visible(name, keep="\n\t") for key, name in named.items() if name is not None})
        return f"{self.address.rstrip('/')}/{'component' if case is None else 'case'}.html#{state}"


NO_SITE = Site()


def linked(words: str, address: str) -> str:
    """Write Markdown as a link, or as it is without an address."""
    return f"[{words}]({address})" if address else words

"""Where on a published site the page of a component, a case or a field is: the one place that knows."""

from dataclasses import dataclass
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Site:
    """A published site; without an address nothing is linked."""

    address: str | None = None

    def page(self, skill: str, *, case: str | None = None, field: str | None = None) -> str:
        """Return the address of a component's page, which may be told a case or field; empty without a site.

        >>> Site("https://example.com/site").page("receipts", case="a b")
        'https://example.com/site/component.html#component=receipts&case=a+b'
        """
        if self.address is None:
            return ""
        named = {"component": skill, "case": case, "field": field}
        state = urlencode({key: name for key, name in named.items() if name is not None}, errors="replace")
        return f"{self.address.rstrip('/')}/component.html#{state}"


NO_SITE = Site()


def linked(words: str, address: str) -> str:
    """Write Markdown as a link, or as it is without an address."""
    return f"[{words}]({address})" if address else words

"""Which model answered: the names that servers give it, how often each, and which names are of one model.

A table of forms decides. Where a server sends no name, what answered is unknown, and differs from nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from pydantic import PositiveInt

Served = str | dict[str, PositiveInt] | None
"""The name of what answered a run; of several names each with its answers; None where the server sent none."""
Change = Literal["model", "date"]

_PLACE = (  # vendor/, models/, the folders of a file; a region; a vendor
    r"(?:.*[/\\])?(?:(?:us|us-gov|eu|apac|au|ca|jp|global)\.)?"
    r"(?:(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen)\.)?"
)
_RELEASE = r"-\d{4}-\d\d-\d\d|-\d\d-\d\d(?:\d\d)?|-\d{8}|-\d{4}|@[\d-]+|-0\d\d|(?:-v\d+)?:\d"
_NEWEST = r"\.gguf|\.safetensors|[-:@](?:latest|default)"  # and the kind of a file: neither says which model it is
_FORMS = re.compile(rf"{_PLACE}(?P<base>.+?)(?P<release>(?:{_RELEASE})*)(?:{_NEWEST})?", re.DOTALL)


@lru_cache(maxsize=1000)
def parts_of(name: str) -> tuple[str, str]:
    """Return the base of a name, and its release; what says where the model is belongs to neither.

    >>> [parts_of(name) for name in ("models/Gem-001", "us.anthropic.c-20240620-v1:0", "/w/T.gguf", "x:latest")]
    [('gem', '-001'), ('c', '-20240620-v1:0'), ('t', ''), ('x', '')]
    """
    match = _FORMS.fullmatch(name.casefold())
    return (match["base"], match["release"]) if match else (name, "")


def _identity(name: str) -> tuple[str, str]:
    """Return what two names of one release share, however each spells its date: `@20240620`, `-2024-06-20-v1:0`."""
    base, release = parts_of(name)
    return base, re.sub(r"(?<=\d{4})(?:-v\d+)?:\d$|\D", "", release)


def served_of(names: Iterable[str | None]) -> Served:
    """Return what answered, from the name in each answer."""
    counts = Counter(name for name in names if name)
    return dict(counts.most_common()) if len(counts) > 1 else next(iter(counts), None)


def served_text(served: Served) -> str | None:
    """Return what answered as a text, each of several names with its answers."""
    return ", ".join(f"{name} ({n})" for name, n in served.items()) if isinstance(served, dict) else served


def names_of(served: Served) -> list[str]:
    """Return the names of what answered."""
    return list(served) if isinstance(served, dict) else [served] if served else []


def is_mixed(served: Served) -> bool:
    """Return whether several models, or releases of one, answered a run."""
    return len(set(map(_identity, names_of(served)))) > 1


def is_requested(served: str, requested: Iterable[str]) -> bool:
    """Return whether a name is of the model that was requested by one of these, in its release if one is named."""
    base, release = _identity(served)
    alike = [wanted for name, wanted in map(_identity, requested) if name == base]
    return bool(alike) and all(wanted in ("", release) for wanted in alike)


def change_of(before: Served, after: Served, requested: Iterable[str]) -> Change | None:
    """Return what differs between two runs: several models in one run, or an unrequested release, count as a model."""
    if is_mixed(before) or is_mixed(after):
        return "model"
    answered = {_identity(name) for name in (*names_of(before), *names_of(after))}
    if len(answered) < 2:
        return None
    bases = {base for base, _ in answered}
    is_pinned = any(base in bases and release for base, release in map(parts_of, requested))
    return "model" if is_pinned or len(bases) > 1 else "date"

"""Providers and metrics that other packages add through entry points.

Looked up only for a name that is not shipped: reading the metadata of every installed package takes its time.
"""

from typing import Any


def names(group: str) -> list[str]:
    """The names that installed packages add to a group."""
    from importlib.metadata import entry_points

    return [entry.name for entry in entry_points(group=group)]


def load(group: str, name: str) -> Any:
    """The object of that name, or None; what its package raises on import is passed on."""
    from importlib.metadata import entry_points

    found = list(entry_points(group=group, name=name))
    return found[0].load() if found else None

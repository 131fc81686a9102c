"""Providers, metrics and comparators that other packages add through entry points.

Looked up only for a name that is not shipped: reading the metadata of every installed package takes its time.
"""

from typing import Any


def names(group: str) -> list[str]:
    """Return the names that installed packages add to a group."""
    from importlib.metadata import entry_points

    return [entry.name for entry in entry_points(group=group)]


def load(group: str, name: str) -> Any:
    """Load the object of a name, or None; what its package raises on import is passed on."""
    from importlib.metadata import entry_points

    entries = list(entry_points(group=group, name=name))
    return entries[0].load() if entries else None

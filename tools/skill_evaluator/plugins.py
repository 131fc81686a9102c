"""Providers, metrics and comparators that other packages add through entry points."""

import traceback
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from skill_evaluator.errors import ConfigError, SkillEvaluatorError


def names(group: str) -> list[str]:
    """Return the names of the entry points of a group, in all installed packages."""
    return [entry.name for entry in entry_points(group=group)]


def load(group: str, name: str, kind: type) -> Any:
    """Load a plugin. Return None if no package has it. Raise ConfigError if it fails to load or is of another type."""
    entries = list(entry_points(group=group, name=name))
    plugin = call(f"'{name}' of {group}", entries[0].load) if entries else None
    if entries and not isinstance(plugin, kind):
        raise ConfigError(f"'{name}' of {group} is a {type(plugin).__name__}; a {kind.__name__} is expected")
    return plugin


def call(label: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call `function` of a plugin. Convert an unexpected exception to a ConfigError that begins with `label`."""
    try:
        return function(*arguments)
    except (SkillEvaluatorError, MemoryError):
        raise
    except (Exception, SystemExit) as problem:
        file, line, *_ = traceback.extract_tb(problem.__traceback__)[-1]
        raise ConfigError(f"{label} failed: {problem!r:.300} (line {line} of {file})") from None

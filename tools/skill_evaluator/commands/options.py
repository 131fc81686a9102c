"""Shared handling of options: confirmation, skipped rows, and the folders of the library."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from skill_evaluator.display.options import COMPONENTS, CONFIG
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import SkillEvaluatorError

# Options that take components: a folder may replace a name, because shells complete folders.
_COMPONENT_FIELDS = ("skill", "skills", "names", "sources")


def agreed(question: str, *, yes: bool) -> bool:
    """Return whether the user agrees, by `--yes` or by an answer on the terminal."""
    if yes or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return yes
    print(f"{question} [y/N]: ", end="", flush=True)
    return input().strip().lower() in ("y", "yes")


def leave_out(problem: SkillEvaluatorError) -> None:
    """Print a warning about an invalid row that `--skip-invalid` skips."""
    print(f"warning: {visible(str(problem))}; left out", file=sys.stderr)


def with_library(options: Any) -> Any:
    """Return options with components by name, and with the folders of components and cases that settings.yaml names."""
    changes = dict[str, Any]()
    components, config = getattr(options, "components", None), getattr(options, "config", CONFIG)
    if components is not None:
        named = {name: getattr(options, name) for name in _COMPONENT_FIELDS if getattr(options, name, None)}
        changes = {name: _names_of(value, components) for name, value in named.items()}
    if getattr(options, "fixtures", config) is None and not getattr(options, "no_cases", False):
        from skill_evaluator.library.config import load_settings

        if elsewhere := load_settings(config).fixtures:
            from skill_evaluator.ci.fixtures import fetched_fixtures

            changes["fixtures"], _ = fetched_fixtures(elsewhere)
    if components is not None:
        from skill_evaluator.library.sources import components_of

        changes["components"] = components_of(components, config, COMPONENTS)
    return replace(options, **changes) if changes else options


def _names_of(typed: Any, components: Path) -> Any:
    """Replace folders of components by their names; return other values unchanged."""
    if isinstance(typed, tuple):
        return tuple(_names_of(each, components) for each in typed)
    path = Path(typed)
    is_folder = os.path.isdir(typed)  # noqa: PTH112 - Path.is_dir raises for some names
    return path.name if is_folder and path.parent.resolve() == components.resolve() else typed

"""The files that `init` lays out in a prompt library: configuration, workflows and an example, as texts by path.

Their templates are in `scaffold/`; its workflows and scenarios are this project's own, byte for byte.
"""

import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from skill_evaluator import __version__

EXAMPLE = "example-component"
IGNORED = ("components/*/evals/results/", "audits/*/runs/", "/plan.json", "/audit-plan.json", "/collected/")
"""Lines for .gitignore: answers and plans are kept as artifacts, not in git."""

_TEMPLATES = Path(__file__).parents[1] / "scaffold"
_MAIN = "branches: [main]"
_REQUIREMENT = "{requirement}"


def library_files(branch: str) -> dict[str, str]:
    """Return the configuration, workflows for pushes to a branch, and the entry point that they prefer."""
    word = branch if branch.replace("-", "").replace("/", "").replace("_", "").isalnum() else json.dumps(branch)
    return {
        **_fill_templates("evaluator", ".evaluator", {_REQUIREMENT: requirement()}),
        **_fill_templates("workflows", ".github/workflows", {_MAIN: f"branches: [{word}]"}),
        **_fill_templates("tools", "tools", {}),
    }


def example_files(name: str) -> dict[str, str]:
    """Return a component with three cases."""
    return {
        **_fill_templates("component", f"components/{name}", {EXAMPLE: name}),
        **_fill_templates("fixtures", f"fixtures/{name}", {EXAMPLE: name}),
    }


def requirement() -> str:
    """Return the requirement that installs this very evaluator: its commit when it came from git, else its version."""
    try:
        source: Any = json.loads(metadata.distribution("skill-evaluator").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        source = {}
    commit = source.get("vcs_info", {}).get("commit_id")
    if commit is None:
        return f"skill-evaluator[charts,github,local]=={__version__}"
    return f"skill-evaluator[charts,github,local] @ {source['vcs_info']['vcs']}+{source['url']}@{commit}"


def _fill_templates(template: str, place: str, replaced: Mapping[str, str]) -> dict[str, str]:
    """Read the files of a template folder, by where they go, with words in them replaced."""
    files = {}
    for path in sorted((_TEMPLATES / template).rglob("*")):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            for old, new in replaced.items():
                text = text.replace(old, new)
            files[f"{place}/{path.relative_to(_TEMPLATES / template).as_posix()}".removesuffix(".template")] = text
    return files

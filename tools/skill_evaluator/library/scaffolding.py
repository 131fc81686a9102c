"""What a repository needs in order to be evaluated: configuration, workflows and an example, as texts by path.

The templates are in `scaffold/`, beside the rooms; workflows and scenarios there are this project's own, byte for
byte.
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
    """Configuration, workflows for pushes to a branch, and the entry point that they prefer."""
    return {
        **_tree("evaluator", ".evaluator", {_REQUIREMENT: requirement()}),
        **_tree("workflows", ".github/workflows", {_MAIN: f"branches: [{_yaml_word(branch)}]"}),
        **_tree("tools", "tools", {}),
    }


def example_files(name: str) -> dict[str, str]:
    """A component with three cases."""
    named = {EXAMPLE: name}
    return {**_tree("component", f"components/{name}", named), **_tree("fixtures", f"fixtures/{name}", named)}


def requirement() -> str:
    """What pip installs this very evaluator by: the commit it came from, where it came from a repository."""
    try:
        source: Any = json.loads(metadata.distribution("skill-evaluator").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        source = {}
    commit = source.get("vcs_info", {}).get("commit_id")
    if commit is None:
        return f"skill-evaluator[charts,github,local]=={__version__}"
    return f"skill-evaluator[charts,github,local] @ {source['vcs_info']['vcs']}+{source['url']}@{commit}"


def _tree(template: str, place: str, replaced: Mapping[str, str]) -> dict[str, str]:
    """The files of a template folder, by where they go."""
    files = {}
    for path in sorted((_TEMPLATES / template).rglob("*")):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            for old, new in replaced.items():
                text = text.replace(old, new)
            files[f"{place}/{path.relative_to(_TEMPLATES / template).as_posix()}".removesuffix(".template")] = text
    return files


def _yaml_word(branch: str) -> str:
    return branch if branch.replace("-", "").replace("/", "").replace("_", "").isalnum() else json.dumps(branch)

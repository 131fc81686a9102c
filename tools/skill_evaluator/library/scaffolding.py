"""The files that `init` and `demo` lay out: configuration, workflows and example components, as texts by path.

Their templates are in `scaffold/`; its workflows, scenarios and rubrics are this project's own, byte for byte.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from skill_evaluator.files import read_text, storing
from skill_evaluator.library.requirement import requirement

EXAMPLE = "example-component"
DEMO = "receipts"
DEMO_VERSIONS = ("1.0.0", "1.1.0", "1.2.0")
IGNORED = (
    "components/*/evals/results/",
    "audits/*/runs/",
    "judgements/",
    ".evaluator/reviews/.reviews.lock",
    "/plan.json",
    "/audit-plan.json",
    "/collected/",
    "/site/",
)
"""Lines for .gitignore: answers, plans and pages are kept as artifacts, not in git."""

_TEMPLATES = Path(__file__).parents[1] / "scaffold"
_MAIN = "branches: [main]"
_REQUIREMENT = "{requirement}"


def ignore(folder: Path, *, write: bool = True) -> list[str]:
    """Return the lines of `IGNORED` that a folder's .gitignore lacks, and add them if told so; raise StorageError."""
    path = folder / ".gitignore"
    text = read_text(path) if path.exists() else ""
    missing = [line for line in IGNORED if line not in text.splitlines()]
    if missing and write:
        with storing(path), path.open("a", encoding="utf-8") as handle:
            handle.write("\n" if text and not text.endswith("\n") else "")
            handle.write("\n".join(("# of skill-evaluator: kept as artifacts, not in git", *missing, "")))
        print("added to .gitignore")
    return missing


def library_files(branch: str) -> dict[str, str]:
    """Return the configuration, workflows for pushes to a branch, and the entry point that they prefer."""
    word = branch if branch.replace("-", "").replace("/", "").replace("_", "").isalnum() else json.dumps(branch)
    return {
        **_fill_templates("evaluator", ".evaluator", {_REQUIREMENT: requirement()}),
        **_fill_templates("workflows", ".github/workflows", {_MAIN: f"branches: [{word}]"}),
        **_fill_templates("tools", "tools"),
    }


def example_files(name: str) -> dict[str, str]:
    """Return a component with three cases."""
    return {
        **_fill_templates("component", f"components/{name}", {EXAMPLE: name}),
        **_fill_templates("fixtures", f"fixtures/{name}", {EXAMPLE: name}),
    }


def demo_files() -> dict[str, str]:
    """Return what all versions of the demonstration share: schema, declarations, cases and models."""
    return {
        **_fill_templates("demo/evaluator", ".evaluator"),
        **_fill_templates("demo/component", f"components/{DEMO}"),
        **_fill_templates("demo/cases", f"fixtures/{DEMO}/cases"),
    }


def demo_version(version: str) -> dict[str, str]:
    """Return the prompt of one version of the demonstration, and the answers that models gave to it."""
    return {
        **_fill_templates(f"demo/versions/{version}/answers", "answers"),
        **_fill_templates(f"demo/versions/{version}/prompt", f"components/{DEMO}"),
    }


def _fill_templates(template: str, place: str, replaced: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Read the files of a template folder, by where they go, with words in them replaced."""
    files = {}
    for path in sorted((_TEMPLATES / template).rglob("*")):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            for old, new in replaced.items():
                text = text.replace(old, new)
            files[f"{place}/{path.relative_to(_TEMPLATES / template).as_posix()}".removesuffix(".template")] = text
    return files

"""The files that `init` and `demo` write, as texts by path; the templates are in `scaffold/`."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from skill_evaluator.errors import GitError, SkillEvaluatorError
from skill_evaluator.files import json_text, read_json, read_text, storing
from skill_evaluator.library.components import CaseFiles, find_texts
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.contract import Contract, constrains, read_schema
from skill_evaluator.repository import Repository

_PACKAGE = "skill-evaluator[charts,github,local]"
_OVER_SSH = re.compile(r"(?:ssh://)?(?:[\w.-]+@)?([\w.-]+)[:/]([^/].*)")
PLACEHOLDERS = ("FILL IN", "MODEL-OF-")  # markers in lines that are not comments
_FILL_IN = f"FILL IN the address and a full commit of this evaluator: {_PACKAGE} @ git+https://HOST/OWNER/skill-evaluator@COMMIT"


def requirement() -> str:
    """Return lines of a requirements file that install this evaluator at its commit, or one line to fill in."""
    try:
        source: Any = json.loads(metadata.distribution("skill-evaluator").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        source = {}
    if "vcs_info" in source:
        return f"{_PACKAGE} @ {source['vcs_info']['vcs']}+{source['url']}@{source['vcs_info']['commit_id']}"
    if "dir_info" in source:
        return requirement_of(Path(url2pathname(urlsplit(source["url"]).path)))
    return requirement_of(Path(__file__).parents[3])  # a checkout that is not installed


def requirement_of(checkout: Path) -> str:
    """Return lines of a requirements file that install a checkout's commit from its origin, or one line to fill in."""
    try:
        repository = Repository(checkout)
        commit, origin = repository.commit("HEAD"), repository.address("origin")
    except GitError:
        return _FILL_IN
    if repository.root.resolve() != checkout.resolve() or commit is None or origin is None:
        return _FILL_IN
    over_ssh = None if origin.startswith(("https://", "http://")) else _OVER_SSH.fullmatch(origin)
    address = f"https://{over_ssh[1]}/{over_ssh[2]}" if over_ssh else origin
    if not address.startswith(("https://", "http://")):
        return _FILL_IN  # a local path
    notes = ["# The commit of the checkout that wrote this file: push it before the workflows install it."]
    if not repository.is_clean:
        notes.append("# The checkout also had uncommitted changes, which are not installed.")
    return "\n".join([*notes, f"{_PACKAGE} @ git+{address}@{commit}"])


EXAMPLE = "example-component"
DEMO = "receipts"
DEMO_VERSIONS = ("1.0.0", "1.1.0", "1.2.0")
IGNORED = (
    "components/*/evals/results/",
    "audits/*/runs/",
    "judgements/",
    ".evaluator/reviews/.reviews.lock",
    "/plan.json",
    "/collected/",
    "/site/",
)
"""Lines for .gitignore: outputs, plans and pages are stored as CI artifacts, not in git."""
IGNORED_IN_CONFIG = ("components/*/evals/results/", "reviews/.reviews.lock")
"""Lines for .evaluator/.gitignore in a library of other formats, where all files are written below .evaluator."""

_TEMPLATES = Path(__file__).parents[1] / "scaffold"


def ignore(folder: Path, *, write: bool = True) -> list[str]:
    """Return the lines of `IGNORED` that a folder's .gitignore lacks. If `write`, add them to that file."""
    path = folder / ".gitignore"
    text = read_text(path) if path.exists() else ""
    missing = [line for line in IGNORED if line not in text.splitlines()]
    if missing and write:
        with storing(path), path.open("a", encoding="utf-8") as handle:
            handle.write("\n" if text and not text.endswith("\n") else "")
            handle.write("\n".join(("# of skill-evaluator: kept as artifacts, not in git", *missing, "")))
    return missing


def library_files(branch: str) -> dict[str, str]:
    """Return the texts of a new library's files by path. Its workflow `evaluate` runs on pushes to `branch`."""
    word = branch if branch.replace("-", "").replace("/", "").replace("_", "").isalnum() else json.dumps(branch)
    return {
        **_fill_templates("evaluator", ".evaluator", {"{requirement}": requirement()}),
        **_fill_templates("workflows", ".github/workflows", {"branches: [main]": f"branches: [{word}]"}),
        **_fill_templates("actions", ".github/actions"),
        **_fill_templates("tools", "tools"),
    }


def example_files(name: str) -> dict[str, str]:
    """Return the texts of the files of an example component and its single case, by path."""
    case = "cases/stationer"
    return {
        **_fill_templates("component", f"components/{name}"),
        **_fill_templates("demo/component", f"components/{name}", {DEMO: name}),
        **_fill_templates(f"demo/versions/{DEMO_VERSIONS[0]}/prompt", f"components/{name}", {DEMO: name}),
        **_fill_templates(f"demo/{case}", f"fixtures/{name}/{case}"),
    }


def demo_files() -> dict[str, str]:
    """Return the texts of the files that all versions of the demo share, by path."""
    return {
        **_fill_templates("demo/evaluator", ".evaluator"),
        **_fill_templates("demo/component", f"components/{DEMO}"),
        **_fill_templates("demo/cases", f"fixtures/{DEMO}/cases"),
    }


def demo_version(version: str) -> dict[str, str]:
    """Return the texts of the files of one demo version, its prompt and recorded model outputs, by path."""
    return {
        **_fill_templates(f"demo/versions/{version}/answers", "answers"),
        **_fill_templates(f"demo/versions/{version}/prompt", f"components/{DEMO}"),
    }


def _fill_templates(
    template: str, target: str, replacements: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    files = {}
    for path in sorted((_TEMPLATES / template).rglob("*")):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            for old, new in replacements.items():
                text = text.replace(old, new)
            files[f"{target}/{path.relative_to(_TEMPLATES / template).as_posix()}".removesuffix(".template")] = text
    return files


_DEFINITIONS = ("$defs", "definitions")
_LIKELY = ("output", "answer", "response", "result")


def fitting_parts(folder: Path, limits: SafetyLimits) -> list[str]:
    """Return references to the parts in `$defs` of schema.json that accept all ground truths.

    Return [] if the root of schema.json has constraints, because the root is then the output schema.
    """
    path = folder / "schema.json"
    try:
        schema = read_json(path, limit=limits.size_of("schema_bytes"))
        if constrains(schema, schema):
            return []
        truths = _truths_of(folder, limits)
        pointers = [f"schema.json#/{key}/{name}" for key in _DEFINITIONS for name in schema.get(key, {})]
        fitting = [pointer for pointer in pointers if _fits(folder, pointer, truths, limits)]
    except (SkillEvaluatorError, AttributeError):  # reported by lint
        return []
    return sorted(fitting, key=lambda pointer: pointer.rpartition("/")[2].lower() not in _LIKELY)


def declarations(folder: Path, pointer: str | None, limits: SafetyLimits) -> str | None:
    """Return a datasets.json with `pointer` as schema and rules for text fields. Return None if it would be empty."""
    truths = _truths_of(folder, limits)
    dataset: dict[str, Any] = {"schema": pointer} if pointer else {}
    with suppress(SkillEvaluatorError):  # reported by lint
        schema = read_schema(folder, pointer, limits)[0]
        texts, prose = find_texts(schema, {}, truths)
        fields = {path: {"compare": "text" if path in prose else "string"} for path in texts if truths}
        dataset |= {"fields": fields} if fields else {}
    for_editors = "../../../.evaluator/schemas/datasets.json"
    return json_text({"$schema": for_editors, "datasets": [dataset]}) if dataset else None


def _truths_of(folder: Path, limits: SafetyLimits) -> list[Any]:
    files = CaseFiles(home=folder, fixtures=folder.name, limits=limits)
    table = files.table()
    return list(files.truths(table, files.output(table) or "json", None))


def _fits(folder: Path, pointer: str, truths: list[Any], limits: SafetyLimits) -> bool:
    try:
        schema, location, _ = read_schema(folder, pointer, limits)
        contract = Contract(schema, location)
    except SkillEvaluatorError:
        return False
    return constrains(schema, schema or {}) and all(map(contract.conforms, truths))

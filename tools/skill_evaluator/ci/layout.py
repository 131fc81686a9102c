"""The files that a repository needs for evaluation: configuration, workflows, a component.

Existing files are not changed. All checks precede all writes, so a failed check leaves no files behind.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.ci.matrix import key_variable_of
from skill_evaluator.display.options import CONFIG, argument, flag, option, options
from skill_evaluator.errors import ComponentError, ConfigError, GitError
from skill_evaluator.files import read_text, replace_text
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.library.scaffolding import EXAMPLE, example_files, ignore, library_files
from skill_evaluator.providers import PROVIDERS, Configuration
from skill_evaluator.repository import Repository

WORKFLOWS = Path(".github", "workflows")
EVALUATE = "evaluate.yml"
_OPTIONAL_FILES = {
    "workflows": (".github/", "tools/", f"{CONFIG}/requirements", f"{CONFIG}/schemas/"),
    "audit": (f"{CONFIG}/scenarios/",),
    "judge": (f"{CONFIG}/rubrics/",),
}
_JOB_PERMISSIONS = "    permissions: # of the jobs that call models\n      contents: read\n"
_LAST_KEY_LINE = "          JOB: ${{ matrix.id }}\n"
_IDENTITY = "      id-token: write # a model without a key takes the identity of the job\n"


def with_identity(workflow: str) -> str:
    """Add the permission and the variables that models with `auth: oidc` need to the text of evaluate.yml."""
    federations = [kind.federation for kind in PROVIDERS.values() if kind.federation is not None]
    names = sorted({name for federation in federations for name in (*federation.required, *federation.optional)})
    identifiers = "".join(f"          {name}: ${{{{ vars.{name} }}}}\n" for name in names)
    workflow = workflow.replace(_JOB_PERMISSIONS, _JOB_PERMISSIONS + _IDENTITY)
    return workflow.replace(_LAST_KEY_LINE, identifiers + _LAST_KEY_LINE)


def stale_workflows(config: Path, configuration: Configuration) -> dict[Path, str]:
    """Return the path of evaluate.yml and a message if it lacks keys or permissions of models.yaml, else {}."""
    path = config.parent / WORKFLOWS / EVALUATE
    if not path.exists():
        return {}
    text = read_text(path)
    keys = {key_variable_of(model, configuration.kinds[model.provider]) for model in configuration.models}
    missing = [
        f"{name}: ${{{{ contains(matrix.keys, '{name}') && secrets.{name} || '' }}}}"
        for name in sorted(filter(None, keys))
        if f"secrets.{name} " not in text
    ]
    evaluate_job = text.partition("\n  evaluate:\n")[2].partition("\n  collect:")[0]
    if any(model.auth == "oidc" for model in configuration.models) and "id-token: write" not in evaluate_job:
        missing.append("id-token: write (below permissions; `skill-evaluator init --workflows --keyless` writes it)")
    message = f"{path.as_posix()} lacks lines that models.yaml requires; add to the job `evaluate`"
    return {path: f"{message}: {'; '.join(missing)}"} if missing else {}


@options
class InitRequest:
    """The options of `init`."""

    folder: Path = argument("The root of a repository.", Path())
    name: str | None = option("Write a component of this name, with one case.", metavar="NAME")
    adopt: bool = flag("Read an existing library and propose the files it lacks.")
    yes: bool = flag("With --adopt: write the proposed files.")
    workflows: bool = flag("Also write GitHub workflows.")
    keyless: bool = flag("With --workflows: let `auth: oidc` use the job's identity.")
    audit: bool = flag("Also write scenarios for an audit.")
    judge: bool = flag("Also write rubrics for judges.")
    out: Path | None = option("With --adopt: write the proposed files to this folder.", metavar="DIR")

    def __post_init__(self) -> None:
        if self.name is not None and not is_component_name(self.name):
            raise ComponentError(f"--name '{self.name}' cannot be a component's name (letters, digits, '.', '_', '-')")
        if self.yes and not self.adopt:
            raise ConfigError("--yes requires --adopt")
        if self.keyless and not self.workflows:
            raise ConfigError("--keyless requires --workflows")

    @property
    def home(self) -> Path:
        """The folder that the files are written to."""
        return self.out or self.folder


@dataclass(frozen=True, slots=True, kw_only=True)
class InitResult:
    """A line per file, the component to try first if there is one, and the branch that written workflows evaluate."""

    lines: Sequence[str]
    name: str | None
    branch: str | None


def create_library(request: InitRequest, schemas: Mapping[str, str]) -> InitResult:
    """Write the configuration, a component with one case and, if requested, workflows; overwrite nothing."""
    folder, branch = request.folder, _find_branch(request.folder)
    names = sorted(path.parent.name for path in folder.glob("components/*/prompt.md"))
    name = request.name or (None if names or request.workflows else EXAMPLE)
    existing = component_folder(folder, name)
    files = files_of_library(request, schemas)
    files |= example_files(name) if name and not existing else {}
    _check_writable(folder, (*files, ".gitignore"))
    lines = write_missing(folder, files)
    lines += [f"kept     {existing} (it gets no example)"] if existing else []
    lines += ["added to .gitignore"] if ignore(folder) else []
    name = name or (None if request.workflows else names[0])
    return InitResult(lines=lines, name=name, branch=branch if request.workflows else None)


def component_folder(folder: Path, name: str | None) -> str | None:
    """Return the folder of a component or of its cases below `folder`. Return None if neither exists."""
    folders = (f"components/{name}", f"fixtures/{name}")
    return next((path for path in folders if (folder / path).exists()), None)


def files_of_library(request: InitRequest, schemas: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each file by path; workflows with their tools, scenarios and rubrics only if requested."""
    files = library_files(_find_branch(request.folder))
    files |= {f"{CONFIG}/schemas/{name}.json": text for name, text in schemas.items()}
    for kind, prefixes in _OPTIONAL_FILES.items():
        if not getattr(request, kind):
            files = {path: text for path, text in files.items() if not path.startswith(prefixes)}
    evaluate = (WORKFLOWS / EVALUATE).as_posix()
    return files | ({evaluate: with_identity(files[evaluate])} if request.keyless else {})


def _check_writable(folder: Path, paths: Iterable[str]) -> None:
    for target in (folder / path for path in paths):
        if target.is_dir():
            raise ConfigError(f"{target} is a folder, but a file must go there; move it away")
        parent = next(folder for folder in target.absolute().parents if folder.exists() or folder.is_symlink())
        if not parent.is_dir():
            raise ConfigError(f"{parent} is a file, but a folder must go there; move it away")
        if not target.exists() and not os.access(parent, os.W_OK | os.X_OK):
            raise ConfigError(f"cannot write into {parent}: no permission")


def write_missing(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write the missing files and return a line per file. Raise ConfigError, before writing, if a path is unusable."""
    _check_writable(folder, files)
    lines = []
    for name, text in files.items():
        path = folder / name
        if path.is_symlink() or path.exists():
            is_equal = path.exists() and path.read_bytes() == text.encode()
            lines.append(f"kept     {name}" + ("" if is_equal else " (differs from this version's)"))
        else:
            replace_text(path, text)
            lines.append(f"written  {name}")
    return lines


def _find_branch(folder: Path) -> str:
    """Return the branch to evaluate; raise ConfigError for a subfolder, where GitHub does not read workflows."""
    existing = next(path for path in (folder.resolve(), *folder.resolve().parents) if path.exists())
    if not existing.is_dir():
        raise ConfigError(f"{existing} is not a folder")
    try:
        repository = Repository(existing)
    except GitError:
        return "main"
    if repository.root.resolve() != folder.resolve():
        raise ConfigError(
            f"{folder} is inside the repository {repository.root}, and GitHub reads workflows only at its root; "
            f"run: skill-evaluator init {repository.root}"
        )
    return repository.main_branch() or repository.resolve_symbolic("HEAD") or "main"

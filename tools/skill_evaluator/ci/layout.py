"""The files that a repository needs for evaluation: configuration, workflows, a component.

Existing files are not changed. All checks precede all writes, so a failed check leaves no files behind.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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
_ONLY_WITH = {
    "workflows": (".github/", "tools/", f"{CONFIG}/requirements", f"{CONFIG}/schemas/"),
    "audit": (f"{CONFIG}/scenarios/",),
    "judge": (f"{CONFIG}/rubrics/",),
}
_MATRIX_READS = "    permissions: # of the jobs that call models\n      contents: read\n"
_KEYS_END = "          JOB: ${{ matrix.id }}\n"
_IDENTITY = "      id-token: write # a model without a key takes the identity of the job\n"
Choose = Callable[[str, Sequence[str]], str | None]


def keyless(workflow: str) -> str:
    """Return evaluate.yml with the permission and the variables that models with `auth: oidc` need."""
    federations = [kind.federation for kind in PROVIDERS.values() if kind.federation is not None]
    names = sorted({name for each in federations for name in (*each.required, *each.optional)})
    identifiers = "".join(f"          {name}: ${{{{ vars.{name} }}}}\n" for name in names)
    workflow = workflow.replace(_MATRIX_READS, _MATRIX_READS + _IDENTITY)
    return workflow.replace(_KEYS_END, identifiers + _KEYS_END)


def stale_workflows(config: Path, configuration: Configuration) -> dict[Path, str]:
    """Return the workflow next to a configuration folder with the lines that its models need and it lacks; empty
    if none.
    """
    path = config.parent / WORKFLOWS / EVALUATE
    if not path.exists():
        return {}
    text = read_text(path)
    keys = {key_variable_of(model, configuration.kinds[model.provider]) for model in configuration.models}
    lacking = [
        f"{name}: ${{{{ contains(matrix.keys, '{name}') && secrets.{name} || '' }}}}"
        for name in sorted(filter(None, keys))
        if f"secrets.{name} " not in text
    ]
    if any(model.auth == "oidc" for model in configuration.models) and "id-token: write" not in _evaluate_job(text):
        lacking.append("id-token: write (below permissions; `skill-evaluator init --workflows --keyless` writes it)")
    where = f"{path.as_posix()} lacks what models.yaml needs; add to the job `evaluate`"
    return {path: f"{where}: {'; '.join(lacking)}"} if lacking else {}


@options
class InitRequest:
    """The files that `init` writes, and where."""

    folder: Path = argument("The root of a repository.", Path())
    name: str | None = option("Write a component of this name, with one case.", metavar="NAME")
    adopt: bool = flag("Read an existing library, propose what a first run needs.")
    yes: bool = flag("With --adopt: write the proposed files.")
    workflows: bool = flag("Also write the workflows of GitHub.")
    keyless: bool = flag("With --workflows: let `auth: oidc` use the job's identity.")
    audit: bool = flag("Also write scenarios for an audit.")
    judge: bool = flag("Also write rubrics for judges.")
    out: Path | None = option("With --adopt: write there.", metavar="DIR")

    def __post_init__(self) -> None:
        if self.name is not None and not is_component_name(self.name):
            raise ComponentError(f"--name '{self.name}' cannot be a component's (letters, digits, '.', '_', '-')")
        if self.yes and not self.adopt:
            raise ConfigError("--yes needs --adopt, whose proposal it writes")
        if self.keyless and not self.workflows:
            raise ConfigError("--keyless requires --workflows")

    @property
    def home(self) -> Path:
        """The folder that the files are written to."""
        return self.out or self.folder


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOut:
    """The result of `init`: a line per file, the component to try, and the branch of the workflows written.

    `name` is None if there is no component to try, `branch` if no workflow was written.
    """

    lines: Sequence[str]
    name: str | None
    branch: str | None


def lay_out(request: InitRequest, schemas: Mapping[str, str]) -> LaidOut:
    """Write the configuration, a component with one case and, if requested, workflows; overwrite nothing."""
    folder, branch = request.folder, _find_branch(request.folder)
    names = sorted(path.parent.name for path in folder.glob("components/*/prompt.md"))
    name = request.name or (None if names or request.workflows else EXAMPLE)
    there = component_there(folder, name)
    files = files_of_library(request, schemas)
    files |= example_files(name) if name and not there else {}
    _refuse_places(folder, (*files, ".gitignore"))
    lines = write_missing(folder, files)
    lines += [f"kept     {there} (it gets no example)"] if there else []
    lines += ["added to .gitignore"] if ignore(folder) else []
    name = name or (None if request.workflows else names[0])
    return LaidOut(lines=lines, name=name, branch=branch if request.workflows else None)


def component_there(folder: Path, name: str | None) -> str | None:
    """Return the existing folder of a component or of its cases, because a second component would mix with it."""
    places = (f"components/{name}", f"fixtures/{name}")
    return next((place for place in places if (folder / place).exists()), None)


def files_of_library(request: InitRequest, schemas: Mapping[str, str]) -> dict[str, str]:
    """Return the files of configuration by place; workflows, `schemas`, scenarios and rubrics only if requested."""
    files = library_files(_find_branch(request.folder))
    files |= {f"{CONFIG}/schemas/{name}.json": text for name, text in schemas.items()}
    unwanted = tuple(start for kind, starts in _ONLY_WITH.items() if not getattr(request, kind) for start in starts)
    files = {place: text for place, text in files.items() if not place.startswith(unwanted)}
    evaluate = (WORKFLOWS / EVALUATE).as_posix()
    return files | ({evaluate: keyless(files[evaluate])} if request.keyless else {})


def _evaluate_job(text: str) -> str:
    return text.partition("\n  evaluate:\n")[2].partition("\n  collect:")[0]


def _refuse_places(folder: Path, places: Iterable[str]) -> None:
    """Raise ConfigError for the first path that cannot be written."""
    for path in (folder / place for place in places):
        if path.is_dir():
            raise ConfigError(f"{path} is a folder, but a file must go there; move it away")
        above = next(folder for folder in path.absolute().parents if folder.exists() or folder.is_symlink())
        if not above.is_dir():
            raise ConfigError(f"{above} is a file, but a folder must go there; move it away")
        if not path.exists() and not os.access(above, os.W_OK | os.X_OK):
            raise ConfigError(f"cannot write into {above}: no permission")


def write_missing(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write the missing files, and return a report line per file; raise ConfigError before any is written."""
    _refuse_places(folder, files)
    lines = []
    for place, text in files.items():
        path = folder / place
        if path.is_symlink() or path.exists():
            same = path.exists() and path.read_bytes() == text.encode()
            lines.append(f"kept     {place}" + ("" if same else " (differs from this version's)"))
        else:
            replace_text(path, text)
            lines.append(f"written  {place}")
    return lines


def _find_branch(folder: Path) -> str:
    """Return the branch to evaluate; raise ConfigError below a repository's root, where GitHub sees no workflow."""
    existing = next(path for path in (folder.resolve(), *folder.resolve().parents) if path.exists())
    if not existing.is_dir():
        raise ConfigError(f"{existing} is not a folder")
    try:
        repository = Repository(existing)
    except GitError:
        return "main"
    if repository.root.resolve() != folder.resolve():
        raise ConfigError(
            f"{folder} is inside of the repository {repository.root}, and GitHub sees workflows at its root only; "
            f"say: skill-evaluator init {repository.root}"
        )
    return repository.main_branch() or repository.resolve_symbolic("HEAD") or "main"

"""What a repository needs to be evaluated: files that are laid out, what a library that exists lacks, jobs for keys.

`evaluate.yml` has a job for models that need no key. After it stand its copies, one for each key: a
repository secret cannot be chosen by an expression without all secrets being on the runner. What is there stays as it
is. Everything is looked at before anything is written, so that a refusal leaves nothing behind.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.ci.matrix import REST, environment_of, secrets_for
from skill_evaluator.display.options import CONFIG, argument, flag, option, options
from skill_evaluator.errors import ComponentError, ConfigError, GitError
from skill_evaluator.files import read_text, replace_text
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.library.scaffolding import EXAMPLE, example_files, ignore, library_files
from skill_evaluator.providers import Configuration, read_configuration
from skill_evaluator.repository import Repository
from skill_evaluator.text import counted

COMMAND = "skill-evaluator init --workflows"
WORKFLOWS = Path(".github", "workflows")
_CALLS = re.compile(r"^    uses: [$.]/\.github/workflows/leg\.yml$", re.MULTILINE)  # older servers know no $/
_READS = "      contents: read\n"
_MADE = f"# made from models.yaml by `{COMMAND}`"
_ONLY_WITH = {
    "workflows": (".github/", "tools/", f"{CONFIG}/requirements", f"{CONFIG}/schemas/"),
    "audit": (f"{CONFIG}/scenarios/",),
    "judge": (f"{CONFIG}/rubrics/",),
}
IDENTITY = "id-token"  # stands among names of secrets where models are asked with the job's identity instead

Secrets = Mapping[str, Sequence[str]]
Choose = Callable[[str, Sequence[str]], str | None]


def secrets_of(configuration: Configuration) -> Secrets:
    """Return the names of the secrets that may hold each environment's key, by environment.

    Models that are asked without a key are left out. Raise ConfigError where one environment stands for two keys.
    """
    secrets: dict[str, tuple[str, ...]] = {}
    for model in configuration.models:
        kind = configuration.kinds[model.provider]
        variables, environment = secrets_for(model, kind), environment_of(model, kind)
        if model.auth == "oidc":
            variables = (IDENTITY,)
        elif not variables:
            continue
        others = secrets.get(environment, ())
        keys = [name for name in others if name != IDENTITY]
        if keys and model.auth == "key" and set(keys).isdisjoint(variables):
            raise ConfigError(
                f"models.yaml: {keys[0]} and {variables[0]} (of '{model.id}') are two keys, and both would be of the "
                f"environment {environment}; give one of them another api_key_env"
            )
        secrets[environment] = tuple(dict.fromkeys((*others, *variables)))
    return dict(sorted(secrets.items()))


def with_legs(text: str, secrets: Secrets) -> str:
    """Return a workflow with a job for each key after every job that calls the leg; as it is if none does.

    What was made before is replaced. The rest stays as somebody may have edited it, and its jobs are what is copied.
    """
    head, mark, body = text.partition("\njobs:\n")
    jobs = [job for job in re.split(r"(?m)^(?=  [\w-]+:)", body) if _MADE not in job.partition("\n")[0]]
    copied = [_name(job) for job in jobs if _CALLS.search(job)]
    if not copied:
        return text
    legs = {environment.removeprefix("eval-"): environment for environment in secrets}
    told = f"LEGS: {' '.join(secrets)} {_MADE}" if secrets else 'LEGS: ""'
    body = ""
    for each in jobs:
        job = re.sub(r"(?m)\bLEGS: .*$", told, each)
        job = re.sub(r"(?m)^(    needs: )\[(.*)\]$", lambda found: found[1] + _needs(found[2], copied, legs), job)
        body += job
        if _name(job) in copied:
            body += "".join(_copy(job, leg, environment, secrets[environment]) for leg, environment in legs.items())
    kept = "".join(line for line in head.splitlines(keepends=True) if not line.endswith(f"{_MADE}\n"))
    names = dict.fromkeys(name for each in secrets.values() for name in each if name != IDENTITY)
    ours = [name for name in names if not name.startswith("GITHUB_")]  # those are there without being handed over
    declared = "".join(f"      {name}: {{required: false}} {_MADE}\n" for name in ours)
    return kept.replace("\n    secrets:\n", f"\n    secrets:\n{declared}") + mark + body


def stale_workflows(config: Path, secrets: Secrets) -> dict[Path, str]:
    """Return the workflows beside a folder of settings whose jobs are not those of its models, and what to do."""
    texts = {path: read_text(path) for path in sorted((config.parent / WORKFLOWS).glob("*.yml"))}
    return {
        path: f"{path.as_posix()} has not the jobs that the keys of models.yaml ask for: {COMMAND}"
        for path, text in texts.items()
        if with_legs(text, secrets) != text
    }


def _name(job: str) -> str:
    return job.partition(":")[0].strip()


def _copy(job: str, leg: str, environment: str, names: Sequence[str]) -> str:
    """Return the job of one key; it alone sees the secrets of these names, or may have an identity."""
    _, _, body = job.partition("\n")
    body = re.sub(r"(?m)^(    name: .*)$", rf"\1 ({leg})", body, count=1)
    body = body.replace(f".{REST}", f".{environment}")
    if IDENTITY in names:
        body = body.replace(_READS, f"{_READS}      id-token: write # to ask without a key\n")
    keys = " || ".join(f"secrets.{name}" for name in names if name != IDENTITY)
    body = body.replace("secrets.PROVIDER_API_KEY", keys or "secrets.PROVIDER_API_KEY")
    return f"  {_name(job)}-{leg}: {_MADE}\n{body}"


def _needs(names: str, copied: Sequence[str], legs: Mapping[str, str]) -> str:
    """Return a list of jobs in which each copied one stands with its copies."""
    listed: list[str] = []
    for name in names.split(", "):
        if not name.startswith(tuple(f"{each}-" for each in copied)):
            listed += [name, *(f"{name}-{leg}" for leg in legs if name in copied)]
    return f"[{', '.join(listed)}]"


@options
class InitRequest:
    """The files that `init` writes, and where."""

    folder: Path = argument("The root of a repository.", Path(), metavar="DIR")
    name: str | None = option("Write a component of this name, with one case.", metavar="NAME")
    adopt: bool = flag("Read an existing library, in this format or others, and propose what a first run needs.")
    yes: bool = flag("With --adopt: write the proposed files.")
    workflows: bool = flag("Also write the workflows of GitHub. If they exist, only update them: a job for each key.")
    audit: bool = flag("Also write scenarios for an audit.")
    judge: bool = flag("Also write rubrics for judges.")
    out: Path | None = option("With --adopt: write there, as of a folder that is only read.", metavar="DIR")

    def __post_init__(self) -> None:
        if self.name is not None and not is_component_name(self.name):
            raise ComponentError(f"--name '{self.name}' cannot be a component's (letters, digits, '.', '_', '-')")
        if self.yes and not self.adopt:
            raise ConfigError("--yes needs --adopt, whose proposal it writes")

    @property
    def home(self) -> Path:
        """The folder that is written into."""
        return self.out or self.folder


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOut:
    """The result of `init`: a line a file, the component to try, and the branch of the workflows written.

    `name` is None if there is no component to try, `branch` if no workflow was written.
    """

    lines: Sequence[str]
    name: str | None
    branch: str | None


def lay_out(request: InitRequest, schemas: Mapping[str, str]) -> LaidOut:
    """Write the configuration, a component with one case and, if requested, workflows; overwrite nothing."""
    folder, branch = request.folder, _find_branch(request.folder)
    texts = map(read_text, (folder / WORKFLOWS).glob("*.yml")) if request.workflows else ()
    updates = any(_CALLS.search(text) for text in texts)
    is_new = request.workflows and not updates
    names = sorted(path.parent.name for path in folder.glob("components/*/prompt.md"))
    name = request.name or (None if names or request.workflows else EXAMPLE)
    there = component_there(folder, name)
    files = files_of_library(replace(request, workflows=is_new), schemas)
    files = {place: text for place, text in files.items() if not (updates and (folder / place).exists())}
    files |= example_files(name) if name and not there else {}
    _refuse_places(folder, (*files, ".gitignore"))
    lines = write_missing(folder, files) + (_write_legs(folder) if updates else [])
    lines += [f"kept     {there} (it gets no example)"] if there else []
    lines += ["added to .gitignore"] if ignore(folder) else []
    name = name or (None if request.workflows else names[0])
    return LaidOut(lines=lines, name=name, branch=branch if is_new else None)


def component_there(folder: Path, name: str | None) -> str | None:
    """Return the folder that exists of a component or of its cases; a second component would be mixed with it."""
    places = (f"components/{name}", f"fixtures/{name}")
    return next((place for place in places if (folder / place).exists()), None)


def files_of_library(request: InitRequest, schemas: Mapping[str, str]) -> dict[str, str]:
    """Return the files of configuration by place; workflows, `schemas`, scenarios and rubrics only if requested."""
    branch = _find_branch(request.folder)
    secrets: Secrets = {}
    with suppress(ConfigError):  # of no models.yaml: those that are laid out need no key; lint names a wrong one
        secrets = secrets_of(read_configuration(request.folder / CONFIG))
    files = {**library_files(branch), **{f"{CONFIG}/schemas/{name}.json": text for name, text in schemas.items()}}
    left_out = tuple(start for kind, starts in _ONLY_WITH.items() if not getattr(request, kind) for start in starts)
    files = {place: text for place, text in files.items() if not place.startswith(left_out)}
    return {place: with_legs(text, secrets) if place.startswith(".github/") else text for place, text in files.items()}


def _write_legs(folder: Path) -> list[str]:
    """Give each workflow a job for each key that models.yaml names; return a line for each workflow written."""
    secrets, lines = secrets_of(read_configuration(folder / CONFIG)), []
    for path in stale_workflows(folder / CONFIG, secrets):
        replace_text(path, with_legs(read_text(path), secrets))
        lines.append(f"written  {path.relative_to(folder).as_posix()}")
    return [*lines, f"jobs of their own for {counted(len(secrets), 'key')}: {', '.join(secrets) or 'none'}"]


def _refuse_places(folder: Path, places: Iterable[str]) -> None:
    """Raise ConfigError for the first place where no file can be written."""
    for path in (folder / place for place in places):
        if path.is_dir():
            raise ConfigError(f"{path} is a folder, but a file must go there; move it away")
        above = next(folder for folder in path.absolute().parents if folder.exists() or folder.is_symlink())
        if not above.is_dir():
            raise ConfigError(f"{above} is a file, but a folder must go there; move it away")
        if not path.exists() and not os.access(above, os.W_OK | os.X_OK):
            raise ConfigError(f"cannot write into {above}: no permission")


def write_missing(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write the files that are not there, and say of each whether it was; raise ConfigError before any is written."""
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

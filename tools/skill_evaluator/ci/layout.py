"""The files that a repository needs for evaluation: configuration, workflows, a component, and adopted libraries.

Existing files are kept: only settings.yaml and .gitignore get more lines. All checks precede all writes, so a failed
check leaves no files behind. Components in other formats stay in place.
"""

import os
import shlex
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import chdir, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from skill_evaluator.checking.lint import LintResult, lint_component
from skill_evaluator.ci.plan import key_variable_of
from skill_evaluator.errors import ComponentError, ConfigError, GitError, SkillEvaluatorError
from skill_evaluator.files import read_text, replace_text, validated
from skill_evaluator.identifiers import NAME_RULE, is_component_name
from skill_evaluator.library import scaffolding
from skill_evaluator.library.config import DeclaredSource, Model, Settings, load_models, load_settings
from skill_evaluator.library.options import COMPONENTS, CONFIG, argument, flag, option, options
from skill_evaluator.library.reading import parse_yaml, yaml_text
from skill_evaluator.library.sources import NOT_READ, SOURCES, component_names, source_of
from skill_evaluator.library.sources.tree import folder_tree
from skill_evaluator.library.versions import Problem
from skill_evaluator.processes import map_in_processes
from skill_evaluator.providers import PROVIDERS, Configuration
from skill_evaluator.repository import Repository

WORKFLOWS = Path(".github", "workflows")
EVALUATE = "evaluate.yml"
_JUDGE = Model(id="judge", provider="openai")  # stands for a judge that is not configured yet
_MAX_READ = 200  # components in other formats; `lint` reads all
_OPTIONAL_FILES = {
    "workflows": (".github/", "tools/", f"{CONFIG}/requirements", f"{CONFIG}/schemas/"),
    "audit": (f"{CONFIG}/scenarios/",),
    "judge": (f"{CONFIG}/rubrics/",),
}
_JOB_PERMISSIONS = "    permissions: # of the jobs that call models\n      contents: read\n"
_LAST_KEY_LINE = "          JOB: ${{ matrix.id }}\n"
_IDENTITY = "      id-token: write # a model without a key takes the identity of the job\n"


def with_identity(workflow: str) -> str:
    """Return the text of evaluate.yml with the permission and variables that models with `auth: oidc` need."""
    federations = [kind.federation for kind in PROVIDERS.values() if kind.federation is not None]
    names = sorted({name for federation in federations for name in (*federation.required, *federation.optional)})
    identifiers = "".join(f"          {name}: ${{{{ vars.{name} }}}}\n" for name in names)
    workflow = workflow.replace(_JOB_PERMISSIONS, _JOB_PERMISSIONS + _IDENTITY)
    return workflow.replace(_LAST_KEY_LINE, identifiers + _LAST_KEY_LINE)


def stale_workflows(config: Path, configuration: Configuration) -> list[Problem]:
    """Return one problem if evaluate.yml lacks keys or permissions that models.yaml requires, else []."""
    path = config.parent / WORKFLOWS / EVALUATE
    if not path.exists():
        return []
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
    message = f"{message}: {'; '.join(missing)}"
    return [Problem(file=path.as_posix(), line=1, message=message)] if missing else []


@options
class InitRequest:
    """The options of `init`."""

    folder: Path = argument("The root folder of the repository.", Path())
    name: str | None = option("Write an example component of this name, with one case.", metavar="NAME")
    adopt: bool = flag("Find existing prompts; write the files that they need.")
    yes: bool = flag("With --adopt: write the files without asking.")
    workflows: bool = flag("Also write GitHub workflows.")
    keyless: bool = flag("With --workflows: log in without API keys (`auth: oidc`).")
    audit: bool = flag("Also write scenarios for an audit.")
    judge: bool = flag("Also write rubrics for judges.")
    out: Path | None = option("With --adopt: write the files to this folder instead.", metavar="DIR")

    def __post_init__(self) -> None:
        if self.name is not None and not is_component_name(self.name):
            raise ComponentError(f"--name '{self.name}' cannot be a component's name ({NAME_RULE})")
        if self.yes and not self.adopt:
            raise ConfigError("--yes requires --adopt")
        if self.out is not None and not self.adopt:
            raise ConfigError("--out requires --adopt")
        if self.keyless and not self.workflows:
            raise ConfigError("--keyless requires --workflows")

    @property
    def command_prefix(self) -> str:
        """The start of a shell command that runs in the folder; "" for the current folder."""
        return "" if self.folder == Path() else f"cd {shlex.quote(str(self.folder))} && "

    @property
    def home(self) -> Path:
        """The folder that the files are written to."""
        return self.out or self.folder


def create_library(request: InitRequest, schemas: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Write the missing files of a library: configuration, example component and requested workflows.

    Return a report line per file, and the name of the component to evaluate first. The name is None for `--workflows`
    without `--name`.
    """
    folder = request.folder
    names = sorted(path.parent.name for path in folder.glob("components/*/prompt.md"))
    name = request.name or (None if names or request.workflows else scaffolding.EXAMPLE)
    existing = _component_folder(folder, name)
    files = _files_of_library(request, schemas)
    files |= scaffolding.example_files(name) if name and not existing else {}
    _check_writable(folder, (*files, ".gitignore"))
    lines = _write_missing(folder, files)
    lines += [f"kept     {existing} (it gets no example)"] if existing else []
    lines += ["added to .gitignore"] if scaffolding.ignore(folder) else []
    return lines, name or (None if request.workflows else names[0])


def _component_folder(folder: Path, name: str | None) -> str | None:
    folders = (f"components/{name}", f"fixtures/{name}")
    return next((path for path in folders if (folder / path).exists()), None)


def _files_of_library(request: InitRequest, schemas: Mapping[str, str]) -> dict[str, str]:
    files = scaffolding.library_files(find_branch(request.folder))
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


def _write_missing(folder: Path, files: Mapping[str, str]) -> list[str]:
    lines = []
    for name, text in files.items():
        path = folder / name
        if path.is_symlink() or path.exists():
            is_equal = path.exists() and path.read_bytes() == text.encode()
            lines.append(f"kept     {name}" + ("" if is_equal else " (differs from the file that init writes)"))
        else:
            replace_text(path, text)
            lines.append(f"written  {name}")
    return lines


def find_branch(folder: Path) -> str:
    """Return the branch that CI evaluates, or "main" if `folder` is in no repository.

    Raise ConfigError if `folder` is a file or a subfolder of a repository.
    """
    existing = next(path for path in (folder.resolve(), *folder.resolve().parents) if path.exists())
    if not existing.is_dir():
        raise ConfigError(f"{existing} is not a folder; name the root folder of the repository")
    try:
        repository = Repository(existing)
    except GitError:
        return "main"
    if repository.root.resolve() != folder.resolve():
        raise ConfigError(
            f"{folder} is inside the repository {repository.root}, and GitHub reads workflows only at its root; "
            f"name this folder: {shlex.quote(str(repository.root))}"
        )
    return repository.main_branch() or repository.resolve_symbolic("HEAD") or "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A proposal of `init --adopt`: the lint results of the components, and the text of each file to write, by path."""

    linted: Sequence[LintResult]
    files: Mapping[str, str]
    searched: Sequence[tuple[str, int]] = ()  # file patterns, and the number of components that each pattern found
    contracts: Mapping[str, str] = field(default_factory=dict)  # reference to the output schema, by component
    declared: Collection[str] = ()  # paths of new datasets.json files
    ignored: Sequence[str] = ()  # new lines of .gitignore
    unread: int = 0  # number of components that were not read
    sentences: int = 0  # number of `expect` checks that lack a judge
    lost: Sequence[str] = ()  # remarks on files that are not adopted, with advice


def propose(request: InitRequest, schemas: Mapping[str, str]) -> Proposal:
    """Find the components of a library and propose missing files. Raise ComponentError if there is no component."""
    folder = request.folder
    files = _files_of_library(request, schemas)
    if request.name and not _component_folder(folder, request.name):
        files |= scaffolding.example_files(request.name)
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; name the root folder of the repository")
    request = replace(request, folder=folder.absolute(), out=request.out and request.out.absolute())
    with chdir(folder):
        names = component_names(COMPONENTS)
        tree = folder_tree(Path(), load_settings(CONFIG).limits)
        counts = {kind: len(source.find(tree)) for kind, source in SOURCES.items() if kind != "own"}
        searched = [(f"{COMPONENTS}/<name>/prompt.md", len(names))]
        searched += [(SOURCES[kind].looks_for, count) for kind, count in counts.items()]
        if names and not request.out:
            lost = [
                f"left out: {pattern} ({count:,}); docs/sources.md explains how to read both"
                for pattern, count in searched[1:]
                if count and not load_settings(CONFIG).sources
            ]
            return replace(_propose_own(names, files), searched=searched, lost=lost)
        if kinds := [*(["own"] if names else []), *(kind for kind, count in counts.items() if count)]:
            lost = [line for kind in kinds for line in SOURCES[kind].lost(tree)]
            if request.out and (cases := Path("fixtures").absolute()).is_dir():
                lost.append(f"add --fixtures {cases} to each command")
            return replace(_propose_sources(request, kinds, files), searched=searched, lost=lost)
    message = f"looked for {', '.join(pattern for pattern, _ in searched)}"
    patterns = [pattern for pattern in NOT_READ if any(fnmatch(path, pattern) for path in tree.paths)]
    advice = "name the program that renders it: `program:` in the front matter of a component"
    reasons = "".join(f"; {pattern} is not read: {advice}" for pattern in patterns)
    raise ComponentError(f"{folder} holds no component to adopt; {message}{reasons}; `init` writes an example")


def _propose_own(names: Sequence[str], files: Mapping[str, str]) -> Proposal:
    settings = load_settings(CONFIG)
    linted = list(map_in_processes(lambda name: lint_component(COMPONENTS, name, None, settings), names))
    contracts: dict[str, str] = {}
    declared: dict[str, str] = {}
    for name in names:
        path = COMPONENTS / name / "evals" / "datasets.json"
        if path.exists():
            continue
        parts = scaffolding.fitting_parts(COMPONENTS / name, settings.limits)
        if len(parts) == 1 or (parts and parts[0].endswith("/output")):
            contracts[name] = parts[0]
        if text := scaffolding.declarations(COMPONENTS / name, contracts.get(name), settings.limits):
            declared[path.as_posix()] = text
    return Proposal(
        linted=linted,
        contracts=contracts,
        files={path: text for path, text in {**files, **declared}.items() if not Path(path).exists()},
        declared=declared.keys() - files.keys(),
        ignored=scaffolding.ignore(Path(), write=False),
    )


def _propose_sources(request: InitRequest, kinds: Sequence[str], files: Mapping[str, str]) -> Proposal:
    """Propose a settings.yaml that declares components in other formats. Lint the components with it."""
    settings, current_folder = load_settings(CONFIG), Path.cwd()
    judge = settings.policy.judge.model
    if judge is None and "policy" not in settings.model_fields_set:  # a second `policy` key would be invalid YAML
        with suppress(ConfigError):  # the last of several models can judge the others
            models = load_models(request.home / CONFIG)
            judge = models[-1].id if len(models) > 1 else None
    model = _JUDGE.model_copy(update={"id": judge or _JUDGE.id})
    judging = settings.policy.judge.model_copy(update={"model": model.id})
    assumed = settings.model_copy(update={"policy": settings.policy.model_copy(update={"judge": judging})})
    with tempfile.TemporaryDirectory() as folder:
        config = CONFIG.absolute()
        if not settings.sources:
            roots = {"own": current_folder / COMPONENTS}
            sources = [DeclaredSource(kind=kind, root=str(roots.get(kind, current_folder))) for kind in kinds]
            config = Path(folder, CONFIG)
            config.mkdir()
            config.joinpath("settings.yaml").write_text(_settings_text("", sources, None, config))

        def read(name: str) -> tuple[LintResult, Mapping[str, Any]]:
            linted = lint_component(config / "components", name, None, assumed, [model])
            for prefix in (f"{folder}/", f"{current_folder}/"):
                linted = replace(
                    linted,
                    problems=[line.replace(prefix, "") for line in linted.problems],
                    inferred=[line.replace(prefix, "") for line in linted.inferred],
                    not_evaluated=linted.not_evaluated and linted.not_evaluated.replace(prefix, ""),
                )
            hints: Mapping[str, Any] = {}
            with suppress(SkillEvaluatorError):
                if origin := source_of(config / "components", name):
                    hints = origin.here(assumed.limits).hints
            return linted, hints

        names = component_names(config / "components")
        results = list(map_in_processes(read, names[:_MAX_READ]))
    sentences = sum(check.kind == "expect" for component, _ in results for check in component.checks)
    missing = dict(files)
    if hints := [hint for _, hint in results if hint]:
        missing[f"{CONFIG}/models.yaml"] = _models_text(hints)
    missing[f"{CONFIG}/.gitignore"] = "".join(f"{line}\n" for line in scaffolding.IGNORED_IN_CONFIG)
    missing = {place: text for place, text in missing.items() if not (request.home / place).exists()}
    if not settings.sources:
        path = CONFIG / "settings.yaml"
        declared = [source if request.out else source.model_copy(update={"root": "."}) for source in sources]
        text = missing.get(str(path)) or read_text(request.home / path)
        missing[str(path)] = _settings_text(text, declared, judge if sentences else None, path)
    return Proposal(
        linted=[linted for linted, _ in results],
        files=missing,
        unread=len(names) - len(results),
        sentences=sentences if judge is None else 0,
    )


def _settings_text(text: str, sources: Sequence[DeclaredSource], judge: str | None, path: Path) -> str:
    """Add sources and a judge to the text of settings.yaml. Raise ConfigError if the result is invalid."""
    declared: dict[str, Any] = {"sources": [source.model_dump(exclude_defaults=True) for source in sources]}
    if judge is not None:
        declared["policy"] = {"judge": {"model": judge}}
    text = f"{text.rstrip()}\n{yaml_text(declared)}".lstrip()
    if judge is not None:
        text += f"    # trusted: [{judge}]  # counts as calibrated, without labels\n"
    validated(Settings, parse_yaml(text, path), path)
    return text


def _models_text(hints: Sequence[Mapping[str, Any]]) -> str:
    """Format models.yaml with the models that the prompts name. The first mention decides a model's parameters."""
    models: dict[str, dict[str, Any]] = {}
    for hint in hints:
        vendor, _, name = str(hint.get("model", "")).replace(":", "/").rpartition("/")
        provider = next((vendor_name for vendor_name in ("anthropic", "google") if vendor_name in vendor), "openai")
        params = {key: value for key, value in hint.items() if key != "model"}
        if name:
            models.setdefault(name, {"id": name, "provider": provider, **({"params": params} if params else {})})
    return f"# The models that the prompts name.\n{yaml_text({'models': list(models.values())})}"


def adopt(request: InitRequest, proposal: Proposal) -> list[str]:
    """Write the proposed files that do not exist. Return a report line per file.

    If settings.yaml exists, add the proposed sources. Add the proposed lines to .gitignore.
    """
    settings = f"{CONFIG}/settings.yaml"
    path, files, lines = request.home / settings, dict(proposal.files), []
    _check_writable(request.home, (*files, *[".gitignore"] * bool(proposal.ignored)))
    if path.exists() and settings in files:
        replace_text(path, files.pop(settings))
        lines.append(f"added to {settings}: sources")
    lines += _write_missing(request.home, files)
    return [*lines, *(["added to .gitignore"] if proposal.ignored and scaffolding.ignore(request.home) else ())]

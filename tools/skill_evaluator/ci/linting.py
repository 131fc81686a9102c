"""Lint of a library: its components, the changes since a commit, and the workflows."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path, PurePosixPath

from skill_evaluator.checking.lint import LintResult, lint_component, unknown_names
from skill_evaluator.ci.layout import EVALUATE, WORKFLOWS, stale_workflows
from skill_evaluator.ci.matrix import environment_of, key_variable_of
from skill_evaluator.display import options as cli
from skill_evaluator.errors import ComponentError, SkillEvaluatorError
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.judges.calibration.results import read_calibration
from skill_evaluator.library.config import Model, Policy, load_models, load_settings
from skill_evaluator.library.sources import component_names, prompt_file, sources_in
from skill_evaluator.library.versions import Problem, read_version
from skill_evaluator.metrics import METRICS, REPRODUCIBILITY
from skill_evaluator.providers import Configuration, read_configuration
from skill_evaluator.records.archive import resolve_conflicts
from skill_evaluator.records.integrity import LibraryAtCommit, library_at_commit, problems_of
from skill_evaluator.records.summaries import AMOUNTS
from skill_evaluator.repository import Repository
from skill_evaluator.scoring.parallel import map_in_processes
from skill_evaluator.text import counted, listed

_KEPT = ("prompt.md", "leaderboard.json")
_Checked = tuple[LintResult, list[Problem]]


@cli.options
class LintRequest(cli.PlatformOption, cli.LibraryOptions):
    """The options of `lint`."""

    names: tuple[str, ...] = cli.argument(cli.SKILLS, (), "COMPONENT")
    base: str | None = cli.option("Check only what changed since this commit.", metavar="COMMIT")
    no_cases: bool = cli.rare("Check versions and records only, no schemas and cases.", False)
    fix: bool = cli.flag("Resolve conflict markers in leaderboard.json.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedLibrary:
    """The lint results of components; `problems` has all their problems with file and line.

    The other fields are messages by file: `broken` for wrong settings, `stale` for workflows that lack lines, and
    `edited` for changed files that decide how changes are checked.
    """

    components: Sequence[LintResult]
    problems: Sequence[Problem]
    broken: Mapping[Path, str]
    stale: Mapping[Path, str]
    edited: Mapping[Path, str]


def lint(request: LintRequest) -> LintedLibrary:
    """Lint the requested components, or all, and with `--base` the changes since a commit."""
    names = tuple(dict.fromkeys(request.names)) or _all_names(request.components)
    for name in names if request.fix else ():
        path = request.components / name / "leaderboard.json"
        if is_component_name(name) and resolve_conflicts(path, name):
            print(f"fixed: {path}", file=sys.stderr)
    settings = load_settings(request.config)
    read_calibration(request.config, settings)
    folder, past_library, edited, commit = request.components.as_posix(), None, {}, _base_commit(request)
    if commit is not None:
        repository = Repository(request.components)
        folder = repository.relative_path(request.components)
        names = names if request.names else _touched(request, repository, commit, names)
        past_library = library_at_commit(repository, commit, folder, names)
        edited = {Path(path): words for path, words in _edited(request, repository, commit, folder)}
    has_models = (request.config / "models.yaml").exists()
    models = load_models(request.config, settings.limits) if has_models else ()
    component_names = _all_names(request.components) if request.components.is_dir() else names
    unknown_settings = list(_unknown_names(settings.policy, component_names, models))

    def check(name: str) -> _Checked:
        problems = _problems_of_history(request, name, folder, past_library)
        lines = {_line(problem): problem for problem in problems}
        if request.no_cases:
            hint = "its contract and cases are not checked (--no-cases)"
            linted = LintResult(name=name, hints=[hint], problems=list(lines))
        else:
            linted = lint_component(request.components, name, request.fixtures, list(lines), settings, models)
        prompt = prompt_file(request.components, name, folder)  # the file of problems that name no file
        placed = [lines.get(line, Problem(file=prompt, line=1, message=line)) for line in linted.problems]
        return linted, placed

    checked = list(map_in_processes(check, names))
    components = [linted for linted, _ in checked]
    stale: Mapping[Path, str] = {}
    if has_models:
        configuration = read_configuration(request.config)
        stale = stale_workflows(request.config, configuration)
        components = [_with_judge_key(linted, request.config, configuration) for linted in components]
    return LintedLibrary(
        components=components,
        problems=[problem for _, problems in checked for problem in problems],
        broken={request.config / "settings.yaml": "; ".join(unknown_settings)} if unknown_settings else {},
        stale=stale,
        edited=edited,
    )


def _with_judge_key(linted: LintResult, config: Path, configuration: Configuration) -> LintResult:
    policy, models = configuration.settings.policy, {model.id: model for model in configuration.models}
    judge = models.get((policy.judge_of(linted.name) or policy.judge).model or "")
    is_judged = any(check.kind == "expect" for check in linted.checks)
    if judge is None or not is_judged or not (config.parent / WORKFLOWS / EVALUATE).exists():
        return linted
    key = key_variable_of(judge, configuration.kinds[judge.provider])
    homes = {model.id: environment_of(model, configuration.kinds[model.provider]) for model in models.values()}
    others = [home for home in dict.fromkeys(homes.values()) if home != homes[judge.id]]
    if not key or not others:
        return linted
    hint = f"in CI, {key} of its judge {judge.id} must be a secret of the repository, or of {listed(others)}, too"
    return replace(linted, hints=[*linted.hints, hint])


def _edited(request: LintRequest, repository: Repository, commit: str, folder: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of changed files that check changes and of boards deleted with their component, and messages."""
    message = "this change edits a file that checks changes; review it before the merge"
    config = repository.relative_path_without_links(request.config)
    for checked, pattern in ((".github", "*"), (config, "requirements*")):
        before, after = (repository.files(ref, checked) for ref in (commit, str(repository.commit("HEAD"))))
        changed = {path for path, _ in before.items() ^ after.items() if fnmatch(PurePosixPath(path).name, pattern)}
        yield from ((path, f"{path}: {message}") for path in sorted(changed))
    boards = [path for path in repository.files(commit, folder) if path.endswith("/leaderboard.json")]
    deleted = [path for path in boards if not any((repository.root / path).with_name(kept).exists() for kept in _KEPT)]
    folders = [path.parent for path in request.components.glob("*/prompt.md") if deleted]
    versions = filter(None, (read_version(path, path.name) for path in folders))
    renamed = {former for version in versions for former in version.formerly}
    for path in deleted:
        name = Path(path).parent.name
        if name not in renamed:
            reason = f"{path}: '{name}' was deleted with its records, so a later version would have no baseline"
            yield path, f"{reason} (if it was renamed, add formerly: {name} to its prompt.md)"


def _unknown_names(policy: Policy, components: Sequence[str], models: Sequence[Model]) -> Iterator[str]:
    ids = [model.id for model in models]
    yield from unknown_names("policy.components", policy.components, components)
    yield from unknown_names("policy.judge.trusted", policy.judge.trusted, ids)
    yield from unknown_names("policy.judge.panel.weights", policy.judge.panel.weights, ids)
    metrics = chain(policy.metrics, *(part.metrics for part in policy.components.values()))
    unknown = unknown_names("metrics of the policy", metrics, [*METRICS, *REPRODUCIBILITY, *AMOUNTS])
    yield from (message for message in unknown if "did you mean" in message)  # imported results may have other metrics


def _all_names(components: Path) -> tuple[str, ...]:
    """Return the names of all components, incomplete ones included; raise ComponentError if there are none."""
    if sources_in(components):
        return tuple(component_names(components))
    if not components.is_dir():
        raise ComponentError(f"{components} is not a folder; set the components folder with --components DIR")
    # git leaves results in the folder when it checks out a branch without the component
    marks = ("prompt.md", "schema.json", "leaderboard.json", "evals/*")
    files = [path for mark in marks for path in components.glob(f"*/{mark}") if path.name != "results"]
    names = sorted({path.relative_to(components).parts[0] for path in files})
    if not names:
        raise ComponentError(f"{components} holds no component; add {components / '<name>' / 'prompt.md'}")
    return tuple(names)


def _problems_of_history(request: LintRequest, name: str, folder: str, past: LibraryAtCommit | None) -> list[Problem]:
    if not is_component_name(name):  # loading the component reports the invalid name
        return []
    try:
        return list(problems_of(request.components, name, folder, past))
    except SkillEvaluatorError as problem:
        return [Problem(file=prompt_file(request.components, name, folder), line=1, message=str(problem))]


def _base_commit(request: LintRequest) -> str | None:
    """Return the commit of `--base`, or None; print a warning if it does not exist or is not in the history of HEAD."""
    if request.base is None:
        return None
    repository = Repository(request.components)
    commit, remark = repository.commit(request.base), ""
    if commit is None:
        remark = f"no commit '{request.base}' here; changes are not checked"
    elif not repository.is_ancestor(commit, "HEAD"):
        remark = f"'{request.base}' is not in the history of HEAD; its additions count as removed here"
    if remark:
        print(f"warning: {remark}", file=sys.stderr)
    return commit


def _touched(request: LintRequest, repository: Repository, commit: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the components whose folder or cases changed since a commit; all if any shared file changed."""
    folders = [request.components.resolve(), (request.fixtures or Path("fixtures")).resolve()]
    declared = [folders[0] / name / "evals" / "datasets.json" for name in names]
    sharing = {changed.parts[-3] for changed in declared if changed.exists() and b'"fixtures"' in changed.read_bytes()}
    touched: set[str] = set()
    for changed in repository.changed_since(commit):
        path = repository.root.resolve() / changed
        folder = next(filter(path.is_relative_to, folders), None)
        name = "" if folder is None else path.relative_to(folder).parts[0]
        if folder is None or (name not in names and (folder / name).exists()):
            return names  # any component may use the file: settings, or a shared folder
        # a component that declares its fixtures folder may use this one
        touched |= {name} if folder == folders[0] else {name, *sharing}
    if unchanged := len(names) - len(touched.intersection(names)):
        text = f"{counted(unchanged, 'component')} of {len(names):,} unchanged since {request.base}"
        print(f"{text}, not checked again", file=sys.stderr)
    return tuple(name for name in names if name in touched)


def _line(problem: Problem) -> str:
    return problem.message if problem.file in problem.message else f"{problem.file}:{problem.line}: {problem.message}"

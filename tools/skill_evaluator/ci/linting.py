"""Lint of a library: its components, the changes since a commit, and the workflows.

An invalid component does not hide the problems of the others.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from skill_evaluator.checking.lint import Linted, lint_component, unknown_names
from skill_evaluator.ci.layout import EVALUATE, WORKFLOWS, stale_workflows
from skill_evaluator.ci.matrix import environment_of, key_variable_of
from skill_evaluator.display.options import (
    SKILLS,
    LibraryOptions,
    PlatformOption,
    argument,
    flag,
    option,
    options,
    rare,
)
from skill_evaluator.errors import ComponentError, SkillEvaluatorError
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.judges.calibration.results import read_calibration
from skill_evaluator.library.config import Model, Policy, load_models, load_settings
from skill_evaluator.library.sources import component_names, prompt_file, sources_in
from skill_evaluator.library.versions import Problem, read_version
from skill_evaluator.metrics import METRICS, REPRODUCIBILITY
from skill_evaluator.providers import Configuration, read_configuration
from skill_evaluator.records.archive import resolve_conflicts
from skill_evaluator.records.integrity import Past, past_at, problems_of
from skill_evaluator.records.summaries import AMOUNTS
from skill_evaluator.repository import Repository
from skill_evaluator.scoring.parallel import side_by_side
from skill_evaluator.text import counted, listed

_KEPT = ("prompt.md", "leaderboard.json")
_Checked = tuple[Linted, list[Problem]]


@options
class LintRequest(PlatformOption, LibraryOptions):
    """The components to check and how: the options of `lint`."""

    names: tuple[str, ...] = argument(SKILLS, (), "COMPONENT")
    base: str | None = option("Check what changed since this commit.", metavar="COMMIT")
    no_cases: bool = rare("Check versions and records only.", False)
    fix: bool = flag("Resolve conflict markers in leaderboard.json.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedLibrary:
    """The lint results of components; `problems` has all their problems with file and line.

    `broken` says by file which settings are wrong, `stale` which workflows lack a job, and `edited` which
    files that check a change are edited by it.
    """

    components: Sequence[Linted]
    problems: Sequence[Problem]
    broken: Mapping[Path, str]
    stale: Mapping[Path, str]
    edited: Mapping[Path, str]


def lint(request: LintRequest) -> LintedLibrary:
    """Check components and all their cases."""
    names = tuple(dict.fromkeys(request.names)) or _names_of_all(request.components)
    for name in names if request.fix else ():
        path = request.components / name / "leaderboard.json"
        if is_component_name(name) and resolve_conflicts(path, name):
            print(f"fixed: {path}", file=sys.stderr)
    settings = load_settings(request.config)
    read_calibration(request.config, settings)
    folder, past, edited, commit = request.components.as_posix(), None, {}, _base_commit(request)
    if commit is not None:
        repository = Repository(request.components)
        folder = repository.place(request.components)
        names = names if request.names else _touched(request, repository, commit, names)
        past = past_at(repository, commit, folder, names)
        edited = {Path(path): words for path, words in _edited(request, repository, commit, folder)}
    has_models = (request.config / "models.yaml").exists()
    models = load_models(request.config, settings.limits) if has_models else ()
    known = _names_of_all(request.components) if request.components.is_dir() else names
    unknown = list(_unknown_names(settings.policy, known, models))

    def check(name: str) -> _Checked:
        problems = _problems_of_history(request, name, folder, past)
        lines = {_line(problem): problem for problem in problems}
        if request.no_cases:
            hint = "its contract and cases are not checked (--no-cases)"
            linted = Linted(name=name, hints=[hint], problems=list(lines))
        else:
            linted = lint_component(request.components, name, request.fixtures, list(lines), settings, models)
        prompt = prompt_file(request.components, name, folder)  # the place of a problem without a place of its own
        placed = [lines.get(line, Problem(file=prompt, line=1, message=line)) for line in linted.problems]
        return linted, placed

    checked = list(side_by_side(check, names))
    components = [linted for linted, _ in checked]
    stale: Mapping[Path, str] = {}
    if has_models:
        configuration = read_configuration(request.config)
        stale = stale_workflows(request.config, configuration)
        components = [_with_judge_key(linted, request.config, configuration) for linted in components]
    return LintedLibrary(
        components=components,
        problems=[problem for _, problems in checked for problem in problems],
        broken={request.config / "settings.yaml": "; ".join(unknown)} if unknown else {},
        stale=stale,
        edited=edited,
    )


def _with_judge_key(linted: Linted, config: Path, configuration: Configuration) -> Linted:
    """Add a hint to a component with `expect` checks, if some of its jobs in CI may lack the key of its judge."""
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
    """Yield the files that check a change and are edited by it, and leaderboards deleted with their component."""
    why = "this change edits what checks it; a person must read it before it is merged"
    for place, pattern in ((".github", "*"), (repository.place_without_links(request.config), "requirements*")):
        before, after = (repository.files(each, place) for each in (commit, str(repository.commit("HEAD"))))
        for path in sorted({path for path, _ in before.items() ^ after.items()}):
            if fnmatch(PurePosixPath(path).name, pattern):
                yield path, f"{path}: {why}"
    boards = [path for path in repository.files(commit, folder) if path.endswith("/leaderboard.json")]
    deleted = [path for path in boards if not any((repository.root / path).with_name(kept).exists() for kept in _KEPT)]
    versions = [
        read_version(path.parent, path.parent.name) for path in request.components.glob("*/prompt.md") if deleted
    ]
    renamed = {former for version in versions if version is not None for former in version.formerly}
    for path in deleted:
        name = Path(path).parent.name
        if name not in renamed:
            words = f"{path}: '{name}' was deleted with its records; under the same or a new name it would have no"
            yield path, f"{words} baseline (if it was renamed, add formerly: {name} to its prompt.md)"


def _unknown_names(policy: Policy, components: Sequence[str], models: Sequence[Model]) -> Iterator[str]:
    """Yield the components, judges and metrics of the policy that do not exist."""
    judges, ids = policy.judge, [model.id for model in models]
    yield from unknown_names("policy.components", policy.components, components)
    yield from unknown_names("policy.judge.trusted", judges.trusted, ids)
    yield from unknown_names("policy.judge.panel.weights", judges.panel.weights, ids)
    metrics = [*policy.metrics, *(name for own in policy.components.values() for name in own.metrics)]
    wrong = unknown_names("metrics of the policy", metrics, [*METRICS, *REPRODUCIBILITY, *AMOUNTS])
    yield from (words for words in wrong if "did you mean" in words)  # results of other tools have names of their own


def _names_of_all(components: Path) -> tuple[str, ...]:
    """Return the names of all components and would-be components; raise ComponentError if there are none."""
    if sources_in(components):
        return tuple(component_names(components))
    if not components.is_dir():
        raise ComponentError(f"{components} is not a folder; name the components with --components DIR")
    # results are excluded: a checkout of another branch leaves them in the folder
    marks = ("prompt.md", "schema.json", "leaderboard.json", "evals/*")
    files = [path for mark in marks for path in components.glob(f"*/{mark}") if path.name != "results"]
    names = sorted({path.relative_to(components).parts[0] for path in files})
    if not names:
        raise ComponentError(f"{components} holds no component; add {components / '<name>' / 'prompt.md'}")
    return tuple(names)


def _problems_of_history(request: LintRequest, name: str, folder: str, past: Past | None) -> list[Problem]:
    """Return the problems of a component's version, leaderboard and records."""
    if not is_component_name(name):  # loading the component reports the invalid name
        return []
    try:
        return list(problems_of(request.components, name, folder, past))
    except SkillEvaluatorError as problem:
        return [Problem(file=prompt_file(request.components, name, folder), line=1, message=str(problem))]


def _base_commit(request: LintRequest) -> str | None:
    """Return the commit to compare with; print a warning if it is not in the history of HEAD.

    Return None if there is no --base, or no such commit.
    """
    if request.base is None:
        return None
    repository = Repository(request.components)
    commit = repository.commit(request.base)
    if commit is None:
        print(f"warning: no commit '{request.base}' here; what changed is not checked", file=sys.stderr)
    elif not repository.is_ancestor(commit, "HEAD"):
        print(
            f"warning: '{request.base}' is not in the history of HEAD; what was added there counts as removed here",
            file=sys.stderr,
        )
    return commit


def _touched(request: LintRequest, repository: Repository, commit: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the components whose folder changed since a commit, or that of their cases; all if anything else did."""
    folders = [request.components.resolve(), (request.fixtures or Path("fixtures")).resolve()]
    declared = [folders[0] / name / "evals" / "datasets.json" for name in names]
    sharing = {path.parts[-3] for path in declared if path.exists() and b'"fixtures"' in path.read_bytes()}
    touched: set[str] = set()
    for path in repository.changed_since(commit):
        place = repository.root.resolve() / path
        folder = next(filter(place.is_relative_to, folders), None)
        name = "" if folder is None else place.relative_to(folder).parts[0]
        if folder is None or (name not in names and (folder / name).exists()):
            return names  # any component may use the file: settings, or a shared folder
        # a component that declares the place of its cases may mean this folder
        touched |= {name} if folder == folders[0] else {name, *sharing}
    if unchanged := len(names) - len(touched.intersection(names)):
        words = f"{counted(unchanged, 'component')} of {len(names):,} unchanged since {request.base}, not checked again"
        print(words, file=sys.stderr)
    return tuple(name for name in names if name in touched)


def _line(problem: Problem) -> str:
    """Format a problem as one line, with its place once."""
    return problem.message if problem.file in problem.message else f"{problem.file}:{problem.line}: {problem.message}"

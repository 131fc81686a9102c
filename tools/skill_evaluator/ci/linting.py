"""Lint of a library: its components side by side, what changed since a commit, and workflows.

A component that is wrong does not hide the others.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.checking.lint import Linted, lint_component, unknown_names
from skill_evaluator.ci.layout import judge_key_hint, stale_workflows
from skill_evaluator.ci.publishing import edited_checks
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    Names,
    PlatformOption,
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
from skill_evaluator.records.integrity import Past, past_at, problems_of
from skill_evaluator.records.leaderboard import resolve_conflicts
from skill_evaluator.repository import Repository
from skill_evaluator.scoring.parallel import side_by_side
from skill_evaluator.text import counted

_KEPT = ("prompt.md", "leaderboard.json")
_Checked = tuple[Linted, list[Problem]]


@options
class LintRequest(ComponentsOption, FixturesOption, ConfigOption, PlatformOption):
    """The components to check and how: the options of `lint`."""

    names: Names = ()
    base: str | None = option(
        "Check only what changed since: also that versions rise, and that records are only added.", metavar="COMMIT"
    )
    no_cases: bool = rare("Check versions and records only: read no case and no schema.", False)
    fix: bool = flag("Resolve conflict markers in leaderboard.json: keep the rows of both sides, and of all records.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedLibrary:
    """What lint says of components; `problems` has all of theirs with their place.

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
    limits = settings.limits
    folder, commit, names, past = _read_past(request, names)
    edited = {}
    if commit is not None:  # what a change says of itself is not what it is checked by
        repository = Repository(request.components)
        why = "this change edits what checks it; a person must read it before it is merged"
        paths = edited_checks(repository, commit, repository.place_without_links(request.config))
        edited = {Path(path): f"{path}: {why}" for path in paths}
        edited |= dict(_deleted_with_records(repository, commit, folder, request.components))
    models = load_models(request.config, limits) if (request.config / "models.yaml").exists() else ()
    known = _names_of_all(request.components) if request.components.is_dir() else names
    unknown = list(_unknown_names(settings.policy, known, models))
    broken = {request.config / "settings.yaml": "; ".join(unknown)} if unknown else {}

    def check(name: str) -> _Checked:
        problems = _problems_of_history(request, name, folder, past)
        lines = {_line(problem): problem for problem in problems}
        if request.no_cases:
            linted = Linted(
                name=name, hints=["its contract and cases are not checked (--no-cases)"], problems=list(lines)
            )
        else:
            linted = lint_component(request.components, name, request.fixtures, list(lines), settings, models)
        prompt = prompt_file(request.components, name, folder)  # the mark of a problem without a place of its own
        placed = [lines.get(line, Problem(file=prompt, line=1, message=line)) for line in linted.problems]
        return linted, placed

    checked = list(side_by_side(check, names))
    stale: Mapping[Path, str] = {}
    if (request.config / "models.yaml").exists():
        configuration = read_configuration(request.config)
        stale = stale_workflows(request.config, configuration)
        checked = [(_with_judge_key(linted, request.config, configuration), placed) for linted, placed in checked]
    return LintedLibrary(
        components=[linted for linted, _ in checked],
        problems=[problem for _, problems in checked for problem in problems],
        broken=broken,
        stale=stale,
        edited=edited,
    )


def _with_judge_key(linted: Linted, config: Path, configuration: Configuration) -> Linted:
    """Add a hint to a component with `expect` checks, if some of its jobs in CI may lack the judge's key."""
    if not any(check.kind == "expect" for check in linted.checks):
        return linted
    hint = judge_key_hint(config, configuration, linted.name)
    return linted if hint is None else replace(linted, hints=[*linted.hints, hint])


def _deleted_with_records(
    repository: Repository, commit: str, folder: str, components: Path
) -> Iterator[tuple[Path, str]]:
    """Yield the leaderboard of each component that was deleted with its records since a commit, and a warning."""
    boards = [path for path in repository.files(commit, folder) if path.endswith("/leaderboard.json")]
    deleted = [path for path in boards if not any((repository.root / path).with_name(kept).exists() for kept in _KEPT)]
    versions = [read_version(path.parent, path.parent.name) for path in components.glob("*/prompt.md") if deleted]
    renamed = {former for version in versions if version is not None for former in version.formerly}
    for path in deleted:
        name = Path(path).parent.name
        if name not in renamed:
            words = f"{path}: '{name}' was deleted with its records; under the same or a new name it would have no"
            yield Path(path), f"{words} baseline (if it was renamed, add formerly: {name} to its prompt.md)"


def _unknown_names(policy: Policy, components: Sequence[str], models: Sequence[Model]) -> Iterator[str]:
    """Yield the components, judges and metrics of the policy that do not exist."""
    judges, ids = policy.judge, [model.id for model in models]
    yield from unknown_names("policy.components", policy.components, components)
    yield from unknown_names("policy.judge.trusted", judges.trusted, ids)
    yield from unknown_names("policy.judge.panel.weights", judges.panel.weights, ids)
    metrics = [*policy.metrics, *(name for own in policy.components.values() for name in own.metrics)]
    wrong = unknown_names("metrics of the policy", metrics, [*METRICS, *REPRODUCIBILITY])
    yield from (words for words in wrong if "did you mean" in words)  # results of other tools have their own


def _names_of_all(components: Path) -> tuple[str, ...]:
    """Return the names of all components and would-be components; raise ComponentError without any."""
    if sources_in(components):
        return tuple(component_names(components))
    if not components.is_dir():
        raise ComponentError(f"{components} is not a folder; name the components with --components DIR")
    marks = ("prompt.md", "schema.json", "leaderboard.json", "evals/*")  # but for results, which git leaves behind
    files = [path for mark in marks for path in components.glob(f"*/{mark}") if path.name != "results"]
    names = sorted({path.relative_to(components).parts[0] for path in files})
    if not names:
        raise ComponentError(f"{components} holds no component; add {components / '<name>' / 'prompt.md'}")
    return tuple(names)


def _problems_of_history(request: LintRequest, name: str, folder: str, past: Past | None) -> list[Problem]:
    """Return what is wrong with a component's version, leaderboard and records."""
    if not is_component_name(name):  # as loading it says
        return []
    try:
        return list(problems_of(request.components, name, folder, past))
    except SkillEvaluatorError as problem:
        return [Problem(file=prompt_file(request.components, name, folder), line=1, message=str(problem))]


def _read_past(request: LintRequest, names: tuple[str, ...]) -> tuple[str, str | None, tuple[str, ...], Past | None]:
    """Return how problems call the folder of the components, the base's commit, who is checked, and what was there."""
    if request.base is None:
        return request.components.as_posix(), None, names, None
    repository = Repository(request.components)
    folder, commit = repository.place(request.components), repository.commit(request.base)
    if commit is None:
        print(f"warning: no commit '{request.base}' here; what changed is not checked", file=sys.stderr)
        return folder, None, names, None
    if not repository.is_ancestor(commit, "HEAD"):
        print(
            f"warning: '{request.base}' is not in the history of HEAD; what was added there counts as removed here",
            file=sys.stderr,
        )
    touched = names if request.names else _touched(request, repository, commit, names)
    if len(touched) < len(names):
        unchanged = counted(len(names) - len(touched), "component")
        print(f"{unchanged} of {len(names):,} unchanged since {request.base}, not checked again", file=sys.stderr)
    return folder, commit, touched, past_at(repository, commit, folder, touched)


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
            return names  # any may use it: settings, a folder that several share
        touched |= {name} if folder == folders[0] else {name, *sharing}  # who says where its cases are may mean these
    return tuple(name for name in names if name in touched)


def _line(problem: Problem) -> str:
    """Write a problem as one line, with its place in it once."""
    return problem.message if problem.file in problem.message else f"{problem.file}:{problem.line}: {problem.message}"

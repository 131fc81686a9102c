"""Lint of a library (components, changes, workflows), and `doctor`: keys, a call to each model, and the set-up.

`doctor` reads the names of CI secrets with `gh` and the user's login. A job's token may see fewer.
"""

import asyncio
import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from skill_evaluator.checking.lint import LintResult, lint_component, unknown_names
from skill_evaluator.ci.layout import EVALUATE, WORKFLOWS, stale_workflows
from skill_evaluator.ci.plan import environment_of, environment_of_program, key_variable_of, secrets_for
from skill_evaluator.errors import ComponentError, ConfigError, GitError, SkillEvaluatorError
from skill_evaluator.files import StrictModel, read_text
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.judges.calibration.results import read_calibration
from skill_evaluator.library import options as cli
from skill_evaluator.library.components import NO_FOLDER, load_component
from skill_evaluator.library.config import Model, Policy, SafetyLimits, Settings, load_models, load_settings
from skill_evaluator.library.prompts import ProgramUnderTest, dialogue
from skill_evaluator.library.scaffolding import IGNORED, IGNORED_IN_CONFIG, PLACEHOLDERS
from skill_evaluator.library.sources import component_names, components_of, prompt_file, sources_in
from skill_evaluator.library.versions import Problem, read_version
from skill_evaluator.metrics import METRICS, REPRODUCIBILITY
from skill_evaluator.processes import ProcessResult, Program, child_environment, map_in_processes, run_process
from skill_evaluator.providers import Configuration, find_key, missing_key, read_configuration
from skill_evaluator.providers.base import ProviderError, Request, call_once
from skill_evaluator.providers.program import MODEL, VARIABLES, values_of
from skill_evaluator.records.archive import resolve_conflicts
from skill_evaluator.records.integrity import LibraryAtCommit, library_at_commit, problems_of
from skill_evaluator.records.summaries import AMOUNTS
from skill_evaluator.repository import Repository
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, listed

_KEPT = ("prompt.md", "leaderboard.json")
Here = Literal["not_needed", "set", "missing", "in_ci_only"]
InCi = Literal["not_needed", "environment", "repository", "identity", "missing", "unknown"]
Call = Literal["answered", "failed", "not_made"]
_NOT_LOGGED_IN = 4  # exit code of gh


@cli.options
class LintRequest(cli.LibraryOptions):
    """The options of `lint`."""

    names: tuple[str, ...] = cli.argument(cli.SKILLS, (), "COMPONENT")
    base: str | None = cli.option("Check changes since this commit; skip unchanged components.", metavar="COMMIT")
    no_cases: bool = cli.rare("Check only versions and records, not schemas and cases.", False)
    fix: bool = cli.flag("Resolve conflict markers in leaderboard.json.")
    platform: cli.PlatformName | None = cli.rare("On GitHub Actions: also annotate the files with problems.")
    strict: bool = cli.flag("Also fail for unevaluated cases and outdated workflows.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedLibrary:
    """The lint results of components, and their `problems` with file and line.

    `broken` has the problem of settings.yaml, `stale` that of an outdated workflow. `edited` has a problem for each
    .github or requirements file that changed since `--base`, and for each component deleted with its records.
    """

    components: Sequence[LintResult]
    problems: Sequence[Problem]
    broken: Sequence[Problem]
    stale: Sequence[Problem]
    edited: Sequence[Problem]


def lint(request: LintRequest) -> LintedLibrary:
    """Lint the named components, or all if none is named.

    With `--base`, also check the changes since that commit. Then skip unchanged components unless they are named.
    """
    names = tuple(dict.fromkeys(request.names)) or _all_names(request.components)
    for name in names if request.fix else ():
        path = request.components / name / "leaderboard.json"
        if is_component_name(name) and resolve_conflicts(path, name):
            print(f"fixed: {path}", file=sys.stderr)
    settings = load_settings(request.config)
    read_calibration(request.config, settings)
    folder, past_library, commit = request.components.as_posix(), None, _base_commit(request)
    edited: Sequence[Problem] = ()
    if commit is not None:
        repository = Repository(request.components)
        folder = repository.relative_path(request.components)
        names = names if request.names else _touched(request, repository, commit, names)
        past_library = library_at_commit(repository, commit, folder, names)
        edited = list(_edited(request, repository, commit, folder))
    has_models = (request.config / "models.yaml").exists()
    models = load_models(request.config, settings.limits) if has_models else ()
    component_names = _all_names(request.components) if request.components.is_dir() else names
    wrong_settings = "; ".join(_unknown_names(settings.policy, component_names, models))
    settings_file = (request.config / "settings.yaml").as_posix()

    def check(name: str) -> tuple[LintResult, list[Problem]]:
        if request.no_cases:
            linted = LintResult(name=name, hints=["its contract and cases are not checked (--no-cases)"])
        else:
            linted = lint_component(request.components, name, request.fixtures, settings, models)
        prompt = prompt_file(request.components, name, folder)  # problems that name no file are shown here
        problems = {line: Problem(file=prompt, line=1, message=line) for line in linted.problems}
        for each in _problems_of_history(request, name, folder, past_library):
            line = each.message if each.file in each.message else f"{each.file}:{each.line}: {each.message}"
            problems[line] = each
        return replace(linted, problems=list(problems)), list(problems.values())

    checked = list(map_in_processes(check, names))
    components = [linted for linted, _ in checked]
    stale: Sequence[Problem] = ()
    if has_models:
        configuration = read_configuration(request.config)
        stale = stale_workflows(request.config, configuration)
        components = [_with_judge_key(linted, request.config, configuration) for linted in components]
    return LintedLibrary(
        components=components,
        problems=[problem for _, problems in checked for problem in problems],
        broken=[Problem(file=settings_file, line=1, message=wrong_settings)] if wrong_settings else [],
        stale=stale,
        edited=edited,
    )


def _with_judge_key(linted: LintResult, config: Path, configuration: Configuration) -> LintResult:
    policy, models = configuration.settings.policy, {model.id: model for model in configuration.models}
    judge = models.get(policy.judge_of(linted.name) or policy.judge.model or "")
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


def _edited(request: LintRequest, repository: Repository, commit: str, folder: str) -> Iterator[Problem]:
    """Yield a problem per changed .github or requirements file, and per deleted component with records."""
    message = "this change edits a file that checks changes; review it before the merge"
    config = repository.relative_path_without_links(request.config)
    for checked, pattern in ((".github", "*"), (config, "requirements*")):
        before, after = (repository.files(ref, checked) for ref in (commit, str(repository.commit("HEAD"))))
        changed = {path for path, _ in before.items() ^ after.items() if fnmatch(PurePosixPath(path).name, pattern)}
        yield from (Problem(file=path, line=1, message=f"{path}: {message}") for path in sorted(changed))
    boards = [path for path in repository.files(commit, folder) if path.endswith("/leaderboard.json")]
    deleted = [path for path in boards if not any((repository.root / path).with_name(kept).exists() for kept in _KEPT)]
    folders = [path.parent for path in request.components.glob("*/prompt.md") if deleted]
    versions = filter(None, (read_version(path, path.name) for path in folders))
    renamed = {former for version in versions for former in version.formerly}
    for path in deleted:
        name = Path(path).parent.name
        if name not in renamed:
            reason = f"{path}: '{name}' was deleted with its records, so a later version would have no baseline"
            advice = f"if it was renamed, add `formerly: {name}` to its prompt.md"
            yield Problem(file=path, line=1, message=f"{reason} ({advice})")


def _unknown_names(policy: Policy, components: Sequence[str], models: Sequence[Model]) -> Iterator[str]:
    ids = [model.id for model in models]
    yield from unknown_names("policy.components", policy.components, components)
    yield from unknown_names("policy.judge.trusted", policy.judge.trusted, ids)
    yield from unknown_names("policy.judge.panel.weights", policy.judge.panel.weights, ids)
    metrics = chain(policy.metrics, *(part.metrics for part in policy.components.values()))
    unknown = unknown_names("metrics of the policy", metrics, [*METRICS, *REPRODUCIBILITY, *AMOUNTS])
    yield from (message for message in unknown if "did you mean" in message)  # imported results may have other metrics


def _all_names(components: Path) -> tuple[str, ...]:
    """Return the names of all components, including incomplete components.

    Raise ComponentError if there is no component, unless settings.yaml declares sources of components.
    """
    if sources_in(components):
        return tuple(component_names(components))
    if not components.is_dir():
        raise ComponentError(f"{components} {NO_FOLDER}")
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
    """Return the commit id of --base, or None if it is unset or unknown. Warn if HEAD's history does not have it."""
    if request.base is None:
        return None
    repository = Repository(request.components)
    commit, remark = repository.commit(request.base), ""
    if commit is None:
        remark = f"no commit '{request.base}' here; changes are not checked"
    elif not repository.is_ancestor(commit, "HEAD"):
        remark = f"commit '{request.base}' is not in the history of HEAD; its additions count as removed here"
    if remark:
        print(f"warning: {remark}", file=sys.stderr)
    return commit


def _touched(request: LintRequest, repository: Repository, commit: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the components whose folder or cases changed. If any other file changed, return all names."""
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


class ModelKey(StrictModel):
    """The key of a model or program on this machine (`here`) and in CI, and the result of a call to the model.

    A model needs one of `variables`, a program all of them. With `auth: oidc`, they identify the job to the vendor.
    """

    id: str
    provider: str
    auth: Literal["key", "oidc"] = "key"
    variables: tuple[str, ...]
    here: Here
    environment: str
    in_ci: InCi
    call: Call = "not_made"

    @property
    def variables_text(self) -> str:
        """The names of the key variables: a model needs one of them ("or"), a program all ("and")."""
        return (" and " if self.provider == MODEL.provider else " or ").join(self.variables)


class DoctorReport(StrictModel):
    """The JSON output of `doctor`: keys, the workflows that call the evaluator, and problems with their fixes.

    `repository` is None if GitHub could not be read; `unseen` has one line per resource that could not be read.
    """

    repository: str | None
    workflows: tuple[str, ...]
    models: tuple[ModelKey, ...]
    problems: tuple[str, ...]
    unseen: tuple[str, ...]


SecretNames = Mapping[str, frozenset[str] | None]
"""The names of the secrets of each environment, and those of the repository and its organisation under "".

None stands for secrets that GitHub does not show. The mapping is empty if the environments are unknown.
"""


def examine(configuration: Configuration, config: Path) -> DoctorReport:
    """Call each model whose key is set here. Report keys and problems here and, if `gh` can read them, on GitHub."""
    programs = dict(_programs(configuration.settings.limits))
    environments = [environment_of(model, configuration.kinds[model.provider]) for model in configuration.models]
    unseen: list[str] = []
    repository, names = _read_names({*environments, *map(environment_of_program, programs)}, config, unseen)
    failures = asyncio.run(_call_models(configuration))
    keys = (
        *(_key_of_model(model, configuration, names, failures) for model in configuration.models),
        *(_key_of_program(*item, configuration, names) for item in programs.items()),
    )
    problems = (
        *(f"{name} does not answer: {message}" for name, message in failures.items() if message),
        *_problems_of_keys(keys, repository, names),
        *(problem.message for problem in stale_workflows(config, configuration)),
        *_placeholders(config),
        *_not_ignored(configuration.settings),
    )
    workflows = sorted((config.parent / WORKFLOWS).glob("*.yml"))
    return DoctorReport(
        repository=repository,
        workflows=tuple(path.name for path in workflows if "skill-evaluator" in read_text(path)),
        models=keys,
        problems=problems,
        unseen=tuple(unseen),
    )


async def _call_models(configuration: Configuration) -> dict[str, str | None]:
    """Call each model unless it is free or its key is missing. Return its error, or None, by model id."""
    redact, settings = configuration.redactor(), configuration.settings

    async def call(model: Model) -> str | None:
        request = Request(
            case_id="",
            replicate=0,
            messages=dialogue("Answer in one word.", "Is water wet?"),
            max_output_tokens=model.params.max_output_tokens,
            seed=settings.seed,
        )
        try:
            provider = configuration.open(model)
            try:
                await call_once(provider, request, settings)
            finally:
                await provider.close()
        except (ProviderError, SkillEvaluatorError) as problem:
            return redact(str(problem))
        return None

    kinds = [(model, configuration.kinds[model.provider]) for model in configuration.models]
    models = [model for model, kind in kinds if not kind.free and missing_key(model, kind, configuration.keys) is None]
    return dict(zip([model.id for model in models], await asyncio.gather(*map(call, models)), strict=True))


def _key_of_model(
    model: Model, configuration: Configuration, names: SecretNames, failures: Mapping[str, str | None]
) -> ModelKey:
    kind = configuration.kinds[model.provider]
    variables, environment = secrets_for(model, kind), environment_of(model, kind)
    here: Here = "not_needed"
    in_ci: InCi = "not_needed"
    if model.auth == "oidc" and kind.federation is not None:
        variables, here, in_ci = kind.federation.required, "in_ci_only", "identity"
    elif variables:
        here = "set" if find_key(model, kind, configuration.keys) else "missing"
        in_ci = _key_location(environment, variables, names)
    call: Call = "not_made" if model.id not in failures else "failed" if failures[model.id] else "answered"
    return ModelKey.view(model, variables=variables, here=here, environment=environment, in_ci=in_ci, call=call)


def _key_of_program(name: str, program: ProgramUnderTest, configuration: Configuration, names: SecretNames) -> ModelKey:
    environment, values = environment_of_program(name), values_of(program.variables, configuration.keys, os.environ)
    missing = tuple(variable for variable in program.variables if variable not in values)
    return ModelKey(
        id=f"{name} (program)",
        provider=MODEL.provider,
        variables=missing or program.variables,
        here="missing" if missing else "set" if program.variables else "not_needed",
        environment=environment,
        in_ci=_key_location(environment, (VARIABLES,), names) if program.variables else "not_needed",
    )


def _key_location(environment: str, variables: Sequence[str], names: SecretNames) -> InCi:
    """Return the place of a key in CI: `environment`, `repository`, `missing`, or `unknown` if GitHub hides names."""
    if not names:
        return "unknown"
    of_environment, of_repository = names.get(environment, frozenset()), names[""]
    secrets = {name.upper() for name in variables}
    if of_environment and secrets & of_environment:
        return "environment"
    if of_repository and secrets & of_repository:
        return "repository"
    return "unknown" if None in (of_environment, of_repository) else "missing"


def _problems_of_keys(keys: Sequence[ModelKey], repository: str | None, names: SecretNames) -> Iterator[str]:
    for key in keys:
        if key.here == "missing" and key.in_ci == "unknown":
            yield f"{key.id} has no key here, and the secrets of CI cannot be read: set {key.variables_text}"
    for name, missing in by_key((key.environment, key) for key in keys if key.in_ci == "missing").items():
        create = "" if name in names else f"gh api -X PUT 'repos/{repository}/environments/{name}' && "
        variable = missing[-1].variables[0]
        alternative = f"or, for the whole repository, gh secret set {variable}"
        if missing[-1].provider == MODEL.provider:
            variable, alternative = VARIABLES, f"lines such as {variable}=value"
        skipped = ", ".join(key.id for key in missing)
        yield f"CI has no key for {skipped} and skips it: {create}gh secret set {variable} --env {name} ({alternative})"


def _placeholders(config: Path) -> Iterator[str]:
    for path in sorted((*config.glob("*.txt"), *config.glob("*.yaml"), *(config.parent / WORKFLOWS).glob("*.yml"))):
        for number, line in enumerate(read_text(path).splitlines(), 1):
            if any(word in line for word in PLACEHOLDERS) and not line.lstrip().startswith("#"):
                yield f"{path.as_posix()}:{number}: replace the placeholder in: {line.strip()[:200]}"


def _not_ignored(settings: Settings) -> Iterator[str]:
    """Yield a problem if this folder is in a repository and git does not ignore outputs, plans or pages."""
    lines: Sequence[str] = IGNORED
    folder, remedy = Path(), "`skill-evaluator init` adds them to .gitignore"
    if settings.sources:
        lines, folder, remedy = IGNORED_IN_CONFIG, cli.CONFIG, f"add them to {cli.CONFIG}/.gitignore"
    with suppress(GitError):
        repository = Repository(Path())
        paths = {line: folder / line.strip("/").replace("*", "x") / "x" for line in lines}
        if not_ignored := [line for line, path in paths.items() if not repository.ignores(path)]:
            yield f"git does not ignore the output paths {listed(not_ignored)}: {remedy}"


def _programs(limits: SafetyLimits) -> Iterator[tuple[str, ProgramUnderTest]]:
    """Yield (component, program under test). Skip components that cannot be read, which `lint` reports."""
    components = components_of(cli.COMPONENTS, cli.CONFIG, cli.COMPONENTS)
    for name in component_names(components):
        with suppress(SkillEvaluatorError):
            if program := load_component(components, name, limits).program:
                yield name, program


def _read_names(wanted: Collection[str], folder: Path, unseen: list[str]) -> tuple[str | None, SecretNames]:
    """Return a folder's repository as OWNER/NAME (None if GitHub cannot be read), and the names of its secrets.

    Read only the `wanted` environments. Add failed requests to `unseen`.
    """
    try:
        name = os.environ.get("GITHUB_REPOSITORY", "")
        if not name:
            done = _gh("repo", "view", "--json", "nameWithOwner", "--jq", ".nameWithOwner", folder=folder)
            name = done.stdout.decode("utf-8", "replace").strip()
            if done.problem is not None or not name:
                message = f"gh does not know the repository on GitHub: {done.problem or 'no answer'}"
                raise ConfigError(f"{message}; run this in a clone from GitHub, or set GITHUB_REPOSITORY to OWNER/NAME")
        root = f"repos/{name}"
        if _read_api(root, unseen) is None:
            unseen.append(f"GitHub: cannot read {unseen.pop()}")
            return None, {}
        listing = _read_api(f"{root}/environments?per_page=100", unseen)
        existing = {each["name"] for each in (listing or {}).get("environments", ())}.intersection(wanted)
        names = {each: _secret_names(f"{root}/environments/{each}/secrets", unseen) for each in sorted(existing)}
        secrets = _secret_names(f"{root}/actions/secrets", unseen)
        if secrets is not None:  # a personal repository has no organisation
            secrets |= _secret_names(f"{root}/actions/organization-secrets", []) or frozenset()
    except ConfigError as problem:
        unseen.append(f"GitHub: {problem}")
        return None, {}
    return name, {} if listing is None else {**names, "": secrets}


def _secret_names(path: str, unseen: list[str]) -> frozenset[str] | None:
    content = _read_api(f"{path}?per_page=100", unseen)
    return None if content is None else frozenset(each["name"] for each in content.get("secrets", ()))


def _read_api(path: str, unseen: list[str]) -> Mapping[str, Any] | None:
    """Return the object at a path of GitHub's API. Return None and add the reason to `unseen` if that fails."""
    done = _gh("api", path)
    with suppress(ValueError):
        value = json.loads(done.stdout)
        if done.problem is None and isinstance(value, dict):
            return value
    unseen.append(f"{path.partition('?')[0]}: {done.problem or 'no answer'}")
    return None


def _gh(*arguments: str, folder: Path = Path()) -> ProcessResult:
    argv, environment = ("gh", *arguments), child_environment()
    done = run_process(Program(argv=argv, folder=folder, seconds=120, output_bytes=10_000_000, environment=environment))
    if done.reason == "absent":
        reason = done.stderr.decode("utf-8", "replace").partition(":")[0]
        raise ConfigError(f"gh cannot be started ({reason}); install it from https://cli.github.com")
    if done.reason == "timeout":
        raise ConfigError(f"gh cannot be used ({done.problem}); try again")
    if done.code == _NOT_LOGGED_IN:
        raise ConfigError("gh is not logged in; run `gh auth login`, or set GH_TOKEN")
    return done

"""`doctor`: find each model's key, make one call, and list the problems that prevent a run.

`gh` lists the names of secrets in CI with the user's login, which may see more than a job's token.
"""

import asyncio
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skill_evaluator.ci.layout import WORKFLOWS, stale_workflows
from skill_evaluator.ci.matrix import environment_of, environment_of_program, secrets_for
from skill_evaluator.ci.platforms import gh, last_line, name_of_repository
from skill_evaluator.display.options import COMPONENTS, CONFIG
from skill_evaluator.errors import ConfigError, GitError, SkillEvaluatorError
from skill_evaluator.files import StrictModel, read_text
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.library.prompts import ProgramUnderTest, dialogue
from skill_evaluator.library.scaffolding import IGNORED, IGNORED_IN_CONFIG, PLACEHOLDERS
from skill_evaluator.library.sources import component_names, components_of
from skill_evaluator.providers import Configuration, find_key, missing_key
from skill_evaluator.providers.base import ProviderError, Request, call_once, opened
from skill_evaluator.providers.program import MODEL, VARIABLES, values_of
from skill_evaluator.providers.redaction import redactor_of
from skill_evaluator.repository import Repository
from skill_evaluator.stats import by_key
from skill_evaluator.text import listed

Here = Literal["not_needed", "set", "missing", "in_ci_only"]
InCi = Literal["not_needed", "environment", "repository", "identity", "missing", "unknown"]
Call = Literal["answered", "failed", "not_made"]


class ModelKey(StrictModel):
    """Where a model has its key, on this machine and in CI, and whether it answered a call.

    A model needs a key in one of `variables`, a program all of them. With `auth: oidc` they identify the job.
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

    `repository` is None if GitHub could not be read; `unseen` has what of GitHub could not be read.
    """

    repository: str | None
    workflows: tuple[str, ...]
    models: tuple[ModelKey, ...]
    problems: tuple[str, ...]
    unseen: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SecretNames:
    """Names of secrets by environment, and of the repository with its organisation; None if they cannot be listed."""

    repository: str | None
    environments: Mapping[str, frozenset[str] | None] | None
    secrets: frozenset[str] | None


def examine(configuration: Configuration, config: Path) -> DoctorReport:
    """Call each model once; report keys and problems on this machine and, as far as `gh` may read, on GitHub."""
    programs = dict(_programs())
    environments = [environment_of(model, configuration.kinds[model.provider]) for model in configuration.models]
    unseen: list[str] = []
    names = _read_names({*environments, *map(environment_of_program, programs)}, config, unseen)
    failures = asyncio.run(_call_models(configuration))
    keys = (
        *(_key_of_model(model, configuration, names, failures) for model in configuration.models),
        *(_key_of_program(*item, configuration, names) for item in programs.items()),
    )
    problems = (
        *(f"{name} does not answer: {message}" for name, message in failures.items() if message),
        *_problems_of_keys(keys, names),
        *stale_workflows(config, configuration).values(),
        *_placeholders(config),
        *_not_ignored(configuration.settings),
    )
    workflows = sorted((config.parent / WORKFLOWS).glob("*.yml"))
    return DoctorReport(
        repository=names.repository,
        workflows=tuple(path.name for path in workflows if "skill-evaluator" in read_text(path)),
        models=keys,
        problems=problems,
        unseen=tuple(unseen),
    )


async def _call_models(configuration: Configuration) -> dict[str, str | None]:
    """Call each model of a vendor whose key is here; return by model id the error, or None if the model answered."""
    redact, settings = redactor_of(configuration.keys, configuration.models), configuration.settings

    async def call(model: Model) -> str | None:
        kind = configuration.kinds[model.provider]
        request = Request(
            case_id="",
            replicate=0,
            messages=dialogue("Answer in one word.", "Is water wet?"),
            max_output_tokens=model.params.max_output_tokens,
            seed=settings.seed,
        )
        try:
            provider = opened(kind, model, find_key(model, kind, configuration.keys), settings)
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
    model: Model, configuration: Configuration, names: _SecretNames, failures: Mapping[str, str | None]
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


def _key_of_program(
    name: str, program: ProgramUnderTest, configuration: Configuration, names: _SecretNames
) -> ModelKey:
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


def _key_location(environment: str, variables: Sequence[str], names: _SecretNames) -> InCi:
    """Return the location of a key in CI. An environment's secret takes precedence over the repository's."""
    if names.environments is None:
        return "unknown"
    of_environment = names.environments.get(environment, frozenset())
    secrets = {name.upper() for name in variables}
    if of_environment and secrets & of_environment:
        return "environment"
    if names.secrets is not None and secrets & names.secrets:
        return "repository"
    return "unknown" if names.secrets is None or of_environment is None else "missing"


def _problems_of_keys(keys: Sequence[ModelKey], names: _SecretNames) -> Iterator[str]:
    for key in keys:
        if key.here == "missing" and key.in_ci == "unknown":
            yield f"{key.id} has no key here, and the secrets of CI cannot be read: set {key.variables_text}"
    for name, missing in by_key((key.environment, key) for key in keys if key.in_ci == "missing").items():
        exists = name in (names.environments or {})
        create = "" if exists else f"gh api -X PUT 'repos/{names.repository}/environments/{name}' && "
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
                yield f"{path.as_posix()}:{number}: {line.strip()[:200]}"


def _not_ignored(settings: Settings) -> Iterator[str]:
    """Yield a problem if this folder is in a repository and git does not ignore outputs, plans or pages."""
    lines: Sequence[str] = IGNORED_IN_CONFIG if settings.sources else IGNORED
    folder = CONFIG if settings.sources else Path()
    remedy = (
        f"add them to {CONFIG}/.gitignore" if folder == CONFIG else "`skill-evaluator init` adds them to .gitignore"
    )
    with suppress(GitError):
        repository = Repository(Path())
        paths = {line: folder / line.strip("/").replace("*", "x") / "x" for line in lines}
        if not_ignored := [line for line, path in paths.items() if not repository.ignores(path)]:
            yield f"git add would publish {listed(not_ignored)}: {remedy}"


def _programs() -> Iterator[tuple[str, ProgramUnderTest]]:
    """Yield the programs under test by component. Skip components that cannot be read; `lint` reports them."""
    components = components_of(COMPONENTS, CONFIG, COMPONENTS)
    for name in component_names(components):
        with suppress(SkillEvaluatorError):
            if program := load_component(components, name).program:
                yield name, program


def _read_names(wanted: Collection[str], folder: Path, unseen: list[str]) -> _SecretNames:
    """List the secrets of the `wanted` environments and of a folder's repository; add unreadable ones to `unseen`."""
    unknown = _SecretNames(repository=None, environments=None, secrets=None)
    try:
        name = os.environ.get("GITHUB_REPOSITORY") or name_of_repository(folder)
        root = f"repos/{name}"
        if _read_api(root, unseen) is None:
            unseen.append(f"GitHub: cannot read {unseen.pop()}")
            return unknown
        listing = _read_api(f"{root}/environments?per_page=100", unseen)
        environments = None
        if listing is not None:
            existing = sorted({each["name"] for each in listing.get("environments", ())}.intersection(wanted))
            environments = {each: _secret_names(f"{root}/environments/{each}/secrets", unseen) for each in existing}
        secrets = _secret_names(f"{root}/actions/secrets", unseen)
        if secrets is not None:  # a personal repository has no organisation
            secrets |= _secret_names(f"{root}/actions/organization-secrets", []) or frozenset()
    except ConfigError as problem:
        unseen.append(f"GitHub: {problem}")
        return unknown
    return _SecretNames(repository=name, environments=environments, secrets=secrets)


def _secret_names(path: str, unseen: list[str]) -> frozenset[str] | None:
    content = _read_api(f"{path}?per_page=100", unseen)
    return None if content is None else frozenset(each["name"] for each in content.get("secrets", ()))


def _read_api(path: str, unseen: list[str]) -> Mapping[str, Any] | None:
    """Return the object at a path of GitHub's API. Return None and add the reason to `unseen` if that fails."""
    done = gh("api", path)
    with suppress(ValueError):
        value = json.loads(done.stdout)
        if not done.returncode and isinstance(value, dict):
            return value
    unseen.append(f"{path.partition('?')[0]}: {last_line(done.stderr) or 'no answer'}")
    return None

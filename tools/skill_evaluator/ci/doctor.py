"""Models and the set-up on GitHub → where each model has its key, and what stands in the way of a run.

`gh` asks, with the login of a person, who may see more than a job's token: names of secrets, environments, the branch.
"""

import asyncio
import datetime
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from skill_evaluator.ci.layout import WORKFLOWS, secrets_of, stale_workflows
from skill_evaluator.ci.matrix import environment_of, environment_of_program, secrets_for
from skill_evaluator.ci.platforms.github import gh, last_line, name_of_repository
from skill_evaluator.display.options import COMPONENTS, CONFIG
from skill_evaluator.errors import ConfigError, GitError, SkillEvaluatorError
from skill_evaluator.files import StrictModel, read_text
from skill_evaluator.identifiers import moment
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Settings, retiring, select_models
from skill_evaluator.library.messages import dialogue
from skill_evaluator.library.programs import ProgramUnderTest
from skill_evaluator.library.reading import FixturesElsewhere
from skill_evaluator.library.scaffolding import IGNORED, IGNORED_IN_CONFIG, PLACEHOLDERS
from skill_evaluator.library.sources import component_names, components_of
from skill_evaluator.providers import Configuration, find_key
from skill_evaluator.providers.base import Request, opened
from skill_evaluator.providers.program import MODEL, values_of
from skill_evaluator.providers.redaction import redactor_of
from skill_evaluator.repository import Repository
from skill_evaluator.runner.engine import Engine, Invocation, ModelJob, Progress, Stop
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import price_of
from skill_evaluator.runner.schedule import Call, Replicate, calls_in_flight
from skill_evaluator.runner.session import with_keys
from skill_evaluator.text import listed
from skill_evaluator.verdicts.planning.sizing import FEW_CASES, can_show

_KEY = "PROVIDER_API_KEY"
_SITE = "SKILL_EVALUATOR_SITE"
_QUESTIONS = ("Why is the sky blue?", "How is bread made?", "What are tides?", "What is rust?", "What does a judge do?")
Here = Literal["not_needed", "set", "missing", "in_ci_only"]
InCi = Literal["not_needed", "environment", "repository", "identity", "missing", "unknown"]
Site = Literal["artifact", "published", "unknown"]
_SCHEDULES = {"SKILL_EVALUATOR_DRIFT": "Drift", "SKILL_EVALUATOR_AUDIT": "Audit"}
_IDLE = datetime.timedelta(days=45)
_SITES: dict[str | None, Site] = {None: "unknown", "pages": "published"}


class ModelKey(StrictModel):
    """Where a model has its key: in one of `variables` here, in CI in its `environment` or in a secret of that name.

    With `auth: oidc` it has none, and `variables` are those of the repository that say who the job is.
    """

    id: str
    provider: str
    auth: Literal["key", "oidc"] = "key"
    variables: tuple[str, ...]
    here: Here
    environment: str
    in_ci: InCi

    @property
    def words(self) -> str:
        """The names of its variables: of a model one is enough, a program needs all."""
        return (" and " if self.provider == MODEL.provider else " or ").join(self.variables)


class DoctorReport(StrictModel):
    """What `doctor` prints as JSON; `problems` end with what to do, `unseen` says what could not be looked at, and why.

    `repository` is None where GitHub was not asked. `site` says what CI makes of the site. `few` says of components
    with few cases what these can show, `retiring` of models that are switched off soon when.
    """

    repository: str | None
    site: Site
    models: tuple[ModelKey, ...]
    problems: tuple[str, ...]
    unseen: tuple[str, ...]
    few: tuple[str, ...] = ()
    retiring: list[str] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Environment:
    """One environment; `has_key` is None where `gh` may not list its secrets, `limited` says if for some branches."""

    has_key: bool | None
    limited: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setup:
    """A repository's set-up. What is None, or missing among `environments`, `unseen` explains in a line each.

    `secrets` and `variables` are the names of the repository's own and of those that its organisation shares with it;
    `is_protected` is of its default branch; `may_open` whether a job may open pull requests; `has_public_fixtures` of
    another repository that was asked about. `site` is the variable that says where the site goes, empty without one;
    `pages` is what GitHub Pages takes its site from, empty where it is off. `idle` is when the newest commit was made,
    if GitHub soon switches off the workflows that are `scheduled` for want of a newer one.
    """

    repository: str
    branch: str
    mode: str
    environments: Mapping[str, _Environment] | None
    secrets: frozenset[str] | None
    variables: frozenset[str] | None
    is_protected: bool | None
    may_open: bool | None
    has_public_fixtures: bool | None
    site: str | None
    pages: str | None
    idle: str | None
    scheduled: tuple[str, ...]
    unseen: tuple[str, ...]


def examine(configuration: Configuration, config: Path) -> DoctorReport:
    """Say where the keys are and what is wrong, here and on GitHub as far as `gh` may look."""
    elsewhere, secrets = configuration.settings.fixtures, secrets_of(configuration)
    fixtures = elsewhere.repository if elsewhere and _is_on_github(elsewhere) else None
    keyless = any(model.auth == "oidc" for model in configuration.models)
    components = list(_components())
    programs = {component.name: component.program for component in components if component.program}
    environments = [*secrets, *map(environment_of_program, programs)]
    setup = None
    try:
        setup = _read_setup(config, environments, fixtures, keyless=keyless)
        unseen = setup.unseen
    except ConfigError as problem:
        unseen = (f"GitHub: {problem}",)
    of_programs = (_key_of_program(*each, configuration, setup) for each in programs.items())
    keys = (*_keys_of(configuration, setup), *of_programs)
    problems = [
        f"{key.id} has no key here, and CI could not be looked at: set {key.words}"
        for key in keys
        if key.here == "missing" and key.in_ci == "unknown"
    ]
    if setup is not None:
        problems += _problems_of_keys(keys, setup)
        problems += _problems_of_tokens(setup, elsewhere)
        problems += _problems_of_site(setup)
        if setup.idle and setup.scheduled:
            problems.append(
                f"the newest commit on {setup.branch} is of {setup.idle[:10]}, and GitHub switches the schedules of a "
                f"public repository off after 60 days without one: push a commit (later: Actions → "
                f"{listed(setup.scheduled)} → Enable workflow)"
            )
    return DoctorReport(
        repository=setup.repository if setup else None,
        site=_SITES.get(setup.site if setup else None, "artifact"),
        models=keys,
        problems=(
            *problems,
            *stale_workflows(config, secrets).values(),
            *_placeholders(config),
            *_published(configuration.settings),
        ),
        unseen=unseen,
        few=tuple(_few(components)),
        retiring=retiring(configuration.models),
    )


def _keys_of(configuration: Configuration, setup: _Setup | None) -> Iterator[ModelKey]:
    for model in configuration.models:
        kind = configuration.kinds[model.provider]
        variables = secrets_for(model, kind)
        environment = environment_of(model, kind)
        here: Here = "not_needed" if not variables else "missing"
        in_ci: InCi = "not_needed" if not variables else "unknown"
        if model.auth == "oidc" and kind.federation is not None:
            variables, here, in_ci = kind.federation.required, "in_ci_only", "unknown"
            if setup is not None and setup.variables is not None:
                in_ci = "identity" if setup.variables.issuperset(variables) else "missing"
        elif variables and find_key(model, kind, configuration.keys):
            here = "set"
        if model.auth == "key" and variables and setup is not None:
            in_ci = _place_of(environment, variables, setup)
        yield ModelKey(
            id=model.id,
            provider=model.provider,
            auth=model.auth,
            variables=variables,
            here=here,
            environment=environment,
            in_ci=in_ci,
        )


def _key_of_program(
    name: str, program: ProgramUnderTest, configuration: Configuration, setup: _Setup | None
) -> ModelKey:
    """Return where the program of a component has its variables; here all of them are needed."""
    environment, variables = environment_of_program(name), program.variables
    values = values_of(variables, configuration.keys, os.environ)
    here: Here = "set" if variables else "not_needed"
    in_ci: InCi = "unknown" if variables else "not_needed"
    if missing := tuple(variable for variable in variables if variable not in values):
        here, variables = "missing", missing
    if program.variables and setup is not None:
        in_ci = _place_of(environment, (), setup)
    return ModelKey(
        id=f"{name} (program)",
        provider=MODEL.provider,
        variables=variables,
        here=here,
        environment=environment,
        in_ci=in_ci,
    )


def _place_of(environment: str, variables: Sequence[str], setup: _Setup) -> InCi:
    """Return where a key is in CI; an environment's own goes before the repository's."""
    place = None if setup.environments is None else setup.environments.get(environment)
    if place is not None and place.has_key:
        return "environment"
    if setup.secrets is not None and not setup.secrets.isdisjoint(name.upper() for name in variables):
        return "repository"
    is_seen = setup.secrets is not None and setup.environments is not None and (place is None or place.has_key is False)
    return "missing" if is_seen else "unknown"


def _problems_of_keys(keys: tuple[ModelKey, ...], setup: _Setup) -> Iterator[str]:
    """Yield what is wrong with the environments and their secrets."""
    environments = setup.environments or {}
    keyed = [key for key in keys if key.auth == "key"]
    trusted = [key for key in keys if key.auth == "oidc"]
    for key in trusted:
        for variable in key.variables:
            if setup.variables is not None and variable not in setup.variables:
                yield f"{key.id} cannot be asked in CI, which has no variable {variable}: gh variable set {variable}"
    for name, variables in {key.environment: key.variables for key in keyed if key.in_ci == "missing"}.items():
        skipped = ", ".join(key.id for key in keyed if key.environment == name)
        programs = [key for key in keyed if key.environment == name and key.provider == MODEL.provider]
        make = "" if name in environments else f"gh api -X PUT 'repos/{setup.repository}/environments/{name}' && "
        whole = f"or, for the whole repository, gh secret set {variables[0]}"
        further = f"lines such as {variables[0]}=value" if programs else whole
        yield f"CI has no key for {skipped} and skips it: {make}gh secret set {_KEY} --env {name} ({further})"
    for name, environment in environments.items():
        is_trusted = any(key.environment == name for key in trusted)
        if (is_trusted or environment.has_key is not False) and not environment.limited:
            yield (
                f"environment {name} gives its {'identity' if is_trusted else 'key'} to every branch: limit it to "
                f"{setup.branch} (Settings → Environments → Deployment branches)"
            )
    if _KEY in (setup.secrets or ()):
        yield f"{_KEY} is a secret of the repository, and no provider's own: gh secret delete {_KEY}"


def _problems_of_tokens(setup: _Setup, fixtures: FixturesElsewhere | None) -> Iterator[str]:
    """Yield what the tokens of the jobs will not be able to do."""
    if setup.mode == "push" and setup.is_protected:
        yield (
            f"{setup.branch} is protected, so the token of a job cannot push records to it: "
            "gh variable set SKILL_EVALUATOR_PUBLISH --body branch (or pull-request)"
        )
    if setup.mode == "pull-request" and setup.may_open is False:
        yield (
            "a job may not open pull requests, so records stay on their branch: "
            "Settings → Actions → General → Allow GitHub Actions to create and approve pull requests"
        )
    lacks_token = setup.secrets is not None and "FIXTURES_TOKEN" not in setup.secrets
    if fixtures is not None and _is_on_github(fixtures) and setup.has_public_fixtures is False and lacks_token:
        yield f"{fixtures.repository} is private, and no secret can read it: gh secret set FIXTURES_TOKEN"


def _problems_of_site(setup: _Setup) -> Iterator[str]:
    """Yield why the site that is to be published is not."""
    if setup.site and setup.site != "pages":
        yield f"{_SITE} is {setup.site[:100]!a}, so no site is built: gh variable set {_SITE} --body pages"
    elif setup.site and setup.pages not in (None, "workflow"):
        change = " -X PUT" if setup.pages else ""
        yield (
            "the site is to be published, and Pages takes none from workflows: "
            f"gh api{change} repos/{setup.repository}/pages -f build_type=workflow"
        )


def _placeholders(config: Path) -> Iterator[str]:
    """Yield each line with a placeholder in the settings and workflows, with its file and line number."""
    for path in sorted((*config.glob("*.txt"), *config.glob("*.yaml"), *(config.parent / WORKFLOWS).glob("*.yml"))):
        for number, line in enumerate(read_text(path).splitlines(), 1):
            if any(word in line for word in PLACEHOLDERS) and not line.lstrip().startswith("#"):
                yield f"{path.as_posix()}:{number}: {line.strip()[:200]}"


def _published(settings: Settings) -> Iterator[str]:
    """Yield that git would add answers, plans or pages of this folder, if it is in a repository."""
    place: Path = CONFIG if settings.sources else Path()
    lines: Sequence[str] = IGNORED_IN_CONFIG if settings.sources else IGNORED
    remedy = (
        f"add them to {CONFIG}/.gitignore" if settings.sources else "`skill-evaluator init` adds them to .gitignore"
    )
    with suppress(GitError):
        repository = Repository(Path())
        paths = {line: place / line.strip("/").replace("*", "x") / "x" for line in lines}
        if kept := [line for line, path in paths.items() if not repository.ignores(path)]:
            yield f"git add would publish {listed(kept)}: {remedy}"


def _components() -> Iterator[Component]:
    """Yield the components; what cannot be read is for `lint` to say."""
    components = components_of(COMPONENTS, CONFIG, COMPONENTS)
    for name in component_names(components):
        with suppress(SkillEvaluatorError):
            yield load_component(components, name)


def _few(components: Iterable[Component]) -> Iterator[str]:
    """Yield of each component with few cases what these can show."""
    for component in components:
        with suppress(SkillEvaluatorError):
            labelled = sum(case.labelled for case in load_cases(component, None))
            if 0 < labelled < FEW_CASES:
                yield f"{component.name}: {can_show(labelled)}"


def probe(configuration: Configuration, model_id: str) -> dict[str, Any]:
    """Ask a model the same five questions with one seed: twice one by one, then 32 times in flight. Return the JSON."""
    (model,) = with_keys(select_models(configuration.models, (model_id,)), configuration).values()
    return asyncio.run(_probe(model, configuration))


async def _probe(model: Model, configuration: Configuration) -> dict[str, Any]:
    kind, settings = configuration.kinds[model.provider], configuration.settings
    same: dict[str, Any] = {"max_output_tokens": model.params.max_output_tokens, "seed": settings.seed}
    redact = redactor_of(configuration.keys, configuration.models)
    progress, replicates = Progress(model_id=model.id, planned=42), list[Replicate]()
    for rounds, in_flight in ((range(2), 1), (range(2, 9), 32)):
        job = ModelJob(
            model=model,
            provider=opened(kind, model, find_key(model, kind, configuration.keys), settings),
            calls=[Call(question, number) for number in rounds for question in _QUESTIONS][:32],
            request_for=lambda call: Request(
                case_id="", replicate=0, messages=dialogue("In 60 words.", call.case_id), **same
            ),
            concurrency=calls_in_flight(model, kind, in_flight)[1],
            price=price_of(model, kind),
            shared=Invocation(settings=settings, budget=Budget(), redact=redact, stop=Stop()),
        )
        await (engine := Engine(job, progress, replicates.append)).run()
        if engine.halted:
            break
    told = {"model": model.id, "calls": len(replicates), "answered": progress.answered, "cost_usd": progress.cost_usd}
    return {**told, "verdict": _verdict_on(replicates, job.concurrency)}


def _verdict_on(replicates: Sequence[Replicate], in_flight: int) -> str:
    """Say whether answers depend on load: what differs even when it is asked again one by one says nothing of it."""
    texts = {made.call: made.completion.text for made in replicates if made.completion}
    said = [[texts.get(Call(question, number), "") for number in range(9)] for question in _QUESTIONS]
    stable = [(first, {*loaded} - {""}) for first, second, *loaded in said if first and first == second and any(loaded)]
    changed = sum(loaded != {first} for first, loaded in stable)
    if not stable:
        why = [*(made.error.message for made in replicates if made.error), "none was answered alike when asked again"]
        return f"nothing is known of load: {why[0]}"
    how = f"{changed} of {len(stable)} questions get other answers with {in_flight} in flight than one by one"
    return f"{'answers depend on load' if changed else 'no answer depended on load'}: {how}"


def _is_on_github(fixtures: FixturesElsewhere) -> bool:
    """Return whether fixtures are named as `owner/name`."""
    return re.fullmatch(r"\w[\w.-]*/[\w.-]+", fixtures.repository) is not None


def _read_setup(folder: Path, wanted: Iterable[str], fixtures: str | None, *, keyless: bool) -> _Setup:
    """Ask how the repository that a folder is in is set up; `wanted` are the environments whose secrets matter.

    Variables are asked for only where a model is `keyless`.
    Raise ConfigError where `gh` is missing, not logged in, or does not know the repository.
    """
    name = os.environ.get("GITHUB_REPOSITORY") or name_of_repository(folder)
    look = _Look()
    about = look.at(f"repos/{name}")
    if about is None:
        raise ConfigError(f"it could not be asked for {look.unseen[0]}")
    branch = str(about.get("default_branch") or "main")
    listed = look.at(f"repos/{name}/environments?per_page=100")
    environments = None
    if listed is not None:
        there = {each["name"]: each for each in listed.get("environments", ())}
        environments = {}
        for environment in sorted(there.keys() & set(wanted)):
            secrets = look.names(f"repos/{name}/environments/{environment}/secrets")
            limited = there[environment].get("deployment_branch_policy") is not None
            environments[environment] = _Environment(
                has_key=None if secrets is None else _KEY in secrets, limited=limited
            )
    mode = look.at(f"repos/{name}/actions/variables/SKILL_EVALUATOR_PUBLISH", may_lack=True) or {}
    site = look.at(f"repos/{name}/actions/variables/{_SITE}", may_lack=True)
    pages = look.at(f"repos/{name}/pages", may_lack=True) if site else None
    protected = look.at(f"repos/{name}/branches/{branch}")
    idle = _idle_since(protected) if about.get("private") is False else None
    scheduled = [
        title
        for variable, title in (_SCHEDULES.items() if idle else ())
        if (look.at(f"repos/{name}/actions/variables/{variable}", may_lack=True) or {}).get("value")
    ]
    workflow = look.at(f"repos/{name}/actions/permissions/workflow")
    public = None if fixtures is None else look.at(f"repos/{fixtures}")
    return _Setup(
        repository=name,
        branch=branch,
        mode=mode.get("value", "push"),
        environments=environments,
        secrets=look.shared_names(f"repos/{name}/actions", "secrets"),
        variables=look.shared_names(f"repos/{name}/actions", "variables") if keyless else None,
        is_protected=None if protected is None else bool(protected.get("protected")),
        may_open=None if workflow is None else bool(workflow.get("can_approve_pull_request_reviews")),
        has_public_fixtures=None if public is None else public.get("private") is False,
        site=None if site is None else site.get("value", ""),
        pages=None if pages is None else pages.get("build_type") or "",
        idle=idle,
        scheduled=tuple(scheduled),
        unseen=tuple(look.unseen),
    )


def _idle_since(branch: Mapping[str, Any] | None) -> str | None:
    """Return when the newest commit of a branch was made, as GitHub tells it, if that is long ago."""
    with suppress(KeyError, TypeError, ValueError):
        made = str((branch or {})["commit"]["commit"]["committer"]["date"])
        return made if moment(made) < datetime.datetime.now(datetime.UTC) - _IDLE else None
    return None


@dataclass(frozen=True, slots=True)
class _Look:
    """Asks GitHub's API, and keeps in mind what it may not see."""

    unseen: list[str] = field(default_factory=list)

    def at(self, path: str, *, may_lack: bool = False) -> Mapping[str, Any] | None:
        """Return the object at a path; None where it may not be seen, an empty one where there may be none and is.

        GitHub says 404 also of what a login may not see.
        """
        done = gh("api", path)
        if may_lack and done.returncode and "HTTP 404" in done.stderr:
            return {}
        with suppress(ValueError):
            value = json.loads(done.stdout)
            if not done.returncode and isinstance(value, dict):
                return value
        self.unseen.append(f"{path.partition('?')[0]}: {last_line(done.stderr) or 'no answer'}")
        return None

    def names(self, path: str, *, may_lack: bool = False) -> frozenset[str] | None:
        """Return the names of the secrets or variables at a path."""
        most = 30 if path.endswith("variables") else 100  # more is refused
        listed = self.at(f"{path}?per_page={most}", may_lack=may_lack)
        kind = path.rpartition("/")[2].removeprefix("organization-")
        return None if listed is None else frozenset(each["name"] for each in listed.get(kind, ()))

    def shared_names(self, path: str, kind: str) -> frozenset[str] | None:
        """Return the names of a repository's own and of its organisation's, which a person's repository has not."""
        own, shared = self.names(f"{path}/{kind}"), self.names(f"{path}/organization-{kind}", may_lack=True)
        return None if own is None else own | (shared or frozenset())

"""Models and the set-up on GitHub → where each model has its key, and what stands in the way of a run."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from skill_evaluator.ci.matrix import environment_of, secrets_for
from skill_evaluator.ci.platforms.github_setup import KEY, SITE, Setup
from skill_evaluator.files import StrictModel
from skill_evaluator.library.config import Model
from skill_evaluator.library.reading import FixturesElsewhere
from skill_evaluator.providers import Configuration, find_key
from skill_evaluator.providers.base import Request, opened
from skill_evaluator.providers.redaction import redactor_of
from skill_evaluator.runner.engine import Engine, Invocation, ModelJob, Progress, Stop
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import price_of
from skill_evaluator.runner.schedule import Call, Replicate, calls_in_flight

_QUESTIONS = ("Why is the sky blue?", "How is bread made?", "What are tides?", "What is rust?", "What does a judge do?")
Here = Literal["not_needed", "set", "missing", "in_ci_only"]
InCi = Literal["not_needed", "environment", "repository", "identity", "missing", "unknown"]
Site = Literal["artifact", "published", "unknown"]
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


def examine(
    configuration: Configuration, setup: Setup | None, stale: Iterable[str] = (), why_unseen: str = ""
) -> DoctorReport:
    """Say where the keys are and what is wrong; without a set-up of what is here, `why_unseen` being the reason.

    `stale` are the problems of the workflows.
    """
    keys = tuple(_keys_of(configuration, setup))
    problems = [
        f"{key.id} has no key here, and CI could not be looked at: set {' or '.join(key.variables)}"
        for key in keys
        if key.here == "missing" and key.in_ci == "unknown"
    ]
    if setup is not None:
        problems += _problems_of_keys(keys, setup)
        problems += _problems_of_tokens(setup, configuration.settings.fixtures)
        problems += _problems_of_site(setup)
    problems += stale
    return DoctorReport(
        repository=setup.repository if setup else None,
        site=_SITES.get(setup.site if setup else None, "artifact"),
        models=keys,
        problems=tuple(problems),
        unseen=setup.unseen if setup else (f"GitHub: {why_unseen}",),
    )


def _keys_of(configuration: Configuration, setup: Setup | None) -> Iterator[ModelKey]:
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


def _place_of(environment: str, variables: Sequence[str], setup: Setup) -> InCi:
    """Return where a key is in CI; an environment's own goes before the repository's."""
    place = None if setup.environments is None else setup.environments.get(environment)
    if place is not None and place.has_key:
        return "environment"
    if setup.secrets is not None and not setup.secrets.isdisjoint(name.upper() for name in variables):
        return "repository"
    is_seen = setup.secrets is not None and setup.environments is not None and (place is None or place.has_key is False)
    return "missing" if is_seen else "unknown"


def _problems_of_keys(keys: tuple[ModelKey, ...], setup: Setup) -> Iterator[str]:
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
        make = "" if name in environments else f"gh api -X PUT 'repos/{setup.repository}/environments/{name}' && "
        yield (
            f"CI has no key for {skipped} and skips it: {make}gh secret set {KEY} --env {name} "
            f"(or, for the whole repository, gh secret set {variables[0]})"
        )
    for name, environment in environments.items():
        is_trusted = any(key.environment == name for key in trusted)
        if (is_trusted or environment.has_key is not False) and not environment.limited:
            yield (
                f"environment {name} gives its {'identity' if is_trusted else 'key'} to every branch: limit it to "
                f"{setup.branch} "
                "(Settings → Environments → Deployment branches)"
            )
    if KEY in (setup.secrets or ()):
        yield f"{KEY} is a secret of the repository, and no provider's own: gh secret delete {KEY}"


def _problems_of_tokens(setup: Setup, fixtures: FixturesElsewhere | None) -> Iterator[str]:
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
    if fixtures is not None and is_on_github(fixtures) and setup.has_public_fixtures is False and lacks_token:
        yield f"{fixtures.repository} is private, and no secret can read it: gh secret set FIXTURES_TOKEN"


def _problems_of_site(setup: Setup) -> Iterator[str]:
    """Yield why the site that is to be published is not."""
    if setup.site and setup.site != "pages":
        yield f"{SITE} is {setup.site[:100]!a}, so no site is built: gh variable set {SITE} --body pages"
    elif setup.site and setup.pages not in (None, "workflow"):
        change = " -X PUT" if setup.pages else ""
        yield (
            "the site is to be published, and Pages takes none from workflows: "
            f"gh api{change} repos/{setup.repository}/pages -f build_type=workflow"
        )


async def probe(model: Model, configuration: Configuration) -> dict[str, Any]:
    """Ask a model the same five questions with one seed: twice one by one, then 32 times in flight. Return the JSON."""
    kind, settings = configuration.kinds[model.provider], configuration.settings
    same: dict[str, Any] = {"max_output_tokens": model.params.max_output_tokens, "seed": settings.seed}
    redact = redactor_of(configuration.keys, configuration.models)
    progress, replicates = Progress(model_id=model.id, planned=42), list[Replicate]()
    for rounds, in_flight in ((range(2), 1), (range(2, 9), 32)):
        job = ModelJob(
            model=model,
            provider=opened(kind, model, find_key(model, kind, configuration.keys), settings),
            calls=[Call(question, number) for number in rounds for question in _QUESTIONS][:32],
            request_for=lambda call: Request(case_id="", replicate=0, system="In 60 words.", user=call.case_id, **same),
            concurrency=calls_in_flight(model, kind, in_flight),
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
    return f"answers {'depend' if changed else 'do not depend'} on load: {how}"


def is_on_github(fixtures: FixturesElsewhere) -> bool:
    """Return whether fixtures are named as `owner/name`."""
    return re.fullmatch(r"\w[\w.-]*/[\w.-]+", fixtures.repository) is not None

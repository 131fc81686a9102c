"""Models and the set-up on GitHub → where each model has its key, and what stands in the way of a run."""

import re
from collections.abc import Iterator
from typing import Literal

from skill_evaluator.ci.matrix import environment_of
from skill_evaluator.ci.platforms.github_setup import KEY, Setup
from skill_evaluator.files import StrictModel
from skill_evaluator.library.roots import FixturesElsewhere
from skill_evaluator.providers import Configuration, find_key, key_variables

Here = Literal["not_needed", "set", "missing"]
InCi = Literal["not_needed", "set", "missing", "unknown"]


class ModelKey(StrictModel):
    """Where a model has its key: in one of `variables` here, and in the secret of its `environment` in CI."""

    id: str
    provider: str
    variables: tuple[str, ...]
    here: Here
    environment: str
    in_ci: InCi


class DoctorReport(StrictModel):
    """What `doctor` prints as JSON; `problems` end with what to do, `unseen` says what could not be looked at, and why.

    `repository` is None where GitHub was not asked.
    """

    repository: str | None
    models: tuple[ModelKey, ...]
    problems: tuple[str, ...]
    unseen: tuple[str, ...]


def environments_of(configuration: Configuration) -> set[str]:
    """Return the environments of the models that need a key."""
    kinds = configuration.kinds
    needy = (model for model in configuration.models if key_variables(model, kinds[model.provider]))
    return {environment_of(model, kinds[model.provider]) for model in needy}


def examine(configuration: Configuration, setup: Setup | None, why_unseen: str = "") -> DoctorReport:
    """Say where the keys are and what is wrong; without a set-up of what is here, `why_unseen` being the reason."""
    keys = tuple(_keys_of(configuration, setup))
    problems = [
        f"{key.id} has no key here, and CI could not be looked at: set {' or '.join(key.variables)}"
        for key in keys
        if key.here == "missing" and key.in_ci == "unknown"
    ]
    if setup is not None:
        problems += _problems_of_keys(keys, setup)
        problems += _problems_of_tokens(setup, configuration.settings.fixtures)
    return DoctorReport(
        repository=setup.repository if setup else None,
        models=keys,
        problems=tuple(problems),
        unseen=setup.unseen if setup else (f"GitHub: {why_unseen}",),
    )


def _keys_of(configuration: Configuration, setup: Setup | None) -> Iterator[ModelKey]:
    for model in configuration.models:
        kind = configuration.kinds[model.provider]
        variables = key_variables(model, kind)
        environment = environment_of(model, kind)
        here: Here = "not_needed" if not variables else "missing"
        in_ci: InCi = "not_needed" if not variables else "unknown"
        if variables and find_key(model, kind, configuration.keys):
            here = "set"
        if variables and setup is not None and setup.environments is not None:
            place = setup.environments.get(environment)
            has_key = place is not None and place.has_key
            in_ci = "unknown" if has_key is None else "set" if has_key else "missing"
        yield ModelKey(
            id=model.id,
            provider=model.provider,
            variables=variables,
            here=here,
            environment=environment,
            in_ci=in_ci,
        )


def _problems_of_keys(keys: tuple[ModelKey, ...], setup: Setup) -> Iterator[str]:
    """Yield what is wrong with the environments and their secrets."""
    environments = setup.environments or {}
    for name in dict.fromkeys(key.environment for key in keys if key.in_ci == "missing"):
        skipped = ", ".join(key.id for key in keys if key.environment == name)
        make = "" if name in environments else f"gh api -X PUT 'repos/{setup.repository}/environments/{name}' && "
        lacks = f"has no secret {KEY}" if name in environments else "is not there"
        yield f"environment {name} {lacks}, so CI skips {skipped}: {make}gh secret set {KEY} --env {name}"
    for name, environment in environments.items():
        if environment.has_key is not False and not environment.limited:
            yield (
                f"environment {name} gives its key to every branch: limit it to {setup.branch} "
                "(Settings → Environments → Deployment branches)"
            )
    if KEY in (setup.secrets or ()):
        yield f"{KEY} is a secret of the repository, so every job sees it: gh secret delete {KEY}"


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


def is_on_github(fixtures: FixturesElsewhere) -> bool:
    """Return whether fixtures are named as `owner/name`."""
    return re.fullmatch(r"\w[\w.-]*/[\w.-]+", fixtures.repository) is not None

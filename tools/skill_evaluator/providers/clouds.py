"""Clouds that serve a vendor's models (`place:` in models.yaml), through the vendor's own client for the cloud.

A cloud without a variable for its key uses the login of the machine or job, which the SDK finds by itself.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model
from skill_evaluator.text import listed

Options = dict[str, Any]  # options of an SDK's client: the transport, no retries, no time limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A vendor's models in one cloud."""

    needs: tuple[str, ...]  # keys of the model in models.yaml
    client: Callable[[Model, str | None, Options], Any]
    variables: tuple[str, ...] = ()  # possible variables of the key
    signs: bool = False  # the client signs the body, so files cannot be inserted later


def _azure(model: Model, key: str | None, options: Options) -> Any:
    from openai import AsyncAzureOpenAI

    return AsyncAzureOpenAI(
        azure_endpoint=str(model.base_url), api_version=model.api_version, api_key=key or "no-key", **options
    )


def _openai_on_bedrock(model: Model, key: str | None, options: Options) -> Any:
    from openai import AsyncBedrockOpenAI

    return AsyncBedrockOpenAI(**_bedrock(model, key, "AWS_BEDROCK_BASE_URL"), **options)


def _anthropic_on_bedrock(model: Model, key: str | None, options: Options) -> Any:
    from anthropic import AsyncAnthropicBedrock

    return AsyncAnthropicBedrock(**_bedrock(model, key, "ANTHROPIC_BEDROCK_BASE_URL"), **options)


def _anthropic_on_vertex(model: Model, key: str | None, options: Options) -> Any:
    from anthropic import AsyncAnthropicVertex

    url = _address(model, "ANTHROPIC_VERTEX_BASE_URL")
    region = model.region or "global"
    return AsyncAnthropicVertex(project_id=str(model.project), region=region, base_url=url, **options)


def _foundry(model: Model, key: str | None, options: Options) -> Any:
    from anthropic import AsyncAnthropicFoundry

    return AsyncAnthropicFoundry(base_url=str(model.base_url), api_key=key or "no-key", **options)


def _google_on_vertex(model: Model, key: str | None, options: Options) -> Any:
    from google.genai import Client

    _address(model, "GOOGLE_VERTEX_BASE_URL")
    return Client(vertexai=True, project=model.project, location=model.region or "global", **options)


CLOUDS: Mapping[tuple[str, str], Cloud] = {  # keys: provider, place
    ("openai", "azure"): Cloud(needs=("base_url", "api_version"), variables=("AZURE_OPENAI_API_KEY",), client=_azure),
    ("openai", "bedrock"): Cloud(needs=("region",), client=_openai_on_bedrock, signs=True),
    ("anthropic", "bedrock"): Cloud(needs=("region",), client=_anthropic_on_bedrock, signs=True),
    ("anthropic", "vertex"): Cloud(needs=("project",), client=_anthropic_on_vertex),
    ("anthropic", "foundry"): Cloud(needs=("base_url",), variables=("ANTHROPIC_FOUNDRY_API_KEY",), client=_foundry),
    ("google", "vertex"): Cloud(needs=("project",), client=_google_on_vertex),
}


def check_cloud(model: Model, where: str) -> None:
    """Raise ConfigError if `place` is not possible for the provider, or if a key that it needs is missing or unused."""
    cloud = cloud_of(model)
    if model.place is not None and cloud is None:
        clouds = [name for provider, name in CLOUDS if provider == model.provider]
        available = f"is only available in {listed(clouds)}" if clouds else "is in no cloud; remove place"
        raise ConfigError(f"place: {model.place} at {where}: provider '{model.provider}' {available}")
    needs = cloud.needs if cloud else ()
    for name in ("base_url", "api_version", "region", "project"):
        is_set = getattr(model, name) is not None
        if name in needs and not is_set:
            raise ConfigError(f"place: {model.place} at {where} requires {name}")
        is_optional = name == "base_url" or (name == "region" and model.place == "vertex")
        if is_set and name not in needs and not is_optional:
            raise ConfigError(f"{name} at {where}: {model.place or 'a model without place'} does not use it")
    if model.place is not None and model.auth == "oidc":
        raise ConfigError(f"auth: oidc at {where}: place: {model.place} uses the login of the cloud; remove auth")


def cloud_of(model: Model) -> Cloud | None:
    """Return the cloud of a model's `place`, or None if the model has none."""
    return CLOUDS.get((model.provider, str(model.place)))


def _address(model: Model, variable: str) -> str | None:
    if model.base_url is None and os.environ.get(variable):
        raise ConfigError(f"{variable} is set: unset it, or set base_url of model '{model.id}' in models.yaml")
    return model.base_url


def _bedrock(model: Model, key: str | None, variable: str) -> Options:
    if key is None and find_spec("boto3") is None:
        raise ConfigError("place: bedrock signs with boto3: pip install 'skill-evaluator[bedrock]'")
    return {"aws_region": model.region, "api_key": key, "base_url": _address(model, variable)}

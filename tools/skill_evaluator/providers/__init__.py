"""The providers by their names in models.yaml, and their keys.

Other packages add providers through the entry-point group `skill_evaluator.providers`, whose objects are of type
`ProviderKind`.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from skill_evaluator import plugins
from skill_evaluator.display import Redactor, add_key_variables
from skill_evaluator.errors import ConfigError, SkillEvaluatorError
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model, Settings, load_models, load_settings
from skill_evaluator.providers import anthropic, google, local, openai, program, replay
from skill_evaluator.providers.access import (
    CLOUDS,
    REQUEST_TOKEN,
    check_cloud,
    cloud_of,
    identifiers_of,
    needs_token,
    passwords_of,
)
from skill_evaluator.providers.base import Provider, ProviderKind
from skill_evaluator.providers.batch import MAX_RESULT_BYTES, BatchApi, Batches
from skill_evaluator.providers.remote import RemoteProvider
from skill_evaluator.text import nearest

PROVIDERS: Mapping[str, ProviderKind] = {
    "anthropic": anthropic.KIND,
    "openai": openai.KIND,
    "google": google.KIND,
    "local": local.KIND,
    "replay": replay.KIND,
    "program": program.KIND,
}
BATCHES: Mapping[str, BatchApi] = {"anthropic": anthropic.BATCHES, "openai": openai.BATCHES, "google": google.BATCHES}
Kinds = Mapping[str, ProviderKind]
Keys = Mapping[str, str]
_GROUP = "skill_evaluator.providers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The contents of settings.yaml and models.yaml, with the providers and keys of the models."""

    settings: Settings
    models: tuple[Model, ...]
    kinds: Kinds  # providers by name
    keys: Keys = field(repr=False)  # the keys that are set, by environment variable

    def open(self, model: Model) -> Provider:
        """Open the provider of a model. Raise SkillEvaluatorError if that fails."""
        kind = self.kinds[model.provider]
        key = find_key(model, kind, self.keys)
        try:
            return kind.open(model, key, self.settings)
        except SkillEvaluatorError:
            raise
        except (Exception, SystemExit) as problem:
            message = f"provider '{model.provider}' of model '{model.id}' cannot be opened: {problem!r}"
            raise ConfigError(message) from None

    def open_batches(self, model: Model) -> Batches:
        """Open the batch API of a model's provider. Raise SkillEvaluatorError if that fails."""
        limits = self.settings.limits.model_copy(update={"response_bytes": MAX_RESULT_BYTES})
        provider = replace(self, settings=self.settings.model_copy(update={"limits": limits})).open(model)
        if not isinstance(provider, RemoteProvider):
            raise TypeError("batches require an HTTP provider")
        return Batches(BATCHES[model.provider], provider)

    def redactor(self) -> Redactor:
        """Build a redactor that removes the keys, and the passwords in the `base_url` of models."""
        passwords = (secret for model in self.models for secret in passwords_of(model.base_url or ""))
        return Redactor([*self.keys.values(), *passwords])


def read_configuration(folder: Path) -> Configuration:
    """Read settings.yaml, models.yaml and the keys in the environment. Raise ConfigError for an invalid file."""
    settings = load_settings(folder)
    models = load_models(folder, settings.limits)
    kinds = kinds_of(models, str(folder / "models.yaml"))
    ids = [model.id for model in models]
    for name, policy in settings.policy.components.items():
        if policy.judge is not None and policy.judge not in ids:
            where = f"{folder / 'settings.yaml'}: policy.components.{name}.judge"
            raise ConfigError(f"{where}: no model '{policy.judge}' in models.yaml {nearest(policy.judge, ids)}")
    return Configuration(settings=settings, models=models, kinds=kinds, keys=read_keys(models, kinds))


def with_program(configuration: Configuration, component: Component) -> Configuration:
    """Return the configuration for a component. If the component has a program, the program replaces the models."""
    if component.program is None:
        return configuration
    values = program.values_of(component.program.variables, configuration.keys, os.environ)
    settings = configuration.settings
    timeout_s = component.program.timeout_s or settings.timeout_s
    timeout_s += program.MARGIN_S if component.program.run else 0.0
    return replace(
        configuration,
        settings=settings.model_copy(update={"timeout_s": timeout_s}),
        models=(program.MODEL.model_copy(update={"price": component.program.price}),),
        kinds={**configuration.kinds, "program": program.kind_of(component.program, component.files.folder, values)},
        keys={name: key for name, key in configuration.keys.items() if name != program.VARIABLES} | values,
    )


def kinds_of(models: Iterable[Model], where: str) -> dict[str, ProviderKind]:
    """Return the provider kinds of the models by provider name. A built-in provider wins over a plugin of that name.

    Raise ConfigError for an unknown provider or a setting that the provider does not support. `where` is the file.
    """
    kinds: dict[str, ProviderKind] = {}
    for index, model in enumerate(models):
        kind = kinds.get(model.provider) or PROVIDERS.get(model.provider)
        kind = kind or plugins.load(_GROUP, model.provider, ProviderKind)
        if kind is None:
            names = PROVIDERS.keys() | set(plugins.names(_GROUP))
            raise ConfigError(
                f"unknown provider '{model.provider}' at models[{index}].provider in {where} "
                f"{nearest(model.provider, names)}"
            )
        if model.auth == "oidc" and (kind.federation is None or model.api_key_env):
            no_tokens = f"provider '{model.provider}' has no identity tokens; remove `auth`"
            reason = "`api_key_env` names a key; remove one of the two" if kind.federation else no_tokens
            raise ConfigError(f"auth: oidc at models[{index}].auth in {where}: {reason}")
        if model.accepts and kind.accepts is None:
            raise ConfigError(f"models[{index}].accepts in {where}: provider '{model.provider}' accepts only text")
        check_cloud(model, f"models[{index}] in {where}")
        if kind.check is not None:
            kind.check(model)
        kinds[model.provider] = kind
    return kinds


def key_variables(model: Model, kind: ProviderKind) -> tuple[str, ...]:
    """Return the environment variables that may hold a model's key; empty if it needs no key."""
    if model.auth == "oidc":  # the key requests the identity tokens of the job
        return (REQUEST_TOKEN,) if needs_token(kind) else ()
    if model.api_key_env:
        return (model.api_key_env,)
    if (cloud := cloud_of(model)) is not None:
        return cloud.variables
    if model.provider == "openai" and model.base_url:
        return ()
    return kind.key_variables


def read_keys(models: Iterable[Model], kinds: Kinds) -> Keys:
    """Return the keys in the environment by variable. Child processes do not inherit these variables."""
    variables = {name for kind in (*PROVIDERS.values(), *kinds.values()) for name in kind.key_variables}
    variables |= {model.api_key_env for model in models if model.api_key_env} | {REQUEST_TOKEN}
    variables |= {name for place in CLOUDS.values() for name in place.variables}
    add_key_variables(variables)
    return {variable: os.environ[variable] for variable in variables if variable in os.environ}


def find_key(model: Model, kind: ProviderKind, keys: Keys) -> str | None:
    """Return a model's key, or None if it is not set. Raise ConfigError if an HTTP header cannot carry it."""
    for variable in key_variables(model, kind):
        value = keys.get(variable, "").strip()
        if value and not (value.isascii() and value.isprintable()):
            raise ConfigError(
                f"{variable} has a control or non-ASCII character, such as a line break; set it to the key only"
            )
        if value:
            return value
    return None


def missing_variables(model: Model, kind: ProviderKind, keys: Keys) -> list[str]:
    """Return the variables that a model requires and that are not set. Alternatives are one entry, such as `A or B`."""
    variables = key_variables(model, kind)
    missing = [" or ".join(variables)] if variables and find_key(model, kind, keys) is None else []
    if model.auth == "oidc" and kind.federation is not None:
        missing += sorted(set(kind.federation.required) - identifiers_of(kind.federation).keys())
    return missing


def missing_key(model: Model, kind: ProviderKind, keys: Keys) -> str | None:
    """Return a message about required variables that are not set, or None if all are set."""
    missing = missing_variables(model, kind, keys)
    hint = " (a job of GitHub Actions has it with `id-token: write`)" if REQUEST_TOKEN in missing else ""
    return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set{hint}" if missing else None


def key_note(model: Model, kind: ProviderKind, keys: Keys) -> str:
    """Return "set", "not needed", or the names of the missing variables and "not set"."""
    missing = missing_variables(model, kind, keys)
    return f"{' and '.join(missing)} not set" if missing else "set" if key_variables(model, kind) else "not needed"


def batch_refusal(model: Model) -> str | None:
    """Return the reason why a model cannot be called in batches, or None if it can."""
    if model.provider not in BATCHES:
        return f"provider '{model.provider}' has no batch API (only {', '.join(BATCHES)} have one); exclude the model"
    if model.place is not None:
        return f"place: {model.place} reads batches from its own storage; use the vendor's own API"
    if model.provider == "google" and model.auth == "oidc":
        return "Vertex AI reads batches from storage; use the Gemini API with a key"
    return None


def refuse_unbatched(models: Iterable[Model]) -> None:
    """Raise ConfigError if one of the models cannot be called in batches."""
    for model in models:
        if reason := batch_refusal(model):
            raise ConfigError(f"--batch cannot call '{model.id}': {reason}")

"""The providers, one line each: a name in models.yaml → how it is opened, what it can be told, where its key is.

Nothing here imports a vendor's SDK; opening a provider does. A package may add one through the entry-point group
`skill_evaluator.providers` (an object of type `ProviderKind`).
"""

from collections.abc import Iterable, Mapping

from skill_evaluator import plugins
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model
from skill_evaluator.providers import anthropic, google, local, openai, replay
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.providers.secrets import read_key
from skill_evaluator.text import nearest

_GROUP = "skill_evaluator.providers"
Kinds = Mapping[str, ProviderKind]

PROVIDERS: Mapping[str, ProviderKind] = {
    "anthropic": ProviderKind(
        open=anthropic.open_provider, sampling=anthropic.sampling, key_variables=("ANTHROPIC_API_KEY",)
    ),
    "openai": ProviderKind(open=openai.open_provider, sampling=openai.sampling, key_variables=("OPENAI_API_KEY",)),
    "google": ProviderKind(
        open=google.open_provider,
        sampling=google.sampling,
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    "local": ProviderKind(
        open=local.open_provider, sampling=local.sampling, free=True, one_at_a_time=True, check=local.check
    ),
    "replay": ProviderKind(open=replay.open_provider, sampling=replay.sampling, free=True, check=replay.check),
}


def kinds_of(models: Iterable[Model], where: str) -> dict[str, ProviderKind]:
    """The providers of some models, by name, shipped or from installed packages (a shipped name wins).

    Raises ConfigError for one that nobody knows, or an entry that its provider cannot serve.
    """
    kinds: dict[str, ProviderKind] = {}
    for index, model in enumerate(models):
        kind = kinds.get(model.provider) or PROVIDERS.get(model.provider) or plugins.load(_GROUP, model.provider)
        if kind is None:
            known = PROVIDERS.keys() | set(plugins.names(_GROUP))
            raise ConfigError(
                f"unknown provider '{model.provider}' at models[{index}].provider in {where} "
                f"{nearest(model.provider, known)}"
            )
        if kind.check is not None:
            kind.check(model)
        kinds[model.provider] = kind
    return kinds


def key_variables(model: Model, kind: ProviderKind) -> tuple[str, ...]:
    """The environment variables that may hold this model's key; none when it needs none."""
    if model.api_key_env:
        return (model.api_key_env,)
    if model.provider == "openai" and model.base_url:
        return ()
    return kind.key_variables


def find_key(model: Model, kind: ProviderKind) -> str | None:
    """This model's key from the environment, or None."""
    return read_key(key_variables(model, kind))


def key_note(model: Model, kind: ProviderKind) -> str:
    """Whether this model's key is in the environment, in words."""
    variables = key_variables(model, kind)
    return "not needed" if not variables else "set" if find_key(model, kind) else f"{' or '.join(variables)} not set"

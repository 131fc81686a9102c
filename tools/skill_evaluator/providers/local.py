"""A small real model in this process (SmolLM2-135M-Instruct through xllamacpp): no key, no network, no cost."""

from typing import Any

from skill_evaluator.config import Model
from skill_evaluator.errors import ConfigError
from skill_evaluator.providers.base import Provider, Sampling

_OWN_PARAMS = {"threads": 2, "context_tokens": 8192, "weights": None}


def sampling(model: Model) -> Sampling:
    """Temperature 0 unless profile or params say otherwise, a seed, a fixed thread count: all are honoured."""
    sent: dict[str, Any] = {"seed": "per replicate"}
    if model.profile == "deterministic":
        sent["temperature"] = 0.0
    for name, value in (("temperature", model.params.temperature), ("top_p", model.params.top_p)):
        if value is not None:
            sent[name] = value
    return Sampling(sent={**sent, "threads": _own(model)["threads"], "prompt_cache": False})


def check(model: Model) -> None:
    """Refuse params that the local engine does not have."""
    unknown = sorted(set(model.params.extra) - set(_OWN_PARAMS))
    if unknown:
        raise ConfigError(
            f"unknown param '{unknown[0]}' of local model '{model.id}' in models.yaml "
            f"(known: {', '.join(_OWN_PARAMS)}, max_output_tokens, temperature, top_p)"
        )


def _own(model: Model) -> dict[str, Any]:
    return {**_OWN_PARAMS, **model.params.extra}


def open_provider(model: Model, key: str | None, timeout_s: float) -> Provider:
    """Load the weights into this process; raises ConfigError when engine or weights are not to be had."""
    from skill_evaluator.providers.local_engine import LocalProvider

    sent = sampling(model).sent
    return LocalProvider(
        sampling={name: sent[name] for name in ("temperature", "top_p") if name in sent},
        structured_output=model.structured_output,
        **_own(model),
    )

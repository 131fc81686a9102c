"""A small real model in this process (SmolLM2-135M-Instruct through xllamacpp): no key, no network, no cost.

One slot, no prompt cache and a fixed number of threads: with any of these otherwise, equal requests give different
answers. So calls run one at a time.
"""

import asyncio
from pathlib import Path
from typing import Any

from skill_evaluator.config import Model
from skill_evaluator.errors import ConfigError
from skill_evaluator.providers.base import (
    Completion,
    Provider,
    ProviderError,
    Request,
    Sampling,
    StopReason,
    Usage,
    error_from_status,
)
from skill_evaluator.providers.weights import smollm2_weights

_OWN_PARAMS = {"threads": 2, "context_tokens": 8192, "weights": None}
_STOP: dict[str, StopReason] = {"stop": "stop", "length": "length"}


def sampling(model: Model) -> Sampling:
    """Temperature (0 unless the model's params say otherwise), a seed and a fixed thread count: all are honoured."""
    sent: dict[str, Any] = {"seed": "per replicate", "temperature": model.params.temperature or 0.0}
    if model.params.top_p is not None:
        sent["top_p"] = model.params.top_p
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


class LocalProvider:
    """One loaded model. `complete` runs in a worker thread; the engine lets go of the interpreter meanwhile."""

    def __init__(self, model: Model) -> None:
        self._model = model
        own = _own(model)
        self._weights = Path(own["weights"]) if own["weights"] else smollm2_weights()
        self._engine = _load(self._weights, threads=own["threads"], context_tokens=own["context_tokens"])
        self._fixed = {name: value for name, value in sampling(model).sent.items() if name in ("temperature", "top_p")}

    async def complete(self, request: Request) -> Completion:
        """Ask once; raises ProviderError (a prompt over the context length is a bad_request)."""
        answer = await asyncio.to_thread(self._engine.handle_chat_completions, self._body(request))
        if "error" in answer:
            problem = answer["error"]
            raise error_from_status(int(problem.get("code", 500)), {}, str(problem.get("message", problem)))
        try:
            choice = answer["choices"][0]
            return Completion(
                text=choice["message"]["content"] or "",
                stop_reason=_STOP.get(choice["finish_reason"], "other"),
                usage=Usage(
                    input_tokens=answer["usage"]["prompt_tokens"], output_tokens=answer["usage"]["completion_tokens"]
                ),
                served_model=self._weights.name,
                request_id=answer.get("id"),
            )
        except (LookupError, TypeError) as problem:
            raise ProviderError("malformed_body", f"unexpected answer of the local engine: {problem!r}") from None

    async def close(self) -> None:
        """Drop the engine; its memory is freed with it."""
        del self._engine

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            **self._fixed,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.user},
            ],
            "max_tokens": request.max_output_tokens,
            "seed": request.seed,
            "cache_prompt": False,
        }
        if request.schema is not None and self._model.structured_output == "json_schema":
            schema = {"name": request.schema_name, "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.schema is not None and self._model.structured_output == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body


def open_provider(model: Model, key: str | None, timeout_s: float) -> Provider:
    """Load the weights into this process; raises ConfigError when the engine is not installed."""
    return LocalProvider(model)


def _load(weights: Path, *, threads: int, context_tokens: int) -> Any:
    try:
        import xllamacpp
    except ImportError:
        raise ConfigError("the local model needs its engine: pip install 'skill-evaluator[local]'") from None
    if not weights.is_file():
        raise ConfigError(f"weights of the local model not found: {weights}")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.cache_prompt = False
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.ui = False
    params.warmup = False
    params.verbosity = 0
    return xllamacpp.Server(params)

"""The local model's engine in this process, and the weights it runs on. Imported only when a local model is opened.

One slot, no prompt cache and a fixed number of threads: with any of these otherwise, equal requests give different
answers. So calls run one at a time.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skill_evaluator.errors import ConfigError
from skill_evaluator.providers.base import (
    Completion,
    ProviderError,
    Request,
    StopReason,
    Usage,
    error_from_status,
)
from skill_evaluator.providers.weights import smollm2_weights

_STOP: Mapping[str, StopReason] = {"stop": "stop", "length": "length"}


class LocalProvider:
    """One loaded model. `complete` runs in a worker thread; the engine lets go of the interpreter meanwhile."""

    def __init__(
        self,
        *,
        sampling: Mapping[str, Any],
        structured_output: str,
        weights: str | None,
        threads: int,
        context_tokens: int,
    ) -> None:
        self._weights = Path(weights) if weights else smollm2_weights()
        self._engine = _load(self._weights, threads=threads, context_tokens=context_tokens)
        self._sampling = sampling
        self._structured = structured_output

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
            **self._sampling,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.user},
            ],
            "max_tokens": request.max_output_tokens,
            "seed": request.seed,
            "cache_prompt": False,
        }
        if request.schema is not None and self._structured == "json_schema":
            schema = {"name": request.schema_name, "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.schema is not None and self._structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body


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
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.cpuparams.poll = params.cpuparams_batch.poll = 0  # waiting threads sleep: others may need the cores
    params.ui = False
    params.warmup = False
    params.verbosity = 0
    return xllamacpp.Server(params)

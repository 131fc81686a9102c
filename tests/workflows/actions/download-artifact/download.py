"""Copies artifacts as actions/download-artifact brings them; a pattern that matches none is no error."""

import os
import re
import shutil
import sys
from fnmatch import fnmatchcase
from pathlib import Path

STORE, TO = Path(os.environ["STAND_IN_ARTIFACTS"]), Path(os.environ["TO"])
NAME, PATTERN, MERGE = (os.environ[name] for name in ("NAME", "PATTERN", "MERGE"))


def alternatives(pattern: str) -> list[str]:
    """`{a,b}*` → `a*` and `b*`."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        return [pattern]
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    return [one for part in braces[1].split(",") for one in alternatives(before + part + after)]


if NAME and not (STORE / NAME).is_dir():
    sys.exit(f"there is no artifact {NAME}")
for artifact in sorted(STORE.iterdir()):
    if artifact.name == NAME or (not NAME and any(fnmatchcase(artifact.name, one) for one in alternatives(PATTERN))):
        print(f"bringing {artifact.name}")
        shutil.copytree(artifact, TO if NAME or MERGE == "true" else TO / artifact.name, dirs_exist_ok=True)

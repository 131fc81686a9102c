"""What the workflows of another repository install: this very evaluator, from a git repository at a commit.

It is never named without an address. No release is on a package index, so anybody could take the name there.
"""

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from skill_evaluator.errors import GitError
from skill_evaluator.repository import Repository

_PACKAGE = "skill-evaluator[charts,github,hub,local]"
_OVER_SSH = re.compile(r"(?:ssh://)?(?:[\w.-]+@)?([\w.-]+)[:/]([^/].*)")
_FILL_IN = f"FILL IN the address and a full commit of this evaluator: {_PACKAGE} @ git+https://HOST/OWNER/skill-evaluator@COMMIT"


def requirement() -> str:
    """Return the lines of a requirements file that install this evaluator at its commit.

    Where its address is not known, the line is no requirement: pip stops at it and shows what to fill in.
    """
    try:
        source: Any = json.loads(metadata.distribution("skill-evaluator").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        source = {}
    if "vcs_info" in source:
        return f"{_PACKAGE} @ {source['vcs_info']['vcs']}+{source['url']}@{source['vcs_info']['commit_id']}"
    if "dir_info" in source:
        return requirement_of(Path(url2pathname(urlsplit(source["url"]).path)))
    return requirement_of(Path(__file__).parents[3])  # where this is in a checkout that was not installed


def requirement_of(checkout: Path) -> str:
    """Return the lines that install what a checkout of this project has committed, from where it came from."""
    try:
        repository = Repository(checkout)
        commit, origin = repository.commit("HEAD"), repository.address("origin")
    except GitError:
        return _FILL_IN
    if repository.root.resolve() != checkout.resolve() or commit is None or origin is None:
        return _FILL_IN
    over_ssh = None if origin.startswith(("https://", "http://")) else _OVER_SSH.fullmatch(origin)
    address = f"https://{over_ssh[1]}/{over_ssh[2]}" if over_ssh else origin
    if not address.startswith(("https://", "http://")):
        return _FILL_IN  # a path of this machine
    notes = ["# The commit of the checkout that laid this out: it must be pushed before the workflows can install it."]
    if not repository.is_clean:
        notes.append("# The checkout also had changes that are not committed, and so not installed.")
    return "\n".join([*notes, f"{_PACKAGE} @ git+{address}@{commit}"])

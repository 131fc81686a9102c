"""How a repository is set up on GitHub, as far as `gh` may look: names of secrets, environments, the branch, settings.

Its own module because jobs need none of it: a person asks, with a login that may see more than a job's token.
"""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skill_evaluator.ci.platforms.github import gh, last_line, name_of_repository
from skill_evaluator.errors import ConfigError

KEY = "PROVIDER_API_KEY"
SITE = "SKILL_EVALUATOR_SITE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One environment; `has_key` is None where `gh` may not list its secrets, `limited` says if for some branches."""

    has_key: bool | None
    limited: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A repository's set-up. What is None, or missing among `environments`, `unseen` says in a line each and why.

    `secrets` and `variables` are the names of the repository's own and of those that its organisation shares with it;
    `is_protected` is of its default branch; `may_open` whether a job may open pull requests; `has_public_fixtures` of
    another repository that was asked about. `site` is the variable that says where the site goes, empty without one;
    `pages` is what GitHub Pages takes its site from, empty where it is off.
    """

    repository: str
    branch: str
    mode: str
    environments: Mapping[str, Environment] | None
    secrets: frozenset[str] | None
    variables: frozenset[str] | None
    is_protected: bool | None
    may_open: bool | None
    has_public_fixtures: bool | None
    site: str | None
    pages: str | None
    unseen: tuple[str, ...]


def read_setup(folder: Path, wanted: Iterable[str], fixtures: str | None, *, keyless: bool) -> Setup:
    """Ask how the repository that a folder is in is set up; `wanted` are the environments whose secrets matter.

    Variables are asked for only where a model is `keyless`.
    Raise ConfigError where `gh` is missing, not logged in, or does not know the repository.
    """
    name = os.environ.get("GITHUB_REPOSITORY") or name_of_repository(folder)
    look = _Look()
    about = look.at(f"repos/{name}")
    if about is None:
        raise ConfigError(f"it could not be asked for {look.unseen[0]}")
    branch = str(about.get("default_branch") or "main")
    listed = look.at(f"repos/{name}/environments?per_page=100")
    environments = None
    if listed is not None:
        there = {each["name"]: each for each in listed.get("environments", ())}
        environments = {}
        for environment in sorted(there.keys() & set(wanted)):
            secrets = look.names(f"repos/{name}/environments/{environment}/secrets")
            limited = there[environment].get("deployment_branch_policy") is not None
            environments[environment] = Environment(
                has_key=None if secrets is None else KEY in secrets, limited=limited
            )
    mode = look.at(f"repos/{name}/actions/variables/SKILL_EVALUATOR_PUBLISH", may_lack=True) or {}
    site = look.at(f"repos/{name}/actions/variables/{SITE}", may_lack=True)
    pages = look.at(f"repos/{name}/pages", may_lack=True) if site else None
    protected = look.at(f"repos/{name}/branches/{branch}")
    workflow = look.at(f"repos/{name}/actions/permissions/workflow")
    public = None if fixtures is None else look.at(f"repos/{fixtures}")
    return Setup(
        repository=name,
        branch=branch,
        mode=mode.get("value", "push"),
        environments=environments,
        secrets=look.shared_names(f"repos/{name}/actions", "secrets"),
        variables=look.shared_names(f"repos/{name}/actions", "variables") if keyless else None,
        is_protected=None if protected is None else bool(protected.get("protected")),
        may_open=None if workflow is None else bool(workflow.get("can_approve_pull_request_reviews")),
        has_public_fixtures=None if public is None else public.get("private") is False,
        site=None if site is None else site.get("value", ""),
        pages=None if pages is None else pages.get("build_type") or "",
        unseen=tuple(look.unseen),
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """Asks GitHub's API, and keeps in mind what it may not see."""

    unseen: list[str] = field(default_factory=list)

    def at(self, path: str, *, may_lack: bool = False) -> Mapping[str, Any] | None:
        """Return the object at a path; None where it may not be seen, an empty one where there may be none and is.

        GitHub says 404 also of what a login may not see.
        """
        done = gh("api", path)
        if may_lack and done.returncode and "HTTP 404" in done.stderr:
            return {}
        with suppress(ValueError):
            value = json.loads(done.stdout)
            if not done.returncode and isinstance(value, dict):
                return value
        self.unseen.append(f"{path.partition('?')[0]}: {last_line(done.stderr) or 'no answer'}")
        return None

    def names(self, path: str, *, may_lack: bool = False) -> frozenset[str] | None:
        """Return the names of the secrets or variables at a path."""
        most = 30 if path.endswith("variables") else 100  # more is refused
        listed = self.at(f"{path}?per_page={most}", may_lack=may_lack)
        kind = path.rpartition("/")[2].removeprefix("organization-")
        return None if listed is None else frozenset(each["name"] for each in listed.get(kind, ()))

    def shared_names(self, path: str, kind: str) -> frozenset[str] | None:
        """Return the names of a repository's own and of its organisation's, which a person's repository has not."""
        own, shared = self.names(f"{path}/{kind}"), self.names(f"{path}/organization-{kind}", may_lack=True)
        return None if own is None else own | (shared or frozenset())

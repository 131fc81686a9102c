"""A component as it was asked at an earlier version: today's, with the prompt of then, read from git.

What a record says of its prompt (version, digest, commit) in, the component and the commit out. The schema must still
be the one of then; comparisons and cases are today's, for the answers are scored today.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import semver

from skill_evaluator.errors import ComponentError, GitError
from skill_evaluator.files import parse_json
from skill_evaluator.library.components import Component, check_semver, parse_prompt
from skill_evaluator.parsing import Output
from skill_evaluator.repository import Repository, within
from skill_evaluator.text import canonical_json, digest

_CHANGED = "-dirty"  # after a commit: the prompt had been changed since


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPrompt:
    """What a record says of the prompt that it measured; `commit` is None where it was in no commit."""

    version: str
    digest: str
    schema: str | None
    commit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedPrompt:
    """A prompt.md at a commit."""

    commit: str
    version: str
    output: Output | None
    prompt: str


def component_with(component: Component, past: PastPrompt) -> tuple[Component, str | None]:
    """Return a component (without a scenario) with the prompt of then, and the commit that holds it.

    The commit is None where the prompt of today is the same text and the record names no commit. Raise ComponentError
    for another schema, or for a prompt that is in no commit here; GitError where there is no git repository.
    """
    if past.schema != component.digests["schema"]:
        raise _other_schema(component, past.version)
    if past.digest == component.digests["prompt"]:
        return replace(component, version=past.version), past.commit
    committed = find_prompt(component, past)
    return _put_into(component, replace(committed, version=past.version)), committed.commit


def find_prompt(component: Component, past: PastPrompt) -> CommittedPrompt:
    """Find the prompt of then in the history of its file, by its digest; of several commits one with its version.

    Raise ComponentError where it is in no commit here, and GitError where there is no git repository.
    """
    name = f"'{component.name}' {past.version}"
    try:
        repository = Repository(component.folder)
    except GitError as problem:
        raise GitError(f"the prompt of {name} must be read from git: {problem}") from None
    path = within(repository.place(component.folder), "prompt.md")
    named = (past.commit or "").removesuffix(_CHANGED)
    commits = [commit for commit in (repository.commit(named), *repository.commits_of(path)) if commit is not None]
    same = [one for one in _prompts_at(repository, commits, path) if digest(one.prompt) == past.digest]
    if same:
        return next((one for one in same if one.version == past.version), same[0])
    missing = named and repository.commit(named) is None
    where = (
        f"its record names commit {named[:12]}, which is not here" if missing else "it may never have been committed"
    )
    advice = "run `git fetch --unshallow`" if repository.is_shallow else "fetch the branch that holds it"
    raise ComponentError(f"the prompt of {name} is in no commit of {path} here ({where}); {advice}")


def component_at(component: Component, ref: str) -> tuple[Component, str]:
    """Return a component (without a scenario) with the prompt and the lower version of a commit, and that commit.

    Raise ComponentError for a commit that is not here, has no such prompt or no lower version, or for another schema.
    """
    repository = Repository(component.folder)
    folder = repository.place(component.folder)
    commit = repository.commit(ref)
    if commit is None:
        advice = "; run `git fetch --unshallow`" if repository.is_shallow else ""
        raise ComponentError(f"commit '{ref}' of the baseline is not here{advice}")
    committed = next(_prompts_at(repository, [commit], within(folder, "prompt.md")), None)
    if committed is None:
        raise ComponentError(f"{within(folder, 'prompt.md')} cannot be read at commit {commit[:12]}")
    version = check_semver(committed.version, Path(f"{commit[:12]}:{folder}/prompt.md"))
    if semver.Version.parse(version) >= semver.Version.parse(component.version):
        raise ComponentError(
            f"'{component.name}' is {version} at commit {commit[:12]}, which is not below {component.version} and so "
            "no baseline of it; name a commit before the version was raised"
        )
    blob = repository.files(commit, folder).get(within(folder, "schema.json"))
    text = "null" if blob is None else repository.contents([blob])[blob].decode("utf-8-sig", "replace")
    schema = parse_json(text, Path(f"{commit[:12]}:{folder}/schema.json"), ComponentError)
    if digest(canonical_json(schema)) != component.digests["schema"]:
        raise _other_schema(component, committed.version)
    return _put_into(component, committed), commit


def _put_into(component: Component, committed: CommittedPrompt) -> Component:
    if committed.output not in (None, component.output):
        raise ComponentError(
            f"'{component.name}' {committed.version} had output: {committed.output}, and now it is {component.output}"
        )
    digests = {**component.digests, "prompt": digest(committed.prompt)}
    return replace(component, version=committed.version, prompt=committed.prompt, digests=digests)


def _other_schema(component: Component, version: str) -> ComponentError:
    return ComponentError(
        f"'{component.name}' {version} had another schema than {component.folder / 'schema.json'} has now: the two "
        "cannot be compared, and asking both would not change that"
    )


def _prompts_at(repository: Repository, commits: Iterable[str], path: str) -> Iterator[CommittedPrompt]:
    """Yield the prompt at each commit at which the file can be read."""
    folder = path.rpartition("/")[0]
    for commit in dict.fromkeys(commits):
        blob = repository.files(commit, folder).get(path)
        if blob is None:
            continue
        text = repository.contents([blob])[blob].decode("utf-8-sig", "replace")
        try:
            front, prompt = parse_prompt(text, Path(path))
        except ComponentError:  # broken at that commit
            continue
        yield CommittedPrompt(commit=commit, version=front.version, output=front.output, prompt=prompt)

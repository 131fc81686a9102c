"""A component as it was asked at an earlier version: today's, with the prompt of then, read from git.

What a record says of its prompt (version, digest, commit) in, the component and the commit out. The schema must still
be the one of then; comparisons and cases are today's, for the answers are scored today.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.errors import ComponentError, GitError
from skill_evaluator.library.components import Component, parse_prompt
from skill_evaluator.repository import Repository, within
from skill_evaluator.text import digest

_CHANGED = "-dirty"  # after a commit: the prompt had been changed since


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPrompt:
    """What a record says of the prompt that it measured; `commit` is None where it was in no commit."""

    version: str
    digest: str
    schema: str | None
    commit: str | None


def component_with(component: Component, past: PastPrompt) -> tuple[Component, str | None]:
    """Return a component (without a scenario) with the prompt of then, and the commit that holds it.

    The commit is None where the prompt of today is the same text and the record names no commit. Raise ComponentError
    for another schema, or for a prompt that is in no commit here; GitError where there is no git repository.
    """
    name = f"'{component.name}' {past.version}"
    if past.schema != component.digests["schema"]:
        raise ComponentError(
            f"{name} had another schema than {component.folder / 'schema.json'} has now: the two cannot be compared, "
            "and asking both would not change that"
        )
    if past.digest == component.digests["prompt"]:
        return replace(component, version=past.version), past.commit
    try:
        repository = Repository(component.folder)
    except GitError as problem:
        raise GitError(f"the prompt of {name} must be read from git: {problem}") from None
    path = within(repository.place(component.folder), "prompt.md")
    named = (past.commit or "").removesuffix(_CHANGED)
    commits = [commit for commit in (repository.commit(named), *repository.commits_of(path)) if commit is not None]
    for commit, output, prompt in _prompts_at(repository, commits, path):
        if digest(prompt) == past.digest:
            if output != component.output:
                raise ComponentError(f"{name} had output: {output}, and now it is {component.output}")
            digests = {**component.digests, "prompt": past.digest}
            return replace(component, version=past.version, prompt=prompt, digests=digests), commit
    missing = named and repository.commit(named) is None
    where = (
        f"its record names commit {named[:12]}, which is not here" if missing else "it may never have been committed"
    )
    advice = "run `git fetch --unshallow`" if repository.is_shallow else "fetch the branch that holds it"
    raise ComponentError(f"the prompt of {name} is in no commit of {path} here ({where}); {advice}")


def _prompts_at(repository: Repository, commits: Iterable[str], path: str) -> Iterator[tuple[str, str, str]]:
    """Yield commit, kind of output and prompt, for each commit at which the file can be read."""
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
        yield commit, front.output, prompt

"""Versions of components: their order, the versioning rules, and earlier prompts in git."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, partial
from itertools import chain, product
from pathlib import Path
from typing import Protocol

import semver
from pydantic import NonNegativeInt

from skill_evaluator.errors import ComponentError, GitError
from skill_evaluator.files import FrozenModel, parse_json, read_bytes
from skill_evaluator.identifiers import NAME_RULE, is_component_name
from skill_evaluator.library.components import Component, ComponentFiles
from skill_evaluator.library.config import DEFAULT_LIMITS, DeclaredSource
from skill_evaluator.library.prompts import ProgramUnderTest, check_semver, parse_prompt
from skill_evaluator.library.sources import (
    SourceLocation,
    named_origins,
    numbered,
    prompt_file,
    recorded_in,
    source_of,
    sources_in,
)
from skill_evaluator.library.sources.tree import OWN, SourceComponent, commit_tree, written_own
from skill_evaluator.repository import Repository, within
from skill_evaluator.text import canonical_json, digest, is_generated, unix_lines

_PROMPT, _SCHEMA = "prompt.md", "schema.json"


class Bump(StrEnum):
    """The kind of change between two versions."""

    NEW = "new"
    MAJOR = "MAJOR"
    MINOR = "MINOR"
    PATCH = "PATCH"
    SAME = "unchanged"
    LOWERED = "lowered"


class Problem(FrozenModel):
    """A problem at a line (from 1) of a file of the repository."""

    file: str
    line: NonNegativeInt
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentVersion:
    """A component at a commit or on disk: the digests `prompt` and `schema`, or the `problem` if it is unreadable."""

    name: str
    folder: str
    file: str
    version: str | None = None
    line: int = 1
    problem: str | None = None
    prompt: str | None = None
    schema: str | None = None
    program: ProgramUnderTest | None = None
    formerly: tuple[str, ...] = ()


def bump(before: str | None, after: str) -> Bump:
    """Classify the step between two versions; `before` is None for a new component.

    >>> bump("1.4.2", "2.0.0"), bump("1.4.2", "1.5.0-rc.1"), bump("1.5.0-rc.1", "1.5.0")
    (<Bump.MAJOR: 'MAJOR'>, <Bump.MINOR: 'MINOR'>, <Bump.PATCH: 'PATCH'>)
    """
    if before is None:
        return Bump.NEW
    old, new = map(semver.Version.parse, (before, after))
    if new < old:
        return Bump.LOWERED
    # both were generated after the same version, for different prompts
    if new == old and is_generated(before) and is_generated(after):
        return Bump.SAME if before == after else Bump.MINOR
    if new.major > old.major:
        return Bump.MAJOR
    return Bump.MINOR if new.minor > old.minor else Bump.SAME if new == old else Bump.PATCH


def needs_evaluation(step: Bump) -> bool:
    """Return whether a version step requires an evaluation: NEW, MAJOR and MINOR do."""
    return step in (Bump.NEW, Bump.MAJOR, Bump.MINOR)


def breaks_contract(before: str, after: str) -> bool:
    """Return whether a version step allows a schema change: MAJOR, or MINOR before 1.0.0 (semver, item 4)."""
    step = bump(before, after)
    return step is Bump.MAJOR or (step is Bump.MINOR and semver.Version.parse(after).major == 0)


def read_versions(
    repository: Repository, commits: Sequence[str | None], folder: str
) -> list[dict[str, ComponentVersion]]:
    """Return the components in a folder by name, for each commit; the commit None has no components."""
    sources = sources_in(repository.root / folder)
    read = partial(_read_sources, sources=sources) if sources else _read_folder
    return [read(repository, commit, folder) if commit else {} for commit in commits]


def _read_folder(repository: Repository, commit: str, folder: str) -> dict[str, ComponentVersion]:
    blobs = repository.files(commit, folder)
    names = sorted({path[len(within(folder, "")) :].partition("/")[0] for path in blobs})
    prompts = {name: path for name in names if (path := within(folder, f"{name}/{_PROMPT}")) in blobs}
    schemas = {name: blobs.get(within(folder, f"{name}/{_SCHEMA}"), "") for name in prompts}
    texts = repository.contents(filter(None, [*map(blobs.__getitem__, prompts.values()), *schemas.values()]))
    all_files = cache(lambda: repository.files(commit, ""))  # only programs need them
    return {
        name: _version_of_prompt(
            within(folder, name),
            texts[blobs[path]],
            texts.get(schemas[name]),
            lambda program, home: program.watched(home, all_files()),
        )
        for name, path in prompts.items()
    }


def _read_sources(
    repository: Repository, commit: str, folder: str, sources: Sequence[DeclaredSource]
) -> dict[str, ComponentVersion]:
    home = (repository.root / folder).parent.parent
    roots = {home / source.root: repository.relative_path(home / source.root) for source in sources}
    trees = {root: commit_tree(repository, commit, place, DEFAULT_LIMITS) for root, place in roots.items()}
    files = {path: blob for path, blob in repository.files(commit, folder).items() if path.endswith(f"/{_SCHEMA}")}
    schemas = repository.contents(files.values())
    return {
        name: _version_of(
            within(folder, name),
            within(roots[origin.root], origin.key.partition("#")[0]),
            partial(origin.read, trees[origin.root]),
            schemas.get(files.get(within(folder, f"{name}/{_SCHEMA}"), "")),
            repository.root / folder / name / "leaderboard.json",
        )
        for name, origin in named_origins(sources, home, trees.__getitem__).items()
    }


def _version_of_prompt(
    folder: str,
    raw_prompt: bytes,
    raw_schema: bytes | None,
    watched: Callable[[ProgramUnderTest, str], Mapping[str, str]],
) -> ComponentVersion:
    """Return the component of a prompt.md. `watched` returns the files that its program watches, by path."""
    text = unix_lines(raw_prompt.decode("utf-8-sig", "replace"))
    name, file = folder.rpartition("/")[2], f"{folder}/{_PROMPT}"

    def load() -> SourceComponent:
        front, prompt = parse_prompt(text, Path(file))
        if not is_component_name(name):
            raise ComponentError(f"'{name}' cannot be a component's name ({NAME_RULE})")
        if front.program is not None:
            prompt = replace(prompt, program=front.program.digest(watched(front.program, folder)))
        return written_own(front, prompt, file)

    line = next((number for number, row in enumerate(text.splitlines(), 1) if row.startswith("version:")), 1)
    return replace(_version_of(folder, file, load, raw_schema, Path()), line=line)


def _version_of(
    folder: str, file: str, load: Callable[[], SourceComponent], raw_schema: bytes | None, board: Path
) -> ComponentVersion:
    """Return the component that `load` reads. If it declares no version, derive one from the leaderboard `board`."""
    version = ComponentVersion(name=folder.rpartition("/")[2], folder=folder, file=file)
    try:
        written = load()
        prompt, schema = written.prompt.digest, _schema_digest(raw_schema, written)
        version = replace(version, program=written.program, formerly=written.formerly, prompt=prompt, schema=schema)
        number = written.version or numbered({"prompt": prompt, "schema": schema}, recorded_in(board))
        return replace(version, version=check_semver(number, Path(file)))
    except ComponentError as problem:
        return replace(version, problem=str(problem))


def _schema_digest(raw: bytes | None, written: SourceComponent) -> str:
    """Return the digest of the JSON `raw`, or of its text if it is invalid. If `raw` is None, use `written.schema`."""
    if raw is None:
        return digest(canonical_json(written.schema))
    text = raw.decode("utf-8-sig", "replace")
    try:
        return digest(canonical_json(parse_json(text, Path(_SCHEMA), ComponentError)))
    except ComponentError:  # `lint` reports an invalid schema
        return digest(text)


def read_version(folder: Path, path: str) -> ComponentVersion | None:
    """Read a component; `path` is the path of `folder` in the repository. Return None if there is no component."""
    prompt, schema = folder / _PROMPT, folder / _SCHEMA
    raw_schema = read_bytes(schema, ComponentError) if schema.is_file() else None
    if origin := source_of(folder.parent, folder.name):
        file = prompt_file(folder.parent, folder.name, path)
        return _version_of(path, file, partial(origin.here, DEFAULT_LIMITS), raw_schema, folder / "leaderboard.json")
    if not prompt.is_file():
        return None
    raw_prompt = read_bytes(prompt, ComponentError)
    return _version_of_prompt(path, raw_prompt, raw_schema, lambda program, _: program.watched_here(folder))


def versioning_problems(before: ComponentVersion | None, after: ComponentVersion) -> Iterator[Problem]:
    """Yield a problem if the version is invalid, lowered or too low for the changes. Generated versions are exempt."""
    if after.version is None:
        yield _prompt_problem(after, after.problem or "no version")
        return
    if before is None or before.version is None:
        return
    old, new = before.version, after.version
    step = bump(old, new)
    if is_generated(new):
        return  # generated versions follow the digest, so they cannot break the rules
    if step is Bump.LOWERED:
        yield _prompt_problem(after, f"the version was lowered from {old} to {new}; a version only goes up")
    elif before.prompt != after.prompt and step is Bump.SAME:
        subject = "prompt" if after.program is None else "program, or a file that it watches,"
        yield _prompt_problem(after, f"the {subject} changed but the version did not; raise it above {old}")
    if before.schema != after.schema and step is not Bump.LOWERED and not breaks_contract(old, new):
        message = f"the schema changed: that is a new MAJOR version, and {old} → {new} is not"
        yield Problem(file=f"{after.folder}/{_SCHEMA}", line=1, message=message)


def _prompt_problem(version: ComponentVersion, message: str) -> Problem:
    return Problem(file=version.file, line=version.line, message=message)


def version_before(before: Mapping[str, ComponentVersion], after: ComponentVersion) -> ComponentVersion | None:
    """Return the component in `before` with the name or a former name of `after`, or None if it is new."""
    return next((before[name] for name in (after.name, *after.formerly) if name in before), None)


_DIRTY = "-dirty"  # suffix of a commit id if the prompt had uncommitted changes


class PromptRun(Protocol):
    """A run or its record."""

    skill_version: str
    digests: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedPrompt:
    """A component's prompt at a commit, with the version and the component's folder at that time."""

    commit: str
    folder: str
    version: str
    written: SourceComponent


def component_with(component: Component, earlier: PromptRun, prompt_commit: str | None) -> tuple[Component, str | None]:
    """Return the component with the prompt of an `earlier` run, and the commit of that prompt.

    `prompt_commit` is the run's commit of the prompt, if known. If the prompt is unchanged, return
    `prompt_commit` itself, which may end in `-dirty`. Raise ComponentError if the schema, the output type or a program
    has changed, or if no commit has the prompt. Raise GitError if git fails.
    """
    if earlier.digests.get("schema") != component.digests["schema"]:
        raise _schema_error(component, earlier.skill_version)
    if earlier.digests["prompt"] == component.digests["prompt"]:
        return replace(component, version=earlier.skill_version), prompt_commit
    committed = find_prompt(component, earlier, prompt_commit)
    return _with_committed(component, replace(committed, version=earlier.skill_version)), committed.commit


def find_prompt(component: Component, earlier: PromptRun, prompt_commit: str | None) -> CommittedPrompt:
    """Find the prompt of an `earlier` run in git, first in `prompt_commit`. Prefer a commit with the run's version.

    Raise ComponentError if no commit has the prompt, or for a program. Raise GitError if git fails.
    """
    _refuse_program(component, earlier.skill_version)
    name = f"component '{component.name}' {earlier.skill_version}"
    try:
        repository = Repository(component.files.prompts[0])
    except GitError as problem:
        raise GitError(f"the earlier prompt of {name} cannot be read from git: {problem}") from None
    former = [place.root / _PROMPT for place in _locations_of(component.files)[1:]]
    paths = [repository.relative_path(file) for file in (*component.files.prompts, *former)]
    commit_id = (prompt_commit or "").removesuffix(_DIRTY)
    changing = (commit for path in paths for commit in repository.commits_of(path))
    commits = filter(None, chain([repository.commit(commit_id)], changing))
    match = None
    for committed in _prompts_at(repository, commits, component, earlier.digests["prompt"]):
        if committed.version == earlier.skill_version:
            return committed
        match = match or committed
    if match:
        return match
    reason, advice = "it may never have been committed", "from now on commit the prompt of each version"
    if commit_id and repository.commit(commit_id) is None:
        reason = f"its record names commit {commit_id[:12]}, which is not in this clone"
        advice = "fetch the branch that holds it"
    advice = "run `git fetch --unshallow`" if repository.is_shallow else advice
    raise ComponentError(f"no commit of {paths[0]} in this clone has the prompt of {name} ({reason}); {advice}")


def component_at(component: Component, ref: str) -> tuple[Component, str]:
    """Return the component with the prompt and version that it had at the commit `ref`, and the full commit id.

    Raise ComponentError for a program, for an unknown commit, if the version at the commit is not lower than the
    current version, or if the schema or the output type has changed since the commit.
    """
    repository = Repository(component.files.prompts[0])
    commit = repository.commit(ref)
    if commit is None:
        advice = "; run `git fetch --unshallow`" if repository.is_shallow else ""
        raise ComponentError(f"commit '{ref}' of the baseline is not in this clone{advice}")
    _refuse_program(component, f"at {commit[:12]}")
    file = repository.relative_path(component.files.prompts[0])
    prompts = list(_prompts_at(repository, [commit], component))
    if not prompts:
        raise ComponentError(f"{file} cannot be read at commit {commit[:12]}")
    for prompt in prompts:
        check_semver(prompt.version, Path(f"{commit[:12]}:{file}"))
    committed = next((prompt for prompt in prompts if bump(component.version, prompt.version) is Bump.LOWERED), None)
    if committed is None:
        name = f"version {prompts[0].version} of component '{component.name}' at commit {commit[:12]}"
        raise ComponentError(f"{name} is not lower than the current {component.version}; name an earlier commit")
    blob = repository.files(commit, committed.folder).get(within(committed.folder, _SCHEMA))
    raw = None if blob is None else repository.contents([blob])[blob]
    if _schema_digest(raw, committed.written) != component.digests["schema"]:
        raise _schema_error(component, committed.version)
    return _with_committed(component, committed), commit


def _with_committed(component: Component, committed: CommittedPrompt) -> Component:
    output, prompt = committed.written.output, committed.written.prompt
    current_output = component.files.origin.here(component.limits).output if component.files.origin else None
    if output not in (None, component.output, current_output):  # evals/datasets.json may override the output
        name = f"component '{component.name}' {committed.version}"
        raise ComponentError(f"{name} had `output: {output}`, now {component.output}; it cannot be called again")
    digests = {**component.digests, "prompt": prompt.digest}
    return replace(component, version=committed.version, prompt=prompt, digests=digests)


def _refuse_program(component: Component, version: str) -> None:
    if component.program is not None:
        name = f"component '{component.name}' {version}"
        raise ComponentError(f"{name} is a program whose earlier files are not available, so it cannot be called again")


def _schema_error(component: Component, version: str) -> ComponentError:
    name, path = f"component '{component.name}' {version}", component.files.folder / _SCHEMA
    return ComponentError(f"{name} had a different schema from {path}, so the two cannot be compared")


def _locations_of(files: ComponentFiles) -> list[SourceLocation]:
    if files.origin is not None:
        return [files.origin]
    return [SourceLocation(name=folder.name, source=OWN, root=folder, key=_PROMPT) for folder in files.folders]


def _prompts_at(
    repository: Repository, commits: Iterable[str], component: Component, digest: str | None = None
) -> Iterator[CommittedPrompt]:
    """Yield the component's valid prompts at each commit. If `digest` is not None, yield only those that have it."""
    recorded = recorded_in(component.leaderboard_path)
    for commit, location in product(dict.fromkeys(commits), _locations_of(component.files)):
        try:
            root = repository.relative_path(location.root)
            written = location.read(commit_tree(repository, commit, root, component.limits))
            if digest in (None, written.prompt.digest):
                digests = {**component.digests, "prompt": written.prompt.digest}
                version = written.version or numbered(digests, recorded, below=component.version)
                folder = repository.relative_path(component.files.folder if component.files.origin else location.root)
                yield CommittedPrompt(commit=commit, folder=folder, version=version, written=written)
        except ComponentError:  # invalid at that commit
            continue

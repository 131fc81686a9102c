"""Versions of components: how they follow each other, what breaks the rules, and the prompt of an earlier version.

Reads `prompt.md` and `schema.json`, at commits of a git repository or in a folder.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import semver
from pydantic import NonNegativeInt

from skill_evaluator.errors import ComponentError, GitError
from skill_evaluator.files import FrozenModel, parse_json, read_bytes
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.library.components import Component
from skill_evaluator.library.messages import Prompt
from skill_evaluator.library.programs import ProgramUnderTest
from skill_evaluator.library.prompts import check_semver, parse_prompt
from skill_evaluator.parsing import Output
from skill_evaluator.repository import Repository, within
from skill_evaluator.text import canonical_json, digest

_PROMPT, _SCHEMA = "prompt.md", "schema.json"


class Bump(StrEnum):
    """How a version follows the one before."""

    NEW = "new"
    MAJOR = "MAJOR"
    MINOR = "MINOR"
    PATCH = "PATCH"
    SAME = "unchanged"
    LOWERED = "lowered"


class Problem(FrozenModel):
    """A problem at a line (from 1) of a file, whose path is relative to the repository's root."""

    file: str
    line: NonNegativeInt
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentVersion:
    """A component at one commit: prompt and schema as digests, and `problem` where its version cannot be read.

    A `program` comes with the prompt that it is `asked`.
    """

    name: str
    folder: str
    version: str | None
    line: int
    problem: str | None
    prompt: str | None
    schema: str | None
    program: ProgramUnderTest | None = None
    asked: Prompt | None = None


def bump(before: str | None, after: str) -> Bump:
    """Tell how the version `after` follows `before`, which is None for a new component.

    >>> bump("1.4.2", "2.0.0"), bump("1.4.2", "1.5.0-rc.1"), bump("1.5.0-rc.1", "1.5.0")
    (<Bump.MAJOR: 'MAJOR'>, <Bump.MINOR: 'MINOR'>, <Bump.PATCH: 'PATCH'>)
    """
    if before is None:
        return Bump.NEW
    old, new = semver.Version.parse(before), semver.Version.parse(after)
    if new < old:
        return Bump.LOWERED
    if new.major > old.major:
        return Bump.MAJOR
    if new.minor > old.minor:
        return Bump.MINOR
    return Bump.SAME if new == old else Bump.PATCH


def needs_evaluation(step: Bump) -> bool:
    """Return whether a bump must be measured; a PATCH never is."""
    return step in (Bump.NEW, Bump.MAJOR, Bump.MINOR)


def breaks_contract(before: str, after: str) -> bool:
    """Return whether a bump lets the schema change: MAJOR does, and MINOR before 1.0.0 (semver, item 4)."""
    step = bump(before, after)
    return step is Bump.MAJOR or (step is Bump.MINOR and semver.Version.parse(after).major == 0)


def read_versions(
    repository: Repository, commits: Sequence[str | None], folder: str
) -> list[dict[str, ComponentVersion]]:
    """Read the components in a folder, by name, at each commit; there are none at the commit None.

    A component that is the same at several commits is read once.
    """
    depth = len(folder.split("/")) if folder not in ("", ".") else 0
    trees = []  # the blobs of prompt and schema at each commit, by component and file name
    for commit in commits:
        blobs: dict[str, dict[str, str]] = {}
        for path, blob in ({} if commit is None else repository.files(commit, folder)).items():
            parts = path.split("/")[depth:]
            if len(parts) == 2 and parts[1] in (_PROMPT, _SCHEMA):
                blobs.setdefault(parts[0], {})[parts[1]] = blob
        trees.append({name: files for name, files in sorted(blobs.items()) if _PROMPT in files})
    texts = repository.contents(blob for tree in trees for files in tree.values() for blob in files.values())
    read: dict[tuple[str, str, str | None], ComponentVersion] = {}
    history = []
    for commit, tree in zip(commits, trees, strict=True):
        versions, every = {}, None
        for name, files in tree.items():
            key = (name, files[_PROMPT], files.get(_SCHEMA))
            if key not in read:
                schema = texts[key[2]] if key[2] else None
                read[key] = _read(name, within(folder, name), texts[key[1]], schema)
            version = read[key]
            if version.program is not None and commit is not None:
                every = repository.files(commit, "") if every is None else every
                version = _watched(version, version.program.watched(version.folder, every))
            versions[name] = version
        history.append(versions)
    return history


def read_version(folder: Path, place: str) -> ComponentVersion | None:
    """Read the component in a folder, which is `place` in its repository; None without a prompt.md."""
    prompt, schema = folder / _PROMPT, folder / _SCHEMA
    if not prompt.is_file():
        return None
    version = _read(
        folder.name,
        place,
        read_bytes(prompt, ComponentError),
        read_bytes(schema, ComponentError) if schema.is_file() else None,
    )
    return version if version.program is None else _watched(version, version.program.watched_here(folder))


def _watched(version: ComponentVersion, watched: Mapping[str, str]) -> ComponentVersion:
    if version.program is None or version.asked is None:
        return version
    return replace(version, prompt=replace(version.asked, program=version.program.digest(watched)).digest)


def versioning_problems(before: ComponentVersion | None, after: ComponentVersion) -> Iterator[Problem]:
    """Yield the rules that a change breaks: the version rises with the prompt, the schema changes in a MAJOR only."""
    if after.version is None:
        yield _prompt_problem(after, after.problem or "no version")
        return
    if before is None or before.version is None:
        return
    old, new = before.version, after.version
    step = bump(old, new)
    if step is Bump.LOWERED:
        yield _prompt_problem(after, f"the version was lowered from {old} to {new}; a version only goes up")
    elif before.prompt != after.prompt and step is Bump.SAME:
        what = "prompt" if after.program is None else "program, or a file that it watches,"
        yield _prompt_problem(after, f"the {what} changed but the version did not; raise it above {old}")
    if before.schema != after.schema and step is not Bump.LOWERED and not breaks_contract(old, new):
        message = f"the schema changed: that is a new MAJOR version, and {old} → {new} is not"
        yield Problem(file=f"{after.folder}/{_SCHEMA}", line=1, message=message)


def _prompt_problem(version: ComponentVersion, message: str) -> Problem:
    return Problem(file=f"{version.folder}/{_PROMPT}", line=version.line, message=message)


def _read(name: str, folder: str, raw: bytes, schema: bytes | None) -> ComponentVersion:
    path = Path(folder, _PROMPT)
    text = raw.decode("utf-8-sig", "replace")
    line = next((number for number, row in enumerate(text.splitlines(), 1) if row.startswith("version:")), 1)
    version = prompt_digest = problem = program = prompt = None
    try:
        front, prompt = parse_prompt(text, path)
        prompt_digest, program = prompt.digest, front.program
        version = check_semver(front.version, path)
        if not is_component_name(name):
            raise ComponentError(f"'{name}' cannot be a component's name (letters, digits, '.', '_', '-')")
    except ComponentError as caught:
        version, problem = None, str(caught)
    schema_digest = None
    if schema is not None:
        try:  # whatever its layout
            value = parse_json(schema.decode("utf-8-sig"), Path(folder, _SCHEMA), ComponentError)
            schema_digest = digest(canonical_json(value))
        except (ComponentError, UnicodeDecodeError):  # `lint` complains of a broken one
            schema_digest = digest(schema.decode("utf-8", "replace"))
    return ComponentVersion(
        name=name,
        folder=folder,
        version=version,
        line=line,
        problem=problem,
        prompt=prompt_digest,
        schema=schema_digest,
        program=program,
        asked=prompt if program else None,
    )


_CHANGED = "-dirty"  # after a commit: the prompt had been changed since


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPrompt:
    """The prompt that a record measured; `commit` is None if it was in no commit."""

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
    prompt: Prompt


def component_with(component: Component, past: PastPrompt) -> tuple[Component, str | None]:
    """Return a component (without a scenario) with an earlier prompt, and the commit of that prompt.

    The commit is None if the prompt has not changed since and the record names no commit. Raise ComponentError if the
    schema changed or no commit here has the prompt; GitError outside a git repository.
    """
    if past.schema != component.digests["schema"]:
        raise _other_schema(component, past.version)
    if past.digest == component.digests["prompt"]:
        return replace(component, version=past.version), past.commit
    committed = find_prompt(component, past)
    return _put_into(component, replace(committed, version=past.version)), committed.commit


def find_prompt(component: Component, past: PastPrompt) -> CommittedPrompt:
    """Find an earlier prompt by its digest in the history of its file, if possible at a commit with its version.

    Raise ComponentError if no commit here has it, and GitError outside a git repository.
    """
    _refuse_program(component, past.version)
    name = f"'{component.name}' {past.version}"
    try:
        repository = Repository(component.folder)
    except GitError as problem:
        raise GitError(f"the prompt of {name} must be read from git: {problem}") from None
    path = within(repository.place(component.folder), "prompt.md")
    named = (past.commit or "").removesuffix(_CHANGED)
    commits = [commit for commit in (repository.commit(named), *repository.commits_of(path)) if commit is not None]
    same = [one for one in _prompts_at(repository, commits, path) if one.prompt.digest == past.digest]
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

    Raise ComponentError if the commit is not here, lacks the prompt, has a different schema or no lower version.
    """
    repository = Repository(component.folder)
    folder = repository.place(component.folder)
    commit = repository.commit(ref)
    if commit is None:
        advice = "; run `git fetch --unshallow`" if repository.is_shallow else ""
        raise ComponentError(f"commit '{ref}' of the baseline is not here{advice}")
    _refuse_program(component, f"at {commit[:12]}")
    committed = next(_prompts_at(repository, [commit], within(folder, "prompt.md")), None)
    if committed is None:
        raise ComponentError(f"{within(folder, 'prompt.md')} cannot be read at commit {commit[:12]}")
    version = check_semver(committed.version, Path(f"{commit[:12]}:{folder}/prompt.md"))
    if semver.Version.parse(version) >= semver.Version.parse(component.version):
        raise ComponentError(
            f"'{component.name}' is {version} at commit {commit[:12]}, which is not below {component.version}; "
            "name a commit from before the version was raised"
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
    digests = {**component.digests, "prompt": committed.prompt.digest}
    return replace(component, version=committed.version, prompt=committed.prompt, digests=digests)


def _refuse_program(component: Component, version: str) -> None:
    if component.program is not None:
        raise ComponentError(
            f"the files and the installation of '{component.name}' {version}, a program, are not here; "
            "it is compared as recorded"
        )


def _other_schema(component: Component, version: str) -> ComponentError:
    return ComponentError(
        f"'{component.name}' {version} had a different schema from {component.folder / 'schema.json'}, "
        "so the two cannot be compared"
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

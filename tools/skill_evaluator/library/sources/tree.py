"""The interface of source formats, and the evaluator's own format: a folder with prompt.md per component."""

import itertools
import json
import os
import posixpath
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import semver

from skill_evaluator.checks import DeclaredCheck
from skill_evaluator.errors import ComponentError
from skill_evaluator.files import decoded, parse_json, read_text
from skill_evaluator.identifiers import MAX_VERSION
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.prompts import TURNS, FrontMatter, ProgramUnderTest, Prompt, parse_prompt
from skill_evaluator.library.reading import ConfinedFolder, parse_yaml
from skill_evaluator.library.tables import CaseRows
from skill_evaluator.parsing import Output
from skill_evaluator.repository import Repository, within
from skill_evaluator.text import canonical_json, digest, listed

_SENT = re.compile(r"\{\{[^{}\n]{1,80}\}\}|!`[^`\n]{1,80}`")
_SKIPPED = (".git", ".venv", ".evaluator", "node_modules", "__pycache__")
_MAX_FILES, _MAX_INPUTS = 500_000, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTree:
    """The files of a folder on disk or at a commit. `paths` are relative to `where`; `read` returns a text."""

    where: Path
    paths: tuple[str, ...]
    read: Callable[[str], str]
    limits: SafetyLimits

    def has(self, path: str) -> bool:
        """Return whether the tree has a file at `path`."""
        index = bisect_left(self.paths, path)
        return path in self.paths[index : index + 1]

    def below(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files below a folder in order."""
        start = within(folder, "")
        for index in range(bisect_left(self.paths, start), len(self.paths)):
            if not self.paths[index].startswith(start):
                return
            yield self.paths[index]

    def beside(self, path: str, name: str) -> str:
        """Resolve `name` relative to the file at `path`. Raise ComponentError if the tree has no such file."""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if not self.has(target):
            raise ComponentError(f"{self.where / path} names '{name[:200]}', which is not a file below {self.where}")
        return target

    def yaml(self, path: str) -> Any:
        """Parse a YAML file. Raise ComponentError if it is invalid."""
        return parse_yaml(self.read(path), self.where / path, ComponentError, depth=self.limits.yaml_depth)

    def json(self, path: str) -> Any:
        """Parse a JSON file. Raise ComponentError if it is invalid."""
        return parse_json(self.read(path), self.where / path, ComponentError)


def folder_tree(root: Path, limits: SafetyLimits) -> FileTree:
    """List the files below a folder, except in folders such as .git. Raise ComponentError if it is no folder."""
    if not root.is_dir():
        raise ComponentError(f"{root} is not a folder; see sources in settings.yaml")
    paths: list[str] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if name not in _SKIPPED)
        prefix = Path(folder).relative_to(root).as_posix()
        paths.extend(within(prefix, name) for name in names)
        if len(paths) > _MAX_FILES:
            raise ComponentError(f"{root} holds more than {_MAX_FILES:,} files; name a folder below it as `root`")
    inside = ConfinedFolder(root, ComponentError, follow_links=limits.follow_links)

    def read(path: str) -> str:
        return read_text(inside.inside(root / path), ComponentError, limits.size_of("prompt_bytes"))

    return FileTree(where=root, paths=tuple(sorted(paths)), read=read, limits=limits)


def commit_tree(repository: Repository, commit: str, folder: str, limits: SafetyLimits) -> FileTree:
    """List the files below a folder of a repository at a commit, except in folders such as node_modules."""
    location, limit = Path(f"{commit[:12]}:{folder}"), limits.size_of("prompt_bytes")
    start = len(within(folder, ""))
    blobs = {
        path[start:]: blob
        for path, blob in repository.files(commit, folder).items()
        if not any(part in _SKIPPED for part in path[start:].split("/")[:-1])
    }
    contents: dict[str, bytes] = {}

    def read(path: str) -> str:
        if path not in blobs:
            raise ComponentError(f"{location / path} does not exist")
        if blobs[path] not in contents:  # files with the same name are usually read together
            name = posixpath.basename(path)
            blobs_of_name = [blob for file_path, blob in blobs.items() if posixpath.basename(file_path) == name]
            contents.update(repository.contents(blobs_of_name))
        content = contents[blobs[path]]
        if len(content) > limit.max_bytes:
            raise ComponentError(f"{location / path} has {len(content):,} bytes; {limit}")
        return decoded(content, location / path, ComponentError)

    return FileTree(where=location, paths=tuple(sorted(blobs)), read=read, limits=limits)


def skipped(kind: str, reason: str, count: int = 1) -> str:
    """Return the line `left out: …` for unused parts of a kind, with their number and the reason."""
    text = f"left out: {kind}{f' ({count:,})' if count > 1 else ''}: {reason}"
    return " ".join(text.split())


class SkipCollector(defaultdict[tuple[str, str], list[str]]):
    """The names of unused parts of a source, by (kind of part, reason). A part without a name has the name ""."""

    def __init__(self) -> None:
        super().__init__(list)

    def left_out(self) -> Iterator[str]:
        """Yield one line for each kind of part and reason, with the number of parts and their first names."""
        for (kind, reason), names in self.items():
            # `#3` is a name, not a count
            examples = listed([f"#{name}" if name.isdigit() else name for name in dict.fromkeys(filter(None, names))])
            text = f"{reason} ({examples})" if examples else reason
            if names:
                yield skipped(kind, text, len(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceComponent:
    """A component as declared in its source, in any format."""

    path: str  # the file that people edit
    files: tuple[str, ...]  # all files of the prompt
    prompt: Prompt
    version: str | None = None
    output: Output | None = None
    schema: Mapping[str, Any] | None = None
    checks: tuple[DeclaredCheck, ...] = ()
    cases: CaseRows = field(default_factory=CaseRows)  # values have the keys of cases.jsonl
    left_out: tuple[str, ...] = ()  # one line per kind of unused part and reason
    hints: Mapping[str, Any] = field(default_factory=dict)  # the intended `model`, and its parameters by name
    program: ProgramUnderTest | None = None
    formerly: tuple[str, ...] = ()  # earlier names


def semver_of(text: str) -> str | None:
    """Convert a version such as `v1.0` to semver, 1.0.0. Return None if the text is not a version.

    >>> semver_of("1.0"), semver_of("v2.1.0-rc.1"), semver_of("March")
    ('1.0.0', '2.1.0-rc.1', None)
    """
    with suppress(ValueError):
        if len(text) <= MAX_VERSION:
            return str(semver.Version.parse(text.strip().removeprefix("v"), optional_minor_and_patch=True))
    return None


def sent_as_written(texts: Iterable[str], filled: Collection[str] = ()) -> Iterator[str]:
    """Yield a remark for each {{name}} and !`command` that is sent unchanged. Skip the names in `filled`."""
    counts = Counter(placeholder for text in texts for placeholder in dict.fromkeys(_SENT.findall(text)))
    for placeholder, count in counts.items():
        if placeholder.strip("{} ") not in filled:
            action = "filling" if placeholder.startswith("{") else "running"
            yield skipped(f"{action} {placeholder}", "it is sent unchanged", count)


def unique_name(name: str, existing: Container[str]) -> str:
    """Return the name. If it exists already, return its first 70 characters with the first free of -2, -3 and so on."""
    numbers = (f"{name[:70]}-{number}" for number in itertools.count(2))
    return next(candidate for candidate in itertools.chain([name], numbers) if candidate not in existing)


def stable_id(text: str, inputs: Any) -> str:
    """Return a case id from the beginning of a text and the digest of the case's inputs.

    >>> stable_id("Sum up the report.", {"document": "Sum up the report."})
    'Sum-up-the-report-6a9357'
    """
    slug = re.sub(r"[^\w+-]+", "-", text)[:40].strip("-") or "case"
    return f"{slug}-{digest(canonical_json(inputs)).removeprefix('sha256:')[:6]}"


def case_name(text: str) -> str:
    """Convert a text to a case id: at most 100 characters that a file name can have. It may be empty."""
    return re.sub(r"[^\w@.+-]+", "-", text)[:100].strip("-.")


def as_text(value: Any) -> str:
    """Return a text unchanged, an empty string for None, and JSON for any other value."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def faultless(prompt: Prompt, path: Path) -> Prompt:
    """Return the prompt unchanged. Raise ComponentError if it has a fault, too many inputs or a reserved input name."""
    if TURNS in prompt.inputs:
        raise ComponentError(f"{path}: the name '{TURNS}' is reserved for earlier turns; rename the variable")
    if len(prompt.inputs) > _MAX_INPUTS:
        raise ComponentError(f"{path} has {len(prompt.inputs):,} variables; at most {_MAX_INPUTS} are possible")
    for fault in prompt.faults():
        raise ComponentError(f"{path}: {fault}")
    return prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source format: the names of its files, and functions that find and read its components."""

    looks_for: str  # file names, for messages
    find: Callable[[FileTree], Mapping[str, tuple[str, ...]]]  # parts of each component's name, by the key for `read`
    read: Callable[[FileTree, str], SourceComponent]
    lost: Callable[[FileTree], Iterator[str]] = lambda tree: iter(())  # one line per kind of unused files


def written_own(front: FrontMatter, prompt: Prompt, path: str, schema: Any = None) -> SourceComponent:
    """Build the source component of a parsed prompt.md; `path` is relative to the source's root."""
    return SourceComponent(
        path=path,
        files=(path,),
        version=front.version,
        prompt=prompt,
        output="json" if front.output == "tool_call" else front.output,
        schema=schema,
        program=front.program,
        formerly=front.formerly,
    )


def _find_own(tree: FileTree) -> dict[str, tuple[str, ...]]:
    folders = (posixpath.split(path) for path in tree.paths if path.count("/") == 1)
    return {f"{folder}/prompt.md": (folder,) for folder, name in folders if name == "prompt.md"}


def _read_own(tree: FileTree, key: str) -> SourceComponent:
    front, prompt = parse_prompt(tree.read(key), tree.where / key, depth=tree.limits.yaml_depth)
    if front.program is not None:  # programs run and watch files in their component's folder
        raise ComponentError(
            f"{tree.where / key}: a program cannot be run from `sources`; use --components {tree.where}"
        )
    schema = posixpath.join(posixpath.dirname(key), "schema.json")
    return written_own(front, prompt, key, tree.json(schema) if tree.has(schema) else None)


OWN = Source(looks_for="<name>/prompt.md with a version", find=_find_own, read=_read_own)

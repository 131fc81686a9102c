"""Components in other formats, which are read in place from the folders in `sources` of settings.yaml."""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import semver
from pydantic import BaseModel, ValidationError

from skill_evaluator.errors import ComponentError, ConfigError, SkillEvaluatorError
from skill_evaluator.files import SizeLimit, read_bytes
from skill_evaluator.library.config import DeclaredSource, SafetyLimits, Settings, load_settings
from skill_evaluator.library.sources.prompt_yml import PROMPT_YML
from skill_evaluator.library.sources.promptfoo import PROMPTFOO
from skill_evaluator.library.sources.skills import SKILLS
from skill_evaluator.library.sources.tree import OWN, FileTree, Source, SourceComponent, folder_tree, skipped
from skill_evaluator.repository import within
from skill_evaluator.text import digest, nearest

SOURCES: Mapping[str, Source] = {"own": OWN, "prompt_yml": PROMPT_YML, "promptfoo": PROMPTFOO, "skills": SKILLS}
"""The source formats by `kind`."""
NOT_READ = ("*.prompt", "*.prompty", "*.poml", "*.baml", "*.waza.yaml")
"""The files of formats that only their own programs can render or run."""
HOME = ".evaluator"
BOARD_SIZE = SizeLimit(max_bytes=500_000_000)
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_MAX_NAME_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """The location of a component: its format, root folder and `key` in that folder. `leave_out` is globs of cases."""

    name: str
    source: Source
    root: Path
    key: str
    leave_out: tuple[str, ...] = ()

    def read(self, tree: FileTree) -> SourceComponent:
        """Read the component from the files of its root. The result's `left_out` has the number of skipped cases."""
        written = self.source.read(tree, self.key)
        cases = written.cases
        rows = [row for row in cases.rows if not _matches(f"{self.name}/{row[0]}", self.leave_out)]
        if not (count := len(cases.rows) - len(rows)):
            return written
        note = skipped("cases", "leave_out in settings.yaml names it", count)
        return replace(written, cases=replace(cases, rows=rows), left_out=(*written.left_out, note))

    def here(self, limits: SafetyLimits) -> SourceComponent:
        """Read the component from disk, without the cases in `leave_out`. Raise ComponentError if it is invalid."""
        return self.read(_folder_tree(self.root, str(Path.cwd()), limits))


class _Row(BaseModel):
    skill_version: str
    digests: dict[str, str] = {}


class _Board(BaseModel):
    runs: list[_Row] = []


Recorded = Iterable[tuple[str, Mapping[str, str]]]
"""The version and digests of each recorded run, newest first."""


def recorded_in(leaderboard: Path) -> Recorded:
    """Read the version and digests of each run in a leaderboard file. Return [] if it is missing or invalid."""
    with suppress(ComponentError):
        return recorded_rows(read_bytes(leaderboard, ComponentError, BOARD_SIZE)) if leaderboard.exists() else []
    return []


def recorded_rows(leaderboard: bytes) -> Recorded:
    """Parse the version and digests of each run in a leaderboard. Return [] if it is invalid."""
    with suppress(ValidationError):
        return [(row.skill_version, row.digests) for row in _Board.model_validate_json(leaderboard).runs]
    return []


def numbered(digests: Mapping[str, str], recorded: Recorded, below: str | None = None) -> str:
    """Return the highest recorded version that has the prompt and the schema in `digests`, or else a new version.

    The new version is the highest recorded version with MINOR raised by 1, and ends with the prompt digest. If `below`
    is a version, raise PATCH of the highest recorded version that is lower than `below` instead.

    >>> numbered({"prompt": "sha256:0123abcd99"}, [("0.2.0+4567abcd", {"prompt": "4567abcd11"})])
    '0.3.0+0123abcd'
    """
    # the oldest run of a version wins
    of_versions = {version: digests_of_row for version, digests_of_row in recorded if semver.Version.is_valid(version)}
    versions = sorted(of_versions, key=semver.Version.parse)
    matching = [version for version in versions if _is_same(digests, of_versions[version])]
    if matching:
        return matching[-1]
    upper = None if below is None else semver.Version.parse(below)
    lower = [version for version in versions if upper is None or semver.Version.parse(version) < upper]
    highest = semver.Version.parse(lower[-1]) if lower else semver.Version(0)
    raised = highest.bump_minor() if below is None else highest.bump_patch()
    return f"{raised}+{digests['prompt'].removeprefix('sha256:')[:8]}"


def _is_same(digests: Mapping[str, str], recorded: Mapping[str, str]) -> bool:
    # the digests of a row are abbreviated, and old rows lack the schema
    shared = [name for name in ("prompt", "schema") if name in recorded]
    pairs = ((digests[name].removeprefix("sha256:"), recorded[name].removeprefix("sha256:")) for name in shared)
    return "prompt" in recorded and all(full.startswith(short) for full, short in pairs)


_folder_tree = lru_cache(maxsize=4)(lambda root, _, limits: folder_tree(root, limits))


def sources_in(components: Path) -> tuple[DeclaredSource, ...]:
    """Return the sources in settings.yaml. Return () if `components` is not below a folder `.evaluator`."""
    return load_settings(components.parent).sources if components.parent.name == HOME else ()


def components_of(components: Path, config: Path, default: Path) -> Path:
    """Return `components`. If it is the `default` and settings.yaml has sources, return `config`/components."""
    _forget()
    return config / "components" if components == default and load_settings(config).sources else components


def component_names(components: Path) -> list[str]:
    """Return the sorted names of the components, from the sources of settings.yaml or else from the folder."""
    _forget()
    origins = _origins(components, str(Path.cwd()))
    return sorted(path.parent.name for path in components.glob("*/prompt.md")) if origins is None else sorted(origins)


def source_of(components: Path, name: str) -> SourceLocation | None:
    """Return a component's location, or None if there are no sources. Raise ComponentError if it is in no source."""
    origins = _origins(components, str(Path.cwd()))  # caches settings.yaml for all components
    if name not in (origins or ()) and components.parent.name == HOME:
        _forget()
        origins = _origins(components, str(Path.cwd()))
    if origins is None:
        return None
    if name not in origins:
        raise ComponentError(f"unknown component '{name}' in the sources of settings.yaml {nearest(name, origins)}")
    return origins[name]


def prompt_file(components: Path, name: str, folder: str) -> str:
    """Return the path of a component's prompt file: in its source if settings.yaml has sources, or else below `folder`.

    `folder` is the path of `components` relative to the repository's root.
    """
    with suppress(SkillEvaluatorError):
        if origin := source_of(components, name):
            return (origin.root / origin.key.partition("#")[0]).as_posix()
    return within(folder, f"{name}/prompt.md")


def _forget() -> None:
    for cached in (_origins, _folder_tree):
        cached.cache_clear()


@lru_cache(maxsize=4)
def _origins(components: Path, cwd: str) -> dict[str, SourceLocation] | None:
    home = components.parent
    settings = load_settings(home) if home.name == HOME else Settings()
    if not settings.sources:
        return None
    return named_origins(settings.sources, home.parent, lambda root: _folder_tree(root, cwd, settings.limits))


def named_origins(
    sources: Collection[DeclaredSource], home: Path, tree_of: Callable[[Path], FileTree]
) -> dict[str, SourceLocation]:
    """Return the locations of the components in `sources`, by component name.

    The root folder of a source is relative to `home`; `tree_of` returns its files. Components that a source leaves out
    are omitted. Raise ConfigError for an unknown kind of source, or if two sources contain the same file.
    """
    locations: list[tuple[str, tuple[str, ...], DeclaredSource]] = []
    first_source: dict[tuple[str, str], int] = {}  # the index of the source that has a file
    for index, declared in enumerate(sources):
        source = SOURCES.get(declared.kind)
        if source is None:
            advice = f"at sources[{index}].kind in settings.yaml {nearest(declared.kind, SOURCES)}"
            raise ConfigError(f"unknown source '{declared.kind}' {advice}")
        for key, parts in source.find(tree_of(home / declared.root)).items():
            file = posixpath.normpath(posixpath.join(declared.root, key))
            if (earlier := first_source.setdefault((declared.kind, file), index)) != index:
                both = f"sources[{earlier}] and sources[{index}] in settings.yaml"
                raise ConfigError(f"{both} contain {file[:200]!a}; remove one of them, or change their root folders")
            locations.append((key, parts, declared))
    shared = Counter(parts for _, parts, _ in locations)
    paths = []
    for key, parts, declared in locations:
        # the roots distinguish the sources that share these parts
        roots = (key, declared.kind, *declared.root.split("/")) if shared[parts] > 1 else ()
        paths.append((*roots, *parts))
    return {
        name: SourceLocation(
            name=name,
            source=SOURCES[declared.kind],
            root=home / declared.root,
            key=key,
            leave_out=declared.leave_out,
        )
        for name, (key, _, declared) in zip(_names(paths), locations, strict=True)
        if not _matches(name, declared.leave_out)
    }


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _names(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a unique safe name for each path, from as few of its last parts as possible.

    >>> _names([("a", "pdf"), ("b", "pdf"), ("b", "my docs")])
    ['a.pdf', 'b.pdf', 'my-docs']
    """
    parts = [[safe for part in path if (safe := _UNSAFE.sub("-", part).strip("-_"))] or ["component"] for path in paths]
    used = [1] * len(paths)
    while True:
        joined = (".".join(safe_parts[-count:]) for safe_parts, count in zip(parts, used, strict=True))
        names = [name[-_MAX_NAME_CHARS:].lstrip(".-_") for name in joined]
        counts = Counter(name.casefold() for name in names)
        duplicates = [index for index, name in enumerate(names) if counts[name.casefold()] > 1]
        if longer := [index for index in duplicates if used[index] < len(parts[index])]:
            for index in longer:
                used[index] += 1
        else:
            break
    for index in duplicates:
        names[index] += f"-{digest('/'.join(paths[index])).removeprefix('sha256:')[:6]}"
    return names

"""The formats that components are read from in place, and where the components of a library are written.

`sources` in settings.yaml names folders of them. What is measured of such a component then lies in
`.evaluator/components/<name>/`, and nothing is written into those folders.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path

import semver
from pydantic import BaseModel, ValidationError

from skill_evaluator.errors import ComponentError, ConfigError, SkillEvaluatorError
from skill_evaluator.files import SizeLimit, read_bytes
from skill_evaluator.library.config import DeclaredSource, SafetyLimits, Settings, load_settings
from skill_evaluator.library.sources.tree import FileTree, LeftOut, Source, SourcePlace, Written, folder_tree
from skill_evaluator.repository import within
from skill_evaluator.text import comparable_version, digest, nearest

_AS_PROGRAM = "name the program that renders it: `program:` in the front matter of a component"
NOT_READ: Mapping[str, str] = {
    "*.prompt": f"Dotprompt, Handlebars with helpers of your own; {_AS_PROGRAM}",
    "*.prompty": f"Prompty, Jinja with loops and conditions; {_AS_PROGRAM}",
    "*.poml": f"POML, a language of its own; {_AS_PROGRAM}",
    "*.baml": f"BAML, a language of its own; {_AS_PROGRAM}",
    "*.waza.yaml": "waza, which tests agents; name the agent: `program:` in the front matter of a component",
}
"""The formats that are not read, by the pattern of their files' names: what each is, and what to do."""
HOME = ".evaluator"
BOARD_SIZE = SizeLimit(most=500_000_000)
_CONTENT = ("prompt", "schema")  # the digests that make a version
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 80


@cache
def formats() -> Mapping[str, Source]:
    """Return every format by its `kind`; few libraries have any but our own, and the others need not wait."""
    from skill_evaluator.library.sources import own, prompt_yml, promptfoo, skills

    return {
        "own": own.OWN,
        "prompt_yml": prompt_yml.PROMPT_YML,
        "promptfoo": promptfoo.PROMPTFOO,
        "skills": skills.SKILLS,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAt:
    """Where a component is written: the format, the folder that is read, the place in it, and cases to leave out."""

    name: str
    source: Source
    root: Path
    key: str
    leave_out: tuple[str, ...] = ()

    def read(self, tree: FileTree) -> Written:
        """Read it in a folder or at a commit; raise ComponentError."""
        written = self.source.read(tree, self.key)
        rows = tuple(row for row in written.rows if not _matches(f"{self.name}/{row[0]}", self.leave_out))
        if not (left := len(written.rows) - len(rows)):
            return written
        out = LeftOut(what="cases", count=left, reason="leave_out in settings.yaml names it")
        return replace(written, rows=rows, left_out=(*written.left_out, out))

    def here(self, limits: SafetyLimits) -> Written:
        """Read it as it is now; raise ComponentError."""
        return self.read(_folder_tree(self.root, str(Path.cwd()), limits))


class _Row(BaseModel):
    """The keys of a leaderboard's row that say which prompt a version is."""

    skill_version: str
    digests: dict[str, str] = {}


class _Board(BaseModel):
    runs: list[_Row] = []


Recorded = Iterable[tuple[str, Mapping[str, str]]]
"""The version and the digests of each recorded run, newest first."""


def recorded_in(leaderboard: Path) -> Recorded:
    """Return the version and digests of each run on a leaderboard file, which may be missing."""
    with suppress(ComponentError):
        return recorded_rows(read_bytes(leaderboard, ComponentError, BOARD_SIZE)) if leaderboard.exists() else []
    return []


def recorded_rows(leaderboard: bytes) -> Recorded:
    """Return the version and digests of each run; none of a broken leaderboard, which `lint` and `evaluate` report."""
    with suppress(ValidationError):
        return [(row.skill_version, row.digests) for row in _Board.model_validate_json(leaderboard).runs]
    return []


def numbered(
    digests: Mapping[str, str], recorded: Iterable[tuple[str, Mapping[str, str]]], below: str | None = None
) -> str:
    """Return the recorded version of a prompt and schema, or the next MINOR version with the prompt's digest.

    With `below`, the prompt of an earlier commit gets a PATCH above the recorded versions that are lower than that.

    >>> numbered({"prompt": "sha256:0123abcd99"}, [("0.2.0+4567abcd", {"prompt": "4567abcd11"})])
    '0.3.0+0123abcd'
    """
    of_versions = {version: told for version, told in recorded if semver.Version.is_valid(version)}  # the oldest run's
    versions = sorted(of_versions, key=_order)
    same = [version for version in versions if _is_same(digests, of_versions[version])]
    if same:
        return same[-1]
    lower = [version for version in versions if below is None or _order(version) < _order(below)]
    highest = _order(lower[-1]) if lower else semver.Version(0)
    raised = highest.bump_minor() if below is None else highest.bump_patch()
    return f"{raised}+{digests['prompt'].removeprefix('sha256:')[:8]}"


def _order(version: str) -> semver.Version:
    return semver.Version.parse(comparable_version(version))


def _is_same(digests: Mapping[str, str], told: Mapping[str, str]) -> bool:
    """Return whether the digests of a row, which are abbreviated, are those of a prompt and schema."""
    shared = [name for name in _CONTENT if name in told]  # an old row may lack the schema
    bare = ((digests[name].removeprefix("sha256:"), told[name].removeprefix("sha256:")) for name in shared)
    return "prompt" in told and all(whole.startswith(short) for whole, short in bare)


_folder_tree = lru_cache(maxsize=4)(lambda root, _, limits: folder_tree(root, limits))


def sources_in(components: Path) -> tuple[DeclaredSource, ...]:
    """Return the sources of a folder of components: those of the settings beside it, if it is `.evaluator/components`.

    Raises ConfigError.
    """
    return load_settings(components.parent).sources if components.parent.name == HOME else ()


def components_of(components: Path, config: Path, default: Path) -> Path:
    """Return the folder of components: the one that is named, else that of the sources if settings.yaml has some.

    Each command asks this first, and reads anew what was kept of the sources.
    """
    _forget()
    return config / "components" if components == default and load_settings(config).sources else components


def component_names(components: Path) -> list[str]:
    """Return the names of the components in a folder, or of those that its sources hold; raise ConfigError."""
    _forget()
    origins = _origins(components, str(Path.cwd()))
    return sorted(path.parent.name for path in components.glob("*/prompt.md")) if origins is None else sorted(origins)


def origin_of(components: Path, name: str) -> WrittenAt | None:
    """Return where a component is written, None if it is one of our own; raise ComponentError, ConfigError.

    A process that goes on sees files that are new when it lists names, or looks for a name that was not there.
    """
    origins = _origins(components, str(Path.cwd()))  # settings.yaml is read once for all of them
    if name not in (origins or ()) and components.parent.name == HOME:
        _forget()
        origins = _origins(components, str(Path.cwd()))
    if origins is None:
        return None
    if name not in origins:
        raise ComponentError(f"unknown component '{name}' in the sources of settings.yaml {nearest(name, origins)}")
    return origins[name]


def prompt_file(components: Path, name: str, folder: str) -> str:
    """Return the file of a component that a problem without a place names; `folder` is how components are called."""
    with suppress(SkillEvaluatorError):
        if origin := origin_of(components, name):
            return (origin.root / origin.key.partition("#")[0]).as_posix()
    return within(folder, f"{name}/prompt.md")


def _forget() -> None:
    for cached in (_origins, _folder_tree):
        cached.cache_clear()


@lru_cache(maxsize=4)
def _origins(components: Path, cwd: str) -> dict[str, WrittenAt] | None:
    """Return by name where each component is written that the sources of a folder hold; None if it has no sources."""
    home = components.parent
    settings = load_settings(home) if home.name == HOME else Settings()
    if not settings.sources:
        return None
    return named_origins(settings.sources, home.parent, lambda root: _folder_tree(root, cwd, settings.limits))


def named_origins(
    sources: Collection[DeclaredSource], home: Path, tree_of: Callable[[Path], FileTree]
) -> dict[str, WrittenAt]:
    """Return by name where each component of some sources is written; raise ComponentError, ConfigError."""
    places: list[tuple[SourcePlace, Source, DeclaredSource]] = []
    first: dict[tuple[str, str], int] = {}  # which source has a file
    for index, declared in enumerate(sources):
        source = formats().get(declared.kind)
        if source is None:
            where = f"sources[{index}].kind in settings.yaml"
            raise ConfigError(f"unknown source '{declared.kind}' at {where} {nearest(declared.kind, formats())}")
        for place in source.find(tree_of(home / declared.root)):
            file = posixpath.normpath(posixpath.join(declared.root, place.key))
            if (before := first.setdefault((declared.kind, file), index)) != index:
                where = f"sources[{before}] and sources[{index}] in settings.yaml"
                raise ConfigError(f"{where} both hold {file[:200]!a}; take one out, or name a folder beside the other")
            places.append((place, source, declared))
    shared = Counter(place.parts for place, _, _ in places)  # by several sources, whose roots then tell them apart
    above = [(at.key, one.kind, *one.root.split("/")) if shared[at.parts] > 1 else () for at, _, one in places]
    names = _names([(*more, *place.parts) for more, (place, _, _) in zip(above, places, strict=True)])
    return {
        name: WrittenAt(name=name, source=source, root=home / one.root, key=place.key, leave_out=one.leave_out)
        for name, (place, source, one) in zip(names, places, strict=True)
        if not _matches(name, one.leave_out)
    }


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _names(places: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a safe name for each place, from the end of its parts: as few as tell them apart.

    >>> _names([("a", "pdf"), ("b", "pdf"), ("b", "my docs")])
    ['a.pdf', 'b.pdf', 'my-docs']
    """
    parts = [
        [safe for part in place if (safe := _UNSAFE.sub("-", part).strip("-_"))] or ["component"] for place in places
    ]
    used = [1] * len(places)
    while True:
        names = [".".join(each[-count:])[-_LONGEST:].lstrip(".-_") for each, count in zip(parts, used, strict=True)]
        counts = Counter(name.casefold() for name in names)
        alike = [index for index, name in enumerate(names) if counts[name.casefold()] > 1]
        if longer := [index for index in alike if used[index] < len(parts[index])]:
            for index in longer:
                used[index] += 1
        else:
            break
    for index in alike:
        names[index] += f"-{digest('/'.join(places[index])).removeprefix('sha256:')[:6]}"
    return names

"""Safe reading of library files: only inside their folder, and YAML only if it is cheap to parse.

This is the only module that imports yaml; its errors name line and column. The YAML loader is recursive and would crash
on deep nesting, so a text is first scanned as a stream of events, in constant memory.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, field_validator

from skill_evaluator.errors import ConfigError, SkillEvaluatorError
from skill_evaluator.files import SizeLimit, StrictModel, read_text


class ConfinedFolder:
    """A folder that its files may not leave, even through symbolic links.

    A folder named by a relative path must itself be inside the current folder. `follow_links` allows links out of it;
    None means that settings.yaml, which decides it, is not read yet.
    """

    def __init__(self, folder: Path, error: type[SkillEvaluatorError], *, follow_links: bool | None = None) -> None:
        self._folder = folder
        self._real = os.path.realpath(folder)
        self._error = error
        self._follow_links = follow_links
        self._inside = {folder}
        if not folder.is_absolute() and ".." not in folder.parts:
            self._refuse(folder, "the current folder", os.path.realpath(Path.cwd()))

    def inside(self, path: Path) -> Path:
        """Return the path if it is inside the folder; raise the root's error otherwise."""
        if path not in self._inside:
            self.inside(path.parent)
            if path.is_symlink():
                self._refuse(path, str(self._folder), self._real)
            self._inside.add(path)
        return path

    def _refuse(self, path: Path, folder: str, real_folder: str) -> None:
        if self._follow_links:
            return
        real = os.path.realpath(path)
        if os.path.commonpath((real, real_folder)) != real_folder:
            advice = (
                "" if self._follow_links is None else ", or allow it in settings.yaml: limits: {follow_links: true}"
            )
            raise self._error(f"{path} leads out of {folder}, to {real}; put what it leads to in its place{advice}")


class FixturesElsewhere(StrictModel):
    """Another repository that holds the cases; a commit as `ref` is fetched only once."""

    repository: str = Field(
        pattern=r"^([A-Za-z0-9][\w.-]*/[\w.-]+|\w[\w.-]*@[\w.-]+:[^\s]+|[a-z]+://[^\s]+|[./].*)$",
        description="owner/name on GitHub, the address of a repository, or a folder (beginning with . or /)",
    )
    ref: str = Field(
        default="main", pattern=r"^[A-Za-z0-9][\w./+-]*$", description="a branch, a tag or a full commit id"
    )
    path: str = Field(default=".", description="the folder in that repository that corresponds to `fixtures/`")

    @field_validator("path")
    @classmethod
    def _is_inside(cls, path: str) -> str:
        if path.startswith("/") or ".." in Path(path).parts:
            raise ValueError(f"'{path}' is no folder inside that repository")
        return path


YAML_DEPTH = 50
_MAX_DEPTH = 200  # the JSON limit
_MAX_VALUES, _MAX_CHARACTERS = 100_000, 20_000_000
CONFIGURATION = SizeLimit(max_bytes=4_000_000)
_MAX_UNCHECKED = 400
_LONG_NUMBER = re.compile(r"[-+]?[0-9][0-9a-fA-FxX_:.]{400,}")  # parsing a long number takes quadratic time
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|$)(.*)", re.DOTALL)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Plain(str):
    """An unquoted YAML scalar as written, such as `no` or `1.50`, which YAML versions interpret differently."""

    __slots__ = ()


_AsWritten: Any = type("_AsWritten", (_Loader,), {})
for _tag in ("bool", "float", "int", "str", "timestamp", "value"):
    _AsWritten.add_constructor(
        f"tag:yaml.org,2002:{_tag}", lambda _, node: str(node.value) if node.style else Plain(node.value)
    )


def parse_yaml(
    text: str,
    path: Path,
    error: type[SkillEvaluatorError] = ConfigError,
    *,
    depth: int = YAML_DEPTH,
    as_written: bool = False,
) -> Any:
    """Parse one YAML document of at most `depth` levels; raise `error` with line and column if it is invalid.

    With `as_written`, all values except null are strings, and unquoted ones are `Plain`.
    """
    try:
        _refuse_costly(text, depth)
        loader = (_AsWritten if as_written else _Loader)(text)  # a safe loader, in C if available
        node = loader.get_single_node()
        _lines_of(node)  # rejects duplicate keys, of which the loader would keep the last
        return None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        location = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise error(f"{location}: broken YAML: {problem.problem}") from None
    except (yaml.YAMLError, ValueError) as problem:  # for example the date 2024-02-30
        raise error(f"{path}: broken YAML: {problem}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError) as problem:
        # raised for values that contradict their tag: !!int "", !!bool x
        raise error(f"{path}: broken YAML: a value contradicts its tag ({problem!r})") from None


@dataclass(slots=True)
class _Collection:
    """A mapping or sequence that is being read: the numbers of values and letters before it, and its depth so far."""

    anchor: str | None
    before: int
    letters: int
    levels: int = 1


def _refuse_costly(text: str, depth: int) -> None:
    """Raise a MarkedYAMLError for too many levels, values or letters, with aliases expanded."""
    if len(text) <= _MAX_UNCHECKED and "*" not in text and sum(map(text.count, "[{-?:")) <= depth:
        return  # every level begins with one of these characters
    values = letters = 0
    stack: list[_Collection] = []
    sizes: dict[str | None, tuple[int, int, int]] = {}  # by anchor: numbers of values, levels and letters
    for event in yaml.parse(text, Loader=_Loader):
        size, levels, length, problem = 1, 0, 0, None
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append(_Collection(event.anchor, values, letters))
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = stack.pop()
            size, levels = 0, closed.levels
            sizes[closed.anchor] = values - closed.before, levels, letters - closed.letters
        elif isinstance(event, yaml.ScalarEvent):
            length = len(event.value)
            sizes[event.anchor] = size, levels, length
            if _LONG_NUMBER.fullmatch(event.value) and not event.implicit[1]:  # quoted numbers are strings
                problem = "a number of more than 400 digits"
        elif isinstance(event, yaml.AliasEvent):
            size, levels, length = sizes.get(event.anchor, (size, levels, length))
            if any(collection.anchor == event.anchor for collection in stack):
                problem = f"*{event.anchor} refers to a value that contains it"
        else:
            size = 0
        values += size
        letters += length
        if stack:
            stack[-1].levels = max(stack[-1].levels, levels + 1)
        if len(stack) + levels > depth:
            problem = f"nested more than {depth} levels deep (limits.yaml_depth in settings.yaml)"
        elif values > _MAX_VALUES:
            problem = f"more than {_MAX_VALUES:,} values, with aliases expanded"
        elif letters > _MAX_CHARACTERS:
            problem = f"more than {_MAX_CHARACTERS:,} letters, with aliases expanded"
        if problem:
            mark: Any = event.start_mark
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def yaml_lines(text: str) -> dict[tuple[str, ...], int]:
    """Map the path of every key and item of a YAML or JSON text to its line number, from 1.

    Array indexes are strings. Return an empty mapping if YAML cannot parse the text, such as JSON indented with tabs.
    """
    try:
        _refuse_costly(text, _MAX_DEPTH)
        return _lines_of(yaml.compose(text, Loader=_Loader))
    except yaml.YAMLError:
        return {}


def _lines_of(root: Any) -> dict[tuple[str, ...], int]:
    """Map the paths of all keys and items below a node to lines; raise a MarkedYAMLError for a duplicate key."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), root)]
    lines: dict[tuple[str, ...], int] = {}
    entered: set[int] = set()  # a node repeated by aliases keeps its first path
    while stack:
        path, node = stack.pop()
        if id(node) in entered or not isinstance(node, yaml.CollectionNode):
            continue
        entered.add(id(node))
        keyed = isinstance(node, yaml.MappingNode)
        parts = node.value if keyed else [(None, item) for item in node.value]
        for index, (key, child) in enumerate(parts):
            child_path = (*path, str(key.value if keyed else index))
            line = (key or child).start_mark.line + 1
            if child_path in lines:
                problem = f"duplicate key '{child_path[-1]}', first on line {lines[child_path]}"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            lines[child_path] = line
            stack.append((child_path, child))
    return lines


def read_yaml(
    path: Path,
    error: type[SkillEvaluatorError] = ConfigError,
    limit: SizeLimit = CONFIGURATION,
    *,
    depth: int = YAML_DEPTH,
) -> Any:
    """Read one YAML document from a file."""
    return parse_yaml(read_text(path, error, limit), path, error, depth=depth)


def parse_front_matter(
    text: str, path: Path, error: type[SkillEvaluatorError] = ConfigError, *, depth: int = YAML_DEPTH
) -> tuple[dict[str, Any], str]:
    """Split a Markdown file into its YAML front matter and the rest; raise `error` if there is no front matter."""
    match = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    if match is None:
        raise error(f"{path}:1: no front matter; begin the file with ---, name: and version: (scenario: intent:), ---")
    values = parse_yaml("\n" + match[1], path, error, depth=depth)  # the line break replaces the first ---
    return values if isinstance(values, dict) else {}, match[2]


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, an empty list for None, and a list of the value otherwise."""
    return value if isinstance(value, list) else [] if value is None else [value]


def yaml_text(value: Any) -> str:
    """Return a value as YAML for editing by people: keys in order, long lines folded.

    >>> yaml_text({"b": ["yes", "1"], "a": True})
    "b:\\n- 'yes'\\n- '1'\\na: true\\n"
    """
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))

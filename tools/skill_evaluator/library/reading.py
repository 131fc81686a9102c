"""Safe reading of library files: only inside their folder, and YAML only if it is cheap to parse."""

import math
import os
import re
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import yaml
from pydantic import Field, field_validator

from skill_evaluator.errors import ConfigError, SkillEvaluatorError
from skill_evaluator.files import SizeLimit, StrictModel, read_text


class ConfinedFolder:
    """A folder whose links must not lead out of it, unless `follow_links` is true."""

    def __init__(self, folder: Path, error: type[SkillEvaluatorError], *, follow_links: bool | None = None) -> None:
        self._folder = folder
        self._real = os.path.realpath(folder)
        self._error = error
        self._follow_links = follow_links
        self._inside = {folder}
        if not folder.is_absolute() and ".." not in folder.parts:
            self._refuse(folder, "the current folder", os.path.realpath(Path.cwd()))

    def inside(self, path: Path) -> Path:
        """Return `path` unchanged. Raise the folder's `error` if a link leads out, unless links are followed."""
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
            advice = f"{path} leads out of {folder}, to {real}; replace the link by a copy of the file"
            if self._follow_links is not None:  # None: settings.yaml is not read yet
                advice += ", or allow it in settings.yaml: limits: {follow_links: true}"
            raise self._error(advice)


class FixturesElsewhere(StrictModel):
    """Another repository that holds the cases."""

    repository: str = Field(
        pattern=r"^([A-Za-z0-9][\w.-]*/[\w.-]+|\w[\w.-]*@[\w.-]+:[^\s]+|[a-z]+://[^\s]+|[./].*)$",
        description="owner/name on GitHub, the address of a repository, or a folder (beginning with . or /)",
    )
    ref: str = Field(default="main", pattern=r"^[A-Za-z0-9][\w./+-]*$", description="branch, tag or full commit id")
    path: str = Field(default=".", description="the folder in that repository that corresponds to `fixtures/`")

    @field_validator("path")
    @classmethod
    def _is_inside(cls, path: str) -> str:
        if path.startswith("/") or ".." in Path(path).parts:
            raise ValueError(f"'{path}' must be relative to the root of that repository, without ..")
        return path


YAML_DEPTH = 50
_MAX_DEPTH = 200  # the JSON limit
_MAX_VALUES, _CHARACTERS_PER_VALUE = 100_000, 200
_TOO_MANY = f"more than {_MAX_VALUES:,} values, with aliases expanded"
_TOO_DEEP = "nested more than {} levels deep (limits.yaml_depth in settings.yaml)"
CONFIGURATION = SizeLimit(max_bytes=4_000_000)
_LONG_NUMBER = re.compile(r"[-+]?[0-9][0-9a-fA-FxX_:.]{400,}")  # parsing a long number takes quadratic time
_NUMBER = re.compile(r"(?i)[-+]?(\d{1,15}(\.\d*)?|\.\d+)(e[-+]?\d{1,2})?")
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
    """Parse one YAML document of at most `depth` levels. An empty text gives None. Raise `error` if it is invalid.

    The error names line and column, except for an impossible number or date, such as 2024-02-30. With `as_written`, all
    scalars except null are strings; unquoted scalars have the subclass `Plain`.
    """
    try:
        loader = (_AsWritten if as_written else _Loader)(text)
        node = _composed(text, loader, depth)
        _lines_of(node)  # rejects duplicate keys, of which the loader would keep the last
        return None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as problem:
        mark, start = problem.problem_mark, problem.context_mark
        location = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        advice = ""
        if start and mark and start.line != mark.line:  # such as an open quote or bracket
            advice = f" {problem.context} that begins on line {start.line + 1}; check quotes, brackets and indentation"
        raise error(f"{location}: broken YAML: {problem.problem}{advice}") from None
    except (yaml.YAMLError, ValueError) as problem:  # example: the date 2024-02-30
        raise error(f"{path}: broken YAML: {problem}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError) as problem:
        # raised for values that contradict their tag: !!int "", !!bool x
        raise error(f"{path}: broken YAML: a value contradicts its tag ({problem!r})") from None


def _composed(text: str, loader: Any, depth: int) -> Any:
    """Parse a text to the node of its document; raise a MarkedYAMLError if values are too many or too deep."""
    levels = values = 0
    for event in yaml.parse(text, Loader=_Loader):  # the composer would crash on deep nesting
        levels += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if levels > depth:
            _refuse(_TOO_DEEP.format(depth), event)
        values += isinstance(event, yaml.NodeEvent)
        if values > _MAX_VALUES:  # before nodes are composed, which take much memory
            _refuse(_TOO_MANY, event)
    node = loader.get_single_node()
    if node is not None:
        _expanded_size(node, depth, {})
    return node


def _refuse(problem: str, part: Any) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=part.start_mark)


def _expanded_size(node: Any, depth: int, sizes: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the numbers of values and levels of a node, with aliases expanded.

    Raise MarkedYAMLError if there are too many values or levels, if a number is too long, or if a node contains itself.
    """
    if id(node) in sizes:
        if not sizes[id(node)][0]:
            _refuse("a value contains itself through an alias", node)
        return sizes[id(node)]
    sizes[id(node)] = (0, 0)  # while it is counted
    values, levels = 1, 0
    if isinstance(node, yaml.ScalarNode):
        values += len(node.value) // _CHARACTERS_PER_VALUE
        if node.tag.endswith((":int", ":float")) and _LONG_NUMBER.fullmatch(node.value):
            _refuse("a number of more than 400 digits", node)
    else:
        children = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
        for child in children:
            child_values, child_levels = _expanded_size(child, depth, sizes)
            values, levels = values + child_values, max(levels, child_levels)
        levels += 1
    if values > _MAX_VALUES:
        _refuse(_TOO_MANY, node)
    if levels > depth:
        _refuse(_TOO_DEEP.format(depth), node)
    sizes[id(node)] = (values, levels)
    return values, levels


def json_value(value: Any) -> Any:
    """Convert a value from `parse_yaml(as_written=True)` to JSON: `true` is a boolean, `yes` a text, and 3.0 is 3."""
    if isinstance(value, dict):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, Plain) and value in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return value.lower() == "true"
    if isinstance(value, Plain) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    return value if value is None or isinstance(value, int) else str(value)


def yaml_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line, from 1, of every key and item of a YAML text by path. Return {} if the text is invalid."""
    try:
        return _lines_of(_composed(text, _Loader(text), _MAX_DEPTH))
    except yaml.YAMLError:
        return {}


def _lines_of(root: Any) -> dict[tuple[str, ...], int]:
    """Return the line of every key and item below a node by path; raise a MarkedYAMLError for a duplicate key."""
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
    """Read one YAML document of at most `depth` levels from a file. Raise `error` if it cannot be read or parsed."""
    return parse_yaml(read_text(path, error, limit), path, error, depth=depth)


def parse_front_matter(
    text: str, path: Path, error: type[SkillEvaluatorError] = ConfigError, *, depth: int = YAML_DEPTH
) -> tuple[dict[str, Any], str]:
    """Return a text's front matter ({} if it is no mapping) and body. Raise `error` if there is no front matter."""
    match = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    if match is None:
        raise error(f"{path}:1: no front matter; write keys such as `name` at the top of the file between lines ---")
    values = parse_yaml("\n" + match[1], path, error, depth=depth)  # the line break replaces the first ---
    return values if isinstance(values, dict) else {}, match[2]


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, an empty list for None, and [value] for any other value."""
    return value if isinstance(value, list) else [] if value is None else [value]


def yaml_text(value: Any) -> str:
    """Format a value as YAML that people edit, with keys in their order and long lines folded.

    >>> yaml_text({"b": ["yes", "1"], "a": True})
    "b:\\n- 'yes'\\n- '1'\\na: true\\n"
    """
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))

"""A rubric's file → its criteria, with the line of every key; or everything that is wrong with it, each with its line.

Its own module because `judge lint` wants all problems with their lines, where other files of this library stop at the
first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import parse_json, problem_message, read_text
from skill_evaluator.library.roots import Root
from skill_evaluator.library.rubrics import Criterion, Rubric, RubricLevels
from skill_evaluator.library.versions import Problem
from skill_evaluator.library.yaml_files import CONFIGURATION, parse_yaml, yaml_lines
from skill_evaluator.text import key_path, nearest

Place = tuple[int | str, ...]
_EXPECTED = re.compile(r"'([^']*)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricText:
    """A rubric's file as it was read: its value, and the line of each place in it."""

    path: Path
    value: Any
    lines: Mapping[tuple[str, ...], int]

    @property
    def has_levels(self) -> bool:
        """Whether it is in the JSON form, the levels of one criterion."""
        return isinstance(self.value, dict) and "levels" in self.value

    def line(self, place: Place) -> int:
        """Return the line of a place, or of the nearest one around it; 1 where none is there."""
        names = tuple(map(str, place))
        return next((self.lines[names[:end]] for end in range(len(names), 0, -1) if names[:end] in self.lines), 1)

    def problem(self, place: Place, message: str) -> Problem:
        """Return a problem at a place, with its line."""
        where = key_path(place)
        return Problem(
            file=str(self.path), line=self.line(place), message=f"{message}{f' at {where}' if where else ''}"
        )


def load_rubric(path: Path, *, follow_links: bool = False) -> Rubric:
    """Read one rubric; raise ConfigError with file, line and key path of the first thing wrong."""
    text = read_rubric_text(path, follow_links=follow_links)
    try:
        return _checked(text)
    except ValidationError as problem:
        first = next(_problems(text, problem))
        raise ConfigError(f"{first.file}:{first.line}: {first.message}") from None


def find_rubrics(config_dir: Path) -> list[Path]:
    """Return the paths of all rubrics of a library, by name."""
    folder = config_dir / "rubrics"
    return sorted(path for path in folder.glob("*") if path.suffix in (".yaml", ".yml", ".json"))


def read_rubric_text(path: Path, *, follow_links: bool = False) -> RubricText:
    """Read a rubric's file without checking what it says; raise ConfigError where it is no YAML or JSON.

    It may not lead out of the folder it begins with, nor that out of the current one, unless `follow_links`. A path
    that is absolute or has `..` may not lead out of the rubric's own folder.
    """
    folder = path.parent if path.is_absolute() or ".." in path.parts else Path(*path.parts[:1])
    text = read_text(Root(folder, ConfigError, follow_links=follow_links).inside(path), ConfigError, CONFIGURATION)
    value = parse_json(text, path) if path.suffix == ".json" else parse_yaml(text, path)
    return RubricText(path=path, value=value, lines=yaml_lines(text))


def criteria_of(text: RubricText) -> tuple[dict[int, Criterion], list[Problem]]:
    """Return the criteria that are in order, by their index in the file, and everything that is wrong with the file."""
    try:
        return dict(enumerate(_checked(text).criteria)), []
    except ValidationError as problem:
        problems = sorted(_problems(text, problem), key=lambda problem: problem.line)
    good = {}
    for index, value in enumerate(_criteria_values(text.value)):
        try:
            good[index] = Criterion.model_validate(value)
        except ValidationError:
            continue  # it is among the problems
    return good, problems


def _checked(text: RubricText) -> Rubric:
    if text.has_levels:
        return RubricLevels.model_validate(text.value).rubric(text.path.stem)
    return Rubric.model_validate(text.value)


def _criteria_values(value: Any) -> Sequence[Any]:
    criteria = value.get("criteria") if isinstance(value, dict) else None
    return criteria if isinstance(criteria, list) else ()


def _problems(text: RubricText, problem: ValidationError) -> Iterator[Problem]:
    """Yield all that is wrong, each with its line and, for a name, the nearest of those that are known."""
    model: type[BaseModel] = RubricLevels if text.has_levels else Rubric
    for error in problem.errors(include_url=False):
        if error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]:
            continue  # pydantic counts the entries that are in order, and the others have their own problem
        place = tuple(part for part in error["loc"] if part != "[key]")  # how pydantic marks a key that is wrong
        yield text.problem(place, _with_suggestion(error, model))


def _with_suggestion(error: ErrorDetails, model: type[BaseModel]) -> str:
    *around, name = error["loc"] or ("",)
    if error["type"] == "extra_forbidden":
        return f"unknown key {nearest(str(name), _keys_at(model, around))}"
    if error["type"] == "literal_error":
        value = str(error["input"])
        return f"unknown value '{value}' {nearest(value, _EXPECTED.findall(error['ctx']['expected']))}"
    return problem_message(error)


def _keys_at(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """Return the keys that a mapping at a place may have, as the model's JSON Schema says."""
    schema = model.model_json_schema()
    node: Any = schema
    for part in (*place, None):
        while "$ref" in node or "anyOf" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node["anyOf"][0]
        if part is not None:
            node = node.get("properties", {}).get(part) or node.get("items") or node.get("additionalProperties")
    return list(node.get("properties", {}))

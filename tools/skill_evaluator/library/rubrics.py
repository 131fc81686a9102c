"""Rubrics for judges: `.evaluator/rubrics/*.yaml`, or JSON with the levels of one criterion."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, PositiveFloat, StringConstraints, ValidationError, model_validator

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import StrictModel, parse_json, problem_message, read_text
from skill_evaluator.identifiers import Share
from skill_evaluator.library.config import DEFAULT_LIMITS, SafetyLimits
from skill_evaluator.library.reading import CONFIGURATION, ConfinedFolder, parse_yaml, yaml_lines
from skill_evaluator.library.versions import Problem
from skill_evaluator.text import canonical_json, digest, key_path, listed

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Kind = Literal["objective", "subjective"]
MethodName = Literal["direct_scoring", "pairwise_comparison", "reference_based"]
Scale = Literal["1-3", "1-5", "1-10"]
_Always = Literal["require_justification_first", "ignore_length", "evidence_required", "different_model_family"]
_InPairs = Literal["position_swap", "length_normalization", "ignore_position", "ties_allowed"]
Mitigation = Literal[_Always, _InPairs]
MITIGATIONS: Mapping[Mitigation, tuple[str, ...]] = {
    **dict.fromkeys(get_args(_Always), get_args(MethodName)),
    **dict.fromkeys(get_args(_InPairs), ("pairwise_comparison",)),
}
"""The judging methods in which a mitigation has an effect, by mitigation."""

USUAL_METHOD: Mapping[str, MethodName] = {"objective": "direct_scoring", "subjective": "pairwise_comparison"}
"""The default method by the type of a criterion."""

USUAL_THRESHOLD = 0.7
SCALES: Mapping[Scale, int] = {"1-3": 3, "1-5": 5, "1-10": 10}


class Level(StrictModel):
    """The meaning of one score of a scale."""

    label: Text
    description: Text
    characteristics: tuple[Text, ...] = ()
    examples: tuple[Text, ...] = ()


class EdgeCase(StrictModel):
    """A situation in which two careful people could disagree, and the rule for it."""

    situation: Text
    guidance: Text


class Method(StrictModel):
    """The judging method of a criterion. Below the confidence threshold, a stronger judge or a person decides."""

    primary: MethodName
    bias_mitigations: tuple[Mitigation, ...] = ()
    confidence_threshold: Share = USUAL_THRESHOLD


class AppliesTo(StrictModel):
    """The field of a component's output that a criterion judges; by default the whole output."""

    component: Text
    field: str = Field(default="", description="path of the field, as `lint` prints it")


def _on_a_scale(level: int) -> int:
    if not 1 <= level <= max(SCALES.values()):
        raise ValueError(f"level {level} is not on a scale; levels are whole numbers from 1 to 3, 5 or 10")
    return level


Levels = Annotated[dict[Annotated[int, AfterValidator(_on_a_scale)], Level], Field(min_length=2)]


class Criterion(StrictModel):
    """One criterion of a rubric. Its `type` selects the default judging method."""

    name: Text
    # also a key in judge outputs, so vendors must accept it
    id: Text = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)
    type: Kind | None = Field(default=None, description="objective: careful people agree; subjective: tastes differ")
    description: Text
    rubric: Levels = Field(description="meaning of each score: level → label, description, characteristics, examples")
    scale: Scale | None = Field(default=None, description="default: the shortest scale with all levels of `rubric`")
    scoring_guidelines: tuple[Text, ...] = Field(default=(), description="instructions to the judge for this criterion")
    edge_cases: tuple[EdgeCase, ...] = ()
    method: Method | None = None
    applies_to: AppliesTo | None = None
    weight: PositiveFloat = 1.0

    @model_validator(mode="after")
    def _refuse_levels_beyond_the_scale(self) -> Self:
        beyond = [str(score) for score in sorted(self.rubric) if score > self.highest]
        if beyond:
            raise ValueError(f"level {listed(beyond)} of `rubric` is above the scale {self.scale}")
        return self

    @property
    def highest(self) -> int:
        """The best score of the scale; the worst is 1."""
        return SCALES[self.scale] if self.scale else min(best for best in SCALES.values() if best >= max(self.rubric))

    @property
    def confidence_threshold(self) -> float:
        """The confidence below which a judge result goes to a stronger judge or a person."""
        return self.method.confidence_threshold if self.method else USUAL_THRESHOLD

    @property
    def primary_method(self) -> MethodName:
        """The declared judging method, or else the default for the criterion's type, or else direct scoring."""
        return self.method.primary if self.method else USUAL_METHOD.get(self.type or "objective", "direct_scoring")


def _refuse_equal(entries: str, key: str, values: Sequence[object]) -> None:
    for index, value in enumerate(values):
        if (first_index := values.index(value)) != index:
            raise ValueError(f"{entries}[{first_index}] and {entries}[{index}] have the same {key} {value}")


class Rubric(StrictModel):
    """The file rubrics/<name>.yaml: criteria that are judged together."""

    criteria: tuple[Criterion, ...] = Field(min_length=1)
    scoring_guidelines: tuple[Text, ...] = Field(default=(), description="instructions for every criterion")
    unreviewed: bool = Field(default=False, description="drafted by a model and not reviewed yet")

    @model_validator(mode="after")
    def _refuse_equal_ids(self) -> Self:
        _refuse_equal("criteria", "id", [criterion.id for criterion in self.criteria])
        return self

    @property
    def digest(self) -> str:
        """The digest of the rubric's values except `unreviewed`."""
        return digest(canonical_json(self.model_dump(mode="json", exclude={"unreviewed"})))


class ScoredLevel(Level):
    """A level with its score, in a rubric that is a list of levels."""

    score: Annotated[int, AfterValidator(_on_a_scale)]


class RubricLevels(StrictModel):
    """A rubric with one criterion, in the JSON form of other tools: a list of levels."""

    levels: tuple[ScoredLevel, ...] = Field(min_length=2)
    edgeCases: tuple[EdgeCase, ...] = ()  # noqa: N815 (the key's spelling)
    scoringGuidelines: tuple[Text, ...] = ()  # noqa: N815
    name: Text | None = None
    type: Kind | None = None
    description: Text | None = None
    scale: Scale | None = None
    method: Method | None = None
    applies_to: AppliesTo | None = None
    weight: PositiveFloat = 1.0

    @model_validator(mode="after")
    def _refuse_equal_scores(self) -> Self:
        _refuse_equal("levels", "score", [level.score for level in self.levels])
        return self

    def rubric(self, stem: str) -> Rubric:
        """Convert to a rubric with the criterion id `stem`. Raise ValidationError if that id or a level is invalid."""
        levels = {level.score: level.model_dump(exclude={"score"}) for level in self.levels}
        best = max(self.levels, key=lambda level: level.score)
        criterion = {
            **self.model_dump(include={"type", "scale", "method", "applies_to", "weight"}),
            "name": self.name or stem.replace("-", " ").replace("_", " ").capitalize(),
            "id": stem,
            "description": self.description or best.description,
            "rubric": levels,
            "edge_cases": [case.model_dump() for case in self.edgeCases],
            "scoring_guidelines": self.scoringGuidelines,
        }
        return Rubric.model_validate({"criteria": [criterion]})


Place = tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricText:
    """A parsed rubric file: the value, and the line number of each path in the value."""

    path: Path
    value: Any
    lines: Mapping[tuple[str, ...], int]

    @property
    def has_levels(self) -> bool:
        """Whether the file is a list of levels for one criterion, as in `RubricLevels`."""
        return isinstance(self.value, dict) and "levels" in self.value

    def line(self, path: Place) -> int:
        """Return the line number of a path in the file, or of its nearest parent that has a line number, or 1."""
        names = tuple(map(str, path))
        return next((self.lines[names[:end]] for end in range(len(names), 0, -1) if names[:end] in self.lines), 1)

    def check(self) -> tuple[Rubric | None, list[Problem]]:
        """Return the rubric and no problems, or None and all problems sorted by line."""
        model: type[RubricLevels | Rubric] = RubricLevels if self.has_levels else Rubric
        try:
            parsed = model.model_validate(self.value)
            return (parsed.rubric(self.path.stem) if isinstance(parsed, RubricLevels) else parsed), []
        except ValidationError as problem:
            errors = problem.errors(include_url=False)
        problems = []
        for error in errors:
            if error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]:
                continue  # pydantic counts only valid entries, and the invalid ones are reported themselves
            location = tuple(part for part in error["loc"] if part != "[key]")  # pydantic's marker of an invalid key
            message, advice = problem_message(error, model, self.path)
            location_text = f"at {key_path(location)}" if location else ""
            text = " ".join(filter(None, (message, location_text, advice)))
            problems.append(Problem(file=str(self.path), line=self.line(location), message=text))
        return None, sorted(problems, key=lambda problem: problem.line)


def load_rubric(path: Path, limits: SafetyLimits = DEFAULT_LIMITS) -> Rubric:
    """Read a rubric file. Raise ConfigError for its first problem."""
    rubric, problems = read_rubric_text(path, limits).check()
    if rubric is None:
        raise ConfigError(f"{problems[0].file}:{problems[0].line}: {problems[0].message}")
    return rubric


def find_rubrics(config_dir: Path) -> list[Path]:
    """Return the paths of the .yaml, .yml and .json files in `<config_dir>/rubrics`, sorted by name."""
    return sorted(path for path in (config_dir / "rubrics").glob("*") if path.suffix in (".yaml", ".yml", ".json"))


def read_rubric_text(path: Path, limits: SafetyLimits = DEFAULT_LIMITS) -> RubricText:
    """Parse a rubric file without checking its content. Raise ConfigError if it is not valid YAML or JSON."""
    # no link may lead out of the first folder of a relative path, or else out of the file's own folder
    folder = path.parent if path.is_absolute() or ".." in path.parts else Path(*path.parts[:1])
    inside = ConfinedFolder(folder, ConfigError, follow_links=limits.follow_links).inside(path)
    text = read_text(inside, ConfigError, CONFIGURATION)
    value = parse_json(text, path) if path.suffix == ".json" else parse_yaml(text, path)
    return RubricText(path=path, value=value, lines=yaml_lines(text))

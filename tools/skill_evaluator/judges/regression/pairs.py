"""What a regression judge compares: JSON Lines of a prompt with two outputs → checked pairs with their dimensions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from skill_evaluator.errors import ConfigError, JudgeError
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.items import JudgedItem, JudgedText
from skill_evaluator.judges.regression.dimensions import Dimension, dimension_name, dimensions_of
from skill_evaluator.judges.regression.reading import OutputPair
from skill_evaluator.text import canonical_json, digest, nearest

_NAME_DIGITS = 12


def _names(value: Any) -> Any:
    return [name for name in value.split(",") if name.strip()] if isinstance(value, str) else value


class RegressionItem(JudgedItem):
    """A line: a prompt with the output in use and the new one. Without `id` a digest of the line names it.

    `regression_dimensions`, a list or a text with commas, are those of this pair, whatever the command asks about.
    `baseline_model` and `candidate_model` wrote the outputs, where that is known.
    """

    input: JudgedText = Field(min_length=1, validation_alias=AliasChoices("prompt", "input"))
    baseline_output: JudgedText = Field(min_length=1)
    candidate_output: JudgedText
    regression_dimensions: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    baseline_model: Label | None = None
    candidate_model: Label | None = None

    @property
    def writers(self) -> list[str]:
        """Who wrote the outputs, as far as that is known."""
        return [name for name in (self.baseline_model, self.candidate_model) if name is not None]

    @model_validator(mode="before")
    @classmethod
    def _have_a_name(cls, line: Any) -> Any:
        if isinstance(line, dict) and "id" not in line:
            return {"id": digest(canonical_json(line)).removeprefix("sha256:")[:_NAME_DIGITS], **line}
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """One pair as it is asked about: its texts, and the dimensions that are asked of it."""

    id: str
    stratum: str
    digest: str
    outputs: OutputPair
    dimensions: tuple[Dimension, ...]


def pairs_of(
    items: Mapping[str, RegressionItem], names: Sequence[str], preset: str, blocking: Collection[str]
) -> tuple[JudgedPair, ...]:
    """Return items with their dimensions: their own, else those that are named, else those of the preset.

    Raise ConfigError for an unknown preset, one named twice, and a blocking dimension that no item is asked about;
    JudgeError naming the item whose own dimensions are wrong.
    """
    pairs = []
    for item in items.values():
        own = item.regression_dimensions
        try:
            asked = dimensions_of(own or names, "default" if own else preset)
            mine = {dimension_name(name) for name in blocking} & {dimension.name for dimension in asked}
            dimensions = dimensions_of(own or names, "default" if own else preset, mine)
        except ConfigError as problem:
            raise JudgeError(f"item '{item.id}': {problem}") if own else problem from None
        pairs.append(
            JudgedPair(
                id=item.id,
                stratum=item.stratum,
                digest=item.digest,
                outputs=OutputPair(prompt=item.input, baseline=item.baseline_output, candidate=item.candidate_output),
                dimensions=dimensions,
            )
        )
    return tuple(pairs)


def refuse_unasked_blocking(pairs: Sequence[JudgedPair], blocking: Collection[str]) -> None:
    """Raise ConfigError for a blocking dimension that no pair is asked about: it would never block."""
    asked = {dimension.name: None for pair in pairs for dimension in pair.dimensions}
    for name in blocking:
        if dimension_name(name) not in asked:
            raise ConfigError(f"the blocking dimension '{name}' is not asked about {nearest(name, asked)}")

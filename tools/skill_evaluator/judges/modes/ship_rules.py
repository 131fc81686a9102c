"""The dimensions of a regression, and the rules by which code, not a model, decides whether a version ships."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from skill_evaluator.errors import ConfigError
from skill_evaluator.text import nearest

FindingVerdict = Literal["candidate_better", "same", "candidate_worse"]
Impact = Literal["low", "medium", "high"]
RegressionSeverity = Literal["none", "low", "medium", "high"]
ShipDecision = Literal["ship", "review_required", "block"]
IMPACTS: tuple[Impact, ...] = ("low", "medium", "high")  # ascending
NONE: Literal["none"] = "none"
SEVERITIES = (NONE, *IMPACTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A quality with its question for the judge. A regression in a `blocking` dimension blocks at any impact."""

    name: str
    question: str
    blocking: bool = False


_FORM = "Does it have the form that the prompt demands: kind of output, order, number of items, length?"
_QUESTIONS: Mapping[str, str] = {
    "factuality": "Is every statement true, and supported by what the prompt gives?",
    "completeness": "Is everything there that the prompt asks for?",
    "format_adherence": _FORM,
    "format": _FORM,
    "tone": "Does it address its reader as the prompt wants, or as is fitting?",
    "correctness": "Does the code do what is demanded, for every input allowed?",
    "efficiency": "Does the code take no more time and memory than it has to?",
}
_DEFAULT_QUESTION = "Is it as good as the other in this respect?"
PRESETS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "default": ("factuality", "completeness", "format_adherence"),
        "chat": ("factuality", "completeness", "tone"),
        "code": ("correctness", "format", "efficiency"),
        "checklist": ("completeness", "format"),
    }
)
_MAX_NAME = 100  # characters


def dimensions_of(
    names: Sequence[str] = (), preset: str = "default", blocking: Collection[str] = ()
) -> tuple[Dimension, ...]:
    """Return the dimensions in `names`, or those of the preset if there are no names. Commas may separate names.

    An unknown name defines a new dimension. These dimensions are blocking: factuality, those in `blocking`, and
    correctness if it is from the preset `code`. Raise ConfigError for an unknown preset, and for a name that is
    repeated, too long or unprintable.
    """
    if preset not in PRESETS:
        raise ConfigError(f"unknown preset '{preset}' {nearest(preset, PRESETS)}")
    dimension_names = [dimension_name(part) for name in names for part in name.split(",") if part.strip()]
    for name in dimension_names:
        if dimension_names.count(name) > 1:
            raise ConfigError(f"the dimension '{name}' is named twice")
        if not name.isprintable() or len(name) > _MAX_NAME:
            raise ConfigError(f"{name[:_MAX_NAME]!a} is not a dimension: use at most {_MAX_NAME} printable characters")
    blocking_names = {"factuality", *map(dimension_name, blocking)}
    if preset == "code" and not dimension_names:
        blocking_names.add("correctness")
    return tuple(
        Dimension(name=name, question=_QUESTIONS.get(name, _DEFAULT_QUESTION), blocking=name in blocking_names)
        for name in dimension_names or PRESETS[preset]
    )


def dimension_name(text: str) -> str:
    """Return the name of a dimension in lower case, with underscores between its words.

    >>> dimension_name(" Format-Adherence ")
    'format_adherence'
    """
    return "_".join(text.casefold().replace("-", " ").replace("_", " ").split())


def blocking_sentence(dimensions: Sequence[Dimension]) -> str:
    """Return a sentence with the names of the dimensions in which any regression blocks the release."""
    names = [dimension.name for dimension in dimensions if dimension.blocking]
    return f"any regression of {' or '.join(names) or 'no dimension'} blocks, whatever its impact"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipRules:
    """The rules of `decide`. `one_low`: the decision if the only regression has low impact.

    If `high_stakes` is set, nothing ships without the approval of a person. For an item with its own dimensions,
    `blocking` names the dimensions that block.
    """

    dimensions: tuple[Dimension, ...] = field(default_factory=dimensions_of)
    one_low: Literal["ship", "review_required"] = "review_required"
    high_stakes: bool = False
    blocking: Collection[str] = ()


def highest(impacts: Iterable[Impact]) -> Impact | None:
    """Return the highest impact. Return None if `impacts` is empty."""
    return max(impacts, key=IMPACTS.index, default=None)


def decide(worse: Mapping[str, Impact], rules: ShipRules) -> tuple[ShipDecision, str]:
    """Return the ship decision and its reason; `worse` has the impact of each regression by dimension."""
    blocking = [dimension.name for dimension in rules.dimensions if dimension.blocking and dimension.name in worse]
    high, medium = ([name for name, impact in worse.items() if impact == level] for level in ("high", "medium"))
    rules_in_order: list[tuple[ShipDecision, str, Collection[str]]] = [
        ("block", "a regression of high impact", high),
        ("block", "a regression in a blocking dimension", blocking),
        ("review_required", "a regression of medium impact", medium),
        ("review_required", "several regressions of low impact", worse if len(worse) > 1 else ()),
        (rules.one_low, "one regression of low impact", worse),
    ]
    decisions = ((decision, f"{reason}: {', '.join(names)}") for decision, reason, names in rules_in_order if names)
    decision, reason = next(decisions, ("ship", "no regression"))
    if decision == "ship" and rules.high_stakes:
        return "review_required", "the stakes are high: a person must agree"
    return decision, reason

"""The dimensions of a regression, and the rules that turn its impacts into a severity and a ship decision.

No model applies these rules. They stand in one place so that a person can read what ships.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from skill_evaluator.errors import ConfigError
from skill_evaluator.text import nearest

Finding = Literal["candidate_better", "same", "candidate_worse"]
Impact = Literal["low", "medium", "high"]
RegressionSeverity = Literal["none", "low", "medium", "high"]
ShipDecision = Literal["ship", "review_required", "block"]
IMPACTS: tuple[Impact, ...] = ("low", "medium", "high")  # from the least
NONE = "none"
SEVERITIES = (NONE, *IMPACTS)


def count_severities(given: Iterable[str]) -> dict[str, int]:
    """Count pairs by the severity of their regressions."""
    counts = Counter(given)
    return {level: counts[level] for level in SEVERITIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One quality; `question` is what the judge is asked about it.

    A regression in a `blocking` dimension never ships, whatever its impact.
    """

    name: str
    question: str
    blocking: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Dimensions for one kind of output, and the further dimensions that block there."""

    names: tuple[str, ...]
    blocking: frozenset[str] = frozenset()


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
_ALWAYS_BLOCKING = frozenset({"factuality"})
_OTHER_QUESTION = "Is it as good as the other in this respect?"
PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "default": Preset(names=("factuality", "completeness", "format_adherence")),
        "chat": Preset(names=("factuality", "completeness", "tone")),
        "code": Preset(names=("correctness", "format", "efficiency"), blocking=frozenset({"correctness"})),
        "checklist": Preset(names=("completeness", "format")),
    }
)
_MAX_NAME = 100  # characters


def dimensions_of(
    names: Sequence[str] = (), preset: str = "default", blocking: Collection[str] = ()
) -> tuple[Dimension, ...]:
    """Return the named dimensions (repeated, or separated by commas), by default those of a preset.

    An unknown name is a dimension of the team's own. `blocking` names further blocking dimensions. Raise ConfigError
    for an unknown preset, a repeated or unprintable name, and a blocking dimension that is not among them.

    >>> [dimension.name for dimension in dimensions_of(["factuality, Format Adherence"])]
    ['factuality', 'format_adherence']
    """
    if preset not in PRESETS:
        raise ConfigError(f"unknown preset '{preset}' {nearest(preset, PRESETS)}")
    wanted = [dimension_name(part) for name in names for part in name.split(",") if part.strip()]
    twice = next((name for name in wanted if wanted.count(name) > 1), None)
    if twice:
        raise ConfigError(f"the dimension '{twice}' is named twice")
    for name in wanted:
        if not name.isprintable() or len(name) > _MAX_NAME:
            raise ConfigError(f"{name[:_MAX_NAME]!a} is not a dimension: use at most {_MAX_NAME} printable characters")
    chosen = wanted or list(PRESETS[preset].names)
    further = {dimension_name(name) for name in blocking} | (frozenset() if wanted else PRESETS[preset].blocking)
    for name in sorted(further - set(chosen)):
        raise ConfigError(f"the blocking dimension '{name}' is not requested {nearest(name, chosen)}")
    blocks = further | _ALWAYS_BLOCKING
    return tuple(
        Dimension(name=name, question=_QUESTIONS.get(name, _OTHER_QUESTION), blocking=name in blocks) for name in chosen
    )


def with_blocking(dimensions: Sequence[Dimension], names: Collection[str]) -> tuple[Dimension, ...]:
    """Return the dimensions with these names blocking as well; other names are ignored."""
    further = {dimension_name(name) for name in names}
    return tuple(replace(one, blocking=one.blocking or one.name in further) for one in dimensions)


def dimension_name(text: str) -> str:
    """Return a name as records have it.

    >>> dimension_name(" Format-Adherence ")
    'format_adherence'
    """
    return "_".join(text.casefold().replace("-", " ").replace("_", " ").split())


def blocking_sentence(dimensions: Sequence[Dimension]) -> str:
    """Return a sentence on the blocking dimensions, for the prompt, the report and the dry run.

    >>> blocking_sentence(dimensions_of(preset="code"))
    'any regression of correctness blocks, whatever its impact'
    """
    names = [dimension.name for dimension in dimensions if dimension.blocking]
    return f"any regression of {' or '.join(names) if names else 'no dimension'} blocks, whatever its impact"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipRules:
    """What the team decides: the result of one regression of low impact, and whether a person must always agree."""

    one_low: Literal["ship", "review_required"] = "review_required"
    high_stakes: bool = False


def severity_of(impacts: Sequence[Impact]) -> RegressionSeverity:
    """Return the highest impact, or `none` without a regression."""
    return max(impacts, key=IMPACTS.index) if impacts else "none"


def decide(worse: Mapping[str, Impact], dimensions: Sequence[Dimension], rules: ShipRules) -> tuple[ShipDecision, str]:
    """Return the decision on these regressions and its reason: the first rule that holds.

    >>> decide({"tone": "low"}, [], ShipRules())
    ('review_required', 'one regression of low impact: tone')
    """
    high = [name for name, impact in worse.items() if impact == "high"]
    blocking = [dimension.name for dimension in dimensions if dimension.blocking and dimension.name in worse]
    medium = [name for name, impact in worse.items() if impact == "medium"]
    if high:
        return "block", f"a regression of high impact: {', '.join(high)}"
    if blocking:
        return "block", f"a regression in a blocking dimension: {', '.join(blocking)}"
    if medium:
        return "review_required", f"a regression of medium impact: {', '.join(medium)}"
    if len(worse) > 1:
        return "review_required", f"several regressions of low impact: {', '.join(worse)}"
    if worse and rules.one_low == "review_required":
        return "review_required", f"one regression of low impact: {', '.join(worse)}"
    if rules.high_stakes:
        return "review_required", "the stakes are high: a person must agree"
    return "ship", f"one regression of low impact: {', '.join(worse)}" if worse else "no regression"

"""What evals/datasets.json may say of one field: how its leaf is compared, how its array is aligned, what it weighs.

A plain value, so that scoring imports no pydantic: `metadata` is what pydantic checks where settings are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, get_args

from skill_evaluator import plugins
from skill_evaluator.errors import ComponentError
from skill_evaluator.metrics import embedding
from skill_evaluator.text import nearest

Compare = Literal["exact", "string", "number", "date", "category", "text", "ignore"]
Align = Literal["key", "best", "ordered", "set"]
Similarity = Literal["token_f1", "embedding"]
COMPARATOR_GROUP = "skill_evaluator.comparators"  # the entry points of packages that add some
_NOT_NEGATIVE = {"ge": 0}
_SHARE = {"ge": 0, "le": 1}
_COMPARATOR = {"examples": list(get_args(Compare)), "description": "a comparator shipped, or added by a package"}
_SIMILARITY = {"description": "what the threshold of a text is of; token_f1 when left out"}
_KEY = {"description": "fields that identify an item, for align: key"}
_NO_OPTIONS = {"compare", "weight", "align", "key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRule:
    """What evals/datasets.json may say of one path; everything left out is read off the schema."""

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    compare: str | None = field(default=None, metadata=_COMPARATOR)
    tolerance: float = field(default=0.0, metadata=_NOT_NEGATIVE)
    relative_tolerance: float = field(default=0.0, metadata=_NOT_NEGATIVE)
    from_string: bool = False
    casefold: bool = False
    ignore_punctuation: bool = False
    threshold: float | None = field(default=None, metadata=_SHARE)
    similarity: Similarity | None = field(default=None, metadata=_SIMILARITY)
    formats: tuple[str, ...] = ()
    tolerance_days: float = field(default=0.0, metadata=_NOT_NEGATIVE)
    weight: float = field(default=1.0, metadata=_NOT_NEGATIVE)
    align: Align | None = None
    key: tuple[str, ...] = field(default=(), metadata=_KEY)

    @property
    def counts(self) -> bool:
        """Whether the field's leaves enter field_level_f1 (free text does only with a threshold)."""
        return self.compare != "ignore" and not (self.compare == "text" and self.threshold is None)

    @property
    def exact_equality(self) -> bool:
        """Whether «equal» is an equivalence relation, so that equal canonical forms decide it."""
        return self.threshold is None and not (self.tolerance or self.relative_tolerance or self.tolerance_days)

    @property
    def options(self) -> dict[str, Any]:
        """The comparator's settings that are not at their defaults, by name."""
        settings = {member.name: (getattr(self, member.name), member.default) for member in fields(self)}
        return {
            name: value for name, (value, default) in settings.items() if name not in _NO_OPTIONS and value != default
        }


def refuse_wrong_rules(rules: Mapping[str, FieldRule], place: str, where: str) -> None:
    """Raise ComponentError for a rule that cannot be followed; `place` is the key of the rules in `where`."""
    for path, rule in rules.items():
        _refuse_unknown_comparator(rule, f"at {place}.{path}.compare in {where}")
        _refuse_wrong_similarity(rule, f"at {place}.{path}.similarity in {where}")


def _refuse_unknown_comparator(rule: FieldRule, at: str) -> None:
    """One that is neither shipped nor added by a package."""
    shipped = get_args(Compare)
    if rule.compare is None or rule.compare in shipped:
        return
    added = plugins.names(COMPARATOR_GROUP)
    if rule.compare not in added:
        raise ComponentError(f"unknown comparator '{rule.compare}' {nearest(rule.compare, (*shipped, *added))} {at}")


def _refuse_wrong_similarity(rule: FieldRule, at: str) -> None:
    """One of a field that is no declared text, or that needs what is not installed."""
    if rule.similarity is not None and rule.compare != "text":
        raise ComponentError(f"similarity: {rule.similarity} without compare: text {at}")
    if rule.similarity == "embedding" and not embedding.installed():
        raise ComponentError(f"similarity: embedding {at} needs its model; install it with {embedding.INSTALL}")

"""What evals/datasets.json may say of one field: how its leaf is compared, how its array is aligned, what it weighs."""

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, field_validator

from skill_evaluator import plugins
from skill_evaluator.config import Share
from skill_evaluator.text import nearest

Compare = Literal["exact", "string", "number", "date", "category", "text", "ignore"]
Align = Literal["key", "best", "ordered", "set"]
COMPARATOR_GROUP = "skill_evaluator.comparators"  # the entry points of packages that add some


class FieldRule(BaseModel):
    """What evals/datasets.json may say of one path; everything left out is read off the schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    compare: str | None = Field(
        default=None, examples=list(get_args(Compare)), description="a comparator shipped, or added by a package"
    )
    tolerance: NonNegativeFloat = 0.0
    relative_tolerance: NonNegativeFloat = 0.0
    from_string: bool = False
    casefold: bool = False
    ignore_punctuation: bool = False
    threshold: Share | None = None
    formats: tuple[str, ...] = ()
    tolerance_days: NonNegativeFloat = 0.0
    weight: NonNegativeFloat = 1.0
    align: Align | None = None
    key: tuple[str, ...] = Field(default=(), description="fields that identify an item, for align: key")

    @field_validator("compare")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        shipped = get_args(Compare)
        if name is None or name in shipped:
            return name
        added = plugins.names(COMPARATOR_GROUP)
        if name not in added:
            raise ValueError(f"unknown comparator '{name}' {nearest(name, (*shipped, *added))}")
        return name

    @property
    def counts(self) -> bool:
        """Whether the field's leaves enter field_level_f1 (free text does only with a threshold)."""
        return self.compare != "ignore" and not (self.compare == "text" and self.threshold is None)

    @property
    def exact_equality(self) -> bool:
        """Whether «equal» is an equivalence relation, so that equal canonical forms decide it."""
        return self.threshold is None and not (self.tolerance or self.relative_tolerance or self.tolerance_days)

"""What evals/datasets.json may say of one field: how its leaf is compared, how its array is aligned, what it weighs.

A plain value, so that scoring imports no pydantic: `metadata` is what pydantic checks where settings are read.
"""

import datetime
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from skill_evaluator import plugins
from skill_evaluator.errors import ComponentError
from skill_evaluator.files import validated
from skill_evaluator.text import listed, nearest

Compare = Literal["exact", "string", "number", "date", "category", "text", "ignore"]
Align = Literal["key", "best", "ordered", "set"]
COMPARATOR_GROUP = "skill_evaluator.comparators"  # the entry points of packages that add some
_NOT_NEGATIVE = {"ge": 0}
_SHARE = {"ge": 0, "le": 1}
_COMPARATOR = {"examples": list(get_args(Compare)), "description": "a comparator shipped, or added by a package"}
_KEY = {"description": "fields that identify an item, for align: key"}
_NO_OPTIONS = {"compare", "weight", "align", "key"}
_OPTIONS_OF: Mapping[str, set[str]] = {
    "exact": set(),
    "string": {"casefold", "ignore_punctuation", "threshold"},
    "number": {"tolerance", "relative_tolerance", "from_string"},
    "date": {"formats", "tolerance_days"},
    "category": set(),
    "text": {"threshold"},
}
_SIMPLE = {"exact": "exact value", "ignore": "not looked at"}
_ALIGNED = {"best": "by best assignment", "ordered": "in order", "set": "as a set"}
_DAYS = (datetime.datetime(2001, 2, 3, tzinfo=datetime.UTC), datetime.datetime(2014, 12, 25, tzinfo=datetime.UTC))


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
    formats: tuple[str, ...] = ()
    tolerance_days: float = field(default=0.0, metadata=_NOT_NEGATIVE)
    weight: float = field(default=1.0, metadata={"ge": 0, "le": 1_000_000})
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
    shipped = get_args(Compare)
    for path, rule in rules.items():
        added = () if rule.compare in (None, *shipped) else plugins.names(COMPARATOR_GROUP)
        if rule.compare is not None and rule.compare not in (*shipped, *added):
            meant = f"(align: {rule.compare}?)" if rule.compare in get_args(Align) else ""
            meant = meant or nearest(rule.compare, (*shipped, *added))
            raise ComponentError(f"unknown comparator '{rule.compare}' {meant} at {place}.{path}.compare in {where}")
        for form in rule.formats:
            _refuse_unreadable_format(form, f"at {place}.{path}.formats in {where}")


def refuse_idle_settings(rule: FieldRule, kind: Literal["leaf", "array", "object"], path: str, where: str) -> None:
    """Raise ComponentError for a setting that would change nothing where it stands; nobody should rely on it.

    A leaf that is ignored, or compared by a package's comparator, may have any option.
    """
    given = [*rule.options, *(["weight"] if rule.weight != 1 else [])]
    aligned = [name for name in ("align", "key") if getattr(rule, name)]
    if kind == "leaf":
        allowed = _OPTIONS_OF.get(rule.compare or "exact", set(given)) | {"weight"}
        takes = f"{rule.compare} takes {', '.join(sorted(allowed))}"
    elif kind == "array":
        allowed = {"align"} | ({"key"} if rule.align == "key" else set())
        takes = f"an array takes align, and a key with align: key; its items are fields.{path}[]"
    else:
        allowed = set()
        takes = f"an object is compared by its fields, such as fields.{path}.…, unless it says compare"
    idle = [name for name in (*given, *aligned) if name not in allowed]
    if idle:
        raise ComponentError(f"{idle[0]} does nothing at fields.{path} in {where}: {takes}")


def _refuse_unreadable_format(form: str, at: str) -> None:
    """Refuse a format that strptime does not know, or by which all days are the same: YYYY-MM-DD."""
    with suppress(ValueError):
        first, second = (datetime.datetime.strptime(day.strftime(form), form) for day in _DAYS)
        if first != second:
            return
    raise ComponentError(f"no date is written '{form}' {at}; formats are those of strptime, such as %Y-%m-%d")


def field_rules(settings: Any, where: str) -> dict[str, FieldRule]:
    """Read rules by path from dicts of settings; raise ComponentError with the key path of the fault."""
    from pydantic import BaseModel  # only whoever gives settings waits for it

    class _FieldSettings(BaseModel):
        fields: dict[str, FieldRule]

    rules = validated(_FieldSettings, {"fields": settings}, Path(where), ComponentError).fields
    refuse_wrong_rules(rules, "fields", where)
    return rules


def compared_as(rule: FieldRule) -> str:
    """Describe a leaf's comparison with its options.

    >>> compared_as(FieldRule(compare="number", tolerance=0.005, from_string=True))
    'number, ± 0.005, also written as text'
    >>> compared_as(FieldRule(compare="text", threshold=0.8))
    'text, from token F1 0.8'
    """
    kind = rule.compare or "exact"
    if kind == "text":
        return "text, reported only" if rule.threshold is None else f"text, from token F1 {rule.threshold:g}"
    options = rule.options.items()
    words = [_OPTIONS[name](value) if name in _OPTIONS else f"{name} {value}" for name, value in options]
    return ", ".join([_SIMPLE.get(kind, kind), *words])


def aligned_by(rule: FieldRule) -> str:
    """Describe how the items of an array find each other.

    >>> aligned_by(FieldRule(align="key", key=("category", "period")))
    'by key category + period'
    """
    if rule.align == "key":
        return f"by key {' + '.join(rule.key)}"
    return _ALIGNED[rule.align] if rule.align else "by what its items are"


_OPTIONS: Mapping[str, Callable[[Any], str]] = {
    "tolerance": lambda value: f"± {value:g}",
    "relative_tolerance": lambda value: f"± {value * 100:g} %",
    "from_string": lambda value: "also written as text",
    "casefold": lambda value: "case folded",
    "ignore_punctuation": lambda value: "punctuation ignored",
    "threshold": lambda value: f"from {value:g} edit similarity",
    "formats": lambda value: f"written {listed(value, 3)}{' ways' * (len(value) > 3)}",
    "tolerance_days": lambda value: f"± {value:g} days",
}

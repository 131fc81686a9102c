"""The comparators of leaves, and the plan of `schema.json` and the declared fields: how leaves and arrays compare.

A leaf without a rule (a key that the model invented) is compared by the type of its value.
"""

import datetime
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Any

from skill_evaluator import plugins
from skill_evaluator.comparing import declarations
from skill_evaluator.comparing.declarations import COMPARATOR_GROUP, Align, FieldRule, SchemaPath, below
from skill_evaluator.errors import ComponentError
from skill_evaluator.text import (
    frozen,
    keys_by_nfc_name,
    nearest,
    nearest_path,
    normalise,
    split_words,
    with_nfc_keys,
    without_punctuation,
)

_NOT_AMOUNT = re.compile(r"[^\d.,]|[.,](?!\s*\d)|(?<=[^\W\d_])[.,]")  # includes the point of «Rs.» and of «5.-»
_MINUS = re.compile(r"(?<![.,])[-−]")
_JSON_NUMBER = re.compile(r"\s*-?(0|[1-9][0-9]{0,99})(\.[0-9]{1,99})?([eE][-+]?[0-9]{1,2})?\s*")  # always finite
_TWO_NUMBERS = re.compile(r"\d[^\d]*[^\d\s.,'’][^\d]*\d")


@dataclass(frozen=True, slots=True)
class Comparator:
    """A comparator. Two leaves are equal if their hashable `canonical` forms are equal.

    Under a rule with a tolerance or threshold, `close` (if any) decides instead. It gets the two raw values, must be
    reflexive and symmetric, and must return the same result for values with the same forms. Neither function is called
    with null.
    """

    canonical: Callable[[Any, FieldRule], Hashable]
    close: Callable[[Any, Any, FieldRule], bool] | None = None


@cache
def comparator(name: str) -> Comparator:
    """Return a comparator by name. Raise ComponentError if there is none, ConfigError if its plugin fails to load."""
    if name in COMPARATORS:
        return COMPARATORS[name]
    added = plugins.load(COMPARATOR_GROUP, name, Comparator)
    if added is None:
        choices = COMPARATORS.keys() | set(plugins.names(COMPARATOR_GROUP))
        raise ComponentError(f"unknown comparator '{name}' {nearest(name, choices)}")
    called = partial(partial, plugins.call, f"comparator '{name}'")
    return Comparator(called(added.canonical), added.close and called(added.close))


def equal(truth: Any, output: Any, rule: FieldRule) -> bool:
    """Return whether two leaves are equal under a rule, including its tolerance or threshold. Null equals only null."""
    if truth is None or output is None:
        return truth is output
    by = comparator(rule.compare or "exact")
    if rule.exact_equality or by.close is None:
        return by.canonical(truth, rule) == by.canonical(output, rule)
    return by.close(truth, output, rule)


def canonical(value: Any, rule: FieldRule) -> Hashable:
    """Return the hashable form of a leaf. Leaves with equal forms are equal under a rule without a tolerance."""
    return comparator(rule.compare or "exact").canonical(value, rule)


def _string(value: Any, rule: FieldRule) -> Hashable:
    if not isinstance(value, str):
        return frozen(value)
    text = normalise(value)
    if rule.casefold:
        text = text.casefold()
    return without_punctuation(text) if rule.ignore_punctuation else text


def _has_edit_similarity(truth: Any, output: Any, rule: FieldRule) -> bool:
    truth_text, output_text = _string(truth, rule), _string(output, rule)
    if not (isinstance(truth_text, str) and isinstance(output_text, str)):
        return truth_text == output_text
    from rapidfuzz.distance import Levenshtein

    longest = max(len(truth_text), len(output_text))
    threshold = 1.0 if rule.threshold is None else rule.threshold
    edits = int((1 - threshold) * longest + 1e-9)  # whole edits: 1 - 0.8 of 5 letters is one, not 0.9999
    return Levenshtein.distance(truth_text, output_text, score_cutoff=edits) <= edits


def amount(text: str) -> float | None:
    """Return the number in a printed amount, such as `RM 1,234.50`, `1.234,50 €`, `(12.00)` or `-3`.

    If both separators occur, the last one is decimal. A comma alone is a thousands separator if exactly three digits
    follow it in every group, else decimal; a point alone is decimal. Return None for other texts, and for texts with
    two numbers (`3 x 4.00`, `10-12`).
    """
    if _TWO_NUMBERS.search(text):
        return None
    negative = _MINUS.search(text) or (text.strip().startswith("(") and text.strip().endswith(")"))
    digits = _NOT_AMOUNT.sub("", text)
    comma, point = digits.rfind(","), digits.rfind(".")
    if comma > point and (point >= 0 or not re.fullmatch(r"\d{1,3}(,\d{3})+", digits)):
        digits = digits.replace(".", "").replace(",", ".")
    else:
        digits = digits.replace(",", "")
    if not re.fullmatch(r"(\d+|\d*\.\d+)", digits):
        return None
    number = -float(digits) if negative else float(digits)
    return number if math.isfinite(number) else None  # hundreds of digits


def read_number(text: str) -> int | float | str:
    """Return the number in a text of JSON's number format. Return any other text unchanged.

    >>> read_number("4.750"), read_number("1E+2"), read_number("007"), read_number("4 kg")
    (4.75, 100.0, '007', '4 kg')
    """
    return json.loads(text) if _JSON_NUMBER.fullmatch(text) else text


def _as_number(value: Any, rule: FieldRule) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    return amount(value) if rule.from_string and isinstance(value, str) else None


def _number(value: Any, rule: FieldRule) -> Hashable:
    number = _as_number(value, rule)
    return _category(value, rule) if number is None else frozen(number)


def _within_tolerance(truth: Any, output: Any, rule: FieldRule) -> bool:
    truth_number, output_number = _as_number(truth, rule), _as_number(output, rule)
    if truth_number is None or output_number is None:
        return _number(truth, rule) == _number(output, rule)
    if truth_number == output_number:
        return True
    try:
        allowed = max(rule.tolerance, rule.relative_tolerance * max(abs(truth_number), abs(output_number)))
        difference = abs(truth_number - output_number)
        return math.isfinite(difference) and (difference <= allowed or math.isclose(difference, allowed, rel_tol=1e-9))
    except OverflowError:  # an integer of more than 308 digits
        return False


def _as_date(value: Any, rule: FieldRule) -> datetime.date | None:
    return _parsed_date(normalise(value), rule.formats or ("%Y-%m-%d",)) if isinstance(value, str) else None


@lru_cache(maxsize=4096)  # strptime caches only five formats
def _parsed_date(text: str, formats: tuple[str, ...]) -> datetime.date | None:
    for form in formats:
        with suppress(ValueError):
            return datetime.datetime.strptime(text, form).date()
    return None


def _date(value: Any, rule: FieldRule) -> Hashable:
    day = _as_date(value, rule)
    return ("date", day) if day else frozen(normalise(value) if isinstance(value, str) else value)


def _within_days(truth: Any, output: Any, rule: FieldRule) -> bool:
    truth_date, output_date = _as_date(truth, rule), _as_date(output, rule)
    if truth_date is None or output_date is None:
        return _date(truth, rule) == _date(output, rule)
    return abs((truth_date - output_date).days) <= rule.tolerance_days


def _has_token_f1(truth: Any, output: Any, rule: FieldRule) -> bool:
    if not (isinstance(truth, str) and isinstance(output, str)):
        return frozen(truth) == frozen(output)
    return token_f1(truth, output) >= (1.0 if rule.threshold is None else rule.threshold)


def _category(value: Any, rule: FieldRule) -> Hashable:
    return normalise(value) if isinstance(value, str) else frozen(value)


def token_f1(truth: str, output: str) -> float:
    """Return the F1 of the output's words against the truth's words, from 0 to 1.

    A repeated word counts each time. If both texts are empty, return 1. The formula is that of SQuAD (Rajpurkar et al.
    2016, https://arxiv.org/abs/1606.05250), but words such as "the" are not removed.

    >>> round(token_f1("the cat sat", "the cat ran"), 3)
    0.667
    """
    truth_words, output_words = split_words(truth), split_words(output)
    if not truth_words and not output_words:
        return 1.0
    common = sum((Counter(truth_words) & Counter(output_words)).values())
    return 2 * common / (len(truth_words) + len(output_words))


def rouge_l(truth: str, output: str) -> float:
    """Return the F-measure of the longest common subsequence of words (β = 1).

    The range is 0 to 1. If both texts are empty, return 1. Lin 2004, https://aclanthology.org/W04-1013.

    >>> round(rouge_l("police killed the gunman", "police kill the gunman"), 2)
    0.75
    """
    truth_words, output_words = split_words(truth), split_words(output)
    if not truth_words and not output_words:
        return 1.0
    from rapidfuzz.distance import LCSseq

    return 2 * LCSseq.similarity(truth_words, output_words) / (len(truth_words) + len(output_words))


COMPARATORS: Mapping[str, Comparator] = {
    "exact": Comparator(lambda value, rule: frozen(value)),
    "string": Comparator(_string, _has_edit_similarity),
    "number": Comparator(_number, _within_tolerance),
    "date": Comparator(_date, _within_days),
    "category": Comparator(_category),
    "text": Comparator(_category, _has_token_f1),
    "ignore": Comparator(lambda value, rule: ("ignored",)),
}


__all__ = ["Field", "FieldPlan", "FieldRule", "plan_fields"]

_BY_TYPE: Mapping[type, FieldRule] = {
    bool: FieldRule(compare="exact"),
    int: FieldRule(compare="number"),
    float: FieldRule(compare="number"),
    str: FieldRule(compare="string"),
}
_ANY = FieldRule(compare="exact")
_BEST = FieldRule(align="best")
_SET = FieldRule(align="set")
_DEFAULT_ALIGNMENT: Mapping[str, Align] = {
    "array of objects": "best",
    "array by position": "ordered",
    "array of scalars": "set",
}
_MAX_CACHED_FIELDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """The comparison rules of a component by field path, in the schema's order."""

    leaves: Mapping[str, FieldRule] = field(default_factory=dict)  # rules of values that are compared as a whole
    arrays: Mapping[str, FieldRule] = field(default_factory=dict)  # alignments of arrays
    declared: frozenset[str] = frozenset()  # paths with a rule in evals/datasets.json
    named: frozenset[str] = frozenset()  # paths of the schema, which `*` in a rule's path does not match
    numeric_texts: frozenset[str] = frozenset()  # paths where a text such as "4.75" is a number
    stars: frozenset[str] = field(init=False, repr=False, compare=False)  # beginnings of rule paths that end with `*`
    _fields: "dict[str, Field]" = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        stars = frozenset(star for path in (*self.leaves, *self.arrays) for star in _stars(path))
        object.__setattr__(self, "stars", stars)

    def leaf(self, path: str, value: Any = None) -> FieldRule:
        """Return the rule of a leaf. An unknown leaf has the rule for the type of its value."""
        return self.leaves.get(path) or _BY_TYPE.get(type(value), _ANY)

    @property
    def counts(self) -> bool:
        """Whether any field with a weight above 0 counts in field_level_f1. It is true for a plan without leaves."""
        return not self.leaves or any(rule.counts and rule.weight > 0 for rule in self.leaves.values())

    def field(self, path: str) -> "Field":
        """Return the field at a path."""
        cached = self._fields.get(path)
        if cached is None:
            cached = Field(path, self)
            if not self.full:
                self._fields[path] = cached
        return cached

    def with_numbers(self, value: Any, path: str = "") -> Any:
        """Convert the numeric texts in the value at `path` to numbers. All scores and digests use this form."""
        if not self.numeric_texts:
            return value
        if isinstance(value, dict):
            names = {key: name for name, key in keys_by_nfc_name(value).items()}
            members = dict(value)
            for key, child in value.items():  # no comprehension: one stack frame per level of nesting
                child_path = below(path, names.get(key) or key)
                members[key] = self.with_numbers(child, child_path if child_path in self.named else below(path, "*"))
            return members
        if isinstance(value, list):
            return [self.with_numbers(item, f"{path}[]") for item in value]
        return read_number(value) if isinstance(value, str) and path in self.numeric_texts else value

    @property
    def full(self) -> bool:
        """Whether the cache of fields is full. It is limited, because models can invent any number of keys."""
        return len(self._fields) >= _MAX_CACHED_FIELDS

    def walk(self, value: Any) -> "Iterator[tuple[Field, Any]]":
        """Yield the field and value of each object, array and leaf, outermost first; a value with a rule is a leaf."""
        ahead = [(self.field(""), value)]
        while ahead:  # iterative, because values may be hundreds of levels deep
            field, part = ahead.pop()
            yield field, part
            if field.rule is not None:
                continue
            if isinstance(part, dict):
                ahead += [(field.child(name), child) for name, child in reversed(with_nfc_keys(part).items())]
            elif isinstance(part, list):
                ahead += [(field.item, child) for child in reversed(part)]


class Field:
    """One path of a `FieldPlan`, and the fields below it. If the plan has no leaf rule for the path, `rule` is None."""

    __slots__ = ("_alignment", "_item", "_plan", "by_closeness", "children", "ignored", "is_star", "path", "rule")

    def __init__(self, path: str, plan: FieldPlan) -> None:
        self.path = path
        self.rule = plan.leaves.get(path)
        self.ignored = self.rule is not None and self.rule.compare == "ignore"
        self.by_closeness = self.rule is not None and self.rule.counts and not self.rule.exact_equality
        self.is_star = path in plan.stars
        self.children: dict[str, Field] = {}
        self._plan = plan
        self._alignment = plan.arrays.get(path)
        self._item: Field | None = None

    def child(self, key: str) -> "Field":
        """Return the field of an object's key."""
        cached = self.children.get(key)
        if cached is None:
            path, star, plan = below(self.path, key), below(self.path, "*"), self._plan
            is_named = path in plan.named or path in plan.leaves
            cached = plan.field(path if is_named or star not in plan.stars else star)
            if not plan.full:
                self.children[key] = cached
        return cached

    @property
    def item(self) -> "Field":
        """The field of an array's items."""
        if self._item is None:
            self._item = self._plan.field(f"{self.path}[]")
        return self._item

    def descendant(self, steps: Iterable[str | int]) -> "Field":
        """Return the field below this one at a path of keys and array indexes."""
        field = self
        for step in steps:
            field = field.item if isinstance(step, int) else field.child(step)
        return field

    def leaf_rule(self, value: Any) -> FieldRule:
        """Return the rule of this field, or the rule for the type of `value` if the field has none."""
        return self.rule or _BY_TYPE.get(type(value), _ANY)

    def array_rule(self, *items: Any) -> FieldRule:
        """Return the array's alignment. If the plan has none: `best` if an item is an object or array, else `set`."""
        if self._alignment is not None and self._alignment.align is not None:
            return self._alignment
        return _BEST if any(isinstance(item, dict | list) for item in items) else _SET


def plan_fields(schema: Mapping[str, Any] | None, declared: Mapping[str, FieldRule], where: str) -> FieldPlan:
    """Compile a schema and the rules declared in the file `where`. Raise ComponentError for an invalid declaration."""
    schema_paths = {} if schema is None else declarations.schema_places(schema)
    numeric = {path for path, path_schema in schema_paths.items() if path_schema.allows_numeric_text}
    kinds = {path: path_schema.kind for path, path_schema in schema_paths.items() if path or path_schema.kind != "any"}
    kinds |= dict.fromkeys(numeric, "number")
    if schema is not None:
        _check_paths(declared, kinds, where)
    leaves: dict[str, FieldRule] = {}
    arrays: dict[str, FieldRule] = {}
    compared = [path for path, rule in declared.items() if rule.compare is not None]
    closed = _paths_inside(compared, schema_paths, declared)
    open_keys = {star for path in declared for star in _stars(path)}
    for path, kind in {**kinds, **{path: kinds.get(path, "any") for path in declared}}.items():
        is_open = open_keys.issuperset(_stars(path))
        if path in closed or not is_open or (kind == "any" and path not in declared):
            continue
        rule = declared.get(path, FieldRule())
        if rule.compare is None and (kind.startswith("array") or (kind == "any" and rule.align)):
            arrays[path] = _array_rule(rule, kind, path, where)
        elif kind != "object" or rule.compare is not None:
            leaves[path] = _leaf_rule(rule, kind, path, where)
        elif path in declared:
            declarations.refuse_idle_settings(rule, "object", path, where)
    return FieldPlan(
        leaves=leaves,
        arrays=arrays,
        declared=frozenset(declared),
        named=frozenset(kinds),
        numeric_texts=frozenset(
            path for path in numeric - closed if path not in declared or declared[path].compare in (None, "number")
        ),
    )


def _stars(path: str) -> list[str]:
    """Return the path to each `*` in a path: for `a.*.b[].*.c` they are `a.*` and `a.*.b[].*`."""
    parts = path.split(".")
    return [".".join(parts[: index + 1]) for index, part in enumerate(parts) if part.removesuffix("[]") == "*"]


def _paths_inside(closed: Sequence[str], path_schemas: Mapping[str, SchemaPath], declared: Iterable[str]) -> set[str]:
    """Return the schema paths that are below a path of `closed`. If there is no schema, use the `declared` paths."""
    if path_schemas:
        return path_schemas.keys() - declarations.paths_outside(path_schemas, closed)
    return {
        path
        for path in declared
        for parent in closed
        if path != parent and path.startswith((f"{parent}.", f"{parent}[]") if parent else "")
    }


def _leaf_rule(rule: FieldRule, kind: str, path: str, where: str) -> FieldRule:
    chosen = rule if rule.compare else replace(rule, compare="string" if kind == "any" else kind)
    comparator(chosen.compare or "exact")  # raises for unknown comparators and plugins that do not load
    declarations.refuse_idle_settings(chosen, "leaf", path, where)
    return chosen


def _array_rule(rule: FieldRule, kind: str, path: str, where: str) -> FieldRule:
    align = rule.align or ("key" if rule.key else _DEFAULT_ALIGNMENT.get(kind))
    if align == "key" and not rule.key:
        raise ComponentError(f"`align: key` at fields.{path} in {where} requires `key: [NAME, …]`")
    chosen = replace(rule, align=align)
    declarations.refuse_idle_settings(chosen, "array", path, where)
    return chosen


def _check_paths(declared: Mapping[str, FieldRule], kinds: Mapping[str, str], where: str) -> None:
    for path, rule in declared.items():
        if path not in kinds:
            raise ComponentError(f"field '{path}' in {where} is not in the schema {nearest_path(path, kinds)}")
        items = [name.removeprefix(f"{path}[].") for name in kinds if name.startswith(f"{path}[].")]
        for key in rule.key:
            if key not in items:
                message = f"fields.{path}.key in {where} names '{key}', which the items of '{path}' lack"
                raise ComponentError(f"{message} {nearest_path(key, items)}")

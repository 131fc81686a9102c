"""Hints at probable mistakes of a component: in its declarations, seen in its ground truth, or in its questions' keys.

Few guesses, each precise. A hint is no error; what it points at can be right.
"""

import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill_evaluator.comparing.comparators import amount, canonical
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Waiver
from skill_evaluator.text import letters_of
from skill_evaluator.verdicts.decide.comparability import TO_MOVE

_FEW = 3  # fewer ground truths, arrays or values show no pattern
_LONGEST_KEY = 60
_ALPHA = 0.01  # a letter is the key so often by chance at most this often
_DATE_FORMATS = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %B %Y", "%B %d, %Y")
_MONEY = re.compile(r"\d,\d{3}(?!\d)|\d[.,]\d\d(?!\d)")  # a bare run of digits, or `47.041`, is as often a code
_NAMES_IN_PATH = re.compile(r"[^.\[\]]+")


class _Seen:
    """The values of all ground truths by path of the plan; of an array its lists of items."""

    def __init__(self, truths: Sequence[Any], plan: FieldPlan) -> None:
        self.values: dict[str, list[Any]] = {}
        self.arrays: dict[str, list[list[Any]]] = {}
        for field, value in (part for truth in truths for part in plan.walk(truth)):
            if value is not None:
                self.values.setdefault(field.path, []).append(value)
            if field.rule is None and value and isinstance(value, list):
                self.arrays.setdefault(field.path, []).append(value)


def hints(component: Component, truths: Sequence[Any]) -> list[str]:
    """Return hints of one line each; of fewer than three ground truths, or of no JSON, those at prose alone."""
    prose = list(_hint_at_prose(component))
    if component.output != "json" or len(truths) < _FEW:
        return prose
    seen = _Seen(truths, component.plan)
    return [
        *prose,
        *_hint_at_keys(component.plan, seen),
        *_hint_at_types(component.plan, seen),
        *_hint_at_empty_fields(component.plan, seen),
    ]


def _hint_at_prose(component: Component) -> Iterator[str]:
    """Hint at every field that is taken for prose; what that means for field_level_f1 is for a person to decide."""
    for path, median in component.prose.items():
        what = f"'{path}'" if path else "the whole answer"
        threshold = component.plan.leaves[path].threshold
        counts = "is not in field_level_f1" if threshold is None else f"counts from token F1 {threshold:g}"
        advice = "" if threshold is not None else ', or a "threshold" from which it counts as equal'
        yield (
            f"{what} is prose (a median of {median:g} characters in the ground truths): it is compared as text and "
            f'{counts}; declare "compare": "string" at fields.{json.dumps(path)} where the wording matters{advice}'
        )

    if component.primary_metric == "exact_match" and not component.plan.counts:
        yield f"exact_match decides, of answers that are prose: it would be 0 for ever, and no drop seen; {TO_MOVE}"


def waiver_hints(waivers: Iterable[Waiver], skill: str) -> Iterator[str]:
    """Hint at waivers of a component that accept a drop of any size."""
    for waiver in waivers:
        if waiver.component == skill and waiver.down_to is None:
            yield (
                f"the waiver of '{waiver.metric or waiver.field}' until {waiver.expires} accepts any later drop, too: "
                "add its floor, `down_to`, the lowest score that is accepted"
            )


def _hint_at_keys(plan: FieldPlan, seen: _Seen) -> Iterator[str]:
    """Hint at arrays aligned by the best assignment in which one field tells all items apart."""
    for path, rule in plan.arrays.items():
        lists = seen.arrays.get(path, [])
        if rule.align != "best" or path in plan.declared or sum(len(items) > 1 for items in lists) < _FEW:
            continue
        names = [name.removeprefix(f"{path}[].") for name in plan.leaves if name.startswith(f"{path}[].")]
        key = next((name for name in names if all(_tells_apart(items, path, name, plan) for items in lists)), None)
        if key is not None:
            declared = json.dumps({path: {"align": "key", "key": [key]}}, ensure_ascii=False)
            yield (
                f"'{path}' is aligned by best assignment, but in every ground truth each item has its own '{key}'; "
                f"if that identifies items, declare {declared[1:-1]}"
            )


def _tells_apart(items: Sequence[Any], path: str, name: str, plan: FieldPlan) -> bool:
    """Tell whether a field is a short text or category that every item has and no two share."""
    rule = plan.leaves[f"{path}[].{name}"]
    values = [item.get(name) if isinstance(item, dict) else None for item in items]
    if rule.compare not in ("string", "category"):
        return False
    if not all(isinstance(value, str) and 0 < len(value) <= _LONGEST_KEY for value in values):
        return False
    return len({canonical(value, rule) for value in values}) == len(values)


def _hint_at_types(plan: FieldPlan, seen: _Seen) -> Iterator[str]:
    """Hint at fields that are compared as text although all their values are dates or amounts."""
    for path, rule in plan.leaves.items():
        values = seen.values.get(path, [])
        if rule.compare != "string" or path in plan.declared or len(values) < _FEW:
            continue
        formats = [form for form in _DATE_FORMATS if all(_is_date(value, form) for value in values)]
        if formats:
            given = "" if formats[0] == "%Y-%m-%d" else f', "formats": ["{formats[0]}"]'
            other = f" (or {', '.join(formats[1:])})" if formats[1:] else ""
            declared = f'"compare": "date"{given}{other}'
            yield f"'{path}' is a date in every ground truth; to compare days, declare {declared}"
        elif all(isinstance(value, str) and amount(value) is not None and _MONEY.search(value) for value in values):
            declared = '"compare": "number", "from_string": true'
            yield f"'{path}' is a number in every ground truth; to compare amounts, declare {declared}"


def _is_date(value: Any, form: str) -> bool:
    try:
        datetime.datetime.strptime(value, form)
    except (ValueError, TypeError):
        return False
    return True


def _hint_at_empty_fields(plan: FieldPlan, seen: _Seen) -> Iterator[str]:
    """Hint at fields that no ground truth has; an object or array that is always empty is one hint, not one a field."""
    hinted: set[str] = set()
    for path, rule in plan.leaves.items():
        if path in seen.values or rule.compare == "ignore":
            continue
        empty = next(
            part
            for part in (*_ancestors(path), path)
            if part not in seen.values or (part not in seen.arrays and isinstance(seen.values[part][0], list))
        )
        names = _NAMES_IN_PATH.findall(empty)
        if empty in hinted or len(names) > len(set(names)):  # a recursive schema ends somewhere
            continue
        hinted.add(empty)
        what = "empty" if empty in seen.values or empty in plan.arrays else "null"
        yield f"'{empty}' is {what} in every ground truth: these cases cannot show whether it is read right"


def _ancestors(path: str) -> Iterator[str]:
    """Yield the objects and arrays around a path, the outermost first: `a.b[].c` → `a`, `a.b`, `a.b[]`."""
    for match in re.finditer(r"\.|\[\]", path):
        yield path[: match.start()]
        if match[0] == "[]" and match.end() < len(path):
            yield path[: match.end()]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyBalance:
    """The fewest and most options of the questions, and how often each letter is the key.

    `expected` is how often it would be if every option were as likely. A model that always answers with one letter
    must not look able because the key has that habit.
    """

    fewest_options: int
    most_options: int
    keys: Mapping[str, int]
    expected: Mapping[str, float]

    @property
    def warnings(self) -> list[str]:
        """The hints, one for each letter that is the key much more often than its share."""
        from scipy.special import bdtrc

        answered = sum(self.keys.values())
        return [
            f"{letter} is the key of {count} of {answered} questions, where {self.expected[letter]:.1f} are its share; "
            "shuffle the options, or a model that always says it looks able"
            for letter, count in self.keys.items()
            if count > self.expected[letter]
            and bdtrc(count - 1, answered, self.expected[letter] / answered) < _ALPHA  # so many or more, by chance
        ]


def key_balance(cases: Sequence[Case]) -> KeyBalance | None:
    """Return the balance of the questions' keys; None without questions."""
    sizes = [len(case.options) for case in cases]
    if not sizes:
        return None
    answered = [case for case in cases if case.labelled]
    keys = Counter(str(case.truth) for case in answered)
    letters = letters_of(("",) * max(sizes))
    return KeyBalance(
        fewest_options=min(sizes),
        most_options=max(sizes),
        keys={letter: keys[letter] for letter in letters},
        expected={
            letter: sum((1 / len(case.options) for case in answered if letter in letters_of(case.options)), 0.0)
            for letter in letters
        },
    )

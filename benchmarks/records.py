"""Seeded records such as documents are read into, and their mutants: what the scoring benchmarks share.

An award notice (`record`: 14.6 KB, 250 leaves, arrays of 30, 6 and 8), one in whose arrays several items have one key
(`with_repeated_keys`), and a form (`wide_record`: 300 fields and no array).
"""

import copy
import json
import random
from typing import Any

from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule, plan_fields

_WORDS = (
    "research",
    "equipment",
    "travel",
    "participant",
    "stipend",
    "indirect",
    "subaward",
    "laboratory",
    "materials",
    "publication",
    "consultant",
    "fellowship",
    "instrument",
    "fieldwork",
    "analysis",
    "reporting",
    "compliance",
    "university",
    "department",
    "program",
    "national",
    "institute",
    "sustainable",
    "molecular",
    "engineering",
    "statistics",
    "community",
    "oceanic",
    "thermal",
    "adaptive",
    "longitudinal",
    "observation",
)
_CATEGORIES = ["personnel", "equipment", "travel", "participant support", "other direct costs", "indirect costs"]
_TEXT = {"type": ["string", "null"]}
_NUMBER = {"type": ["number", "null"]}
_FLAG = {"type": ["boolean", "null"]}
_DAY = {"type": ["string", "null"], "format": "date"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_object(
        award_number=_TEXT,
        title=_TEXT,
        abstract=_TEXT,
        sponsor=_object(name=_TEXT, program=_TEXT, contact=_TEXT, email=_TEXT),
        recipient=_object(name=_TEXT, unit=_TEXT, country=_TEXT),
        dates=_object(start=_DAY, end=_DAY, signed=_DAY),
        amounts=_object(this_action=_NUMBER, obligated=_NUMBER, anticipated=_NUMBER, cost_share=_NUMBER),
        keywords={"type": "array", "items": {"type": "string"}},
        budget={
            "type": "array",
            "items": _object(
                line=_TEXT,
                category={"enum": [*_CATEGORIES, None]},
                description=_TEXT,
                amount=_NUMBER,
                approved=_FLAG,
            ),
        },
        personnel={
            "type": "array",
            "items": _object(name=_TEXT, role=_TEXT, organization=_TEXT, email=_TEXT, effort=_NUMBER),
        },
        conditions={"type": "array", "items": _object(number=_TEXT, title=_TEXT, text=_TEXT, due=_DAY, binding=_FLAG)},
    ),
}
KEYS = {"budget": ("line",), "personnel": ("name",), "conditions": ("number",)}


def keyed_plan() -> FieldPlan:
    """Every array of objects by its key, keywords as a multiset."""
    return plan_fields(SCHEMA, {path: FieldRule(align="key", key=key) for path, key in KEYS.items()}, "benchmark")


def assigned_plan() -> FieldPlan:
    """Every array of objects by the optimal assignment, keywords as a multiset: what the schema alone implies."""
    return plan_fields(SCHEMA, {}, "benchmark")


def record(seed: int = 0) -> dict[str, Any]:
    """The record: the same one for the same seed."""
    dice = random.Random(seed)
    return {
        "award_number": f"AW-{dice.randrange(10**7):07}",
        "title": _phrase(dice, 9),
        "abstract": _phrase(dice, 120),
        "sponsor": {
            "name": _phrase(dice, 4),
            "program": _phrase(dice, 5),
            "contact": _name(dice),
            "email": _mail(dice),
        },
        "recipient": {"name": _phrase(dice, 3), "unit": _phrase(dice, 4), "country": "US"},
        "dates": {"start": _day(dice), "end": _day(dice), "signed": _day(dice)},
        "amounts": {name: _amount(dice) for name in ("this_action", "obligated", "anticipated", "cost_share")},
        "keywords": [f"{_phrase(dice, 2)} {index}" for index in range(13)],
        "budget": [_budget_line(dice, index) for index in range(30)],
        "personnel": [_person(dice) for _ in range(6)],
        "conditions": [_condition(dice, index) for index in range(8)],
    }


def with_repeated_keys(seed: int = 0) -> dict[str, Any]:
    """The record, but that three items of each array share a key: lines of one number, rooms of one person."""
    repeated = record(seed)
    for path, (key,) in KEYS.items():
        for index, item in enumerate(repeated[path]):
            item[key] = repeated[path][index - index % 3][key]
    return repeated


WIDE_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_object(**{f"field_{index:03}": (_TEXT, _NUMBER, _FLAG, _DAY)[index % 4] for index in range(300)}),
}


def wide_record(seed: int = 0) -> dict[str, Any]:
    """A form of 300 fields, all at the top."""
    dice = random.Random(seed)
    kinds = (lambda: _phrase(dice, 5), lambda: _amount(dice), lambda: dice.random() < 0.5, lambda: _day(dice))
    return {name: kinds[index % 4]() for index, name in enumerate(WIDE_SCHEMA["properties"])}


def mutant(truth: dict[str, Any], seed: int, share: float = 0.05) -> dict[str, Any]:
    """The record as a model might return it: a share of its leaves changed, items dropped and added, all reordered."""
    dice = random.Random(seed)
    changed = _changed(truth, dice, share)
    for path, items in changed.items():
        if path in KEYS and items:
            if dice.random() < 0.5:
                items.pop(dice.randrange(len(items)))
            if dice.random() < 0.5:
                items.append({**copy.deepcopy(dice.choice(items)), KEYS[path][0]: f"added {dice.randrange(10**6)}"})
    return _reordered(changed, dice)


def text_of(value: Any) -> str:
    """The JSON text a model writes of it, indented."""
    return json.dumps(value, indent=2)


def leaves(value: Any) -> int:
    """How many leaves a value has."""
    if isinstance(value, dict | list):
        return sum(map(leaves, value.values() if isinstance(value, dict) else value))
    return value is not None


def _changed(value: Any, dice: random.Random, share: float) -> Any:
    if isinstance(value, dict):
        return {key: _changed(child, dice, share) for key, child in value.items()}
    if isinstance(value, list):
        changed = [_changed(child, dice, share) for child in value]
        return [child if new is None else new for child, new in zip(value, changed, strict=True)]  # no null items
    if dice.random() >= share:
        return value
    if isinstance(value, bool):
        return not value
    if value in _CATEGORIES:
        return dice.choice(_CATEGORIES)
    if isinstance(value, str):
        return dice.choice([None, f"{value} {dice.choice(_WORDS)}", _phrase(dice, 3)])
    return dice.choice([None, value + 1, round(value * 1.1, 2)])


def _reordered(value: Any, dice: random.Random) -> Any:
    if isinstance(value, dict):
        return {key: _reordered(value[key], dice) for key in dice.sample(list(value), len(value))}
    if isinstance(value, list):
        return [_reordered(child, dice) for child in dice.sample(value, len(value))]
    return value


def _budget_line(dice: random.Random, index: int) -> dict[str, Any]:
    return {
        "line": f"B-{index + 1:03}",
        "category": dice.choice(_CATEGORIES),
        "description": _phrase(dice, 8),
        "amount": _amount(dice),
        "approved": dice.random() < 0.5,
    }


def _person(dice: random.Random) -> dict[str, Any]:
    return {
        "name": _name(dice),
        "role": dice.choice(["principal investigator", "co-investigator", "student", "postdoc"]),
        "organization": _phrase(dice, 3),
        "email": _mail(dice),
        "effort": dice.randrange(1, 100),
    }


def _condition(dice: random.Random, index: int) -> dict[str, Any]:
    return {
        "number": f"{index + 1}",
        "title": _phrase(dice, 4),
        "text": _phrase(dice, 35),
        "due": _day(dice),
        "binding": dice.random() < 0.5,
    }


def _phrase(dice: random.Random, length: int) -> str:
    return " ".join(dice.choices(_WORDS, k=length))


def _name(dice: random.Random) -> str:
    return f"{dice.choice(_WORDS).title()} {dice.choice(_WORDS).title()} {dice.randrange(100)}"


def _mail(dice: random.Random) -> str:
    return f"{dice.choice(_WORDS)}{dice.randrange(1000)}@{dice.choice(_WORDS)}.example.org"


def _amount(dice: random.Random) -> float:
    return round(dice.uniform(1_000, 900_000), 2)


def _day(dice: random.Random) -> str:
    return f"{dice.randrange(2019, 2030)}-{dice.randrange(1, 13):02}-{dice.randrange(1, 29):02}"

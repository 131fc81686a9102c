"""Field settings that another program gives, as dicts → checked `FieldRule`s.

Its own module because checking takes pydantic, which a program that gives none need not wait for.
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from skill_evaluator.errors import ComponentError
from skill_evaluator.files import validated
from skill_evaluator.metrics.rules import FieldRule, refuse_wrong_rules


class _Settings(BaseModel):
    fields: dict[str, FieldRule]


def field_rules(fields: Any, where: str) -> dict[str, FieldRule]:
    """The rules by path; raises ComponentError with the key path of the first thing wrong."""
    rules = validated(_Settings, {"fields": fields}, Path(where), ComponentError).fields
    refuse_wrong_rules(rules, "fields", where)
    return rules

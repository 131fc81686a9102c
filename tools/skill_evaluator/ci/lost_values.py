"""The values of lost fields before and after, one case per field."""

import re
from collections.abc import Mapping
from itertools import islice

from skill_evaluator.ci.matrix import CiOptions
from skill_evaluator.ci.outcome import LostValue
from skill_evaluator.display.safe_text import value_pair
from skill_evaluator.library.cases import load_cases
from skill_evaluator.records.record import Record
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.answer_views import answer_changes
from skill_evaluator.verdicts.decide.results import ModelVerdict

Scored = tuple[Record, Mapping[Call, Replicate]]
"""The record of a run, and its outputs."""
MAX_FIELDS = 3  # fields per model
_INDEX = re.compile(r"\[\d+\]")


def lost_values(verdict: ModelVerdict, baseline: Scored, candidate: Scored, checkout: CiOptions) -> list[LostValue]:
    """Return a value before and after for the first lost fields, each from the case with the largest drop."""
    (before, outputs_before), (after, outputs_after) = baseline, candidate
    component = checkout.component(after.skill)
    cases = load_cases(component, checkout.fixtures)
    changes = list(answer_changes(component, cases, before, after, (outputs_before, outputs_after)))
    changes.sort(key=lambda change: (change.score_after or 0.0) - (change.score_before or 0.0))
    values: list[LostValue] = []
    for field in verdict.lost_fields[:MAX_FIELDS]:
        at_field = (
            (change.case_id, value)
            for change in changes
            for value in change.values
            if _INDEX.sub("[]", value.path) == field
        )
        for case_id, value in islice(at_field, 1):
            old, new = value_pair(value.before, value.after)
            values.append(LostValue(case_id=case_id, path=value.path, before=old, after=new))
    return values

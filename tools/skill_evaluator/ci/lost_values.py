"""The values of lost fields before and after, one case a field, from the outputs that the jobs of a plan brought."""

import re
from collections.abc import Iterator, Mapping, Sequence

from skill_evaluator.ci.matrix import Checkout
from skill_evaluator.ci.outcome import LostValue
from skill_evaluator.display.safe_text import value_pair
from skill_evaluator.library.cases import load_cases
from skill_evaluator.records.record import Record
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.answer_views import AnswerChange, answer_changes
from skill_evaluator.verdicts.decide.results import ModelVerdict

MAX_FIELDS = 3  # of a model
_INDEX = re.compile(r"\[\d+\]")


def lost_values(
    verdict: ModelVerdict,
    runs: tuple[Record, Record],
    outputs: tuple[Mapping[Call, Replicate], ...],
    checkout: Checkout,
) -> list[LostValue]:
    """Return a value before and after for each lost field, from the case whose most frequent output fell furthest.

    `runs` and `outputs` are those of the baseline and the candidate. Return nothing if the cases are kept in a
    different repository, whose readers may be others.
    """
    if not verdict.lost_fields or checkout.configuration.settings.fixtures is not None:
        return []
    baseline, candidate = runs
    component = checkout.component(candidate.skill)
    cases = load_cases(component, checkout.fixtures)
    changes = list(answer_changes(component, cases, baseline, candidate, (outputs[0], outputs[1])))
    changes.sort(key=lambda change: (change.score_after or 0.0) - (change.score_before or 0.0))
    found = (next(_values_of(field, changes), None) for field in verdict.lost_fields[:MAX_FIELDS])
    return [value for value in found if value is not None]


def _values_of(field: str, changes: Sequence[AnswerChange]) -> Iterator[LostValue]:
    """Yield the changed values at the path of a field."""
    for change in changes:
        for value in change.values:
            if _INDEX.sub("[]", value.path) == field:
                before, after = value_pair(value.before, value.after)
                yield LostValue(case_id=change.case_id, path=value.path, before=before, after=after)

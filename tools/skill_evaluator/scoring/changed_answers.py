"""The answers of two runs of a model side by side: in which cases the commonest one changed, and where.

For people who try an edit. No score and no verdict comes of it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.parsing.answer import parse_output
from skill_evaluator.records.record import NOT_RUN, UNPARSEABLE, Record
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.text import ValueChange, canonical_json, differences

_LONGEST = 50_000  # characters of an answer whose differences are worked out; more would take minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonAnswer:
    """The commonest answer to a case: `times` of `n`. `value` is None where it is a failure, which `failure` names."""

    value: Any
    failure: str | None
    times: int
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChange:
    """A case whose commonest answer is another than it was, with the primary metric's strict mean before and after.

    `values` is empty where one of the two is no value, or too long to be compared.
    """

    case_id: str
    before: CommonAnswer
    after: CommonAnswer
    score_before: float | None
    score_after: float | None
    values: tuple[ValueChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedAnswers:
    """What became of a model's answers since its baseline; `absent` says why that cannot be told."""

    model_id: str
    baseline: str
    compared: int = 0
    changes: tuple[AnswerChange, ...] = ()
    absent: str | None = None


Answers = Mapping[Call, Replicate]


def answer_changes(
    component: Component, cases: Sequence[Case], baseline: Record, candidate: Record, answers: tuple[Answers, Answers]
) -> Iterator[AnswerChange]:
    """Yield the changes of the cases that both runs have unchanged; `answers` are those of baseline and candidate."""
    before = {case.case_id: case for case in baseline.per_case}
    after = {case.case_id: case for case in candidate.per_case}
    for case in cases:
        rows = before.get(case.id), after.get(case.id)
        if rows[0] is None or rows[1] is None or rows[0].digest != rows[1].digest:
            continue
        old, new = (_commonest(component, case, replies) for replies in answers)
        if (old.failure, canonical_json(old.value)) == (new.failure, canonical_json(new.value)):
            continue
        scores = [row.accuracy.get(candidate.primary_metric) for row in rows if row is not None]
        yield AnswerChange(
            case_id=case.id,
            before=old,
            after=new,
            score_before=scores[0].strict_mean if scores[0] else None,
            score_after=scores[1].strict_mean if scores[1] else None,
            values=_values_changed(old, new),
        )


def _commonest(component: Component, case: Case, answers: Answers) -> CommonAnswer:
    """Return the answer that came most often, the first of several; failures of one kind are one answer."""
    outcomes: Counter[tuple[str | None, str]] = Counter()
    values: dict[str, Any] = {}
    for replicate in (replicate for call, replicate in answers.items() if call.case_id == case.id):
        if replicate.completion is None or replicate.failure is not None:
            outcomes[replicate.failure.kind if replicate.failure else NOT_RUN, ""] += 1
            continue
        parsed = parse_output(replicate.completion.text, component.output, case.options)
        text = canonical_json(parsed.value)
        values.setdefault(text, parsed.value)
        outcomes[(UNPARSEABLE, "") if parsed.found is None else (None, text)] += 1
    if not outcomes:
        return CommonAnswer(value=None, failure=NOT_RUN, times=0, n=0)
    ((failure, text), times), *_ = outcomes.most_common(1)
    return CommonAnswer(
        value=values.get(text) if failure is None else None, failure=failure, times=times, n=outcomes.total()
    )


def _values_changed(before: CommonAnswer, after: CommonAnswer) -> tuple[ValueChange, ...]:
    if before.failure is not None or after.failure is not None:
        return ()
    if max(len(canonical_json(side.value)) for side in (before, after)) > _LONGEST:
        return ()
    return tuple(differences(before.value, after.value))
